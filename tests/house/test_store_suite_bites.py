"""Deliberately broken stores: each has one fault that is easy to make, and the suite has to say so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio.lowlevel
import pytest

from octavo.core.clock import FrozenClock
from octavo.core.errors import Conflict, SourceUnavailable
from octavo.core.ports.stores import Counted, Held, Hint, Pair, Portion, Record, Transaction
from octavo.stores.memory import MemoryStore, ports
from octavo.stores.memory.store import MemoryBus, Ports
from octavo.stores.memory.tables import Kept, Leased, Tables
from octavo.testing import StoreSuite

SECRET = "correct horse battery staple"


class Quick(StoreSuite):
    __test__ = False
    patience = 0.3
    secrets = (SECRET,)

    def now(self, store: Any) -> float:
        return store.clock.wall()

    async def later(self, store: Any, seconds: float) -> None:
        store.clock.advance(seconds)

    async def set_back(self, store: Any, seconds: float) -> None:
        store.clock.advance(-seconds)


class Sound(MemoryStore):
    """`Keys`, `Journal` and `Leases` are what a mutant replaces."""

    Keys: type[ports.Keys] = ports.Keys
    Journal: type[ports.Journal] = ports.Journal
    Leases: type[ports.Leases] = ports.Leases

    def __init__(self) -> None:
        self.clock = FrozenClock()
        self.url = f"store://user:{SECRET}@host"
        super().__init__(clock=self.clock, patience=0.2)

    def ports(self, access: ports.Access) -> Ports:
        return Ports(self.Keys(access), self.Journal(access), self.Leases(access))


class TestASoundStore(Quick):
    __test__ = True
    patience = 30.0

    @pytest.fixture
    def store(self) -> Sound:
        return Sound()


# -- KeyValue


class AnExpiryThatNeverComes(Sound):
    class Keys(ports.Keys):
        def _standing(self, tables: Tables, key: str) -> Kept | None:
            return tables.values.get(key)


class AnExpiryThatIsNotTakenAway(Sound):
    class Keys(ports.Keys):
        async def set(self, key: str, value: bytes, *, expires: float | None = None) -> None:
            before = self._standing(self._access.reading(), key)
            left = None if before is None or before.ends is None else before.ends - self._access.wall()
            await super().set(key, value, expires=left if expires is None else expires)


class AScanThatShowsWhatHasEnded(Sound):
    class Keys(ports.Keys):
        async def scan(self, prefix: str, *, after: str = "", limit: int = 1_000) -> Sequence[Pair]:
            await super().scan(prefix, after=after, limit=limit)
            values = self._access.reading().values
            found = [key for key in values.between(above=after, least=prefix) if key.startswith(prefix)]
            return [Pair(key, values.get(key).value) for key in found[:limit]]  # type: ignore[union-attr]


class AScanByPlaces(Sound):
    """Goes on where it was, not behind what it gave: what is deleted in between makes it miss something."""

    class Keys(ports.Keys):
        places: dict[str, int] = {}

        async def scan(self, prefix: str, *, after: str = "", limit: int = 1_000) -> Sequence[Pair]:
            every = await super().scan(prefix, limit=10_000)
            start = self.places.get(after, 0) if after else 0
            pairs = every[start : start + limit]
            if pairs:
                self.places[pairs[-1].key] = start + len(pairs)
            return pairs


class AScanInTheOrderOfPeople(Sound):
    class Keys(ports.Keys):
        async def scan(self, prefix: str, *, after: str = "", limit: int = 1_000) -> Sequence[Pair]:
            pairs = await super().scan(prefix, limit=10_000)
            return [pair for pair in sorted(pairs, key=lambda pair: pair.key.lower()) if pair.key > after][:limit]


class KeysWithoutCase(Sound):
    class Keys(ports.Keys):
        async def get(self, key: str) -> bytes | None:
            return await super().get(key.lower()) if len(key) == 1 else await super().get(key)

        async def set(self, key: str, value: bytes, *, expires: float | None = None) -> None:
            await super().set(key.lower() if len(key) == 1 else key, value, expires=expires)


class EmptyIsAbsent(Sound):
    class Keys(ports.Keys):
        async def get(self, key: str) -> bytes | None:
            return await super().get(key) or None


class ComparesAndSetsInTwoSteps(Sound):
    class Keys(ports.Keys):
        async def compare_and_set(
            self, key: str, expected: bytes | None, value: bytes | None, *, expires: float | None = None
        ) -> bool:
            now = await self.get(key)
            await anyio.lowlevel.checkpoint()
            if now != expected:
                return False
            if value is None:
                await self.delete(key)
            else:
                await self.set(key, value, expires=expires)
            return True


class CountsInTwoSteps(Sound):
    class Keys(ports.Keys):
        async def increment(self, key: str, by: int = 1, *, window: float) -> Counted:
            counted = await super().increment(key, 0, window=window)
            await anyio.lowlevel.checkpoint()
            async with self._access.changing() as tables:
                kept = tables.values.get(key)
                assert kept is not None
                tables.values.put(key, Kept(b"%d" % (counted.total + by), kept.ends))
            return Counted(counted.total + by, counted.remaining)


class AWindowThatMoves(Sound):
    class Keys(ports.Keys):
        async def increment(self, key: str, by: int = 1, *, window: float) -> Counted:
            counted = await super().increment(key, by, window=window)
            await self.set(key, b"%d" % counted.total, expires=window)
            return Counted(counted.total, window)


class CountsWhatIsNoCount(Sound):
    class Keys(ports.Keys):
        async def increment(self, key: str, by: int = 1, *, window: float) -> Counted:
            value = await self.get(key)
            if value is not None and not value.strip(b"-").isdigit():
                await self.delete(key)
            return await super().increment(key, by, window=window)


class TakesAnyKey(Sound):
    class Keys(ports.Keys):
        async def get(self, key: str) -> bytes | None:
            kept = self._standing(self._access.reading(), key)
            return None if kept is None else kept.value


class LetsForeignErrorsOut(Sound):
    class Keys(ports.Keys):
        async def scan(self, prefix: str, *, after: str = "", limit: int = 1_000) -> Sequence[Pair]:
            after.encode("utf-8")
            return await super().scan(prefix, after=after, limit=limit)


# -- Journal


class ANumberIsSeenBeforeASmallerOne(Sound):
    """Numbers are given before the lock is taken, as a sequence of a database gives them."""

    class Journal(ports.Journal):
        last = 0

        async def append(self, *bodies: bytes) -> Sequence[int]:
            cls = type(self)
            first = max(cls.last + 1, int(self._access.wall() * 1_000_000) + 1)
            numbers = range(first, first + len(bodies))
            cls.last = numbers[-1] if bodies else cls.last
            for _ in range(first % 5):
                await anyio.lowlevel.checkpoint()
            await super().append(*bodies)
            async with self._access.changing() as tables:
                for number in [*tables.records.between()][-len(bodies) :]:
                    tables.records.put(number, None)
                for number, body in zip(numbers, bodies, strict=True):
                    tables.records.put(number, body)
                tables.marks.put("last", max(numbers[-1], tables.marks.get("last") or 0))
            return numbers


class AppendsBesideTheTransaction(Sound):
    """Whoever appends does not wait for a transaction that has a number already."""

    @asynccontextmanager
    async def _changing(self) -> AsyncGenerator[Tables]:
        layers = self._tables.layers()
        yield layers
        layers.settle()


class NumbersFollowTheClockBack(Sound):
    class Journal(ports.Journal):
        def _given(self, tables: Tables, count: int) -> Sequence[int]:
            return [self._one(tables) for _ in range(count)]

        def _one(self, tables: Tables) -> int:
            number = int(self._access.wall() * 1_000_000)
            while tables.records.get(number) is not None or number == tables.marks.get("last"):
                number += 1
            tables.marks.put("last", number)
            return number


class NumbersOneByOne(Sound):
    class Journal(ports.Journal):
        def _given(self, tables: Tables, count: int) -> Sequence[int]:
            begun = max(tables.marks.get("last") or 0, int(self._access.wall() * 1_000_000))
            tables.marks.put("last", begun + count)
            return range(begun + 1, begun + count + 1)


class NumbersAreACount(Sound):
    class Journal(ports.Journal):
        def _given(self, tables: Tables, count: int) -> Sequence[int]:
            return [self._one(tables) for _ in range(count)]

        def _one(self, tables: Tables) -> int:
            number = len(tables.records) + 1
            while tables.records.get(number) is not None:
                number += 1
            return number


class TrimsInSilence(Sound):
    class Journal(ports.Journal):
        async def trim(self, *, keep: int, upto: int = 0) -> int:
            async with self._access.changing() as tables:
                numbers = [*tables.records.between()]
                dropped = [one for place, one in enumerate(numbers) if place < len(numbers) - keep or one <= upto]
                for number in dropped:
                    tables.records.put(number, None)
            return len(dropped)


class AMarkThatIsNotKept(Sound):
    class Journal(ports.Journal):
        async def mark(self) -> int:
            return int(self._access.wall() * 1_000_000) + 60_000_000


class StopsAtLargeNumbers(Sound):
    class Journal(ports.Journal):
        async def read(self, after: int, *, limit: int = 1_000) -> Sequence[Record]:
            after.to_bytes(8, "big", signed=True)
            return await super().read(after, limit=limit)


# -- transactions


class StoresAtOnce(Sound):
    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        yield self._ports


class KeepsWhatFailed(Sound):
    @asynccontextmanager
    async def _changing(self) -> AsyncGenerator[Tables]:
        async with self._turn:
            layers = self._tables.layers()
            try:
                yield layers
            finally:
                layers.settle()


class SwallowsWhatItsBlockRaised(Sound):
    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        try:
            async with super().transaction() as transaction:
                yield transaction
        except OSError:
            raise SourceUnavailable("The store cannot be written") from None


class KeepsTheLockWhenCancelled(Sound):
    @asynccontextmanager
    async def _changing(self) -> AsyncGenerator[Tables]:
        async with asyncio.timeout(self._patience):
            await self._turn.acquire()
        layers = self._tables.layers()
        yield layers
        layers.settle()
        self._turn.release()


# -- Lease


class ALeaseThatTwoHold(Sound):
    class Leases(ports.Leases):
        async def acquire(self, name: str, *, ttl: float) -> Held | None:
            before = self._access.reading().leases.get(name)
            await super().acquire("check" if name else name, ttl=ttl)
            await anyio.lowlevel.checkpoint()
            now = self._access.wall()
            if before is not None and before.ends > now:
                return None
            async with self._access.changing() as tables:
                known = tables.leases.get(name)
                fence = max(0 if known is None else known.fence + 1, int(now * 1_000_000))
                tables.leases.put(name, Leased(fence, now + ttl))
            return Held(name, fence)


class ALeaseThatNeverEnds(Sound):
    class Leases(ports.Leases):
        def _is_holder(self, tables: Tables, held: Held) -> bool:
            leased = tables.leases.get(held.name)
            return leased is not None and leased.fence == held.fence and leased.ends != self._access.wall()


class AFenceThatDoesNotGrow(Sound):
    class Leases(ports.Leases):
        async def acquire(self, name: str, *, ttl: float) -> Held | None:
            held = await super().acquire(name, ttl=ttl)
            if held is None:
                return None
            async with self._access.changing() as tables:
                tables.leases.put(name, Leased(7, self._access.wall() + ttl))
            return Held(name, 7)


class WhoLostALeaseReleasesThatOfAnother(Sound):
    class Leases(ports.Leases):
        async def release(self, held: Held) -> None:
            async with self._access.changing() as tables:
                leased = tables.leases.get(held.name)
                if leased is not None:
                    tables.leases.put(held.name, Leased(leased.fence, self._access.wall()))


class WhatEndedIsRenewed(Sound):
    class Leases(ports.Leases):
        async def renew(self, held: Held, *, ttl: float) -> bool:
            async with self._access.changing() as tables:
                leased = tables.leases.get(held.name)
                if leased is None or leased.fence != held.fence:
                    return False
                tables.leases.put(held.name, Leased(held.fence, self._access.wall() + ttl))
            return True


# -- Moves


class ADumpThatMovesOn(Sound):
    @asynccontextmanager
    async def dump(self) -> AsyncGenerator[AsyncIterator[Portion]]:
        async def each() -> AsyncGenerator[Portion]:
            yield Portion(span=await self.journal.span())
            for portion in [*self._tables.portions()][1:]:
                yield portion

        yield each()


class ADumpWithoutEnds(Sound):
    @asynccontextmanager
    async def dump(self) -> AsyncGenerator[AsyncIterator[Portion]]:
        async with super().dump() as portions:
            whole = [one._replace(pairs=[row._replace(ends=None) for row in one.pairs]) async for one in portions]

        async def each() -> AsyncGenerator[Portion]:
            for portion in whole:
                yield portion

        yield each()


class NumbersThatBeginAnew(Sound):
    async def load(self, portions: AsyncIterator[Portion]) -> None:
        await super().load(portions)
        self._tables.marks.put("last", int(self._wall() * 1_000_000))


class LoadsOverWhatIsKept(Sound):
    async def load(self, portions: AsyncIterator[Portion]) -> None:
        async for portion in portions:
            self._tables.take(portion, self._wall())


class LoadsInSteps(Sound):
    async def load(self, portions: AsyncIterator[Portion]) -> None:
        if len(self._tables.values) or len(self._tables.records):
            raise Conflict("something is kept")
        async for portion in portions:
            self._tables.take(portion, self._wall())


# -- Bus and all of it


class ABusThatWaitsForSlowListeners(Sound):
    class Bus(MemoryBus):
        async def publish(self, topic: str, body: bytes = b"") -> None:
            await super().publish(topic, body)
            for listener in self.listeners._listeners:
                while len(listener._hints) > 100:
                    await anyio.lowlevel.checkpoint()

    def __init__(self) -> None:
        super().__init__()
        self._bus = self.Bus()


class ABusThatTellsEverybodyEverything(Sound):
    class Bus(MemoryBus):
        async def publish(self, topic: str, body: bytes = b"") -> None:
            for listener in self.listeners._listeners:
                listener.tell(Hint(topic, body))

    def __init__(self) -> None:
        super().__init__()
        self._bus = self.Bus()


class ABusThatTellsNobody(Sound):
    class Bus(MemoryBus):
        def listen(self, *topics: str) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
            return super().listen(*(f"{topic}/" for topic in topics))

    def __init__(self) -> None:
        super().__init__()
        self._bus = self.Bus()


class ShowsItsAddress(Sound):
    def __repr__(self) -> str:
        return f"ShowsItsAddress({self.url})"


MUTANTS: dict[type[Sound], str] = {
    NumbersOneByOne: "test_numbers_do_not_tell_how_many_lie_between_them",
    AnExpiryThatNeverComes: "test_what_has_ended_is_as_absent_as_what_never_was",
    AnExpiryThatIsNotTakenAway: "test_setting_again_takes_an_end_away",
    AScanThatShowsWhatHasEnded: "test_what_has_ended_is_as_absent_as_what_never_was",
    AScanByPlaces: "test_scan_misses_nothing_that_stays_whatever_comes_and_goes",
    AScanInTheOrderOfPeople: "test_scan_gives_each_key_once_in_byte_order",
    KeysWithoutCase: "test_every_key_is_its_own",
    EmptyIsAbsent: "test_what_was_set_is_there_and_nothing_else",
    ComparesAndSetsInTwoSteps: "test_of_many_who_expect_the_same_one_succeeds",
    CountsInTwoSteps: "test_counts_of_many_add_up",
    AWindowThatMoves: "test_a_window_has_one_end_and_the_next_begins_at_zero",
    CountsWhatIsNoCount: "test_what_is_no_count_is_a_conflict_and_stays",
    TakesAnyKey: "test_what_is_out_of_bounds_is_refused_by_name",
    LetsForeignErrorsOut: "test_what_is_out_of_bounds_is_refused_by_name",
    ANumberIsSeenBeforeASmallerOne: "test_whoever_follows_the_numbers_misses_nothing",
    AppendsBesideTheTransaction: "test_no_number_is_seen_before_a_smaller_one",
    NumbersFollowTheClockBack: "test_a_clock_that_goes_back_never_makes_numbers_smaller",
    NumbersAreACount: "test_numbers_are_times_and_grow",
    TrimsInSilence: "test_trim_drops_the_oldest_and_says_so",
    AMarkThatIsNotKept: "test_a_mark_stands_behind_all_that_is_and_before_all_that_comes",
    StopsAtLargeNumbers: "test_a_reader_goes_on_from_any_number",
    StoresAtOnce: "test_a_transaction_is_seen_as_a_whole",
    KeepsWhatFailed: "test_a_transaction_that_fails_stores_nothing",
    SwallowsWhatItsBlockRaised: "test_a_transaction_that_fails_stores_nothing",
    KeepsTheLockWhenCancelled: "test_a_transaction_that_is_cancelled_stores_nothing",
    ALeaseThatTwoHold: "test_of_many_who_ask_at_once_one_gets_the_lease",
    ALeaseThatNeverEnds: "test_a_lease_ends",
    AFenceThatDoesNotGrow: "test_a_lease_that_was_released_is_free_and_the_next_fence_is_greater",
    WhoLostALeaseReleasesThatOfAnother: "test_a_lease_ends",
    WhatEndedIsRenewed: "test_a_lease_ends",
    ADumpWithoutEnds: "test_all_that_is_kept_is_dumped",
    ADumpThatMovesOn: "test_a_dump_stands_still",
    NumbersThatBeginAnew: "test_what_was_loaded_goes_on_as_it_was",
    LoadsOverWhatIsKept: "test_nothing_is_loaded_over_what_is_kept",
    LoadsInSteps: "test_a_load_that_fails_stores_nothing",
    ABusThatWaitsForSlowListeners: "test_a_listener_that_does_not_read_holds_nobody_up",
    ABusThatTellsEverybodyEverything: "test_whoever_listens_hears_its_topics",
    ABusThatTellsNobody: "test_whoever_listens_hears_its_topics",
    ShowsItsAddress: "test_no_secret_shows",
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_suite_catches(mutant: type[Sound], failures: Any) -> None:
    assert failures(Quick(), mutant, MUTANTS[mutant]) != []


def test_every_clause_has_a_store_that_it_alone_could_catch(tests_of: Callable[[type], list[str]]) -> None:
    """Or says here why it needs none."""
    needless = {
        "test_a_value_is_any_bytes": "about encodings of a wire, which memory has not",
        "test_delete_says_whether_it_was_there": "plain",
        "test_what_was_compared_and_set_ends_too": "as test_what_has_ended_is_as_absent_as_what_never_was",
        "test_what_has_an_end_is_there_until_then": "plain",
        "test_compare_and_set_changes_what_was_expected_and_nothing_else": "plain",
        "test_a_number_that_was_set_is_counted_on": "plain",
        "test_no_count_goes_beyond_the_largest": "about numbers of a wire",
        "test_scan_goes_on_behind_any_key": "plain",
        "test_what_the_journal_cannot_do_is_refused": "plain",
        "test_a_new_journal_begins_now": "plain",
        "test_transactions_come_one_after_the_other": "AppendsBesideTheTransaction",
        "test_nothing_that_a_transaction_has_read_changes_before_it_ends": "AppendsBesideTheTransaction",
        "test_a_lease_has_one_holder": "plain",
        "test_a_lease_that_is_renewed_goes_on": "plain",
        "test_who_lost_a_lease_stores_nothing": "AppendsBesideTheTransaction",
        "test_a_holder_stays_one_until_its_transaction_ends": "AppendsBesideTheTransaction",
        "test_listening_ends_when_its_block_does": "plain",
        "test_calls_that_are_cancelled_are_made_or_not_made": "KeepsTheLockWhenCancelled",
    }
    assert {*MUTANTS.values()} | {*needless} == {*tests_of(Quick)}
