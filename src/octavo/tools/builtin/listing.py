"""The tool `list`: files and folders below a target.

Sources list files. Folders are seen from the paths of what is in them, so an empty one is not shown, nor one in which
the caller may see nothing. A call looks at a bounded number of files and then gives a cursor.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import takewhile
from typing import Any, Final, NamedTuple

from octavo.core.errors import InvalidParams
from octavo.core.model import Entry
from octavo.core.ref import Ref
from octavo.core.surface import ToolResult
from octavo.text.patterns import Pattern, path_pattern
from octavo.tools.builtin import defining as d
from octavo.tools.builtin.addresses import address, below
from octavo.tools.builtin.places import Walk
from octavo.tools.builtin.room import Budget, Room
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

LOOKS: Final = 10_000  # files that one call looks at
_PAGE: Final = 100

Names = tuple[str, ...]


class Row(NamedTuple):
    """A file, or (without an entry) a folder."""

    names: Names
    uri: str
    entry: Entry | None

    def told(self) -> dict[str, Any]:
        if self.entry is not None:
            return d.facts(self.entry)
        return {"uri": self.uri, "name": self.names[-1], "type": "directory"}

    def line(self, form: str, shown: int) -> str:
        """`shown` names of it stand above it in a tree."""
        name = "/".join(self.names) if form == "flat" else "  " * shown + "/".join(self.names[shown:])
        if self.entry is None:
            return f"{name}/"
        return f"{name}  {d.sized(self.entry.size)}".rstrip()


class Rows:
    """What of a walk is shown: to a depth, by a pattern, each folder once."""

    def __init__(self, ctx: ToolContext, uri: str, depth: int, pattern: Pattern | None, last: Names) -> None:
        self._ctx, self._uri, self.depth, self._pattern = ctx, uri, depth, pattern
        self.last = last  # the names of the file before: its folders are told already

    @cached_property
    def _scope(self) -> Ref:
        # Not before there is an entry: an address that is none is for the pipeline to refuse.
        return Ref.parse(self._uri)

    def of(self, entry: Entry) -> Iterator[Row]:
        names = below(self._ctx, entry.ref, self._scope) or (entry.name,)
        known, self.last = self.last, names
        folders = len(names) - 1
        for level in range(1, min(folders, self.depth) + 1 if self.depth else folders + 1):
            if known[:level] != names[:level]:
                above = entry.ref.segments[: len(entry.ref.segments) - len(names) + level]
                yield from self._shown(Row(names[:level], str(entry.ref._replace(segments=above, params=())), None))
        if not self.depth or folders < self.depth:
            yield from self._shown(Row(names, str(entry.ref), entry))

    def _shown(self, row: Row) -> Iterator[Row]:
        if self._pattern is None or self._pattern.search("\0".join(row.names).encode()):
            yield row


class Answer:
    """Rows as far as there is room for them."""

    def __init__(self, form: str, limit: int, budget: Budget) -> None:
        self._form, self._limit, self._room = form, limit, Room(budget)
        self._above: Names = ()  # the folder that was written last
        self.entries: list[dict[str, Any]] = []
        self.lines: list[str] = []

    def takes(self, rows: Sequence[Row]) -> bool:
        """All of them or none; but of the first ones at least the last, or the answers would never end."""
        if self.entries and len(self.entries) + len(rows) > self._limit:
            return False
        while True:
            told = [row.told() for row in rows]
            lines, above = self._written(rows)
            if self._room.take(json.dumps(told, ensure_ascii=False), *lines):
                break
            if self.entries:
                return False
            if len(rows) == 1:
                break
            rows = rows[len(rows) // 2 :]  # a path of a thousand folders: without the upper ones
        self.entries += told
        self.lines += lines
        self._above = above
        return True

    def result(self, cursor: str | None, note: str = "") -> ToolResult:
        structured: dict[str, Any] = {"entries": self.entries}
        lines = self.lines or ["Nothing is here that you may see"]
        if cursor is not None:
            structured["cursor"] = cursor
            lines = [*lines, f"[more: call again with cursor: {cursor}]"]
        return d.result("\n".join([*lines, *filter(None, [note])]), structured)

    def _written(self, rows: Sequence[Row]) -> tuple[list[str], Names]:
        lines, above = list[str](), self._above
        for row in rows:
            shown = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(row.names[:-1], above, strict=False)))
            lines.append(row.line(self._form, shown))
            if row.entry is None:
                above = row.names
        return lines, above


async def _list(budget: Budget, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    uri = address(ctx, asked.get("target", ""))
    depth, sort, form = asked.get("depth", 1), asked.get("sort", "name"), asked.get("form", "flat")
    pattern = path_pattern((asked["pattern"],)) if "pattern" in asked else None
    answer = Answer(form, asked.get("limit", 100), budget)
    cursor = asked.get("cursor")
    if sort != "name":
        if form == "tree":
            raise InvalidParams("A tree is ordered by name; ask for form: flat to sort by something else")
        return await _sorted(ctx, uri, Rows(ctx, uri, depth, pattern, ()), sort, answer, cursor)
    inner, last = ctx.opened(cursor, (str, type(None)), list) if cursor is not None else (None, [])
    rows = Rows(ctx, uri, depth, pattern, tuple(map(str, last)))
    walk = walked(ctx, uri, inner, depth)
    looks = 0
    async for step in walk:
        before = rows.last
        looks += 1
        if looks > LOOKS or not answer.takes([*rows.of(step.entry)]):
            return answer.result(ctx.sealed(await walk.before(step), before))
    return answer.result(None)


async def _sorted(ctx: ToolContext, uri: str, rows: Rows, sort: str, answer: Answer, cursor: str | None) -> ToolResult:
    begin: int = ctx.opened(cursor, int)[0] if cursor is not None else 0
    found: list[Row] = []
    looks, note = 0, ""
    async for step in walked(ctx, uri, None, rows.depth):
        looks += 1
        if looks > LOOKS:
            note = f"[sorted among the first {LOOKS:,} files only: list a folder of it]"
            break
        found += rows.of(step.entry)
    found.sort(key=lambda row: getattr(row.entry, sort, None) or 0, reverse=True)
    for number, row in enumerate(found[begin:], begin):
        if not answer.takes([row]):
            return answer.result(ctx.sealed(number), note)
    return answer.result(None, note)


def walked(ctx: ToolContext, uri: str, cursor: str | None, depth: int) -> Walk:
    """As deep as asked: 0 is all."""
    return Walk(lambda at, limit: ctx.list(uri, cursor=at, limit=limit, depth=depth or None), cursor, page=_PAGE)


def list_tool(budget: Budget) -> Tool:
    return d.tool(
        "list",
        "List files",
        "Files and folders below target (a URI or a path; empty: everything), with sizes.",
        partial(_list, budget),
        d.READS,
        {
            "target": d.TEXT,
            "depth": d.said(d.at_least(0), "levels, default 1; 0: all"),
            "pattern": d.said(d.TEXT, "glob, as *.md or src/**/*.py"),
            "sort": d.one_of("name", "size", "modified"),
            "form": d.one_of("flat", "tree"),
            "limit": d.at_least(1, 1000),
            "cursor": d.TEXT,
        },
        gives=d.an_object({"entries": d.a_list(), "cursor": d.TEXT}, ["entries"]),
        lane_safe=True,
    )
