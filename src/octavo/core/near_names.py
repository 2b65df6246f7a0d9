"""Error messages for an unknown word: the nearest known one, and the list of those there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from octavo.core.errors import InvalidParams

MOST: Final = 20  # words that are told
FILTERS: Final = 60  # of several namespaces together there are more
_WORD: Final = 80  # characters of what was written that are compared


def meant(word: str, known: Iterable[str], most: int = MOST) -> str:
    """For the end of a sentence. `known` is nothing that the caller may not know."""
    from difflib import get_close_matches  # here: it is for who mistyped

    words = sorted({*known})
    if not words:
        return "there is none here"
    near = nearest(word, words) or get_close_matches(word[:_WORD], words, 1)
    more = ", …" if len(words) > most else ""
    return f"{f'did you mean {near[0]}? ' if near else ''}known are: {', '.join(words[:most])}{more}"


def unknown_filter(key: str, known: Iterable[str]) -> InvalidParams:
    """`data.known` is for whoever asked several namespaces, and tells of all of them."""
    words = sorted({*known})
    message = f"Unknown filter: {key!r}; {meant(key, words, FILTERS)}"
    return InvalidParams(message, reason="unknown_filter", filter=key, known=words[:FILTERS])


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """Those that differ in case or in `_` and `-` alone."""
    return [one for one in known if _plain(one) == _plain(word)]


def _plain(word: str) -> str:
    return word.casefold().replace("_", "").replace("-", "")
