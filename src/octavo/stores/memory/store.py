"""The store itself, and its bus within this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import NamedTuple

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import SourceUnavailable
from octavo.core.ports.stores import Bus, Hint, Journal, KeyValue, Lease, Moves, Portion, Store, Transaction
from octavo.stores._shared.bounds import check_hint, check_key
from octavo.stores._shared.listeners import Listeners
from octavo.stores._shared.portions import not_empty
from octavo.stores.memory import ports
from octavo.stores.memory.tables import Tables


class Ports(NamedTuple):
    keys: KeyValue
    journal: Journal
    leases: Lease


class MemoryBus(Bus):
    def __init__(self) -> None:
        self.listeners = Listeners()

    async def publish(self, topic: str, body: bytes = b"") -> None:
        check_key(topic)
        check_hint(body)
        self.listeners.tell(Hint(topic, body))

    def listen(self, *topics: str) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        for topic in topics:
            check_key(topic)
        return self.listeners.listen(topics)


class MemoryStore(Store, Moves):
    """`patience` is how long a change waits for its turn, and how long a transaction may take, in seconds."""

    def __init__(self, *, clock: Clock | None = None, patience: float = 5.0) -> None:
        self._wall = (clock or SystemClock()).wall
        self._patience = patience
        self._tables = Tables.begun(int(self._wall() * 1_000_000))
        self._turn = asyncio.Lock()
        self._ports = self.ports(ports.Access(lambda: self._tables, self._changing, self._wall))
        self._bus = MemoryBus()

    async def __aenter__(self) -> MemoryStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bus.listeners.end()

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

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        async with self._changing() as tables:
            yield self.ports(ports.Access(lambda: tables, lambda: _again(tables), self._wall))

    @asynccontextmanager
    async def dump(self) -> AsyncGenerator[AsyncIterator[Portion]]:
        yield _one_by_one([*self._tables.portions()])

    async def load(self, portions: AsyncIterator[Portion]) -> None:
        async with self._turn:
            layers = self._tables.layers()
            if len(layers.values) or len(layers.records):
                raise not_empty()
            async for portion in portions:
                layers.take(portion, self._wall())
            layers.settle()

    def ports(self, access: ports.Access) -> Ports:
        return Ports(ports.Keys(access), ports.Journal(access), ports.Leases(access))

    @asynccontextmanager
    async def _changing(self) -> AsyncGenerator[Tables]:
        try:
            async with asyncio.timeout(self._patience) as limit, self._turn:
                layers = self._tables.layers()
                yield layers
                layers.settle()
        except TimeoutError:
            if not limit.expired():
                raise
            raise SourceUnavailable("The store was busy for too long") from None


async def _one_by_one(portions: Iterable[Portion]) -> AsyncGenerator[Portion]:
    for portion in portions:
        yield portion


@asynccontextmanager
async def _again(tables: Tables) -> AsyncGenerator[Tables]:
    """Within a transaction its tables are changed as they are."""
    yield tables
