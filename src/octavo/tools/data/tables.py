"""Rows and columns, made of whatever was read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from octavo.core.errors import InvalidParams


class DataTable(Struct, frozen=True):
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def table_of(value: Any) -> DataTable:
    """A list of objects is one; so is a list of plain values, one object, and an object that holds one such list.

    Raises InvalidParams for everything else.
    """
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value)
        lists = [one for one in parts.values() if _is_rows(one)]
        if len(parts) == 1 and isinstance(inner := next(iter(parts.values())), Mapping):
            return table_of(inner)  # the root of an XML document
        return table_of(lists[0]) if len(lists) == 1 else _of_objects([parts])
    if isinstance(value, list):
        items = value
        if all(isinstance(one, Mapping) for one in items):
            return _of_objects(items)
        if not any(isinstance(one, (Mapping, list)) for one in items):
            return DataTable(("value",), tuple((one,) for one in items))
        if all(isinstance(one, list) for one in items):
            width = max(map(len, items))
            return DataTable(
                tuple(f"column{number}" for number in range(1, width + 1)),
                tuple((*row, *(None,) * (width - len(row))) for row in items),
            )
    raise InvalidParams('That is no table: a list of objects is one, such as [{"name": "a", "count": 1}]')


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _of_objects(items: Sequence[Mapping[str, Any]]) -> DataTable:
    columns = tuple(dict.fromkeys(str(key) for item in items for key in item))
    return DataTable(columns, tuple(tuple(item.get(column) for column in columns) for item in items))


def distinct(names: Sequence[str], key: Callable[[str], str] = str) -> tuple[str, ...]:
    """Each name once: the second `a` is `a_2`, unless there is one. Two are one if `key` makes them equal."""
    taken = set(map(key, names))
    seen: set[str] = set()
    found: list[str] = []
    for name in names:
        one, number = name, 1
        while key(one) in seen or (number > 1 and key(one) in taken):
            number += 1
            one = f"{name}_{number}"
        seen.add(key(one))
        found.append(one)
    return tuple(found)


def cell(value: Any) -> Any:
    """As one cell can hold it: what is nested becomes JSON, and an integer of more than 64 bits its digits."""
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    return value
