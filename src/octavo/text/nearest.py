"""Where in a text somebody may have meant, when what they quote is not there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

from octavo.text.page import TextPage

_WORD: Final = re.compile(r"\w+")
_WORDS: Final = 4  # of the quoted text that are looked up
_SIGHTINGS: Final = 200  # of each, and lines of it that are looked up
_COMPARED: Final = 40  # places that are compared in full
_LINES: Final = 12  # of the difference shown
_WIDTH: Final = 160  # characters of a line shown
_LIKE: Final = 0.5  # below this, a place is no help


def nearest(page: TextPage, old: str) -> str:
    """A sentence with the line number of the most similar place and the difference, or that there is none."""
    wanted = [line.strip(" \t") for line in old.removesuffix("\n").split("\n")]
    begin = _by_lines(page, wanted)
    if begin is None:
        begin = _by_words(page, wanted)
    if begin is None:
        return "Nothing in it is similar: read the file again"
    there = "".join(page.lines[begin : begin + len(wanted)])
    difference = _difference(there.removesuffix("\n").split("\n"), old.removesuffix("\n").split("\n"))
    return f"The nearest place is line {begin + 1} (- there, + in `old`):\n{difference}"


def _by_lines(page: TextPage, wanted: Sequence[str]) -> int | None:
    """Where the most lines agree, each line voting for the place at which the whole would begin."""
    votes: Counter[int] = Counter()
    for n, line in enumerate(wanted[:_SIGHTINGS]):
        if line:
            votes.update(max(place - n, 0) for place in islice(page.stripped.runs([line]), _SIGHTINGS))
    return min(votes, key=lambda place: (-votes[place], place)) if votes else None


def _by_words(page: TextPage, wanted: Sequence[str]) -> int | None:
    telling = max(range(len(wanted)), key=lambda n: len(wanted[n]))
    line = wanted[telling][:_WIDTH]
    words = sorted(set(_WORD.findall(line)), key=len, reverse=True)[:_WORDS]
    sightings = Counter(number for word in words for number in set(_sightings(page, word)))
    matcher = SequenceMatcher(b=line, autojunk=False)
    best, place = _LIKE, None
    for number, _ in sightings.most_common(_COMPARED):
        matcher.set_seq1(page.stripped.lines[number][:_WIDTH])
        if matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, place = ratio, max(number - telling, 0)
    return place


def _sightings(page: TextPage, word: str) -> Iterable[int]:
    at = page.plain.find(word)
    for _ in range(_SIGHTINGS):
        if at < 0:
            return
        yield page.line_of(at) - 1
        at = page.plain.find(word, at + len(word))


def _difference(there: Sequence[str], asked: Sequence[str]) -> str:
    """Line against line, those that agree left out."""
    shown: list[str] = []
    for n in range(max(len(there), len(asked))):
        left = there[n] if n < len(there) else None
        right = asked[n] if n < len(asked) else None
        if left == right:
            continue
        shown += [f"{mark} {line[:_WIDTH]}" for mark, line in (("-", left), ("+", right)) if line is not None]
    return "\n".join(shown[:_LINES])
