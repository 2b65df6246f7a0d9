"""Cursors: texts that say where a listing goes on, in the two forms that they have inside the house.

A source names the last thing that it gave, in letters that pass everywhere: `token`, and what is made of it. What goes
on within the listing of another keeps several parts together: `joined`. Neither is secret and neither is believed:
whoever hands one to a client seals it first (`core.seal`), and what cannot be read is refused here.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from octavo.core.errors import InvalidParams

Kind: TypeAlias = type | tuple[type, ...]

INVALID: Final = "invalid_cursor"  # the reason of a cursor that is refused
_FOREIGN: Final = "The cursor is not one of this source"


def token(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")


def text_of(cursor: str, refusal: str = _FOREIGN) -> str:
    """Raises InvalidParams, in the words of `refusal`, for what `token` did not make."""
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode("utf-8", "surrogatepass")
    except ValueError:  # not ASCII, not base64, or not UTF-8
        raise InvalidParams(refusal) from None


def of_path(segments: Iterable[str]) -> str:
    """The place of an address that was given last."""
    return token("/".join(segments))


def path_of(cursor: str) -> tuple[str, ...]:
    """Raises InvalidParams."""
    return tuple(text_of(cursor).split("/"))


def of_place(root: int, names: Iterable[str]) -> str:
    """The place in one of several trees of files that was given last."""
    return token(json.dumps([root, *names]))


def place_of(cursor: str, refusal: str) -> tuple[int, tuple[str, ...]]:
    """Raises InvalidParams, in the words of `refusal`."""
    try:
        root, *names = json.loads(text_of(cursor, refusal))
    except (ValueError, TypeError, RecursionError):
        raise InvalidParams(refusal) from None
    if isinstance(root, int) and all(isinstance(name, str) for name in names):
        return root, tuple(names)
    raise InvalidParams(refusal)


def joined(*parts: Any) -> str:
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def parts_of(cursor: str | None, *kinds: Kind, refusal: str) -> Sequence[Any]:
    """Raises InvalidParams, in the words of `refusal`, for what `joined` did not make of parts of these kinds."""
    try:
        parts: Any = None if cursor is None else json.loads(cursor)
    except (ValueError, RecursionError):
        parts = None
    if isinstance(parts, list) and len(parts) == len(kinds) and all(map(isinstance, parts, kinds)):
        return parts
    raise InvalidParams(refusal, reason=INVALID)
