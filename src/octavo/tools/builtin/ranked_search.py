"""The tool `search`, ranked: the documents of all sources that have most to say on some words, best first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from octavo.core.errors import InvalidParams, NotFound
from octavo.core.query import TextQuery
from octavo.core.search_results import Finding, Findings
from octavo.core.tools import ToolResult
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import address
from octavo.tools.builtin.answer_budget import Budget, Room, shortened
from octavo.tools.builtin.kinds import refuse_missing
from octavo.tools.context import ToolContext

KIND: Final = "ranked"
_USUAL: Final = 10
_MOST: Final = 100
_MARKS: Final = ("«", "»")
_TOLD: Final = 2000  # characters of metadata that are told of one document
_LONG: Final = Budget(4_000, 2_000)  # of one title or word


async def ranked(budget: Budget, ctx: ToolContext, asked: Mapping[str, Any], *, instead: bool = False) -> ToolResult:
    """`instead` of lines, of which none has the query: the answer says so."""
    uri = address(asked["target"]) if asked.get("target") else None
    cursor: str | None = ctx.opened(asked["cursor"], str, str)[1] if "cursor" in asked else None
    query = TextQuery(asked["query"], where=_where(asked.get("where", {})))
    limit = min(asked.get("limit", _USUAL), _MOST)
    try:
        found = await ctx.find(query, uri, cursor=cursor, limit=limit)
    except NotFound:
        if uri is not None:  # what is hidden goes the way of what is not there
            await refuse_missing(ctx, uri.partition("?")[0])
        raise
    results, lines = _within(budget.told_twice, found)
    if len(results) < len(found.items):
        found = await ctx.find(query, uri, cursor=cursor, limit=max(1, len(results)))  # for a cursor to go on from
    elif not results and uri is not None:
        await refuse_missing(ctx, uri.partition("?")[0])
        if query.where:  # a list says which keys there are
            await ctx.list(uri, limit=1, filter={key: [*values] for key, values in query.where})
    structured: dict[str, Any] = {"results": results, **_state(found)}
    notes = [*_notes(found)]
    if instead and lines:
        structured["instead"] = KIND
        lines = ["[no line says exactly this: these documents have most to say on its words]", *lines]
    if found.cursor is not None:
        structured["cursor"] = ctx.sealed(KIND, found.cursor)
        notes.append(f"[more: call again with cursor: {structured['cursor']}]")
    return d.result("\n".join([*(lines or ["Nothing was found"]), *notes]), structured)


def _state(found: Findings) -> dict[str, Any]:
    """What a program must know of the search beside its results."""
    told: dict[str, Any] = {}
    if found.corrected:
        told["corrected"] = {word: meant for word, meant in found.corrected.items() if len(word) <= _TOLD}
    if found.building or found.limited or found.cut or found.unlisted:
        told["incomplete"] = True
    if found.partial and found.cursor is None:
        told["partial"] = found.partial
    if found.unread and found.cursor is None:
        told["unread"] = found.unread
    if found.unlisted:
        told["unavailable"] = [*found.unlisted]
    if found.ignored:
        told["ignored"] = True
    if found.building:
        told["indexed"] = found.seen
    return told


def is_ranked(ctx: ToolContext, cursor: str | None) -> bool:
    """Whether the cursor is one of this search."""
    try:
        return cursor is not None and ctx.opened(cursor, str, str)[0] == KIND
    except InvalidParams:
        return False


def _within(budget: Budget, found: Findings) -> tuple[list[dict[str, Any]], list[str]]:
    room, results, lines = Room(budget), list[dict[str, Any]](), list[str]()
    for one in found.items:
        told, said = _told(one), _lines(one)
        if not room.take(json.dumps(told, ensure_ascii=False), *said):
            break
        results.append(told)
        lines += said
    return results, lines


def _told(one: Finding) -> dict[str, Any]:
    told: dict[str, Any] = {
        "uri": str(one.ref),
        "title": shortened(one.title, _LONG),
        "score": one.score,
        "snippet": one.snippet,
        "marks": [list(mark) for mark in one.marks],
    }
    if one.metadata and len(json.dumps(dict(one.metadata), ensure_ascii=False)) <= _TOLD:
        told["metadata"] = dict(one.metadata)
    return told


def _lines(one: Finding) -> Sequence[str]:
    title = shortened(one.title, _LONG)
    return [f"{one.ref}  {title}  ({one.score:g})", *([f"  {_marked(one)}"] if one.snippet else [])]


def _marked(one: Finding) -> str:
    pieces, last = list[str](), 0
    for begin, end in one.marks:
        pieces += [one.snippet[last:begin], one.snippet[begin:end].join(_MARKS)]
        last = end
    return "".join([*pieces, one.snippet[last:]])


def _notes(found: Findings) -> Sequence[str]:
    notes = [f"[{word} is not there: {meant} was searched]" for word, meant in found.corrected.items()]
    notes = [shortened(note, _LONG) for note in notes]
    if found.ignored:
        notes.append("[the query is long: only its first words were searched]")
    if found.building:
        notes.append(f"[not everything is indexed yet, {found.seen} documents so far: ask again in a moment]")
    if found.unlisted:
        names = ", ".join(f"{scheme}://" for scheme in found.unlisted)
        notes.append(f"[nothing of {names} is indexed yet: ask again in a few seconds]")
    if found.partial and found.cursor is None:  # what is not found may stand there
        notes.append(
            f"[{found.partial} document{'s are' if found.partial > 1 else ' is'} too large to be searched as a whole: "
            "search.text; look for a word in one by reading it in parts]"
        )
    if found.unread and found.cursor is None:
        notes.append(
            f"[{found.unread} file{'s' if found.unread > 1 else ''} named as text whose bytes are none, as with a NUL: "
            "not searched, found by name alone]"
        )
    if found.cut:
        notes.append("[time was up before all that may fit was looked at: ask with rarer words, or with a target]")
    if found.limited:
        notes.append("[there are more documents than search.documents lets be indexed]")
    return notes


def _where(asked: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((key, tuple(_words(key, value))) for key, value in asked.items())


def _words(key: str, value: Any) -> Sequence[str]:
    values: list[Any] = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(one, str | int | float) for one in values):
        raise InvalidParams(f"where.{key[:80]} is a text, or a list of texts of which one will do")
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in values]
