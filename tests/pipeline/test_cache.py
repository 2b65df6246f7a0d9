"""Fold 6: replies that still hold, and single flight (O11, A5; house.md section 2; performance.md 5.2 and 5.3)."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from octavo.core.arguments import PLAIN
from octavo.core.clock import FrozenClock
from octavo.core.errors import InternalError, NotFound, OctavoError, RateLimited, SourceUnavailable, Timeout, TooLarge
from octavo.core.ports.chain import Reply
from octavo.core.ports.chain import settled as given
from octavo.core.ref import Ref
from octavo.core.values import Call, Change, Content, Entry, Op, Page, Principal, Trail
from octavo.pipeline.cache import Cache

pytestmark = pytest.mark.anyio

PAY = Ref.parse("sop://hr/pay")


def a_call(
    ref: Ref = PAY,
    op: Op = "read",
    *,
    max_bytes: int = 1000,
    timeout: float = 5.0,
    cursor: str | None = None,
    limit: int = 100,
    who: str = "local",
    channel: object = None,
) -> Call:
    return Call(op, ref, Principal(who), Trail(), str(ref), PLAIN, cursor, limit, max_bytes, timeout, channel=channel)


def content(ref: Ref = PAY, body: str | bytes = "text", **entry: Any) -> Content:
    return Content(entry=Entry(ref=ref, name=ref.name, **entry), body=body)


class Source:
    """Counts what reaches it. `gate` holds every call until it is opened."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.stamps: dict[Ref, object | None] = {}
        self.body: str | bytes = "text"
        self.fault: BaseException | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()
        self.cancelled = 0
        self.on_cancel: Callable[[], Awaitable[None]] | None = None

    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
        return self.stamps.get(ref, "same")

    async def __call__(self, call: Call) -> Reply:
        self.calls.append(call)
        body = self.body
        self.entered.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            if self.on_cancel is not None:
                await self.on_cancel()
            raise
        if self.fault is not None:
            raise self.fault
        if call.op == "list":
            return Page((content(call.ref).entry,))
        if call.op == "read":
            return content(call.ref, body)
        return "done"


class Shop:
    def __init__(self, *, max_bytes: int = 1 << 20, ttl: float = 60.0, flight_time: float = 0.0) -> None:
        self.source, self.clock = Source(), FrozenClock()
        self.cache = Cache(
            self.source,
            max_bytes=max_bytes,
            ttl={"sop": ttl},
            redaction="r1",
            clock=self.clock,
            flight_time=flight_time,
        )

    async def ask(self, call: Call | None = None) -> Reply:
        return await given(self.cache(call or a_call(), self.source))

    def begin(self, call: Call | None = None) -> asyncio.Task[Reply]:
        return asyncio.ensure_future(self.ask(call))

    async def begun(self, call: Call | None = None) -> asyncio.Task[Reply]:
        """A caller that waits for the source behind its closed gate."""
        self.source.gate.clear()
        self.source.entered.clear()
        task = self.begin(call)
        with anyio.fail_after(30):
            await self.source.entered.wait()
        return task


@pytest.fixture
async def shop() -> Shop:
    return Shop()


