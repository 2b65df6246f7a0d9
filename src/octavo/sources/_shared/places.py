"""Places in one or several trees of files, and cursors that name the last one that was given."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from octavo.core.errors import InvalidParams

Names: TypeAlias = tuple[str, ...]


class Where(NamedTuple):
    """Names below one root or the first of several that has them."""

    names: Names
    roots: Sequence[int]


class Place(NamedTuple):
    names: Names
    root: int


def sealed(place: Place) -> str:
    return base64.urlsafe_b64encode(json.dumps([place.root, *place.names]).encode()).decode("ascii")


def opened(cursor: str, where: Where) -> Place:
    """Raises InvalidParams for a cursor of another listing."""
    try:
        value: Any = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
        root, *names = value
        in_scope = tuple(names[: len(where.names)]) == where.names
        if in_scope and isinstance(root, int) and all(isinstance(name, str) for name in names):
            return Place(tuple(names), root)
    except (binascii.Error, ValueError, TypeError, RecursionError):
        pass
    raise InvalidParams("The cursor does not belong to this listing")
