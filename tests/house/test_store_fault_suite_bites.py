"""The fault variant catches stores that trust the service behind them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import anyio
import pytest

from octavo.core.errors import NotFound, SourceUnavailable
from octavo.core.ports.stores import Counted, Held, Hint, Record, Transaction
from octavo.stores.memory import MemoryStore, ports
from octavo.stores.memory.store import MemoryBus, Ports
from octavo.stores.memory.tables import Leased, Tables
from octavo.testing import StoreFaultSuite
from octavo.testing.proxy import Fault

SECRET = "correct horse battery staple"


class Behind(MemoryStore):
    """A store over a service: each of its calls goes through `door`. Sound; a mutant replaces a part of it."""

    Keys: type[ports.Keys] = ports.Keys
    Journal: type[ports.Journal] = ports.Journal
    Leases: type[ports.Leases] = ports.Leases

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self.lost = False  # what a transaction had stored until its connection broke
        super().__init__(patience=5)
        self._bus = Bus(self)

    async def door(self) -> None:
        if self.fault == "hangs":
            with anyio.move_on_after(0.01):
                await anyio.sleep_forever()
        if self.fault not in (None, "emptied"):
            self.lost = True
            raise SourceUnavailable("The service cannot be reached") from None

    async def call(self, method: Any, *values: Any, **named: Any) -> Any:
        await self.door()
        return await method(*values, **named)

    def empty(self) -> None:
        self._tables = Tables.begun(int(self._wall() * 1_000_000) + 1_000_000)

    def ports(self, access: ports.Access) -> Ports:
        return Ports(
            Guarded(self.Keys(access), self), Guarded(self.Journal(access), self), Guarded(self.Leases(access), self)
        )  # type: ignore[arg-type]

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        await self.door()
        self.lost = False
        async with super().transaction() as transaction:
            yield transaction
            await self.door()
            if self.lost:
                raise SourceUnavailable("The connection of the transaction was lost")


class Guarded:
    """A port whose calls go through the door first."""

    def __init__(self, port: Any, store: Behind) -> None:
        self._port, self._store = port, store

    def __getattr__(self, name: str) -> Any:
        async def call(*values: Any, **named: Any) -> Any:
            return await self._store.call(getattr(self._port, name), *values, **named)

        return call


class Bus(MemoryBus):
    def __init__(self, store: Behind) -> None:
        super().__init__()
        self._store = store

    async def publish(self, topic: str, body: bytes = b"") -> None:
        await self._store.door()
        await super().publish(topic, body)

    def listen(self, *topics: str) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        @asynccontextmanager
        async def listened() -> AsyncGenerator[AsyncIterator[Hint]]:
            await self._store.door()
            async with super(Bus, self).listen(*topics) as hints:
                yield hints

        return listened()


class Faults(StoreFaultSuite):
    __test__ = False
    secrets = (SECRET,)
    patience = 0.5
    limit = 0.02
    slack = 0.05

    @asynccontextmanager
    async def broken(self, store: Any, fault: Fault) -> AsyncGenerator[None]:
        store.fault = fault
        if fault == "emptied":
            store.empty()
            store.lost = True
        try:
            yield
        finally:
            store.fault = None


class TestASoundStoreOverAService(Faults):
    __test__ = True
    patience = 30.0
    slack = 20.0

    @pytest.fixture
    def store(self) -> Behind:
        return Behind()


class LetsForeignErrorsOut(Behind):
    async def door(self) -> None:
        if self.fault == "refused":
            raise ConnectionRefusedError("refused")
        await super().door()


class WaitsForEver(Behind):
    async def door(self) -> None:
        if self.fault == "hangs":
            await anyio.sleep_forever()
        await super().door()


class TakesAFailureForAbsence(Behind):
    async def call(self, method: Any, *values: Any, **named: Any) -> Any:
        try:
            return await super().call(method, *values, **named)
        except SourceUnavailable:
            return None


class TakesAFailureForAnother(Behind):
    async def door(self) -> None:
        with suppress(SourceUnavailable):
            return await super().door()
        raise NotFound("There is no such key")


class ShowsItsPassword(Behind):
    async def door(self) -> None:
        try:
            await super().door()
        except SourceUnavailable:
            raise SourceUnavailable("cannot connect") from OSError(f"store://user:{SECRET}@host refused")


class LogsItsPassword(Behind):
    async def door(self) -> None:
        if self.fault is not None:
            logging.getLogger("store").debug("reconnecting to store://user:%s@host", SECRET)
        await super().door()


class StaysBroken(Behind):
    broken_once = False

    async def door(self) -> None:
        self.broken_once = self.broken_once or self.fault == "half"
        if self.broken_once:
            raise SourceUnavailable("The connection is closed")
        await super().door()


class CommitsAfterALoss(Behind):
    """A new connection in the middle of a transaction: the half that came after it is stored alone."""

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        async with MemoryStore.transaction(self) as transaction:
            yield transaction


class KeepsALockOfWhatIsGone(Behind):
    @asynccontextmanager
    async def _changing(self) -> AsyncGenerator[Tables]:
        async with asyncio.timeout(0.02) as limit:
            with suppress(TimeoutError):
                await self._turn.acquire()
        if limit.expired():
            raise SourceUnavailable("The store was busy for too long")
        layers = self._tables.layers()
        yield layers
        layers.settle()
        self._turn.release()


class FencesBeginAgain(Behind):
    """They are counted, from one."""

    class Leases(ports.Leases):
        async def acquire(self, name: str, *, ttl: float) -> Held | None:
            async with self._access.changing() as tables:
                before = tables.leases.get(name)
            held = await super().acquire(name, ttl=ttl)
            if held is None:
                return None
            fence = 1 if before is None else before.fence + 1
            async with self._access.changing() as tables:
                tables.leases.put(name, Leased(fence, self._access.wall() + ttl))
            return Held(name, fence)


class AnEmptiedJournalLooksWhole(Behind):
    def empty(self) -> None:
        last = self._tables.marks.get("last") or 0
        self._tables = Tables.begun(0)
        self._tables.marks.put("last", last)


class StopsListening(Behind):
    async def door(self) -> None:
        if self.fault == "refused":
            self._bus.listeners._listeners.clear()  # type: ignore[attr-defined]
        await super().door()


class AnswersFromMemory(Behind):
    """What was read once is given again while nobody answers: whoever asks takes it for the state of today."""

    class Journal(ports.Journal):
        async def read(self, after: int, *, limit: int = 1_000) -> Sequence[Record]:
            return await super().read(after, limit=limit)

    async def call(self, method: Any, *values: Any, **named: Any) -> Any:
        if self.fault == "hangs" and method.__name__ in ("read", "scan"):
            return []
        return await super().call(method, *values, **named)


class CountsWithoutTheService(Behind):
    async def call(self, method: Any, *values: Any, **named: Any) -> Any:
        if self.fault == "half" and method.__name__ == "increment":
            return Counted(1, 60.0)
        return await super().call(method, *values, **named)


ANSWER = "test_a_broken_service_is_said_in_time_and_is_never_an_answer"
MUTANTS: dict[type[Behind], str] = {
    LetsForeignErrorsOut: ANSWER,
    WaitsForEver: ANSWER,
    TakesAFailureForAbsence: ANSWER,
    TakesAFailureForAnother: ANSWER,
    ShowsItsPassword: ANSWER,
    LogsItsPassword: ANSWER,
    AnswersFromMemory: ANSWER,
    CountsWithoutTheService: ANSWER,
    StaysBroken: "test_what_was_stored_is_there_afterwards_unless_it_was_emptied",
    CommitsAfterALoss: "test_a_transaction_that_is_broken_off_is_stored_as_a_whole_or_not",
    KeepsALockOfWhatIsGone: "test_a_transaction_that_is_broken_off_is_stored_as_a_whole_or_not",
    FencesBeginAgain: "test_fences_grow_whatever_happened",
    AnEmptiedJournalLooksWhole: "test_a_reader_sees_that_a_journal_was_emptied",
    StopsListening: "test_whoever_listens_goes_on_listening",
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_fault_suite_catches(mutant: type[Behind], failures: Any) -> None:
    assert failures(Faults(), mutant, MUTANTS[mutant]) != []
