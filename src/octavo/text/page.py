"""A text as edits see it: its line ends are LF for finding, and its own for writing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final

from octavo.text.align import changed
from octavo.text.find import LineIndex
from octavo.text.lines import body, ending, endings, split, split_at_lf

BLANKS: Final = " \t"


def with_lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


class TextPage:
    """Offsets are in `plain`, the text with LF; `original` gives the place in the text as it is."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain = with_lf(text)
        self.ends = endings(text)
        self._end = self.ends[0] if self.ends else "\n"
        self._pairs = _pairs(text) if "\r\n" in self.ends else []

    @cached_property
    def lines(self) -> Sequence[str]:
        return split_at_lf(self.plain)

    @cached_property
    def stripped(self) -> LineIndex:
        """Lines without what an editor cannot show: indentation, trailing blanks, ends."""
        return LineIndex([line.strip(" \t\n") for line in self.lines])

    @cached_property
    def starts(self) -> Sequence[int]:
        """Where each line begins, and where the text ends."""
        return list(accumulate(map(len, self.lines), initial=0))

    def line_of(self, offset: int) -> int:
        return bisect_right(self.starts, offset, hi=max(len(self.starts) - 1, 1))

    def original(self, offset: int) -> int:
        return offset + bisect_left(self._pairs, offset)

    def between(self, start: int, stop: int) -> str:
        return self.text[self.original(start) : self.original(stop)]

    def written(self, start: int, stop: int, old: str, new: str) -> str:
        """`new` in place of `start:stop`, which is what `old` stands for, line by line. A line that both have is kept
        as it is; an inserted one gets the indentation and the line end of this text."""
        exact = self.plain[start:stop] == old
        if exact and len(self.ends) < 2:
            return new.replace("\n", self._end) if self.ends else new
        there, asked = split(self.between(start, stop)), split_at_lf(old)
        indented = (lambda line: line) if exact else _indentation(asked, there)
        result = self._woven(there, asked, split_at_lf(new), indented)
        if old.endswith("\n") and not self.plain[start:stop].endswith("\n"):  # the last line, which has no end
            result = body(result)
        return result

    def _woven(
        self, there: Sequence[str], asked: Sequence[str], new: Sequence[str], indented: Callable[[str], str]
    ) -> str:
        pieces: list[str] = []
        done = 0
        for a1, a2, b1, b2 in changed(asked, new):
            pieces += there[done:a1]
            for n, line in enumerate(new[b1:b2]):
                paired = a1 + n < a2
                own = (ending(there[a1 + n]) if paired else "") or self._end
                if paired and _indent(asked[a1 + n]) == _indent(line):
                    shown = _indent(there[a1 + n]) + body(line).lstrip(BLANKS)
                else:
                    shown = indented(body(line))
                pieces.append(shown + (own if line.endswith("\n") else ""))
            done = a2
        return "".join((*pieces, *there[done:]))


def _pairs(text: str) -> list[int]:
    """The offsets in the text with LF of the line ends that are two characters in the text itself."""
    halves = text.split("\r\n")
    return [end + n for n, end in enumerate(accumulate(map(len, halves[:-1])))]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(BLANKS))]


def _indentation(asked: Sequence[str], there: Sequence[str]) -> Callable[[str], str]:
    """Turns the edit's indentation into the text's, as learnt from the lines that correspond. Levels not seen lie as
    far from the nearest known one as in the edit, in the text's own kind of blank."""
    levels: dict[str, str] = {}
    for a, b in zip(asked, there, strict=True):
        if a.strip():
            levels.setdefault(_indent(a), _indent(b))
    known = sorted(levels, key=len)
    scale = next((_scale(level, levels[level]) for level in known if level and levels[level]), None)

    def indented(line: str) -> str:
        asked_indent = _indent(line)
        if asked_indent == line or not known:
            return line
        return _level(asked_indent) + line[len(asked_indent) :]

    def _level(indent: str) -> str:
        if indent in levels:
            return levels[indent]
        nearest = min(known, key=lambda level: abs(len(level) - len(indent)))
        own, further = levels[nearest], len(indent) - len(nearest)
        if scale:
            blank, share = scale
            further = round(further * share)
        else:
            blank = indent[-1:]
        return own + blank * further if further > 0 else own[: len(own) + further] if -further <= len(own) else ""

    return indented


def _scale(asked: str, own: str) -> tuple[str, float] | None:
    """The blank that the text uses where the edit uses another, and how many of it stand for one."""
    if len(set(asked)) == len(set(own)) == 1 and asked[0] != own[0]:
        return own[0], len(own) / len(asked)
    return None
