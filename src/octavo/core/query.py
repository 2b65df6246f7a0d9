"""What a search can ask for: names, lines of text, or words for a ranked search."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from octavo.core.errors import InvalidParams
from octavo.core.ref import Ref
from octavo.core.sizes import MIB

MAX_QUERY_CHARACTERS = 1024
MAX_FILTERS = 50


class NameQuery(Struct, frozen=True):
    """With a `*` a pattern as in `core.glob`, otherwise a part of the path in any case. Unicode forms do not matter.

    A pattern without a slash is one of the last name, at any depth: `*.md` finds what `**/*.md` finds. One that
    begins with a slash begins at the root. `gitignore` leaves out what .gitignore files name.
    """

    text: str
    gitignore: bool = True

    def __post_init__(self) -> None:
        _refuse_odd(self.text)


class ContentQuery(Struct, frozen=True, kw_only=True):
    """A text that stands on one line.

    `case="smart"` tells letters apart when the query has a capital one. `word` wants no letter, digit or
    underscore of any script beside the match. `include` and `exclude` are patterns as in NameQuery.
    `gitignore` leaves out what .gitignore files name. Larger files than `max_file_bytes` are left out.
    """

    text: str
    regex: bool = False
    case: bool | Literal["smart"] = "smart"
    word: bool = False
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    gitignore: bool = True
    max_file_bytes: int = 64 * MIB

    def __post_init__(self) -> None:
        _refuse_odd(self.text)
        for pattern in (*self.include, *self.exclude):
            _refuse_odd(pattern)


Query = NameQuery | ContentQuery


class TextQuery(Struct, frozen=True):
    """Words, and phrases in quotes, that a ranked search over all sources looks for.

    `within` are the places to look in, any of them; a scheme alone is a place too. `where` are metadata keys with
    the values that will do, all keys of them. Whatever the text is, it is a question: what cannot be looked for in it
    is left out.
    """

    text: str
    within: tuple[Ref, ...] = ()
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        if max(len(self.where), len(self.within), *(len(values) for _, values in self.where), 0) > MAX_FILTERS:
            raise InvalidParams(f"A search has at most {MAX_FILTERS} filters, and each at most as many values")


def _refuse_odd(text: str) -> None:
    if not text:
        raise InvalidParams("The text to search for is empty: give some words")
    if len(text) > MAX_QUERY_CHARACTERS:
        raise InvalidParams(f"The text to search for is longer than {MAX_QUERY_CHARACTERS} characters")
    if any(c in text for c in "\n\r\0"):
        raise InvalidParams("The text to search for must be one line: lines are searched one by one")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidParams("The text to search for is not valid Unicode") from None
