"""The change feed: one order for all sources (O10, O12, B3; house.md section 5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from octavo.core.clock import FrozenClock
from octavo.core.ref import Ref
from octavo.core.values import Change, Content, Entry, Page
from octavo.feed import ChangeFeed
from octavo.feed.feed import PAUSE
from octavo.sources.memory import MemorySource

pytestmark = pytest.mark.anyio


def change(uri: str = "sop://a") -> Change:
    return Change(kind="updated", ref=Ref.parse(uri), at=1.0)


class Heard:
    """Remembers what it was told; `until` waits for a number of changes."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._news = asyncio.Event()

    def __call__(self, change: Change) -> None:
        self.changes.append(change)
        self._news.set()

    async def until(self, count: int) -> list[str]:
        with anyio.fail_after(30):
            while len(self.changes) < count:
                self._news.clear()
                await self._news.wait()
        return [str(change.ref) for change in self.changes]


# -- order and numbers


@pytest.mark.seed("O10", "B3")
async def test_changes_are_numbered_in_the_order_in_which_they_are_heard() -> None:
    """Resumable by number, each greater than the one before; the number that the source gave is not it."""
    feed, heard = ChangeFeed(clock=FrozenClock(0.0)), Heard()
    feed.subscribe(heard)
    assert feed.number() == 0
    given = [feed.publish(change(f"sop://{name}")) for name in "cab"]
    assert [(str(one.ref), one.seq) for one in given] == [("sop://c", 1), ("sop://a", 2), ("sop://b", 3)]
    assert heard.changes == given
    assert feed.number() == 3


@pytest.mark.seed("B3")
async def test_every_listener_hears_in_the_same_order_even_if_one_of_them_publishes() -> None:
    """A listener may cause a change; the others first hear of the one at hand."""
    feed, first, last = ChangeFeed(clock=FrozenClock(0.0)), Heard(), Heard()

    def echo(told: Change) -> None:
        if told.ref.name == "a":
            feed.publish(change("sop://echo"))

    for listener in (first, echo, last):
        feed.subscribe(listener)
    feed.publish(change("sop://a"))
    assert [one.seq for one in first.changes] == [one.seq for one in last.changes] == [1, 2]
    assert [one.ref.name for one in last.changes] == ["a", "echo"]


@pytest.mark.seed("B3")
async def test_what_was_missed_can_be_had_again() -> None:
    """`since` gives everything after a number, oldest first."""
    feed = ChangeFeed(clock=FrozenClock(0.0))
    assert feed.since(0) == []
    told = [feed.publish(change(f"sop://{number}")) for number in range(5)]
    assert feed.since(0) == told
    assert feed.since(3) == told[3:]
    assert feed.since(5) == []


@pytest.mark.seed("B3")
async def test_a_number_from_too_long_ago_or_from_another_life_has_no_answer() -> None:
    """None means: read anew. An empty list would hide what was missed."""
    feed = ChangeFeed(recent=3, clock=FrozenClock(0.0))
    told = [feed.publish(change()) for _ in range(5)]
    assert feed.since(2) == told[2:]
    assert feed.since(1) is None
    assert feed.since(6) is None, "a feed that began anew has not got that far"
    assert feed.since(-1) is None


# -- listeners


@pytest.mark.seed("O10")
async def test_a_listener_that_raises_does_not_silence_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """And it is said."""
    feed, before, after = ChangeFeed(clock=FrozenClock(0.0)), Heard(), Heard()

    def broken(told: Change) -> None:
        raise RuntimeError("broken listener")

    for listener in (before, broken, after):
        feed.subscribe(listener)
    with caplog.at_level(logging.ERROR):
        feed.publish(change())
        feed.publish(change())
    assert (len(before.changes), len(after.changes)) == (2, 2)
    assert "listener" in caplog.text and "broken listener" in caplog.text


