"""Positions of hidden parts in a text, in characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class HiddenSpan(NamedTuple):
    """Characters `start` to `end` of a text are hidden; `mark` stands in their place."""

    start: int
    end: int
    mark: str

    @property
    def rule(self) -> str:
        return self.mark.split(":")[1]


def merged(spans: Iterable[HiddenSpan]) -> list[HiddenSpan]:
    """In order; what two of them cover in part is one."""
    result: list[HiddenSpan] = []
    for span in sorted(spans):
        if result and span.start < result[-1].end:
            result[-1] = result[-1]._replace(end=max(span.end, result[-1].end))
        else:
            result.append(span)
    return result


def without(text: str, hidden: Iterable[HiddenSpan], left: int, right: int) -> str:
    """The characters `left` to `right`, and marks for what is hidden in them, also where a border cuts it."""
    pieces: list[str] = []
    for start, end, mark in hidden:
        if start < right and left < end:
            pieces += (text[left : max(start, left)], mark)
            left = max(left, end)
    return "".join((*pieces, text[left:right]))


def occurrences(text: str, value: str, mark: str) -> Iterator[HiddenSpan]:
    at = text.find(value)
    while at >= 0:
        yield HiddenSpan(at, at + len(value), mark)
        at = text.find(value, at + len(value))


def carried(spans: Sequence[HiddenSpan], bare: str, text: str) -> Iterator[HiddenSpan]:
    """Spans of a bare text in the text of which it was made by leaving characters out."""
    at = place = 0
    for start, end, mark in spans:
        borders: list[int] = []
        for last in (start, end - 1):  # the characters with which the span begins and ends
            while at < last:
                place = text.index(bare[at], place) + 1
                at += 1
            borders.append(text.index(bare[last], place))
        yield HiddenSpan(borders[0], borders[1] + 1, mark)
