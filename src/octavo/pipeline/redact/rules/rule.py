"""What a redaction rule consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from octavo.pipeline.redact.rules import checks

WORD = "[A-Za-z0-9]"
URL_SAFE = "[A-Za-z0-9_-]"
HEX = "[0-9a-f]"
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


class PatternRule(Struct, frozen=True):
    """`pattern` is RE2. Its first group that took part, or else the whole match, is what is replaced.

    One of the `keywords` (lower case) or something that `clue` (RE2) describes stands in every match; a
    rule without either runs on every text. `accept` takes the second look that a pattern cannot. Where no pattern can
    tell how far a value goes it gives the first character, and `ends` (in bytes: text, start) the end. Where values
    stand elsewhere than what tells of them, it gives the latter, and `values` (text, start) where they are.
    """

    name: str
    pattern: str
    keywords: tuple[str, ...] = ()
    clue: str = ""
    accept: Callable[[str], bool] | None = None
    ends: Callable[[bytes, int], int] | None = None
    values: Callable[[bytes, int], Iterable[tuple[int, int]]] | None = None


def token(name: str, prefix: str, body: str, *, accept: Callable[[str], bool] = checks.is_real) -> PatternRule:
    """A credential that begins with something no other text begins with: `prefix`, then `body`, both RE2."""
    # In a terminal's log it may stand right behind the code of a colour, which ends in a letter.
    pattern = rf"(?:\b|\x1b\[[0-9;]*m)((?:{prefix}){body})"
    return PatternRule(name, pattern, clue=rf"(?:{prefix})[A-Za-z0-9+/_%-]{{3}}", accept=accept)
