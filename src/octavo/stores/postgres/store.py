"""The store itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, NamedTuple

from octavo.core.errors import SourceUnavailable
from octavo.core.ports.stores import Bus, Journal, KeyValue, Lease, Moves, Portion, Store, Transaction
from octavo.stores.postgres import moving, ports
from octavo.stores.postgres.bus import PostgresBus
from octavo.stores.postgres.pool import Pool, end


class Ports(NamedTuple):
    keys: KeyValue
    journal: Journal
    leases: Lease

    @classmethod
    def over(cls, access: ports.Access) -> Ports:
        return cls(ports.Keys(access), ports.Journal(access), ports.Leases(access))


class _Transaction:
    """Everything on one connection. After a step that failed it cannot be committed, whoever caught the error."""

    def __init__(self, pool: Pool, connection: Any) -> None:
        self._pool, self._connection, self.lock = pool, connection, pool.lock

    async def read(self, query: str, *values: object) -> Sequence[Any]:
        try:
            return await self._pool.within(self._connection, query, *values)
        except SourceUnavailable:
            end(self._connection)
            raise

    write = read


class PostgresStore(Store, Moves):
    """Tables of its own in `schema`, which is made if it is not there. PostgreSQL 14 or newer.

    `patience` is how long any call, and any transaction, may take, in seconds. `alone`: Conflict while
    another process has it open, and no other can open it meanwhile."""

    def __init__(self, url: str, *, schema: str = "octavo", patience: float = 10.0, alone: bool = False) -> None:
        self._pool = Pool(url, schema=schema, patience=patience, alone=alone)
        self._ports = Ports.over(self._pool)
        self._bus = PostgresBus(self._pool)

    async def __aenter__(self) -> PostgresStore:
        try:
            await self._pool.open()
        except BaseException:
            await self._pool.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._bus.relay.close()
        await self._pool.close()

    @property
    def keys(self) -> KeyValue:
        return self._ports.keys

    @property
    def journal(self) -> Journal:
        return self._ports.journal

    @property
    def leases(self) -> Lease:
        return self._ports.leases

    @property
    def bus(self) -> Bus:
        return self._bus

    def dump(self) -> AbstractAsyncContextManager[AsyncIterator[Portion]]:
        return moving.dumped(self._pool)

    async def load(self, portions: AsyncIterator[Portion]) -> None:
        await moving.loaded(self._pool, portions)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        async with self._pool.transaction() as connection:
            yield Ports.over(_Transaction(self._pool, connection))
