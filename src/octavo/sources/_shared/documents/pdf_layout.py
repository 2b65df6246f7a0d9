"""Lines of pages as paragraphs and headings. A PDF knows neither; the size and the gaps of lines tell them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from octavo.sources._shared.documents.draft import Draft, paragraph

_HEADING: Final = 1.15  # times the size of most letters
_MAX_HEADING: Final = 150
_GAP: Final = 0.6  # of a line's height: more of it between two lines parts paragraphs


class Line(NamedTuple):
    text: str
    top: float
    bottom: float

    @property
    def size(self) -> float:
        return round((self.top - self.bottom) * 2) / 2

    def goes_on_from(self, before: Line) -> bool:
        return before.size == self.size and 0 <= before.top - self.top <= (1 + _GAP) * max(self.size, 1) + 1


class _Page(NamedTuple):
    number: int
    lines: list[Line]
    remark: str


class Layout:
    """Gathers pages until they fill the output; then the sizes of all their letters are known."""

    def __init__(self, max_bytes: int) -> None:
        self._left = max_bytes
        self._pages: list[_Page] = []
        self._letters: Counter[float] = Counter()

    @property
    def full(self) -> bool:
        return self._left < 0

    def page(self, number: int, lines: list[Line], remark: str) -> None:
        for line in lines:
            self._letters[line.size] += len(line.text)
            self._left -= len(line.text)
        self._pages.append(_Page(number, lines, remark))

    def write(self, draft: Draft) -> None:
        levels = self._levels()
        for number, lines, remark in self._pages:
            draft.block(f"<!-- page {number} -->")
            for run in _runs(lines):
                level = levels.get(run[0].size)
                text = " ".join(line.text for line in run)
                if level and len(text) <= _MAX_HEADING and any(map(str.isalpha, text)):
                    draft.heading(level, text)
                else:
                    draft.block(paragraph("\n".join(line.text for line in run)))
            draft.block(remark)
        if self.full:
            draft.cut()

    def _levels(self) -> dict[float, int]:
        """From the size of a heading to its level, the greatest first."""
        if not self._letters:
            return {}
        usual = max(self._letters, key=lambda size: self._letters[size])
        greater = sorted((size for size in self._letters if usual > 0 and size >= _HEADING * usual), reverse=True)
        return {size: min(level, 6) for level, size in enumerate(greater, 1)}


def _runs(lines: Iterable[Line]) -> Iterable[list[Line]]:
    """Lines that belong together."""
    run: list[Line] = []
    for line in lines:
        if run and not line.goes_on_from(run[-1]):
            yield run
            run = []
        run.append(line)
    if run:
        yield run
