"""Finds invisible characters that a model would read, or that change the order of a line.

They are shown as `⟨U+202E⟩`, so that nothing vanishes in silence. What a script or an emoji needs stays: joiners
between letters or pictures, and beside letters of scripts that join (in Persian before an ending of a Latin word), one
variation selector behind its base, the tags of a flag, fillers beside Hangul jamo, direction marks beside letters that
run from right to left.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final, cast

import re2  # type: ignore[import-untyped]  # it has no annotations

# Ranges: soft hyphen, Arabic letter mark, Hangul fillers, Mongolian separators and selectors, zero widths and
# direction marks, embeddings and overrides, invisible operators and isolates, fillers, selectors, byte order mark,
# annotation anchors, tags, further selectors.
_SUSPECTS: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# With what stands for a byte that is no character: one look tells of both.
_SUSPECT: Final = cast("Any", re2).compile(rf"[\x00\x{{fffd}}{_SUSPECTS}]")
_RUN: Final = re.compile(f"[{_SUSPECTS}]+")

_FLAG: Final = "\U0001f3f4"
_TAG_END: Final = "\U000e007f"
_JOINERS: Final = "\u200c\u200d"
# Scripts whose letters have other forms with a joiner beside them, as Unicode names their letters.
_JOINING: Final = (
    "ARABIC", "SYRIAC", "MANDAIC", "NKO", "MONGOLIAN", "PHAGS-PA", "HANIFI ROHINGYA", "ADLAM", "DEVANAGARI", "BENGALI",
    "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA", "TIBETAN", "MYANMAR",
    "KHMER", "BALINESE", "JAVANESE", "SUNDANESE", "MEETEI MAYEK", "VEDIC",
)  # fmt: skip
_DIRECTIONS: Final = "\u061c\u200e\u200f"
_FILLERS: Final = "\u115f\u1160\u3164\uffa0"
_SEPARATORS: Final = "\u2028\u2029"


def suspicious(text: str) -> bool:
    """Whether there is anything to look at. RE2 is ten times as fast here as Python's own."""
    return not text.isascii() and _SUSPECT.search(text.encode("utf-8", "surrogatepass")) is not None


def shown(text: str, *, before: str = "", after: str = "", removed: bool = False) -> str:
    """With markers, or without those characters. `before` and `after` are what stands around the text."""
    if not suspicious(text):
        return text
    left, right = before[-1:], after[:1]
    whole = f"{left}{text}{right}"
    pieces: list[str] = []
    at = len(left)
    for start, end in _useless(whole, at, len(whole) - len(right)):
        more = f" and {end - start - 1} more" if end - start > 1 else ""
        pieces += (
            whole[at:start],
            "" if removed or _is_byte_order(whole, start, end) else f"⟨U+{ord(whole[start]):04X}{more}⟩",
        )
        at = end
    return "".join((*pieces, whole[at : len(whole) - len(right)])) if pieces else text


def places(text: str) -> list[int]:
    """Where markers would stand."""
    if not suspicious(text):
        return []
    return [start for start, end in _useless(text, 0, len(text)) if not _is_byte_order(text, start, end)]


def _useless(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """From where to where there is nothing but characters without a use."""
    for run in _RUN.finditer(text, first, last):
        start, end = run.span()
        start += _needed(run.group(), text[max(0, start - 1) : start], text[end : end + 1])
        if start < end:
            yield start, end


def _is_byte_order(text: str, start: int, end: int) -> bool:
    """A byte order mark where one belongs."""
    return (start, end) == (0, 1) and text[0] == "\ufeff"


def _needed(run: str, left: str, right: str) -> int:
    """How many characters at the beginning of a run have a use, given what stands left and right of it."""
    first = run[0]
    if left == _FLAG and run.endswith(_TAG_END) and len(run) <= 8:
        return len(run)
    if run in _SEPARATORS:
        return 1
    kept = 0
    if _is_selector(first) and _takes_selector(first, left):
        kept = 1
    rest = run[kept:]
    if len(rest) == 1 and _is_needed(rest, left, right):
        return kept + 1
    if all(c in _FILLERS for c in rest) and len(rest) <= 2 and (_is_jamo(left) or _is_jamo(right)):
        return len(run)
    return kept


def _is_needed(one: str, left: str, right: str) -> bool:
    if one in _JOINERS:
        return (_joins(left) and _joins(right)) or _has_forms(left) or _has_forms(right)
    if one in _DIRECTIONS:
        return _runs_left(left) or _runs_left(right)
    return one == "\u00ad" and left.isalpha() and right.isalpha()


def _is_selector(c: str) -> bool:
    return "\ufe00" <= c <= "\ufe0f" or "\U000e0100" <= c <= "\U000e01ef" or "\u180b" <= c <= "\u180f"


def _takes_selector(selector: str, base: str) -> bool:
    if selector >= "\U000e0100":
        return bool(base) and unicodedata.name(base, "").startswith("CJK")
    return bool(base) and (not base.isascii() or base in "#*0123456789")


def _joins(c: str) -> bool:
    """A letter or sign of a script that joins, or a picture: nothing of Latin, Han or Hangul."""
    if not c or c.isascii() or c.isspace():
        return False
    name = unicodedata.name(c, "")
    return not name.startswith(("LATIN", "CJK", "HANGUL", "HIRAGANA", "KATAKANA", "FULLWIDTH", "CYRILLIC", "GREEK"))


def _has_forms(c: str) -> bool:
    """A letter or mark that a joiner changes, whatever stands on the other side of it."""
    return (
        bool(c)
        and not c.isascii()
        and unicodedata.name(c, "").startswith(_JOINING)
        and unicodedata.category(c)[0] in "LM"
    )


def _runs_left(c: str) -> bool:
    return bool(c) and unicodedata.bidirectional(c) in ("R", "AL", "AN")


def _is_jamo(c: str) -> bool:
    return bool(c) and (
        "\u1100" <= c <= "\u11ff"
        or "\ua960" <= c <= "\ua97f"
        or "\ud7b0" <= c <= "\ud7ff"
        or ("\u3131" <= c <= "\u318e")
    )
