"""Sorted tables, and layers over them that are kept or thrown away as a whole."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from heapq import merge
from typing import Any, Generic, NamedTuple, TypeVar

from octavo.core.ports.stores import Held, Portion, Record, Row, Span
from octavo.stores._shared.portions import portions

K = TypeVar("K")  # text or numbers
V = TypeVar("V")


class Table(Generic[K, V]):
    """Rows by their keys, in the order of the keys: of text that is the order of its bytes in UTF-8 as well."""

    def __init__(self) -> None:
        self._rows: dict[K, V] = {}
        self._order: list[Any] = []

    def get(self, key: K) -> V | None:
        return self._rows.get(key)

    def put(self, key: K, row: V | None) -> None:
        """None removes it."""
        if row is None:
            if self._rows.pop(key, None) is not None:
                del self._order[bisect_right(self._order, key) - 1]
        else:
            if key not in self._rows:
                insort(self._order, key)
            self._rows[key] = row

    def between(self, *, above: K | None = None, least: K | None = None) -> Iterator[K]:
        """In order; those above one, or not below one, or all. Nothing may be put while they are read."""
        start = 0 if above is None else bisect_right(self._order, above)
        start = start if least is None else max(start, bisect_left(self._order, least))
        for place in range(start, len(self._order)):
            yield self._order[place]

    def __len__(self) -> int:
        return len(self._order)


class Layer(Table[K, V]):
    """What would become of a table."""

    def __init__(self, below: Table[K, V]) -> None:
        super().__init__()
        self._below = below
        self._gone: set[K] = set()

    def get(self, key: K) -> V | None:
        if key in self._gone:
            return None
        row = super().get(key)
        return self._below.get(key) if row is None else row

    def put(self, key: K, row: V | None) -> None:
        super().put(key, row)
        if row is not None:
            self._gone.discard(key)
        elif self._below.get(key) is not None:
            self._gone.add(key)

    def between(self, *, above: K | None = None, least: K | None = None) -> Iterator[K]:
        last: K | None = None
        own: Iterator[Any] = super().between(above=above, least=least)
        for each in merge(own, self._below.between(above=above, least=least)):
            if each != last and each not in self._gone:
                yield each
            last = each

    def __len__(self) -> int:
        return sum(1 for _ in self.between())

    def settle(self) -> None:
        for key in self._gone:
            self._below.put(key, None)
        for key, row in self._rows.items():
            self._below.put(key, row)


class Kept(NamedTuple):
    """A value and when it ends."""

    value: bytes
    ends: float | None


class Leased(NamedTuple):
    fence: int
    ends: float


class Tables(NamedTuple):
    values: Table[str, Kept]
    records: Table[int, bytes]
    leases: Table[str, Leased]
    marks: Table[str, int]  # `last` and `after` of the journal

    @classmethod
    def begun(cls, number: int) -> Tables:
        """Empty. What has a smaller number was never in this journal."""
        tables = cls(Table(), Table(), Table(), Table())
        tables.marks.put("last", number)
        tables.marks.put("after", number)
        return tables

    def layers(self) -> Tables:
        make: Callable[[Table[Any, Any]], Layer[Any, Any]] = Layer
        return Tables(*(make(table) for table in self))

    def portions(self) -> Iterator[Portion]:
        def pair(key: str) -> Row:
            kept = self.values.get(key)
            assert kept is not None
            return Row(key, kept.value, None if kept.ends is None else round(kept.ends * 1_000_000))

        span = Span(self.marks.get("after") or 0, self.marks.get("last") or 0)
        records = (Record(number, self.records.get(number) or b"") for number in self.records.between())
        leased = ((name, self.leases.get(name)) for name in self.leases.between())
        fences = (Held(name, one.fence) for name, one in leased if one is not None)
        return portions(span, map(pair, self.values.between()), records, fences)

    def take(self, portion: Portion, now: float) -> None:
        for key, value, ends in portion.pairs:
            self.values.put(key, Kept(value, None if ends is None else ends / 1_000_000))
        for number, body in portion.records:
            self.records.put(number, body)
        for name, fence in portion.fences:
            before = self.leases.get(name)
            self.leases.put(
                name, Leased(fence, now) if before is None else before._replace(fence=max(before.fence, fence))
            )
        if portion.span is not None:
            self.marks.put("after", portion.span.after)
            self.marks.put("last", portion.span.last)

    def settle(self) -> None:
        for table in self:
            if isinstance(table, Layer):
                table.settle()
