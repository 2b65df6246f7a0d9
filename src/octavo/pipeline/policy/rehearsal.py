"""Looks whether a change could succeed now, before a human is asked to approve it.

Only who may know what stands there is told more than the rules and the shape of the call say: to all others the answer
comes with the act.
"""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from octavo.core.arguments import PLAIN, CopyArguments, EditArguments, WriteArguments, if_match_of
from octavo.core.errors import Conflict, Forbidden, NotFound, TooLarge
from octavo.core.ports.chain import Next, expected, settled
from octavo.core.ref import Ref
from octavo.core.values import Call, Content, Entry, Trail
from octavo.pipeline.policy.on_write import WritePolicy, done, is_folder, knows_target


class Knows(WritePolicy, Protocol):
    def knows(self, call: Call) -> bool: ...


async def refuse_impossible(judge: Knows, call: Call, call_next: Next) -> None:
    """Raises what the act would raise. Changes nothing."""
    if call.op == "edit":
        dry = call._replace(arguments=replace(call.given(EditArguments), dry_run=True), trail=Trail())
        await done(judge, dry, call_next)
    elif call.op != "undo" and judge.knows(call):
        await _refuse_by_state(judge, call, call_next)


async def _refuse_by_state(judge: Knows, call: Call, call_next: Next) -> None:
    asked, uri = call.arguments, str(call.ref)
    if_match, mode = if_match_of(asked), asked.mode if isinstance(asked, WriteArguments) else None
    entry = await _entry(judge, call, call.ref, call_next)
    if call.op == "make":
        if entry is not None:
            raise Conflict(f"A file stands at {uri}; a directory cannot be made there, choose another name", uri=uri)
        return
    if entry is None and call.op == "write":
        if if_match is not None:
            raise Conflict(f"{uri} does not exist, so it has no version to match; leave if_match out", uri=uri)
        if mode == "overwrite":
            raise NotFound(f"Resource not found: {uri}", uri=uri)
        return
    if entry is None:
        if not await is_folder(call, call_next):
            raise NotFound(f"Resource not found: {uri}", uri=uri)
    else:
        await _refuse_stale(call, entry, if_match, call_next)
        if mode == "create":
            raise Conflict(f"{uri} exists already; use the mode overwrite to replace it", uri=uri)
    if not isinstance(asked, CopyArguments) or asked.overwrite:
        return
    to = asked.to
    if not judge.knows(call._replace(op="write", ref=to)):
        return
    if await _entry(judge, call, to, call_next) is not None:
        raise Conflict(f"{to} exists already; say overwrite to replace it", uri=str(to))


async def _entry(judge: WritePolicy, call: Call, ref: Ref, call_next: Next) -> Entry | None:
    """What stands there, with the eyes of the caller: a link to what he may not know of is one to nothing."""
    look = call._replace(op="stat", ref=ref, arguments=PLAIN, trail=Trail())
    try:
        entry = expected(await settled(call_next(look)), Entry)
    except (NotFound, Forbidden):  # a folder is no resource, and its name has no extension to be served
        return None
    return entry if await knows_target(judge, call, entry, call_next) else None


async def _refuse_stale(call: Call, entry: Entry, if_match: str | None, call_next: Next) -> None:
    if if_match is None or if_match in (entry.version, entry.etag):
        return
    try:
        look = call._replace(op="read", arguments=PLAIN, trail=Trail())
        content = expected(await settled(call_next(look)), Content)
    except TooLarge:
        return  # then the source finds out
    if if_match not in (content.etag, content.entry.version):
        raise Conflict(f"{call.ref} has changed since that version; read it again", uri=str(call.ref))
