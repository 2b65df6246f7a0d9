"""The part of a text that shows why it was found."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from octavo.search.query_parse import Unit
from octavo.search.tokens import is_syllabic

LENGTH: Final = 160
_LOOKED_AT: Final = 400  # places in one part of a text
_PART: Final = 100_000  # characters that are looked at together; the first part with anything in it is shown
_STEP: Final = 8_000  # characters that are looked at in one go: no other thread does anything meanwhile
_SURE: Final = 2  # characters with which a word begins however it ends; a syllable is one
_GLANCE: Final = 5_000  # characters where there is no time
_BEFORE: Final = 40  # characters shown before the first place
_NEAREST: Final = 24  # how far a border between words may be
_FRONT: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_SPACE: Final = re.compile(r"\s+")


class WantedWords(NamedTuple):
    patterns: Sequence[re.Pattern[str]]
    beginnings: Sequence[str]  # one of which stands wherever a pattern does

    @classmethod
    def of(cls, units: Iterable[Unit]) -> WantedWords:
        units = [*units]
        strings = {one for unit in units for spelling in unit.spellings for one in spelling.strings}
        beginnings = {one[: 1 if is_syllabic(one) else _SURE] for one in strings}
        return cls([re.compile(unit.pattern, re.IGNORECASE) for unit in units], [*beginnings])


def snippet(text: str, wanted: WantedWords, *, hurried: bool = False) -> tuple[str, tuple[tuple[int, int], ...]]:
    """About 160 characters with as many of the wanted things as possible, and where in it they stand. `hurried`: only
    the beginning of the text is looked at."""
    begin = _begin(text, wanted.patterns, 0, min(len(text), _GLANCE)) if hurried else _begin_anywhere(text, wanted)
    if begin is None:
        front = _FRONT.match(text)
        begin = front.end() if front else 0
    start = _border(text, begin, -1)
    end = _border(text, min(len(text), start + LENGTH), 1)
    shown = _SPACE.sub(" ", text[start:end]).strip()
    shown = ("…" if text[:start].strip() else "") + shown + ("…" if text[end:].strip() else "")
    return shown, _marks(shown, wanted.patterns)


def _begin_anywhere(text: str, wanted: WantedWords) -> int | None:
    """A text may be long and have none of it, where it was found by its name."""
    first = _first(text, wanted.beginnings)
    if first is None:
        return None
    parts = ((at, min(len(text), at + _PART + LENGTH)) for at in range(first, len(text), _PART))
    return next((begin for part in parts if (begin := _begin(text, wanted.patterns, *part)) is not None), None)


def _first(text: str, beginnings: Sequence[str]) -> int | None:
    """Before it there is nothing that is wanted."""
    small = text.lower()
    if len(small) != len(text):  # some letters become two
        return 0
    return min((at for one in beginnings if (at := small.find(one)) >= 0), default=None)


def _begin(text: str, wanted: Sequence[re.Pattern[str]], low: int, high: int) -> int | None:
    """Where the window with the most different things begins; the first of equals."""
    places = sorted(
        (start, number)
        for number, pattern in enumerate(wanted)
        for start in islice(_starts(pattern, text, low, high), _LOOKED_AT)
    )
    best, begin, last = 0, None, 0
    counts = [0] * len(wanted)
    for first, (start, number) in enumerate(places):
        while last < len(places) and places[last][0] < start + LENGTH - _BEFORE:
            counts[places[last][1]] += 1
            last += 1
        different = len(counts) - counts.count(0)
        if different > best:
            best, begin = different, max(0, places[first][0] - _BEFORE)
        counts[number] -= 1
    return begin


def _starts(pattern: re.Pattern[str], text: str, low: int, high: int) -> Iterator[int]:
    behind = low
    for at in range(low, high, _STEP):
        for match in pattern.finditer(text, max(at, behind), min(high, at + _STEP + LENGTH)):
            if match.start() >= at + _STEP:
                break  # whole in the next one only
            yield match.start()
            behind = max(match.end(), match.start() + 1)


def _border(text: str, place: int, step: int) -> int:
    """The nearest border between words in that direction; else one between characters as people see them."""
    for distance in range(_NEAREST):
        here = place + step * distance
        if here <= 0 or here >= len(text):
            return max(0, min(here, len(text)))
        if text[here].isspace() or text[here - 1].isspace():
            return here
    while 0 < place < len(text) and _belongs(text[place - 1], text[place]):
        place += step
    return place


def _belongs(before: str, character: str) -> bool:
    joins = ("\u200d", "\ufe0f")
    return unicodedata.combining(character) != 0 or character in joins or before == joins[0]


def _marks(shown: str, wanted: Sequence[re.Pattern[str]]) -> tuple[tuple[int, int], ...]:
    spans = sorted(match.span() for pattern in wanted for match in pattern.finditer(shown) if match[0])
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
