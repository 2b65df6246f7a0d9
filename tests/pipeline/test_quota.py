"""The third fold. Requirement A5: rate limits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from octavo.core.clock import FrozenClock
from octavo.core.errors import Forbidden, RateLimited
from octavo.core.ref import Ref
from octavo.core.values import Call, Content, Entry, Principal, Trail
from octavo.pipeline.quota import PrincipalLimits, Quota

KEYED = Principal("agent-brand", key="k")
LOCAL = Principal("local")
REF = Ref.parse("sop://brand/guide")


def a_call(principal: Principal = KEYED) -> Call:
    return Call("read", REF, principal, Trail(), str(REF))


async def answer(call: Call) -> str:
    return "content"


async def refuse(call: Call) -> None:
    raise Forbidden("no")


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


async def accepted(quota: Quota, times: int, principal: Principal = KEYED) -> int:
    count = 0
    for _ in range(times):
        try:
            await quota(a_call(principal), answer)
        except RateLimited:
            continue
        count += 1
    return count


@pytest.mark.anyio
@pytest.mark.seed("A5")
async def test_a_burst_of_twice_the_rate_passes_and_then_the_rate(clock: FrozenClock) -> None:
    quota = Quota(clock=clock)
    assert await accepted(quota, 150) == 100
    clock.advance(1.0)
    assert await accepted(quota, 150) == 50
    clock.advance(3600.0)
    assert await accepted(quota, 150) == 100


@pytest.mark.anyio
@pytest.mark.seed("A5", "O13")
async def test_a_refusal_says_when_to_come_back_and_that_is_true(clock: FrozenClock) -> None:
    quota = Quota(rate=2, burst=1, clock=clock)
    await quota(a_call(), answer)
    with pytest.raises(RateLimited, match="Rate limit exceeded") as caught:
        await quota(a_call(), answer)
    assert caught.value.retry_after == pytest.approx(0.5)
    assert caught.value.data == {"limit": "rate", "allowed": 2}
    clock.advance(caught.value.retry_after)
    assert await quota(a_call(), answer) == "content"


@pytest.mark.anyio
async def test_the_rate_holds_for_keys_only(clock: FrozenClock) -> None:
    assert await accepted(Quota(rate=1, burst=1, clock=clock), 500, LOCAL) == 500


@pytest.mark.anyio
async def test_the_rate_can_be_lifted(clock: FrozenClock) -> None:
    assert await accepted(Quota(rate=None, clock=clock), 500) == 500


@pytest.mark.anyio
async def test_principals_do_not_share_a_bucket(clock: FrozenClock) -> None:
    quota = Quota(rate=1, burst=1, clock=clock)
    assert [await accepted(quota, 5, Principal(name, key="k")) for name in "abc"] == [1, 1, 1]


@pytest.mark.anyio
async def test_a_call_that_is_refused_further_in_counts_too(clock: FrozenClock) -> None:
    quota = Quota(rate=1, burst=2, clock=clock)
    for expected in (Forbidden, Forbidden, RateLimited):
        with pytest.raises(expected):
            await quota(a_call(), refuse)


@pytest.mark.anyio
async def test_child_calls_are_free(clock: FrozenClock) -> None:
    quota = Quota(rate=1, burst=1, in_flight=1, clock=clock)

    async def tool(call: Call) -> list[Any]:
        return [await quota(call.child("read", REF), answer) for _ in range(20)]

    assert await quota(a_call(), tool) == ["content"] * 20


class Held:
    """Calls that last until they may end, in the order in which they were begun."""

    def __init__(self, quota: Quota) -> None:
        self.quota = quota
        self.begun: list[str] = []
        self._ends: list[asyncio.Event] = []

    def ask(self, who: str) -> asyncio.Task[Any]:
        async def work(call: Call) -> str:
            self.begun.append(who)
            self._ends.append(asyncio.Event())
            await self._ends[-1].wait()
            return "content"

        async def asking() -> Any:
            return await self.quota(a_call(Principal(who)), work)

        task = asyncio.create_task(asking())
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # not every one is looked at
        return task

    async def fill(self, who: str, times: int) -> list[asyncio.Task[Any]]:
        tasks = [self.ask(who) for _ in range(times)]
        await turns()
        return tasks

    async def end(self, number: int) -> None:
        """The call that was begun as this one ends."""
        self._ends[number].set()
        await turns()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.anyio
@pytest.mark.seed("A5")
async def test_only_so_many_calls_of_one_principal_run_at_once_and_the_others_wait() -> None:
    held = Held(Quota(in_flight=2))
    tasks = await held.fill("a", 5)
    assert held.begun == ["a"] * 2 and held.quota.waiting == 3
    await held.fill("b", 1)
    assert held.begun[-1] == "b"
    for number in range(2):
        await held.end(number)
    assert held.begun == ["a", "a", "b", "a", "a"] and held.quota.waiting == 1
    for number in (3, 4):
        await held.end(number)
    await held.end(5)
    async with asyncio.timeout(30):
        assert await asyncio.gather(*tasks) == ["content"] * 5
    assert held.quota.waiting == 0


@pytest.mark.anyio
@pytest.mark.seed("A5")
async def test_those_who_wait_are_served_in_turns() -> None:
    held = Held(Quota(in_flight=64, total=4))
    await held.fill("hog", 10)
    await held.fill("b", 10)
    await held.fill("c", 2)
    first = len(held.begun)
    assert first == 4
    for number in range(6):
        await held.end(number)
    assert held.begun[first:].count("hog") <= 2, held.begun
    assert {"hog", "b", "c"} <= {*held.begun[first:]}


@pytest.mark.anyio
@pytest.mark.seed("A5", "O13")
async def test_refused_is_what_finds_more_waiting_than_there_is_room_left() -> None:
    held = Held(Quota(in_flight=1, waiting=8))
    tasks = await held.fill("hog", 6)
    assert held.quota.waiting == 4
    with pytest.raises(RateLimited, match="wait already: try again when some are answered") as caught:
        await tasks[5]
    assert caught.value.data == {"limit": "in_flight", "allowed": 1} and caught.value.retry_after == 1.0
    await held.fill("b", 4)
    assert held.quota.waiting == 6  # of the four places that were left
    await held.fill("c", 2)
    assert held.quota.waiting == 7
    await held.end(0)
    await held.fill("hog", 1)
    assert held.quota.waiting == 6  # nobody takes what others need


@pytest.mark.anyio
@pytest.mark.seed("A5", "O13")
async def test_refused_is_what_finds_no_place_in_time_and_it_waits_no_longer() -> None:
    held = Held(Quota(in_flight=1, patience=0.0))
    (first,) = await held.fill("a", 1)
    with pytest.raises(RateLimited, match="No place became free in time") as caught:
        await held.ask("a")
    assert caught.value.data["limit"] == "in_flight" and held.quota.waiting == 0
    await held.end(0)
    assert await first == "content"


@pytest.mark.anyio
@pytest.mark.seed("A5", "T9")
async def test_what_is_cancelled_leaves_the_queue() -> None:
    held = Held(Quota(in_flight=1, waiting=4))
    first, second, third = await held.fill("a", 3)
    second.cancel()
    await turns()
    assert second.cancelled() and held.quota.waiting == 1
    fourth = held.ask("a")
    await held.end(0)
    assert await first == "content"
    third.cancel()  # while it is at work
    await turns()
    assert len(held.begun) == 3  # the next one has its place
    fourth.cancel()
    await turns()
    assert held.quota.in_flight == held.quota.waiting == 0


@pytest.mark.anyio
async def test_a_place_that_is_given_to_one_that_gives_up_in_the_same_moment_is_not_lost() -> None:
    held = Held(Quota(in_flight=1))
    first, second, third = await held.fill("a", 3)
    held._ends[0].set()
    first.add_done_callback(lambda _: second.cancel())
    await turns()
    assert second.cancelled() or second.done() or len(held.begun) > 1
    await held.end(len(held.begun) - 1)
    third.cancel()
    await turns()
    assert held.quota.in_flight == 0


@pytest.mark.anyio
async def test_a_failed_or_cancelled_call_gives_its_place_back(clock: FrozenClock) -> None:
    quota = Quota(in_flight=1, clock=clock)
    inside = asyncio.Event()

    async def hang(call: Call) -> None:
        inside.set()
        await asyncio.Event().wait()

    with pytest.raises(Forbidden):
        await quota(a_call(LOCAL), refuse)
    async with asyncio.timeout(5):
        task = asyncio.create_task(quota(a_call(LOCAL), hang))
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await quota(a_call(LOCAL), answer) == "content"


@pytest.mark.anyio
async def test_accounts_are_bounded_and_the_busy_and_the_indebted_are_kept(clock: FrozenClock) -> None:
    quota = Quota(rate=1, burst=5, principals=10, clock=clock)
    debtor = Principal("debtor", key="k")
    assert await accepted(quota, 5, debtor) == 5
    for number in range(200):
        await quota(a_call(Principal(f"p{number}")), answer)
    assert await accepted(quota, 1, debtor) == 0


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        Quota(rate=0)


def test_it_needs_no_task() -> None:
    """The hot lane runs the chain without one."""
    coroutine = Quota()(a_call(), answer)
    with pytest.raises(StopIteration) as done:
        coroutine.send(None)
    assert done.value.value == "content"


def one(name: str, *roles: str) -> Principal:
    return Principal(name, frozenset(roles), key="k")


@pytest.mark.anyio
@pytest.mark.seed("A5", "T7")
async def test_a_principal_can_have_limits_of_its_own(clock: FrozenClock) -> None:
    more = PrincipalLimits(rate=10, burst=5, in_flight=9, keyless=True)
    quota = Quota(rate=1, burst=1, clock=clock, allowance=lambda who: more if "ops" in who.roles else None)
    assert await accepted(quota, 20, one("a")) == 1
    assert await accepted(quota, 20, one("b", "ops")) == 5
    assert await accepted(quota, 20, Principal("c", frozenset(("ops",)))) == 5  # also without a key
    clock.advance(1.0)
    assert await accepted(quota, 20, one("a", "ops")) == 5  # roles that came later


@pytest.mark.anyio
@pytest.mark.seed("A5", "T7")
async def test_bytes_are_paid_for_afterwards_and_the_refusal_says_for_how_long(clock: FrozenClock) -> None:
    quota = Quota(rate=None, bytes=1000, clock=clock)
    content = Content(entry=Entry(ref=REF, name="guide"), body="x" * 3000)

    async def large(call: Call) -> Content:
        return content

    assert await quota(a_call(), large) is content
    with pytest.raises(RateLimited) as caught:
        await quota(a_call(), large)
    assert caught.value.data == {"limit": "bytes", "allowed": 1000}
    assert caught.value.retry_after == pytest.approx(2.0)
    assert await quota(a_call(Principal("other", key="k")), large) is content
    clock.advance(caught.value.retry_after + 0.001)
    assert await quota(a_call(), large) is content


@pytest.mark.anyio
@pytest.mark.seed("T7")
async def test_a_tool_has_a_quota_of_its_own_under_all_its_names(clock: FrozenClock) -> None:
    search, find = Ref.parse("tool://search"), Ref.parse("tool://find")
    of_search = Quota(rate=1, burst=2, keyless=True, clock=clock, said={"tool": "search"})
    quota = Quota(rate=None, clock=clock, tools={search: of_search, find: of_search})

    def call(ref: Ref) -> Call:
        return Call("invoke", ref, LOCAL, Trail(), str(ref))

    await quota(call(search), answer)
    await quota(call(find), answer)
    with pytest.raises(RateLimited) as caught:
        await quota(call(search), answer)
    assert caught.value.data == {"limit": "rate", "allowed": 1, "tool": "search"}
    assert await quota(call(Ref.parse("tool://read")), answer) == "content"


@pytest.mark.anyio
@pytest.mark.seed("T7")
async def test_as_room_gets_scarce_who_has_most_waits_first(clock: FrozenClock) -> None:
    quota = Quota(in_flight=64, total=8, clock=clock)
    inside, leave = asyncio.Semaphore(0), asyncio.Event()

    async def wait(call: Call) -> str:
        inside.release()
        await leave.wait()
        return "content"

    async with asyncio.timeout(5):
        tasks = [asyncio.create_task(quota(a_call(one("hog")), wait)) for _ in range(4)]
        for _ in tasks:
            await inside.acquire()
        waits = asyncio.create_task(quota(a_call(one("hog")), wait))
        await turns()
        assert quota.waiting == 1
        for name in ("b", "c", "d"):
            tasks.append(asyncio.create_task(quota(a_call(one(name)), wait)))
            await inside.acquire()
        assert await quota(a_call(one("e")), answer) == "content"
        assert quota.in_flight == 7
        leave.set()
        await asyncio.gather(*tasks, waits)
        assert await quota(a_call(one("hog")), answer) == "content"
