"""A folder as the toolset `filesystem` shows it: in lines, as a tree, by patterns, within the budget of an answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from octavo.core.errors import InvalidParams
from octavo.core.ref import Ref
from octavo.text.patterns import path_pattern
from octavo.tools.builtin.addresses import below
from octavo.tools.builtin.answer_budget import Budget, Room
from octavo.tools.builtin.kinds import folders, refuse_missing
from octavo.tools.builtin.list import LOOKS, PAGE, walked
from octavo.tools.builtin.rows import ListedRow, Names, Rows
from octavo.tools.context import ToolContext

MORE: Final = "[{} more are not shown: name a folder below]"
_LEVELS: Final = 64  # of a tree
_ALL_OF_THEM: Final = 1000  # files on a page of a walk that looks at all
KEPT_BACK: Final = 2.0  # seconds of a tool's time in which what was found is told


class FolderItem(NamedTuple):
    names: Names  # below the folder
    uri: str
    size: int | None
    is_folder: bool


class OpenedFolder(NamedTuple):
    rows: list[FolderItem]
    note: list[str]  # that there is more


async def opened_folder(ctx: ToolContext, uri: str, *, depth: int, most: int = LOOKS) -> OpenedFolder:
    """`most` bounds what is looked at. NotFound for what is not there, InvalidParams for a file."""
    found, looks = list[FolderItem](), 0
    async for items in _items(ctx, uri, depth):
        looks += 1
        if looks > most:
            return OpenedFolder(found, [f"[only the first {most:,} files were looked at: name a folder below]"])
        found += items
    return OpenedFolder(found, [])


async def fitting(ctx: ToolContext, uri: str, fits: Callable[[Names], bool]) -> OpenedFolder:
    """What fits of all that is below a folder, however much that is, or as much as there is time for."""
    found, looks, keep = list[FolderItem](), 0, max(0.0, min(KEPT_BACK, ctx.time_left / 4))
    async for items in _items(ctx, uri, 0, page=_ALL_OF_THEM):
        found += (item for item in items if fits(item.names))
        looks += 1
        if ctx.time_left < keep:
            at = "/".join(items[-1].names) if items else uri
            note = f"[there was time for {looks:,} files alone, up to {at}: what comes behind it was not looked at. "
            return OpenedFolder(found, [f"{note}Name a folder below for the rest]"])
    return OpenedFolder(found, [])


async def _items(ctx: ToolContext, uri: str, depth: int, page: int = PAGE) -> AsyncIterator[Sequence[FolderItem]]:
    """File by file, each with the folders that stand before it, and last the folders behind all files."""
    rows = Rows(ctx, uri, depth, folders=await folders(ctx, uri, depth))
    scope, found = Ref.parse(uri), False
    async for step in walked(ctx, uri, None, depth, page=page):
        if not found and not below(ctx, step.entry.ref, scope):
            raise InvalidParams(f"{uri} is a file, not a folder: read it, or name the folder above", uri=uri)
        found = True
        yield [*map(_item, rows.before(step.entry)), *map(_item, rows.of(step.entry))]
    rest = [*map(_item, rows.before(None))]
    if not found and not rest:
        await refuse_missing(ctx, uri)
    yield rest


def _item(row: ListedRow) -> FolderItem:
    return FolderItem(row.names, row.uri, None if row.entry is None else row.entry.size, row.entry is None)


async def tree(ctx: ToolContext, uri: str, excluded: Callable[[Names], bool], budget: Budget) -> tuple[str, str]:
    """Nested objects as JSON, as many levels of them as fit, and a note where that is not all."""
    text = "[]"
    for depth in range(1, _LEVELS):
        folder = await opened_folder(ctx, uri, depth=depth)
        rows = [row for row in folder.rows if not excluded(row.names)]
        cut = {row.names for row in rows if row.is_folder and len(row.names) == depth}
        deeper = json.dumps(_nested(rows, cut), ensure_ascii=False, indent=2)
        if folder.note or not Room(budget).take(deeper):
            if depth > 1:
                return text, f"[{depth - 1} levels fit: folders without children have more in them, name one of them]"
            return _beginning(rows, cut, budget)
        text = deeper
        if not cut:
            return text, ""
    return text, f"[{_LEVELS - 1} levels are shown: name a folder below]"


def _beginning(rows: Sequence[FolderItem], cut: set[Names], budget: Budget) -> tuple[str, str]:
    room, taken = Room(budget.beside(MORE)), list[FolderItem]()
    for row in rows:
        if not room.take(json.dumps(_nested([row], cut), ensure_ascii=False, indent=2)):
            break
        taken.append(row)
    text = json.dumps(_nested(taken, cut), ensure_ascii=False, indent=2)
    return text, MORE.format(f"{len(rows) - len(taken):,} or")


def _nested(rows: Iterable[FolderItem], cut: set[Names]) -> list[dict[str, Any]]:
    """A name, a type, and the children of folders that are not cut."""
    children: dict[Names, list[dict[str, Any]]] = {(): []}
    for row in rows:
        if row.names[:-1] not in children:
            continue
        told: dict[str, Any] = {"name": row.names[-1], "type": "directory" if row.is_folder else "file"}
        if row.is_folder and row.names not in cut:
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
