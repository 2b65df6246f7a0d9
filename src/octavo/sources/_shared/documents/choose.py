"""Which pages, which sheet, which cells: what was asked for against what there is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from octavo.core.errors import InvalidParams
from octavo.sources._shared.documents.draft import inline

_SPAN: Final = re.compile(r"(\d{1,7})(?:\s*(-)\s*(\d{1,7})?)?")
_CELLS: Final = re.compile(r"([A-Za-z]{1,3})([1-9]\d{0,6})(?::([A-Za-z]{1,3})([1-9]\d{0,6}))?")
_NAMED, _SHOWN = 20, 60  # names in a message, letters of a name


class Box(NamedTuple):
    """Rows and columns from 0, both ends within."""

    top: int
    left: int
    bottom: int
    right: int

    def __str__(self) -> str:
        return f"{cell_name(self.top, self.left)}:{cell_name(self.bottom, self.right)}"

    def holds(self, row: int, column: int) -> bool:
        return self.top <= row <= self.bottom and self.left <= column <= self.right


def pages(wanted: str | None, count: int, noun: str = "page") -> Sequence[int]:
    """Numbers from 0, each once, in order: of `2-4,7`, of `3-` (to the end), of None (all).

    Raises InvalidParams that says how many there are.
    """
    if wanted is None:
        return range(count)
    there = f"the document has {count} {noun}{'' if count == 1 else 's'}"
    chosen: set[int] = set()
    for span in wanted.split(","):
        match = _SPAN.fullmatch(span.strip())
        if match is None:
            raise InvalidParams(f"pages is written like 2-4,7; {there}")
        first = int(match[1])
        last = int(match[3]) if match[3] else count if match[2] else first
        if not 1 <= first <= last <= count:
            raise InvalidParams(f"There is no {noun} {span.strip()}: {there}")
        chosen.update(range(first - 1, last))
    return sorted(chosen)


def sheets(wanted: str | None, names: Sequence[str]) -> Sequence[int]:
    """By name first, whatever its case, then by number from 1; None means all."""
    if wanted is None:
        return range(len(names))
    folded = [name.casefold() for name in names]
    if wanted.casefold() in folded:
        return [folded.index(wanted.casefold())]
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 6 and 1 <= int(wanted) <= len(names):
        return [int(wanted) - 1]
    raise InvalidParams(f"There is no such sheet; there are: {listed(names)}")


def box(wanted: str | None) -> Box | None:
    """`A1:C9`, or one cell; the corners in either order."""
    if wanted is None:
        return None
    match = _CELLS.fullmatch(wanted.strip())
    if match is None:
        raise InvalidParams("range is written like A1:C9")
    rows = sorted((int(match[2]) - 1, int(match[4] or match[2]) - 1))
    columns = sorted((column_number(match[1]), column_number(match[3] or match[1])))
    return Box(rows[0], columns[0], rows[1], columns[1])


def column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number - 1


def cell_name(row: int, column: int) -> str:
    letters, column = "", column + 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return f"{letters}{row + 1}"


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"{number} {inline(name)[:_SHOWN]}" for number, name in enumerate(names[:_NAMED], 1))
    more = len(names) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown
