"""KeyValue, Journal and Lease in SQL, on the file itself or within a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from octavo.core.ports import stores
from octavo.core.ports.stores import Counted, Held, Pair, Record, Span
from octavo.stores._shared.bounds import (
    added,
    beyond,
    check_bodies,
    check_count,
    check_keep,
    check_key,
    check_life,
    check_limit,
    check_prefix,
    check_value,
    clamped,
)
from octavo.stores._shared.numbers import steps

T = TypeVar("T")
SWEPT: Final = 256  # changes until what has ended is cleared away
AT_ONCE: Final = 1_000  # pairs that are cleared away then
REMEMBERED: Final = 86_400.0  # seconds for which the fencing number of a lease that ended is kept
_GET: Final = "SELECT value, ends FROM pairs WHERE key = ? AND (ends IS NULL OR ends > ?)"
_SCAN: Final = (
    "SELECT key, value FROM pairs WHERE key >= :prefix AND key > :after AND key < :end "
    "AND (ends IS NULL OR ends > :now) ORDER BY key LIMIT :limit"
)


class Access(Protocol):
    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T: ...
    async def change(self, work: Callable[[sqlite3.Connection], T]) -> T: ...


class Keys(stores.KeyValue):
    def __init__(self, access: Access, wall: Callable[[], float]) -> None:
        self._access, self._wall = access, wall
        self._changes = 0

    async def get(self, key: str) -> bytes | None:
        check_key(key)
        return await self._access.read(lambda database: self._get(database, key))

    async def set(self, key: str, value: bytes, *, expires: float | None = None) -> None:
        check_key(key)
        check_value(value)
        check_life(expires)
        await self._access.change(lambda database: self._put(database, key, value, self._end(expires)))

    async def compare_and_set(
        self, key: str, expected: bytes | None, value: bytes | None, *, expires: float | None = None
    ) -> bool:
        check_key(key)
        check_value(value or b"")
        check_life(expires)

        def work(database: sqlite3.Connection) -> bool:
            if self._get(database, key) != expected:
                return False
            if value is None:
                database.execute("DELETE FROM pairs WHERE key = ?", (key,))
            else:
                self._put(database, key, value, self._end(expires))
            return True

        return await self._access.change(work)

    async def increment(self, key: str, by: int = 1, *, window: float) -> Counted:
        check_key(key)
        check_count(by)
        check_life(window)

        def work(database: sqlite3.Connection) -> Counted:
            now = self._wall()
            value, ends = database.execute(_GET, (key, now)).fetchone() or (None, None)
            total = added(value, by)
            ends = now + window if ends is None else ends
            self._put(database, key, b"%d" % total, ends)
            return Counted(total, max(0.0, ends - now))

        return await self._access.change(work)

    async def delete(self, key: str) -> bool:
        check_key(key)

        def work(database: sqlite3.Connection) -> bool:
            there = self._get(database, key) is not None
            database.execute("DELETE FROM pairs WHERE key = ?", (key,))
            return there

        return await self._access.change(work)

    async def scan(self, prefix: str, *, after: str = "", limit: int = 1_000) -> Sequence[Pair]:
        check_prefix(prefix)
        check_prefix(after)
        check_limit(limit)
        asked = {"prefix": prefix, "after": after, "end": beyond(prefix), "limit": limit, "now": self._wall()}
        return await self._access.read(lambda database: [Pair(*row) for row in database.execute(_SCAN, asked)])

    def _get(self, database: sqlite3.Connection, key: str) -> bytes | None:
        row = database.execute(_GET, (key, self._wall())).fetchone()
        return None if row is None else row[0]

    def _put(self, database: sqlite3.Connection, key: str, value: bytes, ends: float | None) -> None:
        database.execute("INSERT OR REPLACE INTO pairs (key, value, ends) VALUES (?, ?, ?)", (key, value, ends))
        self._changes += 1
        if self._changes % SWEPT == 0:
            ended = "DELETE FROM pairs WHERE key IN (SELECT key FROM pairs WHERE ends <= ? LIMIT ?)"
            database.execute(ended, (self._wall(), AT_ONCE))

    def _end(self, expires: float | None) -> float | None:
        return None if expires is None else self._wall() + expires


class Journal(stores.Journal):
    def __init__(self, access: Access, wall: Callable[[], float]) -> None:
        self._access, self._wall = access, wall

    async def append(self, *bodies: bytes) -> Sequence[int]:
        check_bodies(bodies)

        def work(database: sqlite3.Connection) -> Sequence[int]:
            numbers = self._given(database, len(bodies))
            database.executemany("INSERT INTO records VALUES (?, ?)", zip(numbers, bodies, strict=True))
            return numbers

        return await self._access.change(work)

    async def read(self, after: int, *, limit: int = 1_000) -> Sequence[Record]:
        check_limit(limit)
        asked = "SELECT number, body FROM records WHERE number > ? ORDER BY number LIMIT ?"
        return await self._access.read(
            lambda database: [Record(*row) for row in database.execute(asked, (clamped(after), limit))]
        )

    async def mark(self) -> int:
        return await self._access.change(lambda database: self._given(database, 1)[0])

    async def trim(self, *, keep: int, upto: int = 0) -> int:
        check_keep(keep)

        def work(database: sqlite3.Connection) -> int:
            over = "SELECT number FROM records ORDER BY number DESC LIMIT 1 OFFSET ?"
            (cut,) = database.execute(over, (clamped(keep),)).fetchone() or (0,)
            asked = "SELECT count(*), max(number) FROM records WHERE number <= ?"
            dropped, greatest = database.execute(asked, (max(cut, clamped(upto)),)).fetchone()
            if dropped:
                database.execute("DELETE FROM records WHERE number <= ?", (greatest,))
                database.execute("UPDATE line SET after = ?", (greatest,))
            return int(dropped)

        return await self._access.change(work)

    async def span(self) -> Span:
        return await self._access.read(
            lambda database: Span(*database.execute("SELECT after, last FROM line").fetchone())
        )

    def _given(self, database: sqlite3.Connection, count: int) -> Sequence[int]:
        now, ahead = int(self._wall() * 1_000_000), steps(count)
        database.execute("UPDATE line SET last = max(last, ?) + ?", (now, ahead[-1]))
        row: Sequence[Any] = database.execute("SELECT last FROM line").fetchone()
        begun = int(row[0]) - ahead[-1]
        return [begun + step for step in ahead]


class Leases(stores.Lease):
    def __init__(self, access: Access, wall: Callable[[], float]) -> None:
        self._access, self._wall = access, wall

    async def acquire(self, name: str, *, ttl: float) -> Held | None:
        check_key(name)
        check_life(ttl)

        def work(database: sqlite3.Connection) -> Held | None:
            now = self._wall()
            asked = "SELECT fence, ends FROM leases WHERE name = ?"
            fence, ends = database.execute(asked, (name,)).fetchone() or (0, 0.0)
            if ends > now:
                return None
            held = Held(name, max(fence + 1, int(now * 1_000_000)))
            database.execute("DELETE FROM leases WHERE ends < ?", (now - REMEMBERED,))
            database.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", (*held, now + ttl))
            return held

        return await self._access.change(work)

    async def renew(self, held: Held, *, ttl: float) -> bool:
        check_life(ttl)
        return await self._access.change(lambda database: self._end(database, held, ttl))

    async def release(self, held: Held) -> None:
        await self._access.change(lambda database: self._end(database, held, 0.0))

    async def holds(self, held: Held) -> bool:
        asked = "SELECT 1 FROM leases WHERE name = ? AND fence = ? AND ends > ?"
        return await self._access.read(
            lambda database: database.execute(asked, (*held, self._wall())).fetchone() is not None
        )

    def _end(self, database: sqlite3.Connection, held: Held, ttl: float) -> bool:
        now = self._wall()
        changed = "UPDATE leases SET ends = ? WHERE name = ? AND fence = ? AND ends > ?"
        return database.execute(changed, (now + ttl, *held, now)).rowcount == 1
