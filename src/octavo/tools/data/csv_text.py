"""CSV with a header, in the dialects that people have: commas, semicolons, tabs, bars."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from octavo.core.sizes import MIB
from octavo.tools.data.tables import DataTable, cell, distinct

_DELIMITERS: Final = (",", ";", "\t", "|")
_WHOLE: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\Z")
_NUMBER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})?(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?\Z")
_WORDS: Final = {"true": True, "false": False}


def parse(text: str) -> DataTable:
    """A column whose values are all numbers, or all true and false, is one of those; empty cells are missing.

    Raises ValueError with the line of a fault.
    """
    csv.field_size_limit(16 * MIB)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    try:
        header = next(reader, [])
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise ValueError(f"{error} in line {reader.line_num}") from None
    if not header:
        raise ValueError("it has no header")
    columns = distinct([name.strip() or f"column{number}" for number, name in enumerate(header, 1)])
    for number, row in enumerate(rows, 2):
        if len(row) > len(columns):
            raise ValueError(f"row {number} has {len(row)} cells, and the header names {len(columns)}")
    filled = [(*row, *("",) * (len(columns) - len(row))) for row in rows]
    typed = [_typed([row[at] for row in filled]) for at in range(len(columns))]
    return DataTable(columns, tuple(zip(*typed, strict=True)) if filled else ())


def write(table: DataTable) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_shown(value) for value in row] for row in table.rows)
    return out.getvalue()


def _shown(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else cell(value)


def _delimiter(text: str) -> str:
    """The one that stands most often in the first line, outside of quotes."""
    line = re.sub(r'"[^"]*"', "", text.partition("\n")[0])
    return max(_DELIMITERS, key=line.count)


def _typed(cells: list[str]) -> list[Any]:
    known = [one for one in cells if one]
    if not known:
        return [None for _ in cells]
    if all(_WHOLE.match(one) for one in known):
        return _each(int, cells)
    if all(_NUMBER.match(one) and one not in ("+", "-") for one in known):
        with suppress(ValueError):
            return _each(float, cells)
    if all(one.lower() in _WORDS for one in known):
        return _each(lambda one: _WORDS[one.lower()], cells)
    return _each(str, cells)


def _each(value: Callable[[str], Any], cells: list[str]) -> list[Any]:
    """An empty cell has no value."""
    return [value(one) if one else None for one in cells]
