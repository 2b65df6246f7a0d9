"""The store itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from octavo.core.clock import Clock, SystemClock
from octavo.core.ports.stores import STORE_FILE, Bus, Journal, KeyValue, Lease, Moves, Portion, Store, Transaction
from octavo.stores.sqlite import moving, ports
from octavo.stores.sqlite.bus import SQLiteBus
from octavo.stores.sqlite.file import File


class Ports(NamedTuple):
    keys: KeyValue
    journal: Journal
    leases: Lease

    @classmethod
    def over(cls, access: ports.Access, wall: Callable[[], float]) -> Ports:
        return cls(ports.Keys(access, wall), ports.Journal(access, wall), ports.Leases(access, wall))


class SQLiteStore(Store, Moves):
    """`store.db` in the state folder, which is there. A damaged file is set aside and said, and a new one begun; not
    with `mends=False`: then it is SourceUnavailable, and stays.

    `patience` is how long a call waits for others, and how long a transaction may take, in seconds."""

    def __init__(self, state: Path, *, clock: Clock | None = None, patience: float = 10.0, mends: bool = True) -> None:
        clock = clock or SystemClock()
        self._wall = clock.wall
        self._file = File(state / STORE_FILE, clock=clock, patience=patience, mends=mends)
        self._ports = Ports.over(self._file, self._wall)
        self._bus = SQLiteBus(self._file)

    async def __aenter__(self) -> SQLiteStore:
        try:
            await self._file.open()
        except BaseException:
            await self._file.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._bus.close()
        await self._file.close()

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
        return moving.dumped(self._file)

    async def load(self, portions: AsyncIterator[Portion]) -> None:
        await moving.loaded(self._file, portions, self._wall)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        async with self._file.changing() as changing:
            yield Ports.over(changing, self._wall)
