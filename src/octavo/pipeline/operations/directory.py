"""The call `directory`: what stands directly in a folder or a collection, whatever source it is of.

It is made of child calls, so each entry is decided by the policy as in every list. A folder is shown where the caller
may list it, or may see something in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, Final

from msgspec.structs import replace

from octavo.core.arguments import PLAIN, Arguments, FoldersArguments, ListArguments
from octavo.core.cursor import joined, parts_of
from octavo.core.errors import Forbidden, InvalidParams, NotFound
from octavo.core.ports.chain import Ask
from octavo.core.ref import Ref
from octavo.core.skill import DIRECTORY, MANIFEST, is_skill_name
from octavo.core.values import Call, Entry, Op, Page

MOST_FOLDERS: Final = 10_000  # that are looked at for empty ones
_END: Final = "\U0010ffff"  # behind every name


class Directories:
    """Of the sources with these schemes. In those of `skills` an entry is a folder too."""

    def __init__(self, schemes: Sequence[str], *, skills: Sequence[str] = ()) -> None:
        self._schemes, self._skills = frozenset(schemes), frozenset(skills)
        self._ask: Ask | None = None

    def bind(self, ask: Ask, canonical: Callable[[Ref], Ref]) -> None:
        self._ask, self._canonical = ask, canonical

    async def read(self, call: Call) -> Page[Entry]:
        """One page, by name. Raises NotFound where the caller sees nothing, InvalidParams for what is no directory."""
        scope, (cursor, seen) = call.ref, _opened(call.cursor)
        if scope.scheme not in self._schemes or scope.params != scope.place.params:
            raise _no_directory(call)
        beside = await self._beside(call)
        rows, page = await self._rows(call, cursor, seen)
        cursor = page.cursor
        until = _END if cursor is None else max(rows)
        if cursor is not None and rows[until].mime_type != DIRECTORY:
            own: Page[Entry] = await self._asked(call, "list", rows[until].ref.bare)
            if own.cursor is not None or len(own.items) > 1:
                rows[until] = _folder_too(rows[until])  # what stands below it would come on the next page
        rows |= {name: rows.get(name, entry) for name, entry in beside.items() if seen < name <= until}
        if not rows and scope.segments and call.cursor is None and "" not in beside:
            raise _no_directory(call) if page.items else NotFound(f"Resource not found: {call.uri}", uri=call.uri)
        ordered = sorted(rows.items())
        following = None if cursor is None else joined(cursor, ordered[-1][0])
        return Page(tuple(entry for _, entry in ordered), following)

    async def _rows(self, call: Call, cursor: str | None, seen: str) -> tuple[dict[str, Entry], Page[Entry]]:
        """By name, from the first page on that has another one than `seen`, in which the page before ended; and that
        page."""
        rows: dict[str, Entry] = {}
        while True:
            page: Page[Entry] = await self._asked(call, "list", call.ref, ListArguments(depth=1), cursor)
            for entry in page.items:
                if names := self._canonical(entry.ref).segments[len(call.ref.segments) :]:
                    rows[names[0]] = self._row(call, rows.get(names[0]), entry, names)
            rows.pop(seen, None)
            cursor = page.cursor
            if rows or cursor is None:
                return rows, page

    def _row(self, call: Call, known: Entry | None, entry: Entry, names: tuple[str, ...]) -> Entry:
        if len(names) == 1:
            is_skill = entry.ref.scheme in self._skills and entry.target is None and is_skill_name(names[0])
            return _folder_too(entry) if is_skill else entry
        if known is not None:
            return _folder_too(known)
        above = entry.ref.segments[: len(entry.ref.segments) - len(names) + 1]
        return self._folder(call, entry.ref._replace(segments=above), names[0])

    async def _beside(self, call: Call) -> dict[str, Entry]:
        """What stands here and in no list: empty folders, and the SKILL.md that is made of a definition. The empty
        name is the directory itself."""
        scope, found = call.ref, dict[str, Entry]()
        for ref in await self._asked(call, "folders", scope, FoldersArguments(depth=1, most=MOST_FOLDERS)):
            name = "".join(self._canonical(ref).segments[len(scope.segments) :])
            found[name] = self._folder(call, ref, name)
        if scope.scheme in self._skills and is_skill_name(scope.name):
            try:
                found[MANIFEST] = await self._asked(call, "stat", scope.child(MANIFEST))
            except (NotFound, Forbidden):
                pass
        return found

    def _folder(self, call: Call, ref: Ref, name: str) -> Entry:
        """As the directory above it was asked for: by its relative address a folder is that of every root."""
        absolute = Ref.parse(call.uri).absolute
        return Entry(ref=(ref if absolute else self._canonical(ref)).bare, name=name, mime_type=DIRECTORY)

    async def _asked(
        self, call: Call, op: Op, ref: Ref, arguments: Arguments = PLAIN, cursor: str | None = None
    ) -> Any:
        if self._ask is None:
            raise RuntimeError("Directories are read through a pipeline")
        child = call.child(op, ref, uri=call.uri if ref == call.ref else "", arguments=arguments)
        return await self._ask(child._replace(cursor=cursor, limit=call.limit, timeout=call.timeout))


def _folder_too(entry: Entry) -> Entry:
    return replace(entry, mime_type=DIRECTORY, size=None)


def _no_directory(call: Call) -> InvalidParams:
    return InvalidParams(f"{call.uri} is not a directory: read it, or name the folder above", uri=call.uri)


def _opened(cursor: str | None) -> tuple[str | None, str]:
    """The place in the list below, and the name that was told last."""
    if cursor is None:
        return None, ""
    inner, seen = parts_of(cursor, (str, NoneType), str, refusal="The cursor is not one of this directory")
    return inner, seen
