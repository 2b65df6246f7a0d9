"""Listing, page by page. A cursor holds the last place that was given: what comes or goes before it is no matter."""

from __future__ import annotations

from collections.abc import Callable

from octavo.core.values import Entry, Page
from octavo.sources._shared.places import Names, Place, Where, opened, sealed
from octavo.sources.file.roots import Forest
from octavo.sources.file.titles import Titles


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
