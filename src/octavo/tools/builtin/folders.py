"""A folder at once, as the toolset `filesystem` shows it, and path patterns as that toolset means them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from octavo.core.ref import Ref
from octavo.text.patterns import path_pattern
from octavo.tools.builtin.listing import LOOKS, Names, Rows, walked
from octavo.tools.context import ToolContext


class Item(NamedTuple):
    names: Names  # below the folder
    uri: str
    size: int | None
    is_folder: bool


class Folder(NamedTuple):
    rows: list[Item]
    note: list[str]  # that there is more


async def opened_folder(ctx: ToolContext, uri: str, *, depth: int) -> Folder:
    rows, found, looks = Rows(uri, depth, None, ()), list[Item](), 0
    async for step in walked(ctx, uri, None):
        looks += 1
        if looks > LOOKS:
            return Folder(found, [f"[only the first {LOOKS:,} files were looked at: name a folder below]"])
        for names, uri_of_row, entry in rows.of(step.entry):
            found.append(Item(names, uri_of_row, None if entry is None else entry.size, entry is None))
    return Folder(found, [])


class Tree:
    """Nested objects: a name, a type, and for folders the children."""

    def __init__(self, excluded: Callable[[Names], bool]) -> None:
        self._excluded = excluded

    def of(self, rows: Iterable[Item]) -> list[dict[str, Any]]:
        children: dict[Names, list[dict[str, Any]]] = {(): []}
        for row in rows:
            if self._excluded(row.names) or row.names[:-1] not in children:
                continue
            told: dict[str, Any] = {"name": row.names[-1], "type": "directory" if row.is_folder else "file"}
            if row.is_folder:
                children[row.names] = told["children"] = []
            children[row.names[:-1]].append(told)
        return children[()]


def matching(pattern: str) -> Callable[[Names], bool]:
    """From the folder on: `*.md` is one level, `**/*.md` any, and a last `*` is one name."""
    parts = pattern.strip("/").split("/")
    compiled = path_pattern(("/" + "/".join(parts),))
    levels = len(parts) if parts[-1] == "*" and "**" not in parts else None

    def fits(names: Names) -> bool:
        return levels in (None, len(names)) and compiled.search("\0".join(names).encode()) is not None

    return fits


def excluding(patterns: Sequence[str], *, anywhere: bool) -> Callable[[Names], bool]:
    """A folder that matches takes along what is in it. `anywhere`: a plain name is one at any depth."""
    tests = [matching(f"**/{one}" if anywhere and "*" not in one else one) for one in patterns]

    def excluded(names: Names) -> bool:
        return any(test(names[:depth]) for depth in range(1, len(names) + 1) for test in tests)

    return excluded


def fully(uri: str, roots: Sequence[str]) -> str:
    """The path of the machine, as far as it is known."""
    ref = Ref.parse(uri)
    if ref.absolute:
        return f"/{ref.path}"
    return f"{roots[0].rstrip('/')}/{ref.path}" if len(roots) == 1 else ref.path
