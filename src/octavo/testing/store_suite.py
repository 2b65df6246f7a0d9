"""The contract of `octavo.core.ports.stores`, clause by clause, for every store and for what is only shared.

class TestMyStore(StoreSuite):
    @pytest.fixture
    async def store(self):
        async with MyStore(...) as store:      # empty
            yield store
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, ClassVar, Protocol, TypeVar, cast

import anyio
import anyio.lowlevel
import pytest

from octavo.core.clock import SystemClock
from octavo.core.errors import Conflict, InvalidParams, SourceUnavailable
from octavo.core.ports.stores import (
    LARGEST_COUNT,
    LARGEST_HINT,
    LARGEST_VALUE,
    LONGEST_KEY,
    LONGEST_LIFE,
    MOST,
    Held,
    Hint,
    Moves,
    Portion,
    Record,
    Row,
    Shared,
    Span,
    Store,
)
from octavo.core.sizes import MIB
from octavo.testing.base import outcome, showing, told

T = TypeVar("T")

KEYS: Sequence[str] = (
    "a", "a/", "a/b", "a/b/c", "a b", "a%", "a%b", "a_", "a*", "a[b]", "a\\b", "a'b\"c", "A", "B", "b", "{a}", "a\x01",
    "\x7f", "한국어/문서", "한국어/문서-2", "東京", "\u00e9", "e\u0301", "👩\u200d💻", "\U0010ffff", "\ud7ff", "\ue000",
    "k" * LONGEST_KEY,
)  # fmt: skip


class MovingStore(Store, Moves, Protocol):
    """All that a store of ours can do."""


async def _one_by_one(portions: Sequence[Portion]) -> AsyncGenerator[Portion]:
    for portion in portions:
        yield portion


class StoreBase:
    """The hooks. Only the fixture `store` must be overridden."""

    # On the class: a mark on this module would not reach a subclass elsewhere.
    pytestmark = pytest.mark.anyio

    #: Texts in the address of the service that must never show.
    secrets: ClassVar[Sequence[str]] = ()
    #: Seconds to wait for an event before the test fails.
    patience: ClassVar[float] = 30.0
    #: Seconds after which what is to end in a test has its end.
    life: ClassVar[float] = 0.05

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def store(self) -> Any:
        """The store under test, opened and empty. May be an async generator fixture."""
        raise NotImplementedError("override the fixture `store`")

    def another(self, store: Any) -> Any:
        """A context manager that gives a second one on the same state, as another process has it."""

        @asynccontextmanager
        async def same() -> AsyncGenerator[Any]:
            yield store

        return same()

    async def later(self, store: Any, seconds: float) -> None:
        """So much time goes by for the store."""
        await anyio.sleep(seconds)

    def now(self, store: Any) -> float:
        """The time of the store, in seconds since 1970."""
        return SystemClock().wall()

    async def set_back(self, store: Any, seconds: float) -> None:
        """The clock of the store goes back."""
        pytest.skip("the hook `set_back` is not overridden")

    # Below: what the tests are written with.

    def whole(self, store: Any) -> Store:
        if not hasattr(store, "journal"):
            pytest.skip("is only shared: it has no journal and no transactions")
        return cast("Store", store)

    def moves(self, store: Any) -> MovingStore:
        if not hasattr(store, "dump"):
            pytest.skip("cannot be copied whole")
        return cast("MovingStore", store)

    async def dumped(self, store: Moves) -> list[Portion]:
        async with store.dump() as portions:
            return [portion async for portion in portions]

    async def until(self, ready: Callable[[], Awaitable[bool]], what: str) -> None:
        with anyio.move_on_after(self.patience):
            while not await ready():
                await anyio.sleep(0.01)
            return
        raise AssertionError(f"never came: {what}")

    async def patiently(self, work: Awaitable[T], what: str) -> T:
        with anyio.move_on_after(self.patience):
            return await work
        raise AssertionError(f"{what} did not end within {self.patience} s")

    async def refused(self, *composition: Awaitable[object]) -> None:
        replies = await asyncio.gather(*(outcome(work) for work in composition))
        assert [type(reply) for reply in replies] == [InvalidParams] * len(composition)

    async def ended(self, store: Shared, key: str) -> None:
        """Waits for the end of a key that has one, without looking at it more often than needed."""
        await self.later(store, self.life * 1.2)

        async def gone() -> bool:
            return await store.keys.get(key) is None

        await self.until(gone, f"the end of {key}")

    async def everything(self, store: Shared, prefix: str = "", limit: int = MOST) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        for _ in range(MOST):
            pairs = await store.keys.scan(prefix, after=found[-1][0] if found else "", limit=limit)
            assert len(pairs) <= limit, "a page is never longer than asked"
            found += [(pair.key, pair.value) for pair in pairs]
            if len(pairs) < limit:
                return found
        raise AssertionError("paging never ends")


class StoreSuite(StoreBase):
    # -- KeyValue

    async def test_what_was_set_is_there_and_nothing_else(self, store: Shared) -> None:
        assert await store.keys.get("one") is None
        await store.keys.set("one", b"1")
        await store.keys.set("empty", b"")
        assert await store.keys.get("one") == b"1"
        assert await store.keys.get("empty") == b"", "an empty value is not an absent one"
        assert await store.keys.get("on") is None
        await store.keys.set("one", b"2")
        assert await store.keys.get("one") == b"2"

    async def test_every_key_is_its_own(self, store: Shared) -> None:
        for key in KEYS:
            await store.keys.set(key, key.encode())
        for key in KEYS:
            assert await store.keys.get(key) == key.encode(), ascii(key)

    async def test_a_value_is_any_bytes(self, store: Shared) -> None:
        for value in (bytes(range(256)), b"\x00", b"x" * MIB, b"$-1\r\n", b"\\x41"):
            await store.keys.set("value", value)
            assert await store.keys.get("value") == value

    async def test_delete_says_whether_it_was_there(self, store: Shared) -> None:
        await store.keys.set("one", b"1")
        assert await store.keys.delete("one") is True
        assert await store.keys.delete("one") is False
        assert await store.keys.get("one") is None
        assert await self.everything(store) == []

    async def test_what_has_ended_is_as_absent_as_what_never_was(self, store: Shared) -> None:
        await store.keys.set("one", b"1", expires=self.life)
        await self.ended(store, "one")
        assert await self.everything(store) == []
        assert await store.keys.compare_and_set("one", b"1", b"2") is False
        assert await store.keys.delete("one") is False
        assert await store.keys.compare_and_set("one", None, b"3") is True
        assert await store.keys.get("one") == b"3"

    async def test_what_was_compared_and_set_ends_too(self, store: Shared) -> None:
        assert await store.keys.compare_and_set("one", None, b"1", expires=self.life)
        await self.ended(store, "one")

    async def test_what_has_an_end_is_there_until_then(self, store: Shared) -> None:
        await store.keys.set("one", b"1", expires=1_000)
        await self.later(store, self.life)
        assert await store.keys.get("one") == b"1"
        assert await self.everything(store) == [("one", b"1")]

    async def test_setting_again_takes_an_end_away(self, store: Shared) -> None:
        await store.keys.set("one", b"1", expires=self.life)
        await store.keys.set("one", b"2")
        await store.keys.set("mark", b"", expires=self.life)
        await self.ended(store, "mark")
        assert await store.keys.get("one") == b"2"

    async def test_compare_and_set_changes_what_was_expected_and_nothing_else(self, store: Shared) -> None:
        keys = store.keys
        assert await keys.compare_and_set("one", b"0", b"1") is False
        assert await keys.get("one") is None
        assert await keys.compare_and_set("one", None, b"1") is True
        assert await keys.compare_and_set("one", None, b"2") is False
        assert await keys.compare_and_set("one", b"", b"2") is False
        assert await keys.get("one") == b"1"
        assert await keys.compare_and_set("one", b"1", b"2") is True
        assert await keys.compare_and_set("one", b"1", None) is False
        assert await keys.get("one") == b"2"
        assert await keys.compare_and_set("one", b"2", None) is True
        assert await keys.get("one") is None
        assert await keys.compare_and_set("one", None, None) is True
        await keys.set("empty", b"")
        assert await keys.compare_and_set("empty", None, b"1") is False, "an empty value is there"

    async def test_of_many_who_expect_the_same_one_succeeds(self, store: Shared) -> None:
        async with self.another(store) as other:
            for turn, before in enumerate((None, b"won")):
                await store.keys.delete("one") if before is None else await store.keys.set("one", before)
                tries = [
                    handle.keys.compare_and_set("one", before, b"%d %d" % (turn, number))
                    for number in range(8)
                    for handle in (store, other)
                ]
                assert sum(await self.patiently(asyncio.gather(*tries), "compare_and_set")) == 1

    async def test_counts_of_many_add_up(self, store: Shared) -> None:
        async with self.another(store) as other:
            counts = [handle.keys.increment("count", by, window=600) for by in range(1, 9) for handle in (store, other)]
            totals = [one.total for one in await self.patiently(asyncio.gather(*counts), "increment")]
            assert max(totals) == 72
            assert len(set(totals)) == len(totals), "each saw a number of its own"
            assert await other.keys.get("count") == b"72"

    async def test_a_window_has_one_end_and_the_next_begins_at_zero(self, store: Shared) -> None:
        first = await store.keys.increment("count", 5, window=self.life)
        assert first.total == 5
        assert 0 <= first.remaining <= self.life
        await store.keys.increment("long", window=600)
        again = await store.keys.increment("long", 2, window=6_000)
        assert again.total == 3
        assert 0 < again.remaining <= 600, "the end was moved"
        await self.ended(store, "count")
        assert (await store.keys.increment("count", 2, window=600)).total == 2

    async def test_a_number_that_was_set_is_counted_on(self, store: Shared) -> None:
        await store.keys.set("count", b"40")
        counted = await store.keys.increment("count", 2, window=600)
        assert counted.total == 42
        assert 0 < counted.remaining <= 600
        assert (await store.keys.increment("count", -50, window=600)).total == -8
        assert await store.keys.get("count") == b"-8"

    async def test_what_is_no_count_is_a_conflict_and_stays(self, store: Shared) -> None:
        for value in (b"", b"one", b"1.5", b" 1", b"1 ", b"+1", b"0x1", b"01", b"-0", b"--1", b"9" * 30, b"\xff"):
            await store.keys.set("count", value)
            assert isinstance(await outcome(store.keys.increment("count", window=600)), Conflict), value
            assert await store.keys.get("count") == value

    async def test_no_count_goes_beyond_the_largest(self, store: Shared) -> None:
        assert (await store.keys.increment("count", LARGEST_COUNT, window=600)).total == LARGEST_COUNT
        assert isinstance(await outcome(store.keys.increment("count", window=600)), Conflict)
        assert (await store.keys.increment("count", -LARGEST_COUNT, window=600)).total == 0
        assert (await store.keys.increment("count", -LARGEST_COUNT, window=600)).total == -LARGEST_COUNT
        assert isinstance(await outcome(store.keys.increment("count", -1, window=600)), Conflict)

    @pytest.mark.parametrize("limit", [1, 2, 7, MOST])
    async def test_scan_gives_each_key_once_in_byte_order(self, store: Shared, limit: int) -> None:
        for key in reversed(KEYS):
            await store.keys.set(key, b"v")
        for prefix in ("", "a", "a/", "a%", "a_", "a*", "a[", "a\\", "한국어/", "\U0010ffff", "\ud7ff", "nothing"):
            expected = sorted((key for key in KEYS if key.startswith(prefix)), key=lambda key: key.encode())
            assert [key for key, _ in await self.everything(store, prefix, limit)] == expected, ascii(prefix)

    async def test_scan_goes_on_behind_any_key(self, store: Shared) -> None:
        for key in ("a/1", "a/2", "a/3", "b"):
            await store.keys.set(key, b"v")
        for after, expected in (("", 3), ("a", 3), ("a/", 3), ("a/1", 2), ("a/15", 2), ("a/3", 0), ("a0", 0), ("z", 0)):
            assert len(await store.keys.scan("a/", after=after)) == expected, after

    async def test_scan_misses_nothing_that_stays_whatever_comes_and_goes(self, store: Shared) -> None:
        staying = [f"k/{number:03}" for number in range(0, 60, 2)]
        for key in staying:
            await store.keys.set(key, b"v")
        found: list[str] = []
        for turn in range(100):
            pairs = await store.keys.scan("k/", after=found[-1] if found else "", limit=4)
            found += [pair.key for pair in pairs]
            if len(pairs) < 4:
                break
            await store.keys.set(f"k/{(turn * 13) % 60 | 1:03}", b"v")
            await store.keys.delete(f"k/{(turn * 7) % 60 | 1:03}")
        assert [key for key in found if key in staying] == staying
        assert len(set(found)) == len(found)

    async def test_what_is_out_of_bounds_is_refused_by_name(self, store: Shared) -> None:
        keys = store.keys
        for key in ("", "a\x00b", "\ud800", "k" * (LONGEST_KEY + 1)):
            await self.refused(
                keys.get(key), keys.set(key, b""), keys.delete(key), keys.increment(key, window=1),
                keys.compare_and_set(key, None, b""), store.leases.acquire(key, ttl=1), store.bus.publish(key),
            )  # fmt: skip
        for life in (0, -1, float("nan"), float("inf"), LONGEST_LIFE * 2):
            await self.refused(
                keys.set("a", b"", expires=life), keys.increment("a", window=life), store.leases.acquire("a", ttl=life)
            )
        await self.refused(*(keys.scan("", limit=limit) for limit in (0, -1, MOST + 1)))
        await self.refused(
            keys.scan("k" * (LONGEST_KEY + 1)), keys.scan("", after="\ud800"), keys.set("a", bytes(LARGEST_VALUE + 1)),
            keys.increment("a", LARGEST_COUNT + 1, window=1), store.bus.publish("a", bytes(LARGEST_HINT + 1)),
        )  # fmt: skip
        assert await self.everything(store) == []

    # -- Journal

    async def test_numbers_are_times_and_grow(self, store: Shared) -> None:
        journal = self.whole(store).journal
        before = self.now(store)
        numbers = [*await journal.append(b"1"), *await journal.append(b"2", b"3"), *await journal.append(b"4")]
        assert numbers == sorted(set(numbers))
        assert before - 10 <= numbers[0] / 1_000_000 <= numbers[-1] / 1_000_000 <= self.now(store) + 10

    async def test_numbers_do_not_tell_how_many_lie_between_them(self, store: Shared) -> None:
        """Whoever may see only some records must not learn of the others."""
        journal = self.whole(store).journal
        numbers = [*await journal.append(*[b"1"] * 100)]
        steps = {after - before for before, after in pairwise(numbers)}
        assert min(steps) > 0 and len(steps) > 10
        assert await journal.mark() > numbers[-1]

    async def test_a_reader_goes_on_from_any_number(self, store: Shared) -> None:
        journal = self.whole(store).journal
        bodies = [b"%d" % number for number in range(10)]
        numbers = [*await journal.append(*bodies[:3])]
        for body in bodies[3:]:
            numbers += await journal.append(body)
        records = [Record(number, body) for number, body in zip(numbers, bodies, strict=True)]
        assert [*await journal.read(0)] == records
        assert [*await journal.read(numbers[3])] == records[4:]
        assert [*await journal.read(numbers[3] - 1, limit=2)] == records[3:5]
        assert [*await journal.read(numbers[-1])] == []
        for after in (-1, -(10**400)):
            assert [*await journal.read(after, limit=1)] == records[:1]
        for after in (2**63 - 1, 2**63, 10**400):
            assert [*await journal.read(after)] == []

    async def test_what_the_journal_cannot_do_is_refused(self, store: Shared) -> None:
        journal = self.whole(store).journal
        await self.refused(
            journal.append(), journal.append(b"ok", bytes(LARGEST_VALUE + 1)), journal.read(0, limit=0),
            journal.read(0, limit=MOST + 1), journal.trim(keep=-1),
        )  # fmt: skip
        assert [*await journal.read(0)] == []

    async def test_a_new_journal_begins_now(self, store: Shared) -> None:
        journal = self.whole(store).journal
        span = await journal.span()
        assert span.after == span.last
        assert abs(span.last / 1_000_000 - self.now(store)) < 3_600
        assert (await journal.append(b"1"))[0] > span.last

    async def test_trim_drops_the_oldest_and_says_so(self, store: Shared) -> None:
        journal = self.whole(store).journal
        begun = (await journal.span()).after
        numbers = [*await journal.append(*(b"%d" % number for number in range(10)))]
        assert await journal.trim(keep=10) == 0
        assert await journal.span() == (begun, numbers[-1])
        assert await journal.trim(keep=7) == 3
        assert await journal.span() == (numbers[2], numbers[-1])
        assert [record.number for record in await journal.read(0)] == numbers[3:]
        assert await journal.trim(keep=100, upto=numbers[4]) == 2
        assert await journal.span() == (numbers[4], numbers[-1])
        assert await journal.trim(keep=100, upto=numbers[4]) == 0
        assert await journal.trim(keep=0) == 5
        assert await journal.span() == (numbers[-1], numbers[-1])
        assert (await journal.append(b"next"))[0] > numbers[-1]

    async def test_a_clock_that_goes_back_never_makes_numbers_smaller(self, store: Shared) -> None:
        journal = self.whole(store).journal
        first = await journal.append(b"1")
        held = await store.leases.acquire("lease", ttl=1_000)
        assert held is not None
        await store.leases.release(held)
        await self.set_back(store, 3_600)
        second = await journal.append(b"2", b"3")
        assert first[0] < second[0] < second[1] < await journal.mark()
        async with self.another(store) as other:
            assert (await other.journal.append(b"4"))[0] > second[1]
        again = await store.leases.acquire("lease", ttl=1_000)
        assert again is None or again.fence > held.fence

    async def test_a_mark_stands_behind_all_that_is_and_before_all_that_comes(self, store: Shared) -> None:
        journal = self.whole(store).journal
        (before,) = await journal.append(b"before")
        mark = await journal.mark()
        (after,) = await journal.append(b"after")
        assert before <= mark < after
        assert [record.body for record in await journal.read(mark)] == [b"after"]
        assert (await journal.span()).last >= after

    async def test_no_number_is_seen_before_a_smaller_one(self, store: Shared) -> None:
        """One that was given within a transaction that still goes on is not overtaken by a later one."""
        whole = self.whole(store)
        async with self.another(store) as other:
            async with whole.transaction() as transaction:
                (early,) = await transaction.journal.append(b"early")
                late = asyncio.ensure_future(other.journal.append(b"late"))
                with anyio.move_on_after(self.life):
                    await asyncio.shield(late)
                seen = [record.number for record in await other.journal.read(0)]
            (number,) = await self.patiently(late, "append")
            assert all(one < early for one in seen), "a number was seen before a smaller one"
            assert early < number
            assert [record.body for record in await other.journal.read(0)] == [b"early", b"late"]

    async def test_whoever_follows_the_numbers_misses_nothing(self, store: Shared) -> None:
        whole = self.whole(store)
        async with self.another(store) as other:
            writing, followed = 4, list[Record]()

            async def write(handle: Store, name: int) -> None:
                nonlocal writing
                for turn in range(6):
                    if turn % 3:
                        await handle.journal.append(b"%d %d" % (name, turn))
                    else:
                        async with handle.transaction() as transaction:
                            await transaction.journal.append(b"%d %d" % (name, turn))
                            await anyio.lowlevel.checkpoint()
                            await transaction.keys.set(f"writer/{name}", b"%d" % turn)
                writing -= 1

            async def follow() -> None:
                while True:
                    last = not writing
                    followed.extend(await other.journal.read(followed[-1].number if followed else 0, limit=3))
                    if last and not await other.journal.read(followed[-1].number):
                        return
                    await anyio.lowlevel.checkpoint()

            handles = [whole, other, whole, other]
            work = asyncio.gather(follow(), *(write(handle, name) for name, handle in enumerate(handles)))
            await self.patiently(work, "writing and following")
            assert followed == [*await whole.journal.read(0)]
            assert len(followed) == 24
            for name in range(4):
                turns = [record.body for record in followed if record.body.startswith(b"%d " % name)]
                assert turns == [b"%d %d" % (name, turn) for turn in range(6)]

    # -- transactions

    async def test_a_transaction_is_seen_as_a_whole(self, store: Shared) -> None:
        whole = self.whole(store)
        await whole.keys.set("old", b"1")
        async with self.another(store) as other:
            async with whole.transaction() as transaction:
                (number,) = await transaction.journal.append(b"change")
                await transaction.keys.set("token", b"1")
                await transaction.keys.delete("old")
                await transaction.keys.increment("count", 3, window=600)
                held = await transaction.leases.acquire("lease", ttl=600)
                assert held is not None
                assert await transaction.leases.holds(held)
                assert [*await transaction.journal.read(0)] == [(number, b"change")]
                assert await transaction.keys.get("token") == b"1"
                assert [pair.key for pair in await transaction.keys.scan("")] == ["count", "token"]
                assert [pair.key for pair in await other.keys.scan("")] == ["old"], "seen before it ended"
                assert [*await other.journal.read(0)] == []
                assert not await other.leases.holds(held)
            assert await other.keys.get("token") == b"1"
            assert await other.keys.get("old") is None
            assert await other.keys.get("count") == b"3"
            assert [*await other.journal.read(0)] == [(number, b"change")]
            assert await other.leases.holds(held)

    async def test_a_transaction_that_fails_stores_nothing(self, store: Shared) -> None:
        whole = self.whole(store)
        await whole.keys.set("old", b"1")
        (number,) = await whole.journal.append(b"old")
        for error in (ValueError("mine"), OSError(28, "mine"), TimeoutError("mine"), Conflict("mine")):
            with pytest.raises(type(error)) as caught:
                async with whole.transaction() as transaction:
                    await transaction.journal.append(b"new")
                    await transaction.keys.set("new", b"1")
                    await transaction.keys.delete("old")
                    await transaction.leases.acquire("lease", ttl=600)
                    raise error
            assert caught.value is error
            assert await self.everything(whole) == [("old", b"1")]
            assert [*await whole.journal.read(0)] == [(number, b"old")]
        assert await whole.leases.acquire("lease", ttl=600) is not None

    async def test_a_transaction_that_is_cancelled_stores_nothing(self, store: Shared) -> None:
        whole = self.whole(store)
        begun = asyncio.Event()

        async def work() -> None:
            async with whole.transaction() as transaction:
                await transaction.journal.append(b"new")
                await transaction.keys.set("new", b"1")
                begun.set()
                await anyio.sleep_forever()

        task = asyncio.ensure_future(work())
        await self.patiently(begun.wait(), "the transaction")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await self.patiently(whole.keys.get("new"), "get") is None
        await self.patiently(whole.journal.append(b"next"), "append")
        assert [record.body for record in await whole.journal.read(0)] == [b"next"]

    async def test_transactions_come_one_after_the_other(self, store: Shared) -> None:
        """What each reads is what the one before it left."""
        whole = self.whole(store)
        async with self.another(store) as other:

            async def add(handle: Store) -> None:
                async with handle.transaction() as transaction:
                    before = int(await transaction.keys.get("sum") or b"0")
                    await anyio.lowlevel.checkpoint()
                    await transaction.keys.set("sum", b"%d" % (before + 1))

            await self.patiently(asyncio.gather(*(add(one) for one in (whole, other) * 6)), "transactions")
            assert await whole.keys.get("sum") == b"12"

    async def test_nothing_that_a_transaction_has_read_changes_before_it_ends(self, store: Shared) -> None:
        whole = self.whole(store)
        async with self.another(store) as other:
            await whole.keys.set("one", b"0")
            async with whole.transaction() as transaction:
                assert await transaction.keys.get("one") == b"0"
                others = [
                    asyncio.ensure_future(work)
                    for work in (
                        other.keys.set("one", b"9"), other.keys.set("two", b"9"), other.keys.delete("one"),
                        other.keys.increment("count", window=60), other.keys.compare_and_set("three", None, b"9"),
                    )
                ]  # fmt: skip
                with anyio.move_on_after(self.life):
                    await asyncio.shield(asyncio.wait(others))
                assert [*await transaction.keys.scan("")] == [("one", b"0")]
                await transaction.keys.set("one", b"1")
            await self.patiently(asyncio.gather(*others), "the others")
            assert await whole.keys.get("two") == b"9"

    # -- Lease

    async def test_a_lease_has_one_holder(self, store: Shared) -> None:
        leases = store.leases
        held = await leases.acquire("lease", ttl=600)
        assert held is not None
        assert await leases.acquire("lease", ttl=600) is None, "whoever asks twice is refused too"
        async with self.another(store) as other:
            assert await other.leases.acquire("lease", ttl=600) is None
            assert await other.leases.holds(held)
        assert await leases.acquire("another", ttl=600) is not None
        assert await leases.renew(held, ttl=600) is True
        assert not await leases.holds(Held("lease", held.fence + 1))
        assert not await leases.holds(Held("nobody's", held.fence))
        assert await leases.renew(Held("lease", held.fence + 1), ttl=600) is False

    async def test_of_many_who_ask_at_once_one_gets_the_lease(self, store: Shared) -> None:
        async with self.another(store) as other:
            asking = [handle.leases.acquire("lease", ttl=600) for handle in (store, other) * 8]
            got = await self.patiently(asyncio.gather(*asking), "acquire")
            assert sum(one is not None for one in got) == 1

    async def test_a_lease_that_was_released_is_free_and_the_next_fence_is_greater(self, store: Shared) -> None:
        fences: list[int] = []
        for _ in range(4):
            held = await store.leases.acquire("lease", ttl=600)
            assert held is not None
            fences.append(held.fence)
            await store.leases.release(held)
            assert not await store.leases.holds(held)
            assert await store.leases.renew(held, ttl=600) is False
            await store.leases.release(held)
        assert fences == sorted(set(fences))

    async def test_a_lease_ends(self, store: Shared) -> None:
        lost = await store.leases.acquire("lease", ttl=self.life)
        assert lost is not None
        await self.later(store, self.life * 1.2)

        async def ended() -> bool:
            return not await store.leases.holds(lost)

        await self.until(ended, "the end of the lease")
        assert await store.leases.renew(lost, ttl=600) is False, "what has ended is never taken up again"
        held = await store.leases.acquire("lease", ttl=600)
        assert held is not None
        assert held.fence > lost.fence
        await store.leases.release(lost)
        assert not await store.leases.holds(lost)
        assert await store.leases.holds(held), "who lost a lease cannot release that of another"

    async def test_a_lease_that_is_renewed_goes_on(self, store: Shared) -> None:
        for times in range(8):
            life = self.life * 2**times  # a slow machine may be too late for a short one
            held = await store.leases.acquire("lease", ttl=life)
            assert held is not None
            if await store.leases.renew(held, ttl=600):
                await self.later(store, life * 1.2)
                assert await store.leases.holds(held)
                assert await store.leases.renew(held, ttl=self.life)
                await self.later(store, self.life * 1.2)
                assert not await store.leases.holds(held), "it ends when the last renewal says"
                return
        raise AssertionError("a lease could never be renewed")

    async def test_who_lost_a_lease_stores_nothing(self, store: Shared) -> None:
        whole = self.whole(store)
        lost = await whole.leases.acquire("lease", ttl=600)
        assert lost is not None
        async with self.another(store) as other:
            await other.leases.release(lost)
            held = await other.leases.acquire("lease", ttl=600)
            assert held is not None
            for who, stores in ((lost, False), (held, True)):
                async with whole.transaction() as transaction:
                    if await transaction.leases.holds(who):
                        await transaction.journal.append(b"work")
                assert bool(await other.journal.read(0)) is stores

    async def test_a_holder_stays_one_until_its_transaction_ends(self, store: Shared) -> None:
        whole = self.whole(store)
        held = await whole.leases.acquire("lease", ttl=600)
        assert held is not None
        async with self.another(store) as other:
            async with whole.transaction() as transaction:
                assert await transaction.leases.holds(held)
                leaving = asyncio.ensure_future(other.leases.release(held))
                with anyio.move_on_after(self.life):
                    await asyncio.shield(leaving)
                assert await transaction.leases.holds(held)
                await transaction.journal.append(b"work")
            await self.patiently(leaving, "release")
            assert not await other.leases.holds(held)

    # -- Moves

    async def test_all_that_is_kept_is_dumped(self, store: Shared) -> None:
        moving = self.moves(store)
        for key in KEYS:
            await store.keys.set(key, key.encode(), expires=600)
        await store.keys.set("for ever", bytes(MIB))
        numbers = [*await moving.journal.append(*(b"%d" % number for number in range(2_500)))]
        await moving.journal.trim(keep=2_000)
        held = [await store.leases.acquire(name, ttl=600) for name in ("two", "one")]
        found = await self.dumped(moving)
        pairs = {row.key: row for portion in found for row in portion.pairs}
        assert [*pairs] == sorted([*KEYS, "for ever"], key=lambda key: key.encode())
        assert all(pairs[key].value == key.encode() for key in KEYS)
        assert pairs["for ever"] == ("for ever", bytes(MIB), None)
        assert all(abs((pairs[key].ends or 0) / 1_000_000 - 600 - self.now(store)) < 300 for key in KEYS)
        records = [record for portion in found for record in portion.records]
        assert records == [(number, b"%d" % place) for place, number in enumerate(numbers)][500:]
        assert [one for portion in found for one in portion.fences] == [held[1], held[0]]
        assert [one.span for one in found if one.span is not None] == [await moving.journal.span()]
        assert max(len(portion.pairs) + len(portion.records) for portion in found) <= MOST

    async def test_a_dump_stands_still(self, store: Shared) -> None:
        moving = self.moves(store)
        await store.keys.set("a", b"before")
        await moving.journal.append(b"before")
        found = list[Portion]()
        async with moving.dump() as portions:
            found.append(await anext(portions))
            changed = asyncio.gather(
                store.keys.set("a", b"after"), store.keys.set("b", b"after"), moving.journal.append(b"after")
            )
            await self.patiently(changed, "a change beside a dump")
            found += [portion async for portion in portions]
        assert [(row.key, row.value) for portion in found for row in portion.pairs] == [("a", b"before")]
        assert [record.body for portion in found for record in portion.records] == [b"before"]
        assert await store.keys.get("b") == b"after"

    async def test_what_was_loaded_goes_on_as_it_was(self, store: Shared) -> None:
        moving, now = self.moves(store), int(self.now(store) * 1_000_000)
        span = Span(now - 4_000_000, now + 3_600_000_000)
        pairs = [Row(key, key.encode(), None) for key in KEYS]
        ending = [Row("z ended", b"1", now - 1_000_000), Row("z ends", b"1", now + 900_000_000)]
        records = [Record(span.after + number, b"%d" % number) for number in range(1, 1_500)]
        fences = [Held("lease", now + 3_600_000_000)]
        given = [Portion(span=span), Portion(pairs), Portion(ending), Portion(records=records), Portion(fences=fences)]
        await moving.load(_one_by_one(given))
        assert await self.everything(store) == sorted(
            [*((key, key.encode()) for key in KEYS), ("z ends", b"1")], key=lambda pair: pair[0].encode()
        )
        assert [*await moving.journal.read(0, limit=MOST)] == records
        assert await moving.journal.span() == span
        found = await self.dumped(moving)
        assert [row for portion in found for row in portion.pairs if row.ends is not None] == ending
        (number,) = await moving.journal.append(b"next")
        assert number > span.last
        held = await store.leases.acquire("lease", ttl=600)
        assert held is not None and held.fence > fences[0].fence

    async def test_nothing_is_loaded_over_what_is_kept(self, store: Shared) -> None:
        moving = self.moves(store)
        given = Portion([Row("b", b"2", None)], [Record(1, b"2")], span=Span(0, 1))
        for key in ("a", ""):
            await (store.keys.set(key, b"1") if key else moving.journal.append(b"1"))
            before = await self.dumped(moving)
            with pytest.raises(Conflict):
                await moving.load(_one_by_one([given]))
            assert await self.dumped(moving) == before
            await store.keys.delete("a")

    async def test_a_load_that_fails_stores_nothing(self, store: Shared) -> None:
        moving = self.moves(store)
        before = await self.dumped(moving)

        async def cut() -> AsyncGenerator[Portion]:
            yield Portion([Row("a", b"1", None)], [Record(1, b"1")], [Held("one", 1)], Span(0, 1))
            raise SourceUnavailable("cut off")

        with pytest.raises(SourceUnavailable, match="cut off"):
            await moving.load(cut())
        assert await self.dumped(moving) == before

    # -- Bus

    async def test_whoever_listens_hears_its_topics(self, store: Shared) -> None:
        async with (
            self.another(store) as other,
            store.bus.listen("feed", "한국어") as here,
            other.bus.listen("feed") as there,
        ):
            await store.bus.publish("elsewhere", b"no")
            await store.bus.publish("feed", bytes(range(256)))
            await other.bus.publish("한국어", b"1")
            await other.bus.publish("feed", b"last")
            mine = {Hint("feed", bytes(range(256))), Hint("feed", b"last")}
            for hints, expected in ((here, mine | {Hint("한국어", b"1")}), (there, mine)):
                heard = set[Hint]()
                with anyio.move_on_after(self.patience):
                    async for hint in hints:
                        heard.add(hint)
                        if heard >= expected:
                            break
                assert heard == expected

    async def test_a_listener_that_does_not_read_holds_nobody_up(self, store: Shared) -> None:
        async with store.bus.listen("feed") as slow, store.bus.listen("feed") as quick:
            for number in range(200):
                await self.patiently(store.bus.publish("feed", b"%d" % number), "publish")
            with anyio.move_on_after(self.patience):
                async for hint in quick:
                    if hint.body == b"199":
                        break
            with anyio.move_on_after(self.patience):
                async for hint in slow:
                    if hint.body == b"199":
                        return
        raise AssertionError("the last hint was not heard")

    async def test_listening_ends_when_its_block_does(self, store: Shared) -> None:
        for _ in range(3):
            async with store.bus.listen("feed") as hints:
                await store.bus.publish("feed", b"1")
                assert (await self.patiently(anext(hints), "a hint")).topic == "feed"

        async def listen() -> None:
            async with store.bus.listen("feed") as hints:
                async for _ in hints:
                    pass

        task = asyncio.ensure_future(listen())
        await anyio.lowlevel.checkpoint()
        task.cancel()
        await self.patiently(asyncio.wait([task]), "a listener that is cancelled")
        await self.patiently(store.bus.publish("feed"), "publish")

    # -- all of it

    async def test_calls_that_are_cancelled_are_made_or_not_made(self, store: Shared) -> None:
        async def work(number: int) -> None:
            await store.keys.set(f"pair/{number}/a", b"v")
            await store.keys.increment("count", window=600)
            if hasattr(store, "transaction"):
                async with self.whole(store).transaction() as transaction:
                    await transaction.keys.set(f"both/{number}/a", b"v")
                    await transaction.keys.set(f"both/{number}/b", b"v")

        tasks = [asyncio.ensure_future(work(number)) for number in range(24)]
        for number, task in enumerate(tasks):
            if number % 2:
                for _ in range(number):
                    await anyio.lowlevel.checkpoint()
                task.cancel()
        await self.patiently(asyncio.wait(tasks), "calls of which half are cancelled")
        for number, task in enumerate(tasks):
            both = [key for key, _ in await self.everything(store, f"both/{number}/")]
            assert len(both) in (0, 2), "a transaction was made by half"
            if not number % 2:
                assert task.exception() is None
                assert await store.keys.get(f"pair/{number}/a") == b"v"

    async def test_no_secret_shows(self, store: Shared, caplog: pytest.LogCaptureFixture) -> None:
        if not self.secrets:
            pytest.skip("the store has no secrets")
        with caplog.at_level(logging.DEBUG):
            shown = [repr(store), repr(store.keys), repr(store.bus), repr(store.leases), str(vars(store).keys())]
            bad = (store.keys.get(""), store.keys.scan("", limit=0), store.leases.acquire("", ttl=1))
            shown += [told(reply) for reply in await asyncio.gather(*(outcome(one) for one in bad))]
        assert not showing(self.secrets, "".join(shown))
        assert not showing(self.secrets, caplog.text)
