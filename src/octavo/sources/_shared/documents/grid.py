"""Turns cells of a sheet into a table: what is empty is left out, and what is too much is cut."""

from __future__ import annotations

import datetime
from typing import Final

from octavo.core.errors import InvalidParams
from octavo.sources._shared.documents.choose import Box, listed
from octavo.sources._shared.documents.draft import Full, MarkdownDraft, inline

_MAX_CELLS: Final = 500_000
_EXACT: Final = 1e15  # whole numbers above are not told apart by a float


class Enough(Exception):
    """No more cells are wanted."""


class Grid:
    """The filled cells of one sheet inside the box, by row and column."""

    def __init__(self, name: str, box: Box | None, max_bytes: int) -> None:
        self.name = name
        self._box = box
        self._rows: dict[int, dict[int, str]] = {}
        self._cells_left, self._bytes_left = _MAX_CELLS, max_bytes
        self._cut = False

    def put(self, row: int, column: int, text: str) -> None:
        """Rows come in order. Raises Enough below the box, and when the limits are reached."""
        if self._box is not None:
            if row > self._box.bottom:
                raise Enough
            if not self._box.holds(row, column):
                return
        if not text.strip():
            return
        self._cells_left -= 1
        self._bytes_left -= len(text)
        if self._cells_left < 0 or self._bytes_left < 0:
            self._cut = True
            raise Enough
        self._rows.setdefault(row, {})[column] = text

    def write(self, draft: MarkdownDraft) -> None:
        columns = sorted({column for cells in self._rows.values() for column in cells})
        if not columns:
            draft.heading(2, self.name)
            draft.block("(no filled cells in this range)" if self._box else "(empty)")
            return
        rows = sorted(self._rows)
        used = Box(rows[0], columns[0], rows[-1], columns[-1])
        draft.heading(2, f"{inline(self.name)} ({used})")
        draft.table([cells.get(column, "") for column in columns] for _, cells in sorted(self._rows.items()))
        if self._cut:
            draft.cut()
            raise Full


def refuse_ambiguous_range(box: Box | None, chosen: int, names: list[str]) -> None:
    if box is not None and chosen > 1:
        raise InvalidParams(f"A range needs a sheet; there are: {listed(names)}")


def shown(value: object) -> str:
    """A value of a cell as a reader would write it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ", "seconds").removesuffix(" 00:00:00")
    return str(value)
