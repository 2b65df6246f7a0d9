"""Listing, page by page, with the titles of Markdown files.

A cursor holds the last place that was given: what comes or goes before it is no matter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final

from octavo.core.memo import Memo
from octavo.core.values import Entry, Page
from octavo.sources._shared.fs.mime import mime_type
from octavo.sources._shared.fs.stats import is_settled
from octavo.sources._shared.places import Names, Place, Where, opened, sealed
from octavo.sources._shared.text import cut_at_characters
from octavo.sources.file.entries import Digests, FileFacts
from octavo.sources.file.root import Tree
from octavo.sources.file.roots import Forest
from octavo.text.titles import HEAD, is_markdown, title_of

_BYTES: Final = 2 * HEAD  # of a file: letters beyond ASCII take more than one
_REMEMBERED: Final = 50_000


class Titles:
    def __init__(
        self, trees: Sequence[Tree], digests: Digests, wall: Callable[[], float], encodings: Sequence[str]
    ) -> None:
        self._trees, self._digests, self._wall, self._encodings = trees, digests, wall, encodings
        self._known: Memo[tuple[str, Names], str] = Memo(_REMEMBERED)

    def of(self, place: Place, facts: FileFacts) -> str | None:
        """None where nothing but its name names it, or where it is not what the facts are about any more."""
        if not is_markdown(place.names[-1]):
            return None
        key = facts.version, place.names[-2:]  # a page of a folder is called as the folder
        known = self._known.get(key)
        if known is None:
            known = self._known.again(key)
        return (self._found(place, facts, key) if known is None else known) or None

    def _found(self, place: Place, facts: FileFacts, key: tuple[str, Names]) -> str:
        try:
            fd, seen = self._trees[place.root].open(place.names)
            try:
                raw = os.pread(fd, _BYTES, 0)
                after = os.fstat(fd)
            finally:
                os.close(fd)
        except OSError:
            return ""
        if self._digests.facts(seen) != facts:
            return ""
        text = cut_at_characters(raw, 0, len(raw), mime_type(place.names[-1]), self._encodings)[1]
        title = title_of(text, place.names) if isinstance(text, str) else None
        if is_settled(after, self._wall()):
            self._known.keep(key, title or "")
        return title or ""


def page(
    forest: Forest,
    where: Where,
    *,
    cursor: str | None,
    limit: int,
    recursive: bool,
    stop: Callable[[], bool],
    most_names: int | None = None,
    titles: Titles | None = None,
) -> Page[Entry]:
    """Looks only at what is on the page, and at one more to know whether it is the last. With `titles`, entries say
    what they call themselves.

    What has more than `most_names` stands for the folder of so many names, and nothing else in that folder is given.
    """
    last = None if cursor is None else opened(cursor, where)
    items: list[Entry] = []
    given = last
    folder = None if last is None else _folder(last.names, most_names)
    begin = () if last is None else last.names if folder is None else _behind(folder)
    levels = None if most_names is None else max(most_names - len(where.names), 0)
    for place, facts in forest.places(where, begin=begin, recursive=recursive, stop=stop, levels=levels):
        if (last is not None and place <= last) or (folder is not None and place.names[: len(folder)] == folder):
            continue
        if len(items) == limit and given is not None:
            return Page(tuple(items), sealed(given))
        given, folder = place, _folder(place.names, most_names)
        title = None if titles is None or folder is not None else titles.of(place, facts)
        items.append(forest.listed(place, facts, shadowed=forest.is_shadowed(place), title=title))
    return Page(tuple(items))


def _folder(names: Names, most_names: int | None) -> Names | None:
    return None if most_names is None or len(names) <= most_names else names[:most_names]


def _behind(folder: Names) -> Names:
    """What follows all that is in a folder: no name has a NUL in it."""
    return (*folder[:-1], f"{folder[-1]}\0")


def beginning(where: Where) -> str:
    """The cursor before everything under a scope."""
    return sealed(Place(where.names, -1))
