"""The tool `list`: what stands below a target, or in all namespaces.

Sources list files and entries. A folder is shown where the caller may list it, or may see something in it. A call looks
at a bounded number of files and then gives a cursor.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, cast

from octavo.core.errors import InvalidParams, SourceUnavailable, Timeout
from octavo.core.near_names import unknown_filter
from octavo.core.tools import ToolResult
from octavo.core.values import Entry, Page
from octavo.text.patterns import Pattern, path_pattern
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import address
from octavo.tools.builtin.answer_budget import Budget
from octavo.tools.builtin.kinds import folders, refuse_missing
from octavo.tools.builtin.places import PagedWalk
from octavo.tools.builtin.rows import NOTHING, FittingRows, ListedRow, Names, Rows, namespace
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

LOOKS: Final = 10_000  # files that one call looks at
PAGE: Final = 100
_EVERYTHING: Final = ("", ".", "/")


class _ListRequest(NamedTuple):
    """What is listed of one place: as deep as asked, 0 is all; entries alone where they are picked out."""

    depth: int
    pattern: Pattern | None
    filter: Mapping[str, Any] | None
    leaves: bool

    async def rows(self, ctx: ToolContext, uri: str, above: Names = ()) -> Rows:
        # Of everything below, only folders with something in them.
        known = await folders(ctx, uri, self.depth) if self.depth and not self.leaves else []
        return Rows(ctx, uri, self.depth, self.pattern, folders=known, above=above, leaves=self.leaves)

    def walk(self, ctx: ToolContext, uri: str, cursor: str | None) -> PagedWalk:
        return walked(ctx, uri, cursor, self.depth, self.filter)


async def _list(budget: Budget, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    target, sort, form = asked.get("target", ""), asked.get("sort", "name"), asked.get("form", "flat")
    cursor = asked.get("cursor")
    if sort != "name" and form == "tree":
        raise InvalidParams("A tree is ordered by name; ask for form: flat to sort by something else")
    uri = address(target)
    schemes = await ctx.schemes() if target in _EVERYTHING else ["file"]
    picked = bool(asked.get("filter")) or ("?" in uri and not uri.startswith("file:"))
    several = schemes != ["file"]
    one = _ListRequest(
        asked.get("depth", 0 if picked else 2 if several else 1),
        path_pattern((asked["pattern"],)) if "pattern" in asked else None,
        asked.get("filter"),
        picked,
    )
    answer = FittingRows(form, asked.get("limit", 100), budget)
    note, place = "", None
    if sort != "name":
        uris = [f"{scheme}://" for scheme in schemes] if several else [uri]
        note, place = await _sorted(ctx, uris, one, sort, answer, cursor)
    elif several:
        note, place = await _everywhere(ctx, schemes, one, answer, cursor)
    else:
        place = await _in_order(ctx, uri, one, await one.rows(ctx, uri), answer, cursor)
    if answer.entries or place is not None or cursor is not None:
        return answer.result(place, note)
    if not several:
        await refuse_missing(ctx, uri.partition("?")[0] if picked else uri)
    nothing = NOTHING if one.pattern is None and not picked else "Nothing here fits"
    return answer.result(None, note, nothing=nothing)


async def _everywhere(
    ctx: ToolContext, schemes: Sequence[str], asked: _ListRequest, answer: FittingRows, cursor: str | None
) -> tuple[str, str | None]:
    """Namespace by namespace: each is the first level, what stands in it the second."""
    begin, inner = ctx.opened(cursor, str, (str, type(None))) if cursor is not None else ("", None)
    down: list[str] = []
    strangers: list[InvalidParams] = []
    rest = asked if asked.leaves else asked._replace(depth=max(asked.depth - 1, 0))
    if begin not in schemes:
        begin, inner = "".join(schemes[:1]), None
    for scheme in schemes[schemes.index(begin) if schemes else 0 :]:
        uri, above = f"{scheme}://", namespace(scheme)
        if inner is None and not asked.leaves and not answer.takes([ListedRow(above, uri, None)]):
            return "", ctx.sealed(scheme, None)
        if asked.leaves or asked.depth != 1:
            try:
                place = await _in_order(ctx, uri, rest, await rest.rows(ctx, uri, above), answer, inner)
            except (SourceUnavailable, Timeout) as fault:
                why = fault.data.get("why")
                down.append(why if isinstance(why, str) and why.startswith(uri) else uri)
                place = None
            except InvalidParams as fault:
                strangers.append(_of_filter(fault))
                place = None
            if place is not None:
                return "", ctx.sealed(scheme, place)
        inner = None
    if strangers and len(strangers) == len(schemes):
        raise _of_all(strangers)
    return f"[not available now: {', '.join(down)}]" if down else "", None


async def _in_order(
    ctx: ToolContext, uri: str, asked: _ListRequest, rows: Rows, answer: FittingRows, cursor: str | None
) -> str | None:
    """Gives the cursor with which the next answer begins: a place among the files, or 0 behind the last of them, and
    the names that were told last."""
    inner, last = ctx.opened(cursor, (str, type(None), int), list) if cursor is not None else (None, [])
    rows.last = tuple(map(str, last))
    looks = 0
    if not isinstance(inner, int):
        walk = asked.walk(ctx, uri, inner)
        async for step in walk:
            looks += 1
            told = rows.last
            for row in rows.before(step.entry):
                if not answer.takes([row]):
                    return ctx.sealed(await walk.before(step), told)
                told = rows.last
            told = rows.last
            if looks > LOOKS or not answer.takes([*rows.of(step.entry)]):
                return ctx.sealed(await walk.before(step), told)
    told = rows.last
    for row in rows.before(None):
        if not answer.takes([row]):
            return ctx.sealed(0, told)
        told = rows.last
    return None


async def _sorted(
    ctx: ToolContext, uris: Sequence[str], asked: _ListRequest, sort: str, answer: FittingRows, cursor: str | None
) -> tuple[str, str | None]:
    begin: int = ctx.opened(cursor, int)[0] if cursor is not None else 0
    found: list[ListedRow] = []
    looks, note = 0, ""
    strangers: list[InvalidParams] = []
    for uri in uris:
        rows = await asked.rows(ctx, uri, namespace(uri.partition(":")[0]) if len(uris) > 1 else ())
        try:
            async for step in asked.walk(ctx, uri, None):
                looks += 1
                if looks > LOOKS:
                    note = f"[sorted among the first {LOOKS:,} files only: list a folder of it]"
                    break
                found += rows.before(step.entry)
                found += rows.of(step.entry)
        except InvalidParams as fault:
            strangers.append(_of_filter(fault))
        found += rows.before(None)
    if strangers and len(strangers) == len(uris):
        raise _of_all(strangers)
    found.sort(key=lambda row: getattr(row.entry, sort, None) or 0, reverse=True)
    for number, row in enumerate(found[begin:], begin):
        if not answer.takes([row]):
            return note, ctx.sealed(number)
    return note, None


def _of_filter(fault: InvalidParams) -> InvalidParams:
    """Raises any other. A filter that one source does not know may be for another."""
    if fault.data.get("reason") != "unknown_filter":
        raise fault
    return fault


def _of_all(strangers: Sequence[InvalidParams]) -> InvalidParams:
    """With what is known in any of the namespaces: the filter may have been meant for each of them."""
    told = [fault.data for fault in strangers if fault.data.get("filter") == strangers[0].data.get("filter")]
    known = {str(word) for data in told for word in cast("Sequence[object]", data.get("known", ()))}
    return unknown_filter(str(strangers[0].data.get("filter")), known)


def walked(
    ctx: ToolContext,
    uri: str,
    cursor: str | None,
    depth: int,
    filter: Mapping[str, Any] | None = None,
    *,
    page: int = PAGE,
) -> PagedWalk:
    """As deep as asked: 0 is all."""

    def ask(at: str | None, limit: int) -> Awaitable[Page[Entry]]:
        return ctx.list(uri, cursor=at, limit=limit, depth=depth or None, filter=filter)

    return PagedWalk(ask, cursor, page=page)


def list_tool(budget: Budget) -> Tool:
    return d.tool(
        "list",
        "List files and entries",
        "What stands below target (a URI or a path; empty: all namespaces): files, folders, entries.",
        partial(_list, budget),
        d.READS,
        {
            "target": d.TEXT,
            "depth": d.said(d.at_least(0), "levels, default 1; 0: all"),
            "pattern": d.said(d.TEXT, "glob, as src/**/*.py"),
            "filter": d.said({"type": "object"}, "by metadata, as {function: brand, status: active}"),
            "sort": d.one_of("name", "size", "modified"),
            "form": d.one_of("flat", "tree"),
            "limit": d.at_least(1, 1000),
            "cursor": d.FILLED,
        },
        gives=d.an_object({"entries": d.a_list(), "cursor": d.TEXT}, ["entries"]),
        lane_safe=True,
    )
