"""Older versions of a resource: who may not have one is told what he would hear of one that never was."""

from __future__ import annotations

from octavo.core.errors import InvalidParams, OctavoError
from octavo.core.operations import VERB_OF
from octavo.core.ports.chain import Next, Reply, settled
from octavo.core.ref import Ref
from octavo.core.values import Call, Content, Entry
from octavo.pipeline.policy.refusals import told
from octavo.pipeline.policy.rules import Depends
from octavo.pipeline.policy.visibility import Seeing


def is_version(ref: Ref) -> bool:
    return bool(ref.params) and ref.param("version") is not None


async def is_older(seeing: Seeing, verdict: Depends, call: Call, call_next: Next) -> bool:
    """Whether what is refused is a version of something that the caller may see as it is now."""
    ref = call.ref
    return is_version(ref) and (await seeing.settle(verdict, call, ref.bare, call_next)).allowed


async def version(seeing: Seeing, call: Call, call_next: Next) -> Reply:
    """The version, where the caller may also read where it stood then."""
    reply = await settled(call_next(call))
    entry = reply.entry if isinstance(reply, Content) else reply if isinstance(reply, Entry) else None
    target = None if entry is None else entry.target
    if target is None:
        return reply
    decision = seeing.decide(call.principal, VERB_OF[call.op], target, seeing.told_by(entry))
    return reply if decision.allowed else await no_version(call, call_next)


async def no_version(call: Call, call_next: Next) -> Reply:
    none = call._replace(ref=call.ref.bare._replace(params=(("version", ""),)))
    try:
        return await settled(call_next(none))
    except OctavoError as raised:
        raise told(none, raised) from None


def without_others(raised: InvalidParams) -> InvalidParams:
    """An error about a version, where the metadata of each decide who may know it: it names none of them, since all
    would have to be read for that."""
    told = InvalidParams(raised.discreet or raised.message)
    told.data = raised.data
    return told
