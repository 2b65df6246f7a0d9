"""The eighth fold. Requirements A5, T9: limits and time-outs; goal R6: a source that is down."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from octavo.core.clock import FrozenClock
from octavo.core.errors import NotFound, OctavoError, RateLimited, SourceUnavailable, Timeout
from octavo.core.operations import CHANGING
from octavo.core.ref import Ref
from octavo.core.values import Call, Op, Principal, Trail
from octavo.pipeline.throttle import SourceLimits, Throttle

pytestmark = pytest.mark.anyio
REF = Ref.parse("notion://page/1")


def a_call(op: Op = "read", ref: Ref = REF, timeout: float = 10.0) -> Call:
    return Call(op, ref, Principal("local"), Trail(), str(ref), timeout=timeout)


class Source:
    """Answers with what it was given, in turn; the last one for ever."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.calls = 0

    async def __call__(self, call: Call) -> Any:
        self.calls += 1
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, BaseException):
            raise reply
        return reply


class Pauses:
    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def throttle(clock: FrozenClock, pauses: Pauses) -> Throttle:
    return Throttle(clock=clock, sleep=pauses, jitter=lambda: 1.0)


def down(**more: Any) -> SourceUnavailable:
    return SourceUnavailable("Source unavailable: notion", **more)


async def fails(throttle: Throttle, source: Any, call: Call | None = None) -> OctavoError:
    with pytest.raises(OctavoError) as caught:
        await throttle(call or a_call(), source)
    return caught.value


@pytest.mark.seed("T9")
async def test_a_source_that_stumbles_is_asked_again_with_growing_pauses(throttle: Throttle, pauses: Pauses) -> None:
    source = Source(down(), down(), "content")
    assert await throttle(a_call(), source) == "content"
    assert (source.calls, pauses.taken) == (3, [0.1, 0.2])


async def test_jitter_halves_a_pause_at_most(clock: FrozenClock, pauses: Pauses) -> None:
    throttle = Throttle(clock=clock, sleep=pauses, jitter=lambda: 0.0)
    await throttle(a_call(), Source(down(), "content"))
    assert pauses.taken == [0.05]


async def test_after_the_last_attempt_the_source_s_own_error_passes(throttle: Throttle) -> None:
    error = down()
    source = Source(error)
    assert await fails(throttle, source) is error
    assert source.calls == 3


@pytest.mark.parametrize("op", ["write", "delete"])
async def test_what_changes_things_is_never_tried_twice(throttle: Throttle, op: Op) -> None:
    source = Source(down())
    await fails(throttle, source, a_call(op))
    assert source.calls == 1


@pytest.mark.parametrize("op", ["list", "read", "stat", "search", "complete"])
async def test_what_only_reads_is(throttle: Throttle, op: Op) -> None:
    source = Source(down(), "content")
    assert await throttle(a_call(op), source) == "content"


async def test_an_answer_is_an_answer_also_when_it_is_no(throttle: Throttle) -> None:
    error = NotFound("no")
    source = Source(error)
    for _ in range(20):
        assert await fails(throttle, source) is error
    assert source.calls == 20


async def test_a_source_that_says_when_to_come_back_is_obeyed(throttle: Throttle, pauses: Pauses) -> None:
    await throttle(a_call(), Source(down(retry_after=1.5), "content"))
    assert pauses.taken == [1.5]


async def test_but_not_for_longer_than_a_caller_should_wait(throttle: Throttle, pauses: Pauses) -> None:
    error = await fails(throttle, Source(down(retry_after=60.0)))
    assert isinstance(error, SourceUnavailable)
    assert (error.retry_after, pauses.taken) == (60.0, [])


