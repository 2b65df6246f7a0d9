"""Orders files of one or several trees, and makes cursors from the last one given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from octavo.core.cursor import of_place, place_of
from octavo.core.errors import InvalidParams

Names: TypeAlias = tuple[str, ...]
_FOREIGN: Final = "The cursor does not belong to this listing"


class Where(NamedTuple):
    """Names below one root or the first of several that has them."""

    names: Names
    roots: Sequence[int]


class Place(NamedTuple):
    names: Names
    root: int


def sealed(place: Place) -> str:
    return of_place(place.root, place.names)


def opened(cursor: str, where: Where) -> Place:
    """Raises InvalidParams for a cursor of another listing."""
    root, names = place_of(cursor, _FOREIGN)
    if names[: len(where.names)] == where.names:
        return Place(names, root)
    raise InvalidParams(_FOREIGN)
