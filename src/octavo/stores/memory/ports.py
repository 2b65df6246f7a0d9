"""The four ports over tables. `Access` says whether that is the state itself or a transaction over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import islice
from typing import Final, NamedTuple

from octavo.core.ports.stores import Counted, Held, KeyValue, Lease, Pair, Record, Span
from octavo.core.ports.stores import Journal as JournalPort
from octavo.stores._shared.bounds import (
    added,
    check_bodies,
    check_count,
    check_keep,
    check_key,
    check_life,
    check_limit,
    check_prefix,
    check_value,
)
from octavo.stores._shared.numbers import steps
from octavo.stores.memory.tables import Kept, Leased, Tables

SWEPT: Final = 256  # changes until what has ended is cleared away
REMEMBERED: Final = 86_400.0  # seconds for which the fencing number of a lease that ended is kept


class Access(NamedTuple):
    reading: Callable[[], Tables]
    changing: Callable[[], AbstractAsyncContextManager[Tables]]
    wall: Callable[[], float]


class Keys(KeyValue):
    def __init__(self, access: Access) -> None:
        self._access = access
        self._changes = 0

    async def get(self, key: str) -> bytes | None:
        check_key(key)
        kept = self._standing(self._access.reading(), key)
        return None if kept is None else kept.value

    async def set(self, key: str, value: bytes, *, expires: float | None = None) -> None:
        check_key(key)
        check_value(value)
        check_life(expires)
        async with self._access.changing() as tables:
            self._sweep(tables)
            tables.values.put(key, Kept(value, self._end(expires)))

    async def compare_and_set(
        self, key: str, expected: bytes | None, value: bytes | None, *, expires: float | None = None
    ) -> bool:
        check_key(key)
        check_value(value or b"")
        check_life(expires)
        async with self._access.changing() as tables:
            kept = self._standing(tables, key)
            if (None if kept is None else kept.value) != expected:
                return False
            tables.values.put(key, None if value is None else Kept(value, self._end(expires)))
            return True

    async def increment(self, key: str, by: int = 1, *, window: float) -> Counted:
        check_key(key)
        check_count(by)
        check_life(window)
        async with self._access.changing() as tables:
            self._sweep(tables)
            kept = self._standing(tables, key)
            now = self._access.wall()
            total = added(None if kept is None else kept.value, by)
            ends = now + window if kept is None or kept.ends is None else kept.ends
            tables.values.put(key, Kept(b"%d" % total, ends))
            return Counted(total, max(0.0, ends - now))

    async def delete(self, key: str) -> bool:
        check_key(key)
        async with self._access.changing() as tables:
            there = self._standing(tables, key) is not None
            tables.values.put(key, None)
            return there

    async def scan(self, prefix: str, *, after: str = "", limit: int = 1_000) -> Sequence[Pair]:
        check_prefix(prefix)
        check_prefix(after)
        check_limit(limit)
        tables, found = self._access.reading(), list[Pair]()
        for key in tables.values.between(above=after, least=prefix):
            if not key.startswith(prefix) or len(found) == limit:
                break
            kept = self._standing(tables, key)
            if kept is not None:
                found.append(Pair(key, kept.value))
        return found

    def _standing(self, tables: Tables, key: str) -> Kept | None:
        kept = tables.values.get(key)
        return None if kept is None or (kept.ends is not None and kept.ends <= self._access.wall()) else kept

    def _end(self, expires: float | None) -> float | None:
        return None if expires is None else self._access.wall() + expires

    def _sweep(self, tables: Tables) -> None:
        self._changes += 1
        if self._changes % SWEPT == 0:
            for key in [key for key in tables.values.between() if self._standing(tables, key) is None]:
                tables.values.put(key, None)


class Journal(JournalPort):
    def __init__(self, access: Access) -> None:
        self._access = access

    async def append(self, *bodies: bytes) -> Sequence[int]:
        check_bodies(bodies)
        async with self._access.changing() as tables:
            numbers = self._given(tables, len(bodies))
            for number, body in zip(numbers, bodies, strict=True):
                tables.records.put(number, body)
            return numbers

    async def read(self, after: int, *, limit: int = 1_000) -> Sequence[Record]:
        check_limit(limit)
        records = self._access.reading().records
        return [Record(number, records.get(number) or b"") for number in islice(records.between(above=after), limit)]

    async def mark(self) -> int:
        async with self._access.changing() as tables:
            return self._given(tables, 1)[0]

    async def trim(self, *, keep: int, upto: int = 0) -> int:
        check_keep(keep)
        async with self._access.changing() as tables:
            over = max(0, len(tables.records) - keep)
            dropped = [one for place, one in enumerate(tables.records.between()) if place < over or one <= upto]
            for number in dropped:
                tables.records.put(number, None)
            if dropped:
                tables.marks.put("after", dropped[-1])
            return len(dropped)

    async def span(self) -> Span:
        marks = self._access.reading().marks
        return Span(marks.get("after") or 0, marks.get("last") or 0)

    def _given(self, tables: Tables, count: int) -> Sequence[int]:
        begun = max(tables.marks.get("last") or 0, int(self._access.wall() * 1_000_000))
        numbers = [begun + step for step in steps(count)]
        tables.marks.put("last", numbers[-1])
        return numbers


class Leases(Lease):
    def __init__(self, access: Access) -> None:
        self._access = access

    async def acquire(self, name: str, *, ttl: float) -> Held | None:
        check_key(name)
        check_life(ttl)
        async with self._access.changing() as tables:
            now, before = self._access.wall(), tables.leases.get(name)
            if before is not None and before.ends > now:
                return None
            for other in [one for one in tables.leases.between() if self._forgotten(tables, one, now)]:
                tables.leases.put(other, None)
            fence = max(0 if before is None else before.fence + 1, int(now * 1_000_000))
            tables.leases.put(name, Leased(fence, now + ttl))
            return Held(name, fence)

    async def renew(self, held: Held, *, ttl: float) -> bool:
        check_life(ttl)
        async with self._access.changing() as tables:
            if not self._is_holder(tables, held):
                return False
            tables.leases.put(held.name, Leased(held.fence, self._access.wall() + ttl))
            return True

    async def release(self, held: Held) -> None:
        async with self._access.changing() as tables:
            if self._is_holder(tables, held):
                tables.leases.put(held.name, Leased(held.fence, self._access.wall()))

    async def holds(self, held: Held) -> bool:
        return self._is_holder(self._access.reading(), held)

    def _is_holder(self, tables: Tables, held: Held) -> bool:
        leased = tables.leases.get(held.name)
        return leased is not None and leased.fence == held.fence and leased.ends > self._access.wall()

    def _forgotten(self, tables: Tables, name: str, now: float) -> bool:
        leased = tables.leases.get(name)
        return leased is not None and leased.ends + REMEMBERED < now
