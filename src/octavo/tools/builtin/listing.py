"""The tool `list`: files and folders below a target.

Sources list files. A folder is shown where the caller may list it, or may see something in it. A call looks at a
bounded number of files and then gives a cursor.
"""

from __future__ import annotations

import json
from bisect import bisect_right
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
from octavo.tools.builtin.kinds import Folder, folders, refuse_missing
from octavo.tools.builtin.places import Walk
from octavo.tools.builtin.room import Budget, Room
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

LOOKS: Final = 10_000  # files that one call looks at
_PAGE: Final = 100
_NOTHING: Final = "The folder is empty: nothing is in it that you may see"

Names = tuple[str, ...]
_END: Final[Names] = ("\U0010ffff",)  # behind every name


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

    def __init__(
        self,
        ctx: ToolContext,
        uri: str,
        depth: int,
        pattern: Pattern | None = None,
        last: Names = (),
        folders: Sequence[Folder] = (),
    ) -> None:
        self._ctx, self._uri, self.depth, self._pattern = ctx, uri, depth, pattern
        self.last = last  # the names of what stands before: its folders are told already
        self._folders = folders  # in order, as the files are

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

    def before(self, entry: Entry | None) -> Iterator[Row]:
        """The folders that stand before a file, or before the end: `last` is that of the row, while it is looked at."""
        end = _END if entry is None else below(self._ctx, entry.ref, self._scope)
        for at in range(bisect_right(self._folders, self.last, key=lambda one: one.names), len(self._folders)):
            folder = self._folders[at]
            if folder.names >= end:
                return
            self.last = folder.names
            yield from self._shown(Row(folder.names, folder.uri, None))

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

    def result(self, cursor: str | None, note: str = "", *, nothing: str = _NOTHING) -> ToolResult:
        structured: dict[str, Any] = {"entries": self.entries}
        lines = self.lines or [nothing]
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
    uri = address(asked.get("target", ""))
    depth, sort, form = asked.get("depth", 1), asked.get("sort", "name"), asked.get("form", "flat")
    pattern = path_pattern((asked["pattern"],)) if "pattern" in asked else None
    answer = Answer(form, asked.get("limit", 100), budget)
    cursor = asked.get("cursor")
    if sort != "name" and form == "tree":
        raise InvalidParams("A tree is ordered by name; ask for form: flat to sort by something else")
    known = await folders(ctx, uri, depth) if depth else []  # of everything below, only those with something in them
    if sort != "name":
        note, place = await _sorted(ctx, uri, Rows(ctx, uri, depth, pattern, folders=known), sort, answer, cursor)
    else:
        note, place = "", await _in_order(ctx, uri, Rows(ctx, uri, depth, pattern, folders=known), answer, cursor)
    if answer.entries or place is not None or cursor is not None:
        return answer.result(place, note)
    await refuse_missing(ctx, uri)
    return answer.result(None, note, nothing=_NOTHING if pattern is None else "Nothing here fits the pattern")


async def _in_order(ctx: ToolContext, uri: str, rows: Rows, answer: Answer, cursor: str | None) -> str | None:
    """Gives the cursor with which the next answer begins: a place among the files, or 0 behind the last of them, and
    the names that were told last."""
    inner, last = ctx.opened(cursor, (str, type(None), int), list) if cursor is not None else (None, [])
    rows.last = tuple(map(str, last))
    looks = 0
    if not isinstance(inner, int):
        walk = walked(ctx, uri, inner, rows.depth)
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
    ctx: ToolContext, uri: str, rows: Rows, sort: str, answer: Answer, cursor: str | None
) -> tuple[str, str | None]:
    begin: int = ctx.opened(cursor, int)[0] if cursor is not None else 0
    found: list[Row] = []
    looks, note = 0, ""
    async for step in walked(ctx, uri, None, rows.depth):
        looks += 1
        if looks > LOOKS:
            note = f"[sorted among the first {LOOKS:,} files only: list a folder of it]"
            break
        found += rows.before(step.entry)
        found += rows.of(step.entry)
    found += rows.before(None)
    found.sort(key=lambda row: getattr(row.entry, sort, None) or 0, reverse=True)
    for number, row in enumerate(found[begin:], begin):
        if not answer.takes([row]):
            return note, ctx.sealed(number)
    return note, None


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
