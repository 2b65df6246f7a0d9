"""Listing, page by page. A cursor holds the last place that was given: what comes or goes before it is no matter."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from octavo.core.errors import InvalidParams
from octavo.core.model import Entry, Page
from octavo.sources.file.addresses import Where
from octavo.sources.file.forest import Forest, Place


def page(
    forest: Forest, where: Where, *, cursor: str | None, limit: int, recursive: bool, stop: Callable[[], bool]
) -> Page[Entry]:
    """Looks only at what is on the page, and at one more to know whether it is the last."""
    last = None if cursor is None else opened(cursor, where)
    items: list[Entry] = []
    given = last
    begin = () if last is None else last.names
    for place, facts in forest.places(where, begin=begin, recursive=recursive, stop=stop):
        if last is not None and place <= last:
            continue
        if len(items) == limit and given is not None:
            return Page(tuple(items), sealed(given))
        items.append(forest.listed(place, facts, shadowed=forest.is_shadowed(place)))
        given = place
    return Page(tuple(items))


def beginning(where: Where) -> str:
    """The cursor before everything under a scope."""
    return sealed(Place(where.names, -1))


def sealed(place: Place) -> str:
    return base64.urlsafe_b64encode(json.dumps([place.root, *place.names]).encode()).decode("ascii")


def opened(cursor: str, where: Where) -> Place:
    try:
        value: Any = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
        root, *names = value
        in_scope = tuple(names[: len(where.names)]) == where.names
        if in_scope and isinstance(root, int) and all(isinstance(name, str) for name in names):
            return Place(tuple(names), root)
    except (binascii.Error, ValueError, TypeError, RecursionError):
        pass
    raise InvalidParams("The cursor does not belong to this listing")
