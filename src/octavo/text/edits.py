"""Edits by content: replace this by that, safely.

All edits are located on the text as it was, in the order given; together they apply or nothing does. As if applied
one after the other, what an earlier edit has replaced is no longer found. Text that an earlier edit inserts is never
searched: an edit that would find its target there is refused, because whoever wrote it had another text in mind.

Line ends never matter for finding and are never changed: LF in an edit matches CRLF in the text, kept lines keep
their own ends, inserted lines get the text's. Where nothing matches exactly, whole lines may match with other
indentation and trailing blanks; then the text's indentation wins.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from octavo.core.edit import USUAL, Edit, Words
from octavo.core.errors import InvalidParams
from octavo.text.find import Literals
from octavo.text.lines import line_range
from octavo.text.nearest import nearest
from octavo.text.page import TextPage, with_lf

_SHOWN: Final = 10  # line numbers in a message


class LineEdit(NamedTuple):
    """The lines `first` to `last`, counted from 1 (negative: from the end), become `new`; "" removes them."""

    first: int
    last: int
    new: str


class Applied(NamedTuple):
    """Where the edit number `edit` (from 1) applied: a line of the text as it was."""

    edit: int
    line: int
    exact: bool


class EditedText(NamedTuple):
    text: str
    places: Sequence[Applied]


class _Span(NamedTuple):
    start: int
    stop: int
    edit: int
    text: str
    exact: bool


def apply(
    text: str,
    edits: Sequence[Edit | LineEdit],
    *,
    visible: Callable[[str], str] = str,
    words: Words = USUAL,
) -> EditedText:
    """The text with all edits; InvalidParams, which names the edit and the place, if one of them does not apply.

    `visible` gives the text as the caller sees it, who may not be allowed to see all of what it edits: messages speak
    of that one.
    """
    work = _Work(TextPage(text), edits, visible, words)
    for number, edit in enumerate(edits, 1):
        work.add(number, edit)
    return work.result()


class _Work:
    def __init__(
        self, page: TextPage, edits: Sequence[Edit | LineEdit], visible: Callable[[str], str], words: Words
    ) -> None:
        self._page = page
        self._visible, self._words = visible, words
        self._spans: list[_Span] = []
        wanted = [with_lf(edit.old) for edit in edits if isinstance(edit, Edit)]
        self._found = Literals(page.plain, wanted)
        self._edits = edits
        inserted = [with_lf(edit.new) for edit in edits]
        self._begins = list(accumulate((len(new) + 1 for new in inserted), initial=0))  # of each among all
        self._inserted = Literals("\0".join(inserted), wanted if len(edits) > 1 else ())

    def add(self, number: int, edit: Edit | LineEdit) -> None:
        if isinstance(edit, LineEdit):
            self._replace_lines(number, edit)
        elif edit.old:
            self._replace(number, edit)
        elif self._page.text or len(self._edits) > 1:
            raise InvalidParams(
                f"Edit {number}: {self._words.old} is empty. Give the text to replace, with its neighbours"
            )
        else:
            self._spans.append(_Span(0, 0, number, edit.new, exact=True))

    def result(self) -> EditedText:
        page, at, pieces = self._page, 0, list[str]()
        for span in self._spans:
            pieces += (page.between(at, span.start), span.text)
            at = span.stop
        pieces.append(page.between(at, len(page.plain)))
        places = sorted(Applied(span.edit, page.line_of(span.start), span.exact) for span in self._spans)
        return EditedText("".join(pieces), places)

    def _replace(self, number: int, edit: Edit) -> None:
        page = self._page
        old, new = with_lf(edit.old), with_lf(edit.new) if page.ends else edit.new
        if edit.expected != "all" and edit.expected < 1:
            raise InvalidParams(f'Edit {number}: `expected` is a number of places from 1, or "all"')
        self._refuse_dependence(number, old)
        exact = True
        found = [(at, at + len(old)) for at in self._found.positions(old)]
        if not found:
            exact = False
            old, new = _whole_lines(old), _whole_lines(new)
            found = self._tolerant(old)
        free = [place for place in found if self._taker(*place) is None]
        self._refuse_surprise(number, edit, found, free)
        for start, stop in free:
            replacement = page.written(start, stop, old, new)
            insort(self._spans, _Span(start, stop, number, replacement, exact))

    def _replace_lines(self, number: int, edit: LineEdit) -> None:
        page = self._page
        try:
            part = line_range(page.plain, edit.first, edit.last)
        except InvalidParams as error:
            raise InvalidParams(f"Edit {number}: {error}", edit=number) from None
        start, stop = page.starts[part.first - 1], page.starts[part.last]
        taker = self._taker(start, stop)
        if taker is not None:
            raise _overlap(number, taker)
        new = with_lf(edit.new) if page.ends else edit.new
        if new and part.text.endswith("\n") and not new.endswith("\n"):
            new += "\n"
        insort(self._spans, _Span(start, stop, number, page.written(start, stop, part.text, new), exact=True))

    def _tolerant(self, old: str) -> list[tuple[int, int]]:
        """Places of whole lines that differ from `old` in blanks at their borders only."""
        wanted = [line.strip(" \t") for line in old.removesuffix("\n").split("\n")]
        if not any(wanted):
            return []
        page = self._page
        found: list[tuple[int, int]] = []
        for begin in page.stripped.runs(wanted):
            stop = page.starts[begin + len(wanted)]
            if not old.endswith("\n") and page.plain.endswith("\n", 0, stop):
                stop -= 1
            found.append((page.starts[begin], stop))
        return found

    def _taker(self, start: int, stop: int) -> int | None:
        """The earlier edit that has replaced a part of this."""
        after = bisect_left(self._spans, start, key=lambda span: span.start)
        for span in self._spans[max(after - 1, 0) : after + 1]:
            if span.start < stop and start < span.stop:
                return span.edit
        return None

    def _refuse_dependence(self, number: int, old: str) -> None:
        positions = self._inserted.positions(old) if number > 1 else []
        if positions and positions[0] < self._begins[number - 1]:
            earlier = bisect_right(self._begins, positions[0])
            raise InvalidParams(
                f"Edit {number} looks for text that edit {earlier} inserts. Merge the two, or put edit {number} first",
                edit=number,
            )

    def _refuse_surprise(
        self, number: int, edit: Edit, found: Sequence[tuple[int, int]], free: Sequence[tuple[int, int]]
    ) -> None:
        if not found:
            close = nearest(TextPage(self._visible(self._page.text)), with_lf(edit.old))
            raise InvalidParams(f"Edit {number}: {self._words.old} is not in the text. {close}", edit=number)
        if not free:
            raise _overlap(number, self._taker(*found[0]) or 0)
        if edit.expected in ("all", len(free)):
            return
        lines = [self._page.line_of(start) for start, _ in free]
        listed = ", ".join(map(str, lines[:_SHOWN])) + (", ..." if len(lines) > _SHOWN else "")
        raise InvalidParams(
            f"Edit {number}: {self._words.old} stands in {len(lines)} places, not {edit.expected} (line {listed}). "
            f"Add neighbouring lines to {self._words.old}{self._words.otherwise}",
            edit=number,
            lines=lines[:_SHOWN],
        )


def _whole_lines(text: str) -> str:
    """Without a last line of blanks only, which quotes the indentation of whatever follows."""
    bare = text.rstrip(" \t")
    return bare if bare.endswith("\n") else text


def _overlap(number: int, earlier: int) -> InvalidParams:
    return InvalidParams(f"Edit {number} overlaps edit {earlier}. Merge the two into one", edit=number)