@pytest.mark.seed("O13")
async def test_a_source_that_is_down_is_left_alone_and_tried_again_later(
    throttle: Throttle, clock: FrozenClock, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source(down())
    await fails(throttle, source)
    await fails(throttle, source)
    assert source.calls == 5  # the breaker opened in the second call, which then gave up
    assert throttle.open_sources() == ("notion",)
    clock.advance(4.0)
    error = await fails(throttle, source)
    assert isinstance(error, SourceUnavailable)
    assert (str(error), error.data, error.retry_after) == ("Source unavailable: notion", {"source": "notion"}, 6.0)
    assert source.calls == 5
    clock.advance(6.0)
    await fails(throttle, source)
    assert source.calls == 6  # one probe, without retries
    await fails(throttle, source)
    assert source.calls == 6
    clock.advance(10.0)
    source.replies = ["content"]
    assert await throttle(a_call(), source) == "content"
    assert throttle.open_sources() == ()
    assert len([entry for entry in caplog.records if entry.levelno == logging.WARNING]) == 1


async def test_one_call_tries_while_the_others_are_still_refused(throttle: Throttle, clock: FrozenClock) -> None:
    broken = Source(down())
    await fails(throttle, broken)
    await fails(throttle, broken)
    clock.advance(10.0)
    inside, leave = asyncio.Event(), asyncio.Event()

    async def slow(call: Call) -> str:
        inside.set()
        await leave.wait()
        return "content"

    async with asyncio.timeout(5):
        probe = asyncio.create_task(throttle(a_call(), slow))
        await inside.wait()
        assert isinstance(await fails(throttle, slow), SourceUnavailable)
        leave.set()
        assert await probe == "content"
    assert await throttle(a_call(), Source("content")) == "content"


async def test_a_probe_that_is_cancelled_lets_another_try(throttle: Throttle, clock: FrozenClock) -> None:
    broken = Source(down())
    await fails(throttle, broken)
    await fails(throttle, broken)
    clock.advance(10.0)
    inside = asyncio.Event()

    async def hang(call: Call) -> None:
        inside.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(5):
        probe = asyncio.create_task(throttle(a_call(), hang))
        await inside.wait()
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
    assert await throttle(a_call(), Source("content")) == "content"


async def test_a_source_that_is_down_does_not_stop_another(throttle: Throttle) -> None:
    for _ in range(2):
        await fails(throttle, Source(down()))
    assert await throttle(a_call(ref=Ref.parse("sop://brand/guide")), Source("content")) == "content"


async def hang(call: Call) -> None:
    await asyncio.Event().wait()


@pytest.mark.seed("A5", "T9")
async def test_a_source_that_hangs_is_a_timeout_and_is_not_asked_again(throttle: Throttle, pauses: Pauses) -> None:
    error = await fails(throttle, hang, a_call(timeout=0.0))
    assert isinstance(error, Timeout)
    assert (error.data, pauses.taken) == ({"source": "notion"}, [])


@pytest.mark.parametrize("op", sorted(CHANGING))
async def test_a_change_that_has_begun_is_never_abandoned(throttle: Throttle, op: Op) -> None:
    """Told as failed, it would happen nevertheless."""
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def slow(call: Call) -> str:
        begun.set()
        await goes_on.wait()
        return "done"

    task = asyncio.ensure_future(throttle(a_call(op, timeout=0.0), slow))
    async with asyncio.timeout(5):
        await begun.wait()
        for _ in range(9):
            await asyncio.sleep(0)  # past its deadline
        goes_on.set()
        assert await task == "done"


async def test_a_source_that_cannot_be_changed_can_still_be_read(throttle: Throttle) -> None:
    for _ in range(20):
        await fails(throttle, Source(SourceUnavailable("no space")), a_call("write"))
    assert throttle.open_sources() == ()


async def test_short_deadlines_of_one_caller_do_not_open_the_breaker(throttle: Throttle) -> None:
    for _ in range(20):
        await fails(throttle, hang, a_call(timeout=0.0))
    assert throttle.open_sources() == ()


async def test_timeouts_that_a_source_reports_open_the_breaker(throttle: Throttle) -> None:
    for _ in range(5):
        await fails(throttle, Source(Timeout("too late")))
    assert throttle.open_sources() == ("notion",)


@pytest.mark.seed("T7")
async def test_what_a_source_lets_slip_is_told_without_its_cause(
    throttle: Throttle, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source(KeyError("token=hunter2"))
    error = await fails(throttle, source)
    assert (type(error), str(error)) == (SourceUnavailable, "Source unavailable: notion")
    assert set(error.data) == {"source", "incident"}
    assert error.__suppress_context__
    assert str(error.data["incident"]) in caplog.text
    assert "hunter2" in caplog.text
    assert source.calls == 1


async def test_one_bad_document_does_not_open_the_breaker(throttle: Throttle) -> None:
    for _ in range(20):
        await fails(throttle, Source(ValueError("garbage")))
    assert throttle.open_sources() == ()


@pytest.mark.parametrize("error", [ConnectionResetError("reset"), TimeoutError("socket")])
async def test_a_broken_connection_is_an_outage(throttle: Throttle, error: OSError) -> None:
    source = Source(error)
    assert isinstance(await fails(throttle, source), SourceUnavailable)
    await fails(throttle, source)
    assert source.calls == 5
    assert throttle.open_sources() == ("notion",)


@pytest.mark.seed("T7", "T9")
async def test_only_so_many_calls_are_inside_one_source(clock: FrozenClock) -> None:
    throttle = Throttle(limits=SourceLimits(concurrency=2), sources={"sop": SourceLimits(concurrency=1)}, clock=clock)
    entered, leave = asyncio.Semaphore(0), asyncio.Event()
    inside = most = 0

    async def slow(call: Call) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        entered.release()
        await leave.wait()
        inside -= 1

    async def crowd(ref: Ref) -> int:
        nonlocal most
        most = 0
        leave.clear()
        async with asyncio.timeout(5):
            tasks = [asyncio.create_task(throttle(a_call(ref=ref), slow)) for _ in range(6)]
            await entered.acquire()
            for _ in range(20):  # let whoever can come in do so
                await asyncio.sleep(0)
            leave.set()
            await asyncio.gather(*tasks)
        while not entered.locked():
            await entered.acquire()
        return most

    assert await crowd(REF) == 2
    assert await crowd(Ref.parse("sop://brand/guide")) == 1


async def test_a_call_that_never_comes_in_is_a_timeout_and_no_sign_of_an_outage(clock: FrozenClock) -> None:
    throttle = Throttle(limits=SourceLimits(concurrency=1, failures=1), clock=clock)
    inside, leave = asyncio.Event(), asyncio.Event()

    async def slow(call: Call) -> str:
        inside.set()
        await leave.wait()
        return "content"

    async with asyncio.timeout(5):
        first = asyncio.create_task(throttle(a_call(), slow))
        await inside.wait()
        assert isinstance(await fails(throttle, slow, a_call(timeout=0.0)), Timeout)
        assert throttle.open_sources() == ()
        leave.set()
        assert await first == "content"


@pytest.mark.seed("F11")
async def test_a_tool_that_calls_tools_does_not_wait_for_itself(clock: FrozenClock) -> None:
    throttle = Throttle(limits=SourceLimits(concurrency=1), clock=clock)
    tool = Ref.parse("tool://nested")

    async def nest(call: Call) -> str:
        return "done" if call.depth == 5 else await throttle(call.child("invoke", tool), nest)

    async with asyncio.timeout(5):
        assert await throttle(a_call("invoke", tool), nest) == "done"


async def test_tools_and_prompts_keep_their_own_errors_and_time(throttle: Throttle) -> None:
    error = KeyError("a tool's own")
    for op in ("invoke", "render", "watch"):
        with pytest.raises(KeyError) as caught:
            await throttle(a_call(op, timeout=0.0), Source(error))
        assert caught.value is error


async def test_made_up_schemes_do_not_fill_the_memory(throttle: Throttle) -> None:
    for number in range(2000):
        await throttle(a_call(ref=Ref(f"x{number}")), Source("content"))
    assert len(throttle._gates) <= 257  # pyright: ignore[reportPrivateUsage]


async def test_slow_work_of_our_own_on_what_a_source_gave_opens_no_breaker(throttle: Throttle) -> None:
    source = Source(Timeout("the document could not be converted", telling=False))
    for _ in range(10):
        with pytest.raises(Timeout, match="converted"):
            await throttle(a_call(), source)
    assert throttle.open_sources() == ()


@pytest.mark.anyio
@pytest.mark.seed("T7", "A5")
async def test_a_source_with_a_pace_is_asked_at_that_pace_and_late_turns_are_refused_at_once() -> None:
    clock, slept = FrozenClock(), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    throttle = Throttle(sources={"sop": SourceLimits(rate=2.0)}, clock=clock, sleep=sleep)
    call = Call("read", Ref.parse("sop://a"), Principal("p"), Trail(), "sop://a", timeout=1.0)

    async def answer(call: Call) -> str:
        return "content"

    assert [await throttle(call, answer) for _ in range(3)] == ["content"] * 3
    assert slept == [0.5, 1.0]
    with pytest.raises(RateLimited) as caught:
        await throttle(call, answer)
    assert caught.value.data == {"limit": "source", "allowed": 2.0, "source": "sop"}
    assert caught.value.retry_after == pytest.approx(0.5)
    clock.advance(2.0)
    assert await throttle(call, answer) == "content"
