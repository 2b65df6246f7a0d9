"""Formats the lines of a listing, and counts how many fit into an answer."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any, Final, NamedTuple

from octavo.core.ref import Ref
from octavo.core.tools import ToolResult
from octavo.core.values import Entry
from octavo.text.patterns import Pattern
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import below, is_hidden
from octavo.tools.builtin.answer_budget import Budget, Room
from octavo.tools.builtin.kinds import ListedFolder
from octavo.tools.context import ToolContext

NOTHING: Final = "The folder is empty: nothing is in it that you may see"

Names = tuple[str, ...]
_END: Final[Names] = ("\U0010ffff",)  # behind every name


class ListedRow(NamedTuple):
    """A file, or (without an entry) a folder."""

    names: Names
    uri: str
    entry: Entry | None
    apart: bool = False  # its name is also that of a file in an earlier folder, which the name alone means

    def told(self) -> dict[str, Any]:
        if self.entry is None:
            return {"uri": self.uri, "name": self.names[-1].removesuffix(":/"), "type": "directory"}
        known, metadata = d.facts(self.entry), _flat(self.entry.metadata)
        if self.entry.title and self.entry.title != self.entry.name:
            known["title"] = self.entry.title
        return {**known, "metadata": metadata} if metadata else known

    def line(self, form: str, shown: int) -> str:
        """`shown` names of it stand above it in a tree."""
        name = "/".join(self.names) if form == "flat" else "  " * shown + "/".join(self.names[shown:])
        if self.entry is None:
            return f"{name}/"
        title = " ".join((self.entry.title or self.entry.name).split())
        told = ("" if title == self.names[-1] else title, d.sized(self.entry.size), _remark(self.entry))
        return "  ".join(filter(None, (name, *told, self.uri if self.apart else "")))


def namespace(scheme: str) -> Names:
    """The names that stand before those of a namespace where several are listed: joined they are an address."""
    return (f"{scheme}:/",)


def _flat(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Words, numbers and lists of them: what is nested can be read, and would make a list long."""
    nested = (Mapping, list, tuple)
    return {
        key: value
        for key, value in metadata.items()
        if not isinstance(value, Mapping)
        and not (isinstance(value, list | tuple) and any(isinstance(item, nested) for item in value))
    }


def _remark(entry: Entry) -> str:
    """What its source found: how well it fits, or what is wrong with it."""
    score, reasons, problems = map(entry.metadata.get, ("score", "reasons", "problems"))
    if isinstance(score, float) and isinstance(reasons, list):  # an author may have keys of these names as well
        return f"[{score}: {'; '.join(map(str, reasons))}]"
    return f"[problem: {problems[0]}]" if isinstance(problems, list) and problems else ""


class Rows:
    """What of a walk is shown: to a depth, by a pattern, each folder once."""

    def __init__(
        self,
        ctx: ToolContext,
        uri: str,
        depth: int,
        pattern: Pattern | None = None,
        last: Names = (),
        folders: Sequence[ListedFolder] = (),
        *,
        above: Names = (),
        leaves: bool = False,
    ) -> None:
        """`above` are names that stand before all others. `leaves`: entries alone, without their folders."""
        self._above, self._leaves = above, leaves
        self._ctx, self._uri, self.depth, self._pattern = ctx, uri, depth, pattern
        self.last = last  # the names of what stands before: its folders are told already
        self._folders = folders  # in order, as the files are

    @cached_property
    def _scope(self) -> Ref:
        # Not before there is an entry: an address that is none is for the pipeline to refuse.
        return Ref.parse(self._uri)

    def of(self, entry: Entry) -> Iterator[ListedRow]:
        names = below(self._ctx, entry.ref, self._scope) or (entry.name,)
        known, self.last = self.last, names
        folders = 0 if self._leaves else len(names) - 1
        for level in range(1, min(folders, self.depth) + 1 if self.depth else folders + 1):
            if known[:level] != names[:level]:
                above = entry.ref._replace(segments=entry.ref.segments[: len(entry.ref.segments) - len(names) + level])
                yield from self._shown(ListedRow(names[:level], str(above.bare), None))
        if not self.depth or folders < self.depth:
            yield from self._shown(ListedRow(names, str(entry.ref), entry, is_hidden(self._ctx, entry)))

    def before(self, entry: Entry | None) -> Iterator[ListedRow]:
        """The folders that stand before a file, or before the end: `last` is that of the row, while it is looked at."""
        end = _END if entry is None else below(self._ctx, entry.ref, self._scope)
        for at in range(bisect_right(self._folders, self.last, key=lambda one: one.names), len(self._folders)):
            folder = self._folders[at]
            if folder.names >= end:
                return
            self.last = folder.names
            yield from self._shown(ListedRow(folder.names, folder.uri, None))

    def _shown(self, row: ListedRow) -> Iterator[ListedRow]:
        if self._pattern is None or self._pattern.search("\0".join(row.names).encode()):
            yield row._replace(names=self._above + row.names) if self._above else row


class FittingRows:
    """Rows as far as there is room for them."""

    def __init__(self, form: str, limit: int, budget: Budget) -> None:
        self._form, self._limit, self._room = form, limit, Room(budget)
        self._above: Names = ()  # the folder that was written last
        self.entries: list[dict[str, Any]] = []
        self.lines: list[str] = []

    def takes(self, rows: Sequence[ListedRow]) -> bool:
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

    def result(self, cursor: str | None, note: str = "", *, nothing: str = NOTHING) -> ToolResult:
        structured: dict[str, Any] = {"entries": self.entries, **({"note": note} if note else {})}
        lines = self.lines or [nothing]
        if cursor is not None:
            structured["cursor"] = cursor
            lines = [*lines, f"[more: call again with cursor: {cursor}]"]
        return d.result("\n".join([*lines, *filter(None, [note])]), structured)

    def _written(self, rows: Sequence[ListedRow]) -> tuple[list[str], Names]:
        lines, above = list[str](), self._above
        for row in rows:
            shown = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(row.names[:-1], above, strict=False)))
            lines.append(row.line(self._form, shown))
            if row.entry is None:
                above = row.names
        return lines, above