@pytest.mark.seed("A4")
async def test_who_has_left_hears_nothing_more_not_even_in_the_same_round() -> None:
    """Leaving twice does no harm."""
    feed, heard = ChangeFeed(clock=FrozenClock(0.0)), Heard()
    leaves: list[Any] = []

    def dismiss(told: Change) -> None:
        leaves[0]()

    feed.subscribe(dismiss)
    leaves.append(feed.subscribe(heard))
    feed.publish(change())
    leaves[0]()
    feed.publish(change())
    assert heard.changes == []


async def test_one_function_can_listen_twice_and_leave_once() -> None:
    """A subscription is not the function."""
    feed, heard = ChangeFeed(clock=FrozenClock(0.0)), Heard()
    leave = feed.subscribe(heard)
    feed.subscribe(heard)
    leave()
    feed.publish(change())
    assert len(heard.changes) == 1


# -- sources


class Watchable:
    """A source of which only the watch matters: each round of it is one of `rounds`."""

    def __init__(self, *rounds: list[Change] | BaseException, scheme: str = "sop") -> None:
        self.scheme = scheme
        self._rounds = list(rounds)
        self.scopes: list[Ref] = []
        self.closed = 0

    async def watch(self, scope: Ref) -> AsyncIterator[Change]:
        self.scopes.append(scope)
        now = self._rounds.pop(0) if self._rounds else None
        try:
            if isinstance(now, BaseException):
                raise now
            for one in now or ():
                yield one
            if now is None:
                await asyncio.Event().wait()
        finally:
            self.closed += 1

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        raise NotImplementedError

    async def stat(self, ref: Ref) -> Entry:
        raise NotImplementedError

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        raise NotImplementedError


class Pauses:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        self.begun = asyncio.Event()
        self.over = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        self.begun.set()
        await self.over.wait()
        self.over.clear()


@pytest.mark.seed("O10", "O12", "B3")
async def test_the_watches_of_all_sources_flow_into_one_feed() -> None:
    """Every source that can be watched, at the whole of its scheme."""
    feed, heard = ChangeFeed(clock=FrozenClock(0.0)), Heard()
    feed.subscribe(heard)
    sop, doc = MemorySource("sop", {}), MemorySource("doc", {})
    await feed.follow([sop, doc])
    for _ in range(5):
        await anyio.lowlevel.checkpoint()
    await sop.write(Ref.parse("sop://a"), "", if_match=None)
    await doc.write(Ref.parse("doc://b"), "", if_match=None)
    assert sorted(await heard.until(2)) == ["doc://b", "sop://a"]
    assert [one.seq for one in heard.changes] == [1, 2]
    with anyio.fail_after(30):
        await feed.close()


@pytest.mark.parametrize("wish", ["begin", "followed", "time"])
async def test_what_is_held_is_not_watched_before_somebody_wants_it(wish: str) -> None:
    feed, source = ChangeFeed(clock=FrozenClock(0.0)), MemorySource("sop", {})
    feed.hold(0.0 if wish == "time" else 3600.0)
    await feed.follow([source])
    if wish != "time":
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert feed.since(feed.number(), ["sop"]) is None, "nobody could tell"
    if wish == "begin":
        feed.begin()
    with anyio.fail_after(30):
        while wish != "followed" and feed.since(feed.number(), ["sop"]) is None:
            await anyio.lowlevel.checkpoint()
        await feed.followed(["sop"])
        assert feed.since(feed.number(), ["sop"]) == []
        await feed.close()


async def test_a_source_that_cannot_be_watched_is_left_alone() -> None:
    """Watching is an ability, not a duty."""

    class Still:
        scheme = "still"

    feed = ChangeFeed()
    with anyio.fail_after(30):
        await feed.follow([Still()])  # type: ignore[list-item]


