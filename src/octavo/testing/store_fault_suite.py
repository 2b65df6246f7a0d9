"""The contract of `octavo.core.ports.stores` with the service behind the store broken. For every store that has one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, ClassVar

import anyio
import pytest

from octavo.core.errors import Conflict, OctavoError, SourceUnavailable
from octavo.core.ports.stores import Held, Shared, Store
from octavo.testing.base import outcome, showing, told
from octavo.testing.proxy import FAULTS, Fault
from octavo.testing.store_suite import StoreBase

NOBODYS = Held("nobody", 1)
OPERATIONS: Mapping[str, Callable[[Any], Awaitable[object]]] = {
    "get": lambda store: store.keys.get("kept"),
    "set": lambda store: store.keys.set("new", b"1"),
    "compare_and_set": lambda store: store.keys.compare_and_set("kept", b"1", b"2"),
    "increment": lambda store: store.keys.increment("count", window=60),
    "delete": lambda store: store.keys.delete("kept"),
    "scan": lambda store: store.keys.scan(""),
    "append": lambda store: store.journal.append(b"new"),
    "read": lambda store: store.journal.read(0),
    "mark": lambda store: store.journal.mark(),
    "trim": lambda store: store.journal.trim(keep=10),
    "span": lambda store: store.journal.span(),
    "acquire": lambda store: store.leases.acquire("lease", ttl=60),
    "renew": lambda store: store.leases.renew(NOBODYS, ttl=60),
    "release": lambda store: store.leases.release(NOBODYS),
    "holds": lambda store: store.leases.holds(NOBODYS),
    "publish": lambda store: store.bus.publish("feed", b"1"),
    "listen": lambda store: _listened(store),
    "transaction": lambda store: _stored(store),
}
OF_STORES = ("append", "read", "mark", "trim", "span", "transaction")


async def _listened(store: Shared) -> None:
    async with store.bus.listen("feed"):
        pass


async def _stored(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.keys.set("both/a", b"1")
        await transaction.journal.append(b"both")
        await transaction.keys.set("both/b", b"1")


@pytest.mark.parametrize("fault", FAULTS)
class StoreFaultSuite(StoreBase):
    """Subclass beside StoreSuite, with the same fixture `store`, opened by way of an `octavo.testing.Proxy`."""

    #: Seconds that the store is given for a call while its service hangs.
    limit: ClassVar[float] = 0.2
    #: How much longer a busy machine may take for it.
    slack: ClassVar[float] = 20.0

    def broken(self, store: Any, fault: Fault) -> AbstractAsyncContextManager[None]:
        """While the block lasts, what stands behind `store` is broken; `emptied`: it was restarted, and is empty."""
        raise NotImplementedError("override `broken`")

    @asynccontextmanager
    async def filled(self, store: Any, fault: Fault) -> AsyncGenerator[None]:
        """With something in it, broken."""
        await store.keys.set("kept", b"1")
        if hasattr(store, "journal"):
            await store.journal.append(b"kept")
        async with self.broken(store, fault):
            yield

    @pytest.mark.parametrize("operation", OPERATIONS)
    async def test_a_broken_service_is_said_in_time_and_is_never_an_answer(
        self, store: Shared, fault: Fault, operation: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        if operation in OF_STORES:
            self.whole(store)
        with caplog.at_level(logging.DEBUG):
            async with self.filled(store, fault):
                with anyio.move_on_after(self.limit * 3 + self.slack) as waited:
                    reply = await outcome(OPERATIONS[operation](store))
                assert not waited.cancelled_caught, f"{operation} did not end in time"
                if fault == "emptied":
                    assert reply is None or isinstance(reply, SourceUnavailable) or not isinstance(reply, OctavoError)
                else:
                    assert isinstance(reply, SourceUnavailable), f"{operation} answered {reply!r}"
        assert not showing(self.secrets, told(reply))
        assert not showing(self.secrets, caplog.text)

    async def test_the_store_works_again_when_its_service_does(self, store: Shared, fault: Fault) -> None:
        async with self.filled(store, fault):
            for operation in ("get", "set", "acquire", "publish"):
                await outcome(OPERATIONS[operation](store))

        async def works() -> bool:
            replies = [
                await outcome(work(store))
                for name, work in OPERATIONS.items()
                if name not in OF_STORES or hasattr(store, "journal")
            ]
            return not any(isinstance(reply, OctavoError) for reply in replies)

        await self.until(works, "an answer to everything after a fault")

    async def test_what_was_stored_is_there_afterwards_unless_it_was_emptied(self, store: Shared, fault: Fault) -> None:
        async with self.filled(store, fault):
            await outcome(store.keys.get("kept"))

        async def answers() -> bool:
            return not isinstance(await outcome(store.keys.get("kept")), OctavoError)

        await self.until(answers, "an answer after a fault")
        assert await store.keys.get("kept") == (None if fault == "emptied" else b"1")
        if hasattr(store, "journal"):
            records = await self.whole(store).journal.read(0)
            assert [record.body for record in records] == ([] if fault == "emptied" else [b"kept"])

    async def test_a_reader_sees_that_a_journal_was_emptied(self, store: Shared, fault: Fault) -> None:
        whole = self.whole(store)
        (number,) = await whole.journal.append(b"seen")
        async with self.broken(store, fault):
            await outcome(whole.journal.read(number))

        async def answers() -> bool:
            return not isinstance(await outcome(whole.journal.span()), OctavoError)

        await self.until(answers, "an answer after a fault")
        assert ((await whole.journal.span()).after > number) is (fault == "emptied")
        assert (await whole.journal.append(b"next"))[0] > number

    async def test_a_transaction_that_is_broken_off_is_stored_as_a_whole_or_not(
        self, store: Shared, fault: Fault
    ) -> None:
        whole = self.whole(store)
        with suppress(SourceUnavailable):
            async with whole.transaction() as transaction:
                await transaction.keys.set("both/a", b"1")
                async with self.broken(store, fault):
                    await outcome(transaction.journal.append(b"both"))
                    await outcome(transaction.keys.set("both/b", b"1"))

        async def answers() -> bool:
            return not isinstance(await outcome(whole.keys.scan("both/")), OctavoError)

        await self.until(answers, "an answer after a fault")
        assert len(await whole.keys.scan("both/")) in (0, 2)
        await self.until(self._stores(whole), "the lock of a transaction that was broken off")

    async def test_fences_grow_whatever_happened(self, store: Shared, fault: Fault) -> None:
        fences: list[int] = []

        async def acquired() -> bool:
            with suppress(SourceUnavailable):
                held = await store.leases.acquire("lease", ttl=600)
                if held is not None:
                    fences.append(held.fence)
                    await store.leases.release(held)
                    return True
            return False

        for _ in range(4):
            assert await acquired()
        async with self.broken(store, fault):
            await outcome(store.leases.acquire("lease", ttl=self.life))
        await self.until(acquired, "a lease after a fault")
        assert fences == sorted(set(fences))

    async def test_whoever_listens_goes_on_listening(self, store: Shared, fault: Fault) -> None:
        async with store.bus.listen("feed") as hints:
            async with self.broken(store, fault):
                with suppress(OctavoError):
                    await store.bus.publish("feed", b"while it was broken")
            heard = asyncio.Event()

            async def hear() -> None:
                async for hint in hints:
                    if hint.body == b"afterwards":
                        heard.set()

            hearing = asyncio.ensure_future(hear())

            async def told_again() -> bool:
                with suppress(SourceUnavailable, Conflict):
                    await store.bus.publish("feed", b"afterwards")
                with anyio.move_on_after(0.05):
                    await heard.wait()
                return heard.is_set()

            try:
                await self.until(told_again, "a hint after a fault")
            finally:
                hearing.cancel()
                await asyncio.wait([hearing])

    def _stores(self, store: Store) -> Callable[[], Awaitable[bool]]:
        async def stores() -> bool:
            return not isinstance(await outcome(store.keys.set("after", b"1")), OctavoError)

        return stores
