"""Estimates the tokens of a text, and cuts a text to so many of them and so many bytes.

A token estimate needs no vocabulary to be useful, only to err on the safe side. English prose has four letters a
token, but digits and punctuation break words up, so that JSON and CSV have two; Hangul syllables, kana and ideographs
(three bytes in UTF-8) cost 0.8 to 1.4 each, emoji (four bytes) about 2.5. Random letters (base64, keys) cost about
twice as much as estimated: no simple rule tells them from words.
"""

from __future__ import annotations

import io
import unicodedata
from bisect import bisect_left
from typing import Final, NamedTuple

# In quarters of a token: a letter or blank of ASCII, its other characters, and characters of two, three, four bytes.
_LETTER, _SIGN, _TWO, _THREE, _FOUR = 1, 3, 4, 6, 12

_LETTERS: Final = bytes(n for n in range(128) if chr(n).isalpha() or chr(n).isspace())
_HIGH: Final = bytes(range(0x80, 0x100))
_NOT_LEADING: Final = bytes(range(0xC0))
_BELOW_THREE: Final = bytes(range(0xE0))
_BELOW_FOUR: Final = bytes(range(0xF0))
_LONGEST: Final = 64  # characters that may belong together; beyond it somebody plays

_ZWJ: Final = "\u200d"


class Fitted(NamedTuple):
    """`text` + `rest` is the whole; `cut_at_line` is the line at which the rest begins, None when there is none."""

    text: str
    cut_at_line: int | None
    rest: str


def tokens(text: str) -> int:
    """An estimate that is rather too high than too low."""
    return -(-_quarters(_raw(text)) // 4)


def fit(text: str, max_bytes: int, max_tokens: int) -> Fitted:
    """As many whole lines as fit into both limits; of a first line that is too long alone, as many characters.

    Never cuts inside of what is one character to a reader (accents, joined emoji, flags, Hangul letters, CRLF).
    `text` is empty if not even the first of them fits.
    """
    quarters = 4 * max_tokens
    raw = _raw(text)
    if len(raw) <= max_bytes and _quarters(raw) <= quarters:
        return Fitted(text, None, "")
    taken, line_number = 0, 1
    size = cost = 0
    for line in io.StringIO(text, newline=""):
        raw = _raw(line)
        size, cost = size + len(raw), cost + _quarters(raw)
        if size > max_bytes or cost > quarters:
            break
        taken, line_number = taken + len(line), line_number + 1
    if not taken:
        taken = _beginning(text, max_bytes, quarters)
    return Fitted(text[:taken], line_number, text[taken:])


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _quarters(raw: bytes) -> int:
    if raw.isascii():
        signs = len(raw.translate(None, _LETTERS))
        return _LETTER * (len(raw) - signs) + _SIGN * signs
    leading = raw.translate(None, _NOT_LEADING)
    three_or_four = len(leading.translate(None, _BELOW_THREE))
    four = len(leading.translate(None, _BELOW_FOUR))
    wide = _TWO * (len(leading) - three_or_four) + _THREE * (three_or_four - four) + _FOUR * four
    return wide + _quarters(raw.translate(None, _HIGH))


def _beginning(text: str, max_bytes: int, quarters: int) -> int:
    """How many characters of a line that is too long can be given."""
    line = text[: max(max_bytes, 0) + 1]

    def too_much(count: int) -> bool:
        raw = _raw(line[:count])
        return len(raw) > max_bytes or _quarters(raw) > quarters

    most = max(bisect_left(range(len(line) + 1), True, key=too_much) - 1, 0)
    cut = most
    while cut > 0 and most - cut < _LONGEST and _belong_together(text, cut):
        cut -= 1
    return cut if most - cut < _LONGEST else most


def _belong_together(text: str, at: int) -> bool:
    """Whether a reader sees the characters on both sides of `at` as one."""
    if at >= len(text):
        return False
    left, right = text[at - 1], text[at]
    if right == "\n":
        return left == "\r"
    if "\ud800" <= left <= "\udbff" and "\udc00" <= right <= "\udfff":
        return True
    if left == _ZWJ or right == _ZWJ or unicodedata.category(right)[0] == "M":
        return True
    if "\U0001f3fb" <= right <= "\U0001f3ff" or "\U000e0020" <= right <= "\U000e007f":  # skin tones, tags
        return True
    if "\u1100" <= left <= "\u11ff" and "\u1100" <= right <= "\u11ff":  # Hangul in letters
        return True
    return _is_flag(right) and _flags_before(text, at) % 2 == 1


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, at: int) -> int:
    begin = at
    while begin > 0 and at - begin < _LONGEST and _is_flag(text[begin - 1]):
        begin -= 1
    return at - begin