@pytest.mark.seed("O12")
@pytest.mark.parametrize(
    ("fault", "said"),
    [([], "ended"), (RuntimeError("inotify limit"), "inotify limit"), (asyncio.CancelledError(), "cancelled itself")],
    ids=["ends", "fails", "cancels itself"],
)
async def test_a_watch_that_ends_is_tried_again_after_a_pause(
    fault: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Webhooks and inotify are hints; a broken one must not stay broken in silence."""
    pauses = Pauses()
    feed, heard = ChangeFeed(sleep=pauses), Heard()
    feed.subscribe(heard)
    source = Watchable([change("sop://1")], fault, [change("sop://2")])
    await feed.follow([source])
    with caplog.at_level(logging.WARNING), anyio.fail_after(30):
        for round_ in range(1, 4):
            await pauses.begun.wait()
            pauses.begun.clear()
            assert len(source.scopes) == round_, "not again before the pause is over"
            pauses.over.set()
        assert await heard.until(2) == ["sop://1", "sop://2"]
        await feed.close()
    assert pauses.taken == [PAUSE] * 3
    assert set(source.scopes) == {Ref("sop")}
    assert said in caplog.text


async def test_one_source_that_fails_does_not_hold_up_another() -> None:
    """Each is watched by itself."""
    pauses = Pauses()
    feed, heard = ChangeFeed(sleep=pauses), Heard()
    feed.subscribe(heard)
    await feed.follow([Watchable(RuntimeError("x")), Watchable([change("doc://1")], scheme="doc")])
    assert await heard.until(1) == ["doc://1"]
    with anyio.fail_after(30):
        await feed.close()


@pytest.mark.parametrize("how", ["stop", "close"])
async def test_following_ends_cleanly(how: str) -> None:
    """The watch of a source is closed, nothing is heard afterwards, and ending twice does no harm."""
    feed, heard = ChangeFeed(clock=FrozenClock(0.0)), Heard()
    feed.subscribe(heard)
    source = Watchable()
    await feed.follow([source])
    for _ in range(5):
        await anyio.lowlevel.checkpoint()
    assert (len(source.scopes), source.closed) == (1, 0)
    with anyio.fail_after(30):
        await (feed.follow([]) if how == "stop" else feed.close())
        assert source.closed == 1
        await feed.follow([])
        await feed.close()
    assert heard.changes == []


async def test_stopping_during_the_pause_of_a_broken_watch_works_too() -> None:
    """A reload does not wait for a source that is down."""
    pauses = Pauses()
    feed = ChangeFeed(sleep=pauses)
    source = Watchable(RuntimeError("x"))
    await feed.follow([source])
    with anyio.fail_after(30):
        await pauses.begun.wait()
        await feed.follow([])
    assert len(source.scopes) == 1


async def test_a_source_in_the_place_of_another_is_watched_instead_of_it() -> None:
    """A reload ends the old watches and begins new ones; what was told of the old source is not kept."""
    feed, heard = ChangeFeed(clock=FrozenClock(0.0)), Heard()
    feed.subscribe(heard)
    old, new = MemorySource("sop", {}), MemorySource("sop", {})
    with anyio.fail_after(30):
        await feed.follow([old])
        await feed.followed(["sop"])
        await old.write(Ref.parse("sop://before"), "", if_match=None)
        await heard.until(1)
        await feed.follow([new])
        await feed.followed(["sop"])
    assert feed.latest() == []
    assert feed.since(0, ["sop"]) is None, "it was not watched all the time"
    await old.write(Ref.parse("sop://old"), "", if_match=None)
    await new.write(Ref.parse("sop://new"), "", if_match=None)
    assert await heard.until(2) == ["sop://before", "sop://new"]
    with anyio.fail_after(30):
        await feed.close()


@pytest.mark.seed("B3")
async def test_the_watch_of_a_source_that_stays_goes_on_and_what_was_told_of_it_is_kept() -> None:
    """A reload that does not change a source is none for those who follow it."""
    feed, heard = ChangeFeed(clock=FrozenClock(0.0)), Heard()
    feed.subscribe(heard)
    stays, goes = Watchable(), MemorySource("doc", {})
    with anyio.fail_after(30):
        await feed.follow([stays, goes])
        await feed.followed(["sop", "doc"])
        feed.publish(change("sop://1"))
        await goes.write(Ref.parse("doc://1"), "", if_match=None)
        await heard.until(2)
        for _ in range(3):
            await feed.follow([stays])
        assert (len(stays.scopes), stays.closed) == (1, 0), "watched once, and still"
        assert [str(one.ref) for one in feed.latest()] == ["sop://1"]
        await feed.close()
