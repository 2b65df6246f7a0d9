"""Rows, put together to portions that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from octavo.core.errors import Conflict
from octavo.core.ports.stores import LARGEST_VALUE, MOST, Held, Portion, Record, Row, Span

T = TypeVar("T")
ENOUGH: Final = LARGEST_VALUE // 4  # bytes, or one value


def portions(span: Span, pairs: Iterable[Row], records: Iterable[Record], fences: Iterable[Held]) -> Iterator[Portion]:
    yield Portion(span=span)
    for some in _together(pairs, lambda row: len(row.value)):
        yield Portion(pairs=some)
    for several in _together(records, lambda record: len(record.body)):
        yield Portion(records=several)
    for many in _together(fences, lambda held: len(held.name)):
        yield Portion(fences=many)


def _together(rows: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    held, bytes_ = list[T](), 0
    for row in rows:
        if held and (len(held) == MOST or bytes_ + size(row) > ENOUGH):
            yield held
            held, bytes_ = [], 0
        held.append(row)
        bytes_ += size(row)
    if held:
        yield held


def not_empty() -> Conflict:
    return Conflict(
        "Something is kept in that store already, so nothing was put there: rename its store.db, or name another schema"
    )
