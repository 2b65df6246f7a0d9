"""KeyValue, Journal and Lease in SQL, on connections of the pool or on the one of a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from octavo.core.ports import stores
from octavo.core.ports.stores import Counted, Held, Pair, Record, Span
from octavo.stores._shared.bounds import (
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
    no_count,
)
from octavo.stores._shared.numbers import steps
from octavo.stores.postgres import statements

SWEPT: Final = 256  # changes until what has ended is cleared away


class Access(Protocol):
    @property
    def lock(self) -> int: ...
    async def read(self, query: str, *values: object) -> Sequence[Any]: ...
    async def write(self, query: str, *values: object) -> Sequence[Any]: ...


class Keys(stores.KeyValue):
    def __init__(self, access: Access) -> None:
        self._access = access
        self._changes = 0

    async def get(self, key: str) -> bytes | None:
        check_key(key)
        rows = await self._access.read(statements.GET, key)
        return rows[0][0] if rows else None

    async def set(self, key: str, value: bytes, *, expires: float | None = None) -> None:
        check_key(key)
        check_value(value)
        check_life(expires)
        await self._access.write(statements.SET, self._access.lock, key, value, expires)
        await self._sweep()

    async def compare_and_set(
        self, key: str, expected: bytes | None, value: bytes | None, *, expires: float | None = None
    ) -> bool:
        check_key(key)
        check_value(value or b"")
        check_life(expires)
        lock = self._access.lock
        if expected is None:
            if value is None:
                return await self.get(key) is None
            return bool(await self._access.write(statements.SET_ABSENT, lock, key, value, expires))
        if value is None:
            return bool(await self._access.write(statements.REMOVE, lock, key, expected))
        return bool(await self._access.write(statements.REPLACE, lock, key, value, expires, expected))

    async def increment(self, key: str, by: int = 1, *, window: float) -> Counted:
        check_key(key)
        check_count(by)
        check_life(window)
        rows = await self._access.write(statements.COUNT, self._access.lock, key, by, window)
        if not rows:
            raise no_count()
        await self._sweep()
        return Counted(int(rows[0][0]), max(0.0, rows[0][1]))

    async def delete(self, key: str) -> bool:
        check_key(key)
        rows = await self._access.write(statements.DELETE, self._access.lock, key)
        return bool(rows and rows[0][0])

    async def scan(self, prefix: str, *, after: str = "", limit: int = 1_000) -> Sequence[Pair]:
        check_prefix(prefix)
        check_prefix(after)
        check_limit(limit)
        return [Pair(*row) for row in await self._access.read(statements.SCAN, prefix, after, beyond(prefix), limit)]

    async def _sweep(self) -> None:
        self._changes += 1
        if self._changes % SWEPT == 0:
            await self._access.write(statements.SWEEP)
            await self._access.write(statements.FORGET)


class Journal(stores.Journal):
    def __init__(self, access: Access) -> None:
        self._access = access

    async def append(self, *bodies: bytes) -> Sequence[int]:
        check_bodies(bodies)
        ahead = steps(len(bodies))
        rows = await self._access.write(statements.APPEND, self._access.lock, ahead[-1], bodies, ahead)
        return sorted(row[0] for row in rows)

    async def read(self, after: int, *, limit: int = 1_000) -> Sequence[Record]:
        check_limit(limit)
        return [Record(*row) for row in await self._access.read(statements.READ, clamped(after), limit)]

    async def mark(self) -> int:
        rows = await self._access.write(statements.MARK, self._access.lock, *steps(1))
        return int(rows[0][0])

    async def trim(self, *, keep: int, upto: int = 0) -> int:
        check_keep(keep)
        rows = await self._access.write(statements.TRIM, self._access.lock, clamped(upto), clamped(keep))
        return int(rows[0][0])

    async def span(self) -> Span:
        rows = await self._access.read(statements.SPAN)
        return Span(*rows[0])


class Leases(stores.Lease):
    def __init__(self, access: Access) -> None:
        self._access = access

    async def acquire(self, name: str, *, ttl: float) -> Held | None:
        check_key(name)
        check_life(ttl)
        rows = await self._access.write(statements.ACQUIRE, self._access.lock, name, ttl)
        return Held(name, rows[0][0]) if rows else None

    async def renew(self, held: Held, *, ttl: float) -> bool:
        check_life(ttl)
        return bool(await self._access.write(statements.RENEW, self._access.lock, *held, ttl))

    async def release(self, held: Held) -> None:
        await self._access.write(statements.RENEW, self._access.lock, *held, 0.0)

    async def holds(self, held: Held) -> bool:
        return bool(await self._access.read(statements.HOLDS, *held))
