"""`octavo ls`, `cat` and `watch`: the same pipeline as any client, with the same policy and audit."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from octavo.cli._screen import give, out
from octavo.cli._shared import (
    LOCAL,
    as_option,
    config_option,
    json_option,
    known_agent,
    loaded,
    print_json,
    say,
    tell,
)
from octavo.cli._visible import nothing_for
from octavo.cli._words import said
from octavo.core.errors import NotFound, OctavoError
from octavo.core.ref import Ref

if TYPE_CHECKING:
    from octavo.config.load import Loaded
    from octavo.core.glob import Glob
    from octavo.core.values import Change, Content, Entry

LOOK = 0.2  # seconds between two looks at the audit log
_NEAR: Final = 3  # addresses that are named
_MARK: Final = "://"


@click.command(short_help="List resources: everything, or what stands below URI.")
@click.argument("uri", required=False)
@config_option
@as_option
@click.option("--long", "-l", "detailed", is_flag=True, help="Size, media type and name as well.")
@json_option
def ls(uri: str | None, config_file: Path | None, as_who: str | None, detailed: bool, as_json: bool) -> None:
    """List resources: everything, or what stands below URI.

    Where one scheme is served, a path will do: octavo ls team.
    """
    from octavo.app import queries

    found = loaded(config_file)
    who = known_agent(found, as_who)
    below = None if uri is None else addressed(found, who, uri)
    with meant(found, who, below or ""):
        entries, unavailable = queries.listed(found, who, below)
    if as_json:
        print_json({"resources": [_entry(entry) for entry in entries], "unavailable": unavailable})
        return
    for entry in entries:
        out(f"{entry.size or 0:>10}  {entry.mime_type:<24}  {entry.ref}  {entry.name}" if detailed else str(entry.ref))
    for name in unavailable:
        say("warning", f"{name} could not be asked; the list is without it")
    if not entries:
        near = near_folders(found, who, below) if below else []
        told = said("list.near", uri=below, near=", ".join(near)) if near else nothing_for(found, as_who or LOCAL)
        say("note", told)


@click.command(short_help="Print the content of the resource at URI.")
@click.argument("uri")
@config_option
@as_option
@json_option
def cat(uri: str, config_file: Path | None, as_who: str | None, as_json: bool) -> None:
    """Print the content of the resource at URI.

    Where one scheme is served, a path will do: octavo cat team/leave.
    """
    from octavo.app import queries

    found = loaded(config_file)
    who = known_agent(found, as_who)
    uri = addressed(found, who, uri)
    with meant(found, who, uri):
        content = queries.read(found, who, uri)
    if as_json:
        print_json(_content(content))
    else:
        give(content.body)


@click.command(short_help="Print changes of resources as they happen.")
@click.argument("pattern", default="**")
@config_option
@as_option
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="End after N changes or calls.")
@click.option(
    "--after", type=click.IntRange(0, 2**53), metavar="NUMBER", help="First what has changed since that number."
)
@click.option("--calls", is_flag=True, help="Print the calls of all clients instead, as the audit log records them.")
@json_option
def watch(
    pattern: str,
    config_file: Path | None,
    as_who: str | None,
    count: int | None,
    after: int | None,
    calls: bool,
    as_json: bool,
) -> None:
    """Print changes of resources as they happen: all, or those that PATTERN matches. Ends with Ctrl-C.

    With --after it goes on from a number of the change feed, whether or not a server runs; the number of each change
    stands in the output of --json.

    With --calls it prints who asks for what, and what became of it; --as then means calls of that agent alone.
    With --json each line is one object.
    """
    if calls:
        if after is not None:
            raise click.UsageError("--after is about changes, and --calls is not")
        _watch_calls(pattern, config_file, as_who, count, as_json)
        return
    from octavo.app import queries
    from octavo.core.event import event, numbered

    def show(change: Change, uri: str) -> None:
        if as_json:
            # Without --after the journal is not asked, and what it would give as number is not known.
            said = event(change, uri) if after is None else numbered(change, uri)
            out(json.dumps(said, ensure_ascii=False))
        else:
            moved = "" if change.shown_source is None else f"{change.shown_source}  ->  "
            out(f"{change.kind}  {moved}{uri or change.shown}")

    def ready() -> None:
        tell(f"watching {pattern}")

    def gap(following: int) -> None:
        say("warning", f"changes since {after} may be missing: list anew; what comes now is told from {following} on")

    found = loaded(config_file)
    who = known_agent(found, as_who)
    if after is None:
        queries.watched(found, who, pattern, show, ready=ready, count=count)
    else:
        queries.watched_after(found, who, pattern, show, after=after, ready=ready, gap=gap, count=count)


def _watch_calls(pattern: str, config_file: Path | None, who: str | None, count: int | None, as_json: bool) -> None:
    from octavo.core.glob import Glob

    glob = None if pattern == "**" else Glob(pattern)  # what has no address is only shown where everything is
    found, left = loaded(config_file), [count]

    def show(record: dict[str, Any]) -> bool:
        if (who is None or record.get("who") == who) and (glob is None or _matches(glob, record.get("uri"))):
            out(json.dumps(record, ensure_ascii=False) if as_json else _line(record))
            left[0] = None if left[0] is None else left[0] - 1
        return left[0] != 0

    follow(found, show, ready=lambda: tell("watching calls"))


def follow(loaded: Loaded, show: Callable[[dict[str, Any]], bool], *, ready: Callable[[], None]) -> None:
    """Shows records of all servers on this state as they are written, until `show` says that it is enough."""
    from octavo.config.load import state_directory
    from octavo.stores.audit.query import Recent

    recent = Recent(state_directory(loaded) / "audit")
    ready()
    while True:
        for record in recent.fresh():
            if not show(record):
                return
        time.sleep(LOOK)


def _matches(glob: Glob, uri: object) -> bool:
    try:
        return glob.matches(Ref.parse(str(uri)))
    except OctavoError:
        return False


def _line(record: dict[str, Any]) -> str:
    took = f"  {record['us'] / 1000:.1f} ms" if "us" in record else ""
    below = "  " if "parent" in record else ""
    what = f"{record.get('op')} {record.get('uri', '')}".rstrip()
    return f"{str(record.get('time', ''))[11:23]}  {record.get('who')}  {below}{what}  {record.get('outcome')}{took}"


def _entry(entry: Entry) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "uri": str(entry.ref),
        "name": entry.name,
        "title": entry.title,
        "description": entry.description,
        "mimeType": entry.mime_type,
        "size": entry.size,
        "version": entry.version,
        "metadata": dict(entry.metadata),
    }
    return {key: value for key, value in facts.items() if value not in (None, {})}


def _content(content: Content) -> dict[str, Any]:
    body = content.body
    if isinstance(body, bytes):
        return {**_entry(content.entry), "blob": base64.b64encode(body).decode("ascii"), "etag": content.etag}
    return {**_entry(content.entry), "text": body, "etag": content.etag}


def addressed(found: Loaded, who: str | None, text: str) -> str:
    """An address as it is; a name or a path below the one scheme that is served. Raises UsageError where there are
    several, with the nearest addresses that `who` may list."""
    if _MARK in text:
        return text
    schemes = list(dict.fromkeys(one.scheme for one in found.config.sources.values() if one.expose))
    if len(schemes) == 1:
        absolute = text.startswith("/") and schemes[0] == "file"
        return str(Ref.of(schemes[0], [one for one in text.split("/") if one not in ("", ".")], absolute=absolute))
    if near := _near(_listed(found, who), text):
        raise click.UsageError(f"{text} is no address; did you mean {', '.join(near)}?")
    begin = ", ".join(f"{one}{_MARK}" for one in schemes) or "none, for no source is exposed"
    raise click.UsageError(f"{text} is no address; addresses here begin with {begin}; octavo ls lists them")


@contextmanager
def meant(found: Loaded, who: str | None, uri: str) -> Iterator[None]:
    """Of what is not there, the nearest that is, of what `who` may list."""
    try:
        yield
    except NotFound as error:
        near = _near(_listed(found, who), uri)
        if not near:
            raise
        hint = f"did you mean {', '.join(near)}?"
        raise NotFound(error.message, **{**error.data, "hint": hint}) from None


def near_folders(found: Loaded, who: str | None, uri: str) -> list[str]:
    """Of a list of nothing: the nearest addresses that `who` may list, folders among them."""
    refs = [ref for ref in _listed(found, who) if ref.scheme == uri.partition(_MARK)[0]]
    roots = [Path(os.path.abspath(one.path)) for source in found.config.sources.values() for one in source.folders]
    above = {tuple(one.parts[1:]) for root in roots for one in (root, *root.parents)}
    folders = {ref._replace(segments=ref.segments[:end]) for ref in refs for end in range(1, len(ref.segments))}
    served = [one for one in folders if not (one.absolute and one.segments in above)]
    return _near([*sorted(served, key=str), *refs], uri)


def _listed(found: Loaded, who: str | None) -> Sequence[Ref]:
    from octavo.app import queries

    return [entry.ref for entry in queries.listed(found, who, None, leaves_traces=False)[0]]


def _near(refs: Sequence[Ref], text: str) -> list[str]:
    """Those that are called so, with or without an ending and the folders above; else those that look like it."""
    wanted = text.partition("?")[0].rpartition(_MARK)[2].strip("/").casefold()
    if not wanted:
        return []
    known = {ref: ref.path.casefold() for ref in refs if ref.scheme != "prompt"}
    stem = wanted.rpartition("/")[2].partition(".")[0] or wanted
    looks = (
        lambda there: there == wanted or there.endswith(f"/{wanted}"),
        lambda there: wanted.endswith(f"/{there}") or wanted.partition(".")[0].endswith(there),
        lambda there: there.rpartition("/")[2].partition(".")[0] == stem,
    )
    for look in looks:
        if found := [str(ref) for ref, there in known.items() if look(there)]:
            return found[:_NEAR]
    names = {there.rpartition("/")[2]: ref for ref, there in known.items()}
    return [str(names[one]) for one in get_close_matches(wanted.rpartition("/")[2], names, n=_NEAR)]