async def settled() -> None:
    """Until everything that is ready to run has run."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


async def ended(*tasks: asyncio.Task[Reply]) -> list[Any]:
    with anyio.fail_after(30):
        return await asyncio.gather(*tasks, return_exceptions=True)


def change(uri: str) -> Change:
    return Change(kind="updated", ref=Ref.parse(uri), at=0.0)


# -- hits


@pytest.mark.seed("O11")
async def test_a_reply_is_given_again_as_the_same_object(shop: Shop) -> None:
    """Identity, because its memo carries the encoded form."""
    first, again = a_call(), a_call()
    reply = await shop.ask(first)
    assert await shop.ask(again) is reply
    assert (len(shop.source.calls), first.trail.cache, again.trail.cache) == (1, "miss", "hit")


@pytest.mark.seed("O11")
async def test_a_hit_needs_a_stamp_that_still_holds(shop: Shop) -> None:
    """One look at the source a hit: always true, whatever the TTL says."""
    shop.source.stamps[PAY] = 1
    await shop.ask()
    shop.source.stamps[PAY] = 2
    shop.source.body = "new"
    assert (await shop.ask()).body == "new"
    assert (await shop.ask()).body == "new"
    assert len(shop.source.calls) == 2


@pytest.mark.seed("O11")
async def test_what_has_no_stamp_is_not_kept(shop: Shop) -> None:
    """core/ports: None means do not reuse a reply; also when it comes later."""
    shop.source.stamps[PAY] = None
    await shop.ask()
    await shop.ask()
    shop.source.stamps[PAY] = 1
    await shop.ask()
    shop.source.stamps[PAY] = None
    await shop.ask()
    assert len(shop.source.calls) == 4
    assert shop.cache.used == 0


@pytest.mark.seed("O11")
async def test_the_stamp_is_taken_before_the_fetch(shop: Shop) -> None:
    """If the content changes meanwhile, what was fetched may be either, so nobody may have it later."""
    shop.source.stamps[PAY] = 1
    task = await shop.begun()
    shop.source.stamps[PAY] = 2
    shop.source.gate.set()
    await ended(task)
    await shop.ask()
    assert len(shop.source.calls) == 2


@pytest.mark.seed("O11")
async def test_a_reply_ends_with_its_ttl(shop: Shop) -> None:
    """TTL per source (git 300 s, Notion 60 s); the clock is ours."""
    await shop.ask()
    shop.clock.advance(59.9)
    await shop.ask()
    assert len(shop.source.calls) == 1
    shop.clock.advance(0.2)
    await shop.ask()
    assert len(shop.source.calls) == 2


@pytest.mark.seed("O11")
async def test_a_ttl_of_nothing_keeps_nothing() -> None:
    """`ttl: 0` never keeps a copy; a scheme without one neither."""
    shop = Shop(ttl=0.0)
    for ref in (PAY, PAY, Ref.parse("doc://x"), Ref.parse("doc://x")):
        await shop.ask(a_call(ref))
    assert (len(shop.source.calls), shop.cache.used) == (4, 0)


@pytest.mark.seed("O11", "O1")
async def test_the_key_is_the_address_with_its_query_and_for_lists_the_page(shop: Shop) -> None:
    """`mcp:resource:{namespace}:{path}` + query; nobody gets another version or another page."""
    asked = [
        a_call(),
        a_call(Ref.parse("sop://hr/pay?version=1")),
        a_call(op="list"),
        a_call(op="list", cursor="x"),
        a_call(op="list", limit=5),
    ]
    for call in (*asked, *asked):
        await shop.ask(call)
    assert len(shop.source.calls) == len(asked)


@pytest.mark.seed("O11", "B2")
async def test_nothing_of_the_caller_is_part_of_what_is_kept(shop: Shop) -> None:
    """The policy stands before the cache: one copy serves all, and no decision rests in it."""
    await shop.ask(a_call(who="agent-brand"))
    other = a_call(who="agent-ops")
    await shop.ask(other)
    assert other.trail.cache == "hit"
    kept = repr(shop.cache._kept)  # pyright: ignore[reportPrivateUsage]
    assert "agent-brand" not in kept and "agent-ops" not in kept


@pytest.mark.seed("O11")
@pytest.mark.parametrize("op", ["read", "list"])
async def test_a_hit_never_suspends(shop: Shop, op: Op) -> None:
    """The hot lane runs the chain without a task: the reply is there at once."""
    reply = await shop.ask(a_call(op=op))
    assert shop.cache(a_call(op=op), shop.source) is reply


@pytest.mark.parametrize("op", ["stat", "watch", "invoke", "render", "complete", "templates"])
async def test_other_operations_are_never_kept_or_shared(shop: Shop, op: Op) -> None:
    """Two calls of a tool are two calls."""
    first = await shop.begun(a_call(op=op))
    second = shop.begin(a_call(op=op))
    await settled()
    shop.source.gate.set()
    assert await ended(first, second) == ["done", "done"]
    assert len(shop.source.calls) == 2


# -- bounds


@pytest.mark.seed("O11", "A5")
async def test_memory_is_bounded_and_the_longest_unused_goes_first() -> None:
    """64 MiB by default, in bytes and not in entries."""
    shop = Shop(max_bytes=100_000)
    shop.source.body = "x" * 4000
    refs = [Ref.parse(f"sop://n{number}") for number in range(30)]
    for ref in refs:
        await shop.ask(a_call(ref, max_bytes=10_000))
        await shop.ask(a_call(refs[0], max_bytes=10_000))  # used all the time, so it stays
        assert shop.cache.used <= 100_000
    assert shop.cache.used >= 80_000
    assert [call.ref for call in shop.source.calls] == refs, "each was fetched once"
    shop.source.calls.clear()
    await shop.ask(a_call(refs[0], max_bytes=10_000))
    await shop.ask(a_call(refs[-1], max_bytes=10_000))
    assert shop.source.calls == []
    await shop.ask(a_call(refs[1], max_bytes=10_000))
    assert len(shop.source.calls) == 1


async def test_one_giant_does_not_push_out_everything_else() -> None:
    """A reply of more than a quarter of the room is not kept at all."""
    shop = Shop(max_bytes=100_000)
    await shop.ask()
    shop.source.body = b"x" * 30_000
    giant = Ref.parse("sop://giant")
    for _ in range(2):
        await shop.ask(a_call(giant, max_bytes=1 << 20))
    assert len(shop.source.calls) == 3
    await shop.ask()
    assert len(shop.source.calls) == 3


async def test_no_room_keeps_nothing_and_all_is_given_back() -> None:
    """The account is right to the byte: what is dropped is free again."""
    shop = Shop(max_bytes=0)
    await shop.ask()
    assert shop.cache.used == 0
    shop = Shop()
    for number in range(50):
        await shop.ask(a_call(Ref.parse(f"sop://a/n{number}")))
        await shop.ask(a_call(Ref.parse(f"sop://a/n{number}"), "list"))
    assert shop.cache.used > 0
    for number in range(50):
        shop.cache.forget(change(f"sop://a/n{number}"))
    assert shop.cache.used == 0
    assert not shop.cache._groups and not shop.cache._kept  # pyright: ignore[reportPrivateUsage]


async def test_what_a_page_says_of_its_entries_is_weighed() -> None:
    """A page of long descriptions and metadata is not as light as a page of names."""
    shop = Shop()

    async def pages(call: Call) -> Reply:
        said = {"description": "d" * 5000, "metadata": {"notes": "m" * 5000}} if call.cursor else {}
        return Page((content(**said).entry,))

    await shop.cache(a_call(op="list"), pages)
    light = shop.cache.used
    await shop.cache(a_call(op="list", cursor="x"), pages)
    assert shop.cache.used - light > 10_000


# -- forgetting


@pytest.mark.seed("O11", "O12")
async def test_a_change_makes_the_resource_its_folders_and_all_lists_of_its_source_invalid(shop: Shop) -> None:
    """Invalidated by the feed; every version and view of the resource, and nothing else."""
    uris = [
        "sop://hr/pay",
        "sop://hr/pay?view=parsed",
        "sop://hr",
        "sop://hr/payday",
        "sop://brand/guide",
    ]
    calls = [a_call(Ref.parse(uri)) for uri in uris]
    lists = [a_call(Ref.parse("sop://"), "list"), a_call(Ref.parse("sop://brand"), "list")]
    for call in (*calls, *lists):
        await shop.ask(call)
    shop.cache.forget(change("sop://hr/pay"))
    outcome: dict[str, str] = {}
    for call in (*calls, *lists):
        again = call._replace(trail=Trail())
        await shop.ask(again)
        outcome[f"{call.op} {call.uri}"] = again.trail.cache
    assert outcome == {
        "read sop://hr/pay": "miss",
        "read sop://hr/pay?view=parsed": "miss",
        "read sop://hr": "miss",
        "read sop://hr/payday": "hit",
        "read sop://brand/guide": "hit",
        "list sop://": "miss",
        "list sop://brand": "miss",
    }


@pytest.mark.seed("O11", "O12")
async def test_a_move_makes_both_places_invalid(shop: Shop) -> None:
    calls = [a_call(Ref.parse(uri)) for uri in ("sop://hr/pay", "sop://brand/guide", "sop://brand/tone")]
    for call in calls:
        await shop.ask(call)
    shop.cache.forget(replace(change("sop://hr/pay"), kind="renamed", source=Ref.parse("sop://brand/guide")))
    outcome: list[str] = []
    for call in calls:
        again = call._replace(trail=Trail())
        await shop.ask(again)
        outcome.append(again.trail.cache)
    assert outcome == ["miss", "miss", "hit"]


@pytest.mark.seed("O11", "O12")
@pytest.mark.parametrize("op", ["read", "list"])
async def test_what_was_fetched_while_it_changed_is_not_kept_and_nobody_joins_it(shop: Shop, op: Op) -> None:
    """A source without stamps: only the feed tells that the flight under way is already old."""
    early = await shop.begun(a_call(op=op))
    shop.cache.forget(change("sop://hr/pay"))
    late = shop.begin(a_call(op=op))
    await settled()
    shop.source.gate.set()
    old, new = await ended(early, late)
    assert old is not new
    assert len(shop.source.calls) == 2
    assert await shop.ask(a_call(op=op)) is new


async def test_what_a_flight_brings_after_a_change_is_for_those_who_waited_only(shop: Shop) -> None:
    """Kept, it would be served until its TTL ends."""
    early = await shop.begun()
    shop.cache.forget(change("sop://hr/pay"))
    shop.source.gate.set()
    await ended(early)
    assert shop.cache.used == 0


async def test_the_end_of_an_old_flight_does_not_end_joining_its_successor(shop: Shop) -> None:
    """Both have the same key; only the newer one is on the board."""
    gates: list[asyncio.Event] = []

    async def gated(call: Call) -> Reply:
        gates.append(asyncio.Event())
        await gates[-1].wait()
        return content()

    def begin() -> asyncio.Task[Reply]:
        return asyncio.ensure_future(shop.cache(a_call(), gated))

    old = begin()
    await settled()
    shop.cache.forget(change("sop://hr/pay"))
    new = begin()
    await settled()
    gates[0].set()
    await ended(old)
    joins = begin()
    await settled()
    assert len(gates) == 2
    gates[1].set()
    one, two = await ended(new, joins)
    assert one is two


async def test_a_caller_that_comes_after_a_change_does_not_join_an_older_flight(shop: Shop) -> None:
    """After a write, read sees it: the stamp tells at once, before the feed does."""
    shop.source.stamps[PAY] = 1
    early = await shop.begun()
    shop.source.stamps[PAY] = 2
    shop.source.body = "new"
    late = shop.begin()
    await settled()
    shop.source.gate.set()
    assert [reply.body for reply in await ended(early, late)] == ["text", "new"]
    assert (await shop.ask()).body == "new"


# -- single flight


@pytest.mark.seed("O11", "T9")
@pytest.mark.parametrize("op", ["read", "list"])
async def test_many_who_ask_the_same_at_once_cost_one_fetch(shop: Shop, op: Op) -> None:
    """Single flight; all of them are inside before the source answers."""
    first = await shop.begun(a_call(op=op))
    others = [shop.begin(a_call(op=op, who=f"agent-{number}")) for number in range(50)]
    await settled()
    assert not any(task.done() for task in (first, *others))
    shop.source.gate.set()
    replies = await ended(first, *others)
    assert len(shop.source.calls) == 1
    assert all(reply is replies[0] for reply in replies)


async def test_different_questions_do_not_wait_for_each_other(shop: Shop) -> None:
    """Both are inside the source at once."""
    first = await shop.begun()
    second = await shop.begun(a_call(Ref.parse("sop://brand/guide")))
    assert len(shop.source.calls) == 2
    shop.source.gate.set()
    assert [reply.entry.ref.path for reply in await ended(first, second)] == ["hr/pay", "brand/guide"]


@pytest.mark.seed("A5", "A12")
async def test_limits_of_size_do_not_poison_each_other(shop: Shop) -> None:
    """Who asks for less gets TooLarge, and who asks for more at the same time gets the content."""

    async def sized(call: Call) -> Reply:
        await shop.source(call)
        if call.max_bytes < 10:
            raise TooLarge("too large", size=10, limit=call.max_bytes)
        return content(body="x" * 10)

    shop.source.gate.clear()
    small = [asyncio.ensure_future(shop.cache(a_call(max_bytes=5), sized)) for _ in range(2)]
    large = asyncio.ensure_future(shop.cache(a_call(max_bytes=50), sized))
    await settled()
    shop.source.gate.set()
    one, two, three = await ended(*small, large)
    assert isinstance(one, TooLarge) and isinstance(two, TooLarge)
    assert three.body == "x" * 10
    assert len(shop.source.calls) == 2


@pytest.mark.seed("A5", "A12")
async def test_the_callers_deadline_ends_its_waiting_and_not_the_flight(shop: Shop) -> None:
    """performance.md 5.2: as long as somebody else still waits for it."""
    patient = await shop.begun(a_call(timeout=5.0))
    hasty = a_call(timeout=0.0)
    with pytest.raises(Timeout) as late, anyio.fail_after(30):
        await shop.ask(hasty)
    assert late.value.data == {"uri": "sop://hr/pay"}
    assert shop.source.cancelled == 0
    shop.source.gate.set()
    assert (await ended(patient))[0].body == "text"
    assert len(shop.source.calls) == 1


@pytest.mark.seed("A5")
async def test_a_flight_has_the_operators_time_whoever_began_it() -> None:
    """Else a caller in a hurry would end the fetch for those who joined it."""
    shop = Shop(flight_time=10.0)
    await shop.ask(a_call(timeout=0.5))
    await shop.ask(a_call(Ref.parse("sop://x"), timeout=20.0))
    assert [call.timeout for call in shop.source.calls] == [10.0, 20.0]


@pytest.mark.seed("T9")
async def test_the_last_who_leaves_cancels_the_flight(shop: Shop) -> None:
    """Nobody waits, so nothing runs on."""
    first = await shop.begun()
    second = shop.begin()
    await settled()
    first.cancel()
    await settled()
    assert shop.source.cancelled == 0
    second.cancel()
    await ended(first, second)
    await settled()
    assert shop.source.cancelled == 1
    assert shop.cache.used == 0


async def test_who_comes_while_an_abandoned_flight_ends_gets_one_of_its_own(shop: Shop) -> None:
    """A cancelled fetch may take its time to clean up; whoever joined it would be cancelled for nothing."""
    cleaning = asyncio.Event()
    shop.source.on_cancel = cleaning.wait
    first = await shop.begun()
    first.cancel()
    await ended(first)
    await settled()
    shop.source.gate.set()
    assert (await ended(shop.begin()))[0].body == "text"
    cleaning.set()
    await settled()
    assert (await shop.ask()).body == "text"
    assert len(shop.source.calls) == 2


async def test_a_source_that_cancels_itself_does_not_cancel_who_waits(shop: Shop) -> None:
    """A cancelled caller is never answered, so this has to be an error."""
    shop.source.fault = asyncio.CancelledError()
    with pytest.raises(SourceUnavailable, match=r"^Source unavailable: sop$"):
        await shop.ask()


@pytest.mark.parametrize("channel", [None, object()], ids=["alone", "by the SDK"])
@pytest.mark.parametrize("op", ["invoke", "render"])
async def test_nor_does_a_tool_that_cancels_itself(shop: Shop, op: Op, channel: object) -> None:
    shop.source.fault = asyncio.CancelledError()
    with pytest.raises(SourceUnavailable, match=r"^Source unavailable: sop$"):
        await shop.ask(a_call(op=op, channel=channel))


async def test_a_tool_that_the_sdk_cancels_has_the_time_to_tidy_up(shop: Shop) -> None:
    """Cancel scopes cancel again at every step."""
    tidy = asyncio.Event()

    async def tidy_up() -> None:
        await settled()
        tidy.set()

    shop.source.on_cancel = tidy_up
    shop.source.gate.clear()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(shop.ask, a_call(op="invoke", channel=object()))
            await shop.source.entered.wait()
            scope.cancel()
    with anyio.fail_after(30):
        await tidy.wait()


async def test_a_cancelled_tool_is_cancelled(shop: Shop) -> None:
    task = await shop.begun(a_call(op="invoke"))
    task.cancel()
    assert isinstance((await ended(task))[0], asyncio.CancelledError)
    assert shop.source.cancelled == 1


@pytest.mark.parametrize("op", ["stat", "templates"])
async def test_what_is_not_kept_has_the_callers_deadline_too(shop: Shop, op: Op) -> None:
    """A5: time-outs on everything but tools and prompts, which bring their own."""
    shop.source.gate.clear()
    with pytest.raises(Timeout), anyio.fail_after(30):
        await shop.ask(a_call(op=op, timeout=0.0))
    await settled()
    assert shop.source.cancelled == 1


@pytest.mark.parametrize("op", ["invoke", "render", "write", "edit", "delete", "move", "copy", "make", "undo"])
async def test_a_tool_or_a_change_may_take_longer_than_a_read(shop: Shop, op: Op) -> None:
    """The limit of a tool stands in its definition, and a change that has begun has none."""
    task = await shop.begun(a_call(op=op, timeout=0.0))
    await settled()
    shop.source.gate.set()
    assert await ended(task) == ["done"]


# -- errors


@pytest.mark.parametrize(
    "fault", [NotFound("x", uri="x"), SourceUnavailable("x", retry_after=1.0), InternalError("x"), ValueError("x")]
)
async def test_errors_are_not_kept(shop: Shop, fault: Exception) -> None:
    """The next caller asks again."""
    shop.source.fault = fault
    with pytest.raises(type(fault)):
        await shop.ask()
    shop.source.fault = None
    assert (await shop.ask()).body == "text"
    assert len(shop.source.calls) == 2


async def test_each_waiter_gets_an_error_of_its_own(shop: Shop) -> None:
    """An error that several tasks raise collects the traces of all of them."""
    shop.source.fault = RateLimited("slow down", retry_after=3.0, limit="rate")
    first = await shop.begun()
    others = [shop.begin() for _ in range(3)]
    await settled()
    shop.source.gate.set()
    errors = await ended(first, *others)
    assert len({id(error) for error in errors}) == 4
    for error in errors:
        assert isinstance(error, RateLimited)
        assert (error.message, str(error), error.retry_after, error.data) == (
            "slow down",
            "slow down",
            3.0,
            {"limit": "rate"},
        )


async def test_nobody_is_told_of_errors_that_were_never_retrieved(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """Whether callers wait, leave, or leave in the very moment in which the flight fails."""
    with caplog.at_level(logging.ERROR, logger="asyncio"):
        shop.source.fault = SourceUnavailable("down")
        stays, leaves = await shop.begun(), shop.begin()
        closed: Any = shop.cache(a_call(), shop.source)
        closed.send(None)  # as the hot lane does
        await settled()
        shop.source.gate.set()
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
            if stays.done():
                break
        leaves.cancel()
        closed.close()
        await ended(stays, leaves)
        lonely = await shop.begun()
        lonely.cancel()
        await ended(lonely)
        del stays, leaves, lonely, closed
        await settled()
        gc.collect()
        await settled()
    assert caplog.records == []


async def test_the_error_of_a_flight_is_an_octavo_error_with_its_own_class(shop: Shop) -> None:
    """The transport looks codes up by class: a copy must not be a base class."""
    for fault in (NotFound("x", uri="u"), Timeout("t"), TooLarge("l", size=1)):
        shop.source.fault = fault
        with pytest.raises(OctavoError) as raised:
            await shop.ask()
        assert type(raised.value) is type(fault)
