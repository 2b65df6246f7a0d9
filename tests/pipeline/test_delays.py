"""What is hidden and what is not there are answered at the same times after they were asked for (B2, O13)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.pipeline.test_absent import HIDES, NAMED, WAYS
from tests.pipeline.test_policy import ALL, BRAND, House, call_of, rule, sops

from octavo.core.errors import Forbidden, NotFound, OctavoError, SourceUnavailable
from octavo.core.values import Call, Op, Page
from octavo.pipeline.policy.hiding.delays import FIRST, LAST, Ticks, sleep_exactly, tick
from octavo.sources.memory import MemorySource

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O13", "B2")]


class Waiting:
    """Ticks for a call that came at 100, of which it is `taken` seconds later; and for how long they wait."""

    def __init__(self, *rules: Any) -> None:
        self.now, self.slept = 100.0, list[float]()
        self.ticks = Ticks(rules, now=lambda: self.now, sleep=self._sleep)
        self.call = call_of(BRAND, "read", "sop://hr/pay")
        self.call.trail.begun = 100.0

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def after(self, taken: float, reply: object, call: Call | None = None) -> float | None:
        """When the answer left, counted from when the call came; None where it did not wait."""

        async def given() -> object:
            if isinstance(reply, OctavoError):
                raise reply
            return reply

        self.now = 100.0 + taken
        self.slept.clear()
        try:
            await self.ticks.evenly(call or self.call, given())
        except OctavoError as error:
            assert error is reply
        return taken + self.slept[0] if self.slept else None


NOTHING_THERE = NotFound("Resource not found: sop://hr/pay")


@pytest.mark.parametrize("reply", [NOTHING_THERE, Forbidden("no"), Page(())], ids=["absent", "refused", "nothing"])
async def test_however_long_it_took_it_leaves_at_a_tick(reply: object) -> None:
    waiting = Waiting(HIDES)
    for taken in (0.0, 0.0004, 0.0012, 0.0079):
        assert await waiting.after(taken, reply) == pytest.approx(FIRST)
    for taken in (0.0081, 0.012, 0.0159):
        assert await waiting.after(taken, reply) == pytest.approx(2 * FIRST)


async def test_ticks_are_few_and_a_slow_call_waits_no_longer_than_a_second() -> None:
    assert len({tick(taken / 1000) for taken in range(1000)}) == 8
    for taken in (0.5, 1.0, 1.1, 7.3, 60.0):
        assert 0 <= tick(taken) - taken <= LAST


async def test_what_is_given_never_waits_nor_does_an_outage() -> None:
    waiting = Waiting(HIDES)
    for reply in ("text", Page((object(),)), SourceUnavailable("down")):
        assert await waiting.after(0.001, reply) is None


async def test_only_callers_wait_from_whom_something_is_hidden() -> None:
    assert await Waiting(rule("agent-ops", "*", "sop://hr/*", deny=True, hide=True)).after(0.001, NOTHING_THERE) is None
    assert await Waiting(rule("*", "*", "sop://hr/*", deny=True)).after(0.001, NOTHING_THERE) is None
    by_role = rule("role:marketing", "read", "sop://hr/*", deny=True, hide=True)
    assert await Waiting(by_role).after(0.001, NOTHING_THERE) == pytest.approx(FIRST)


async def test_the_whole_waits_for_its_parts_once() -> None:
    waiting = Waiting(HIDES)
    tool = call_of(BRAND, "invoke", "tool://read")
    tool.trail.begun = 100.0
    part = tool.child("read", waiting.call.ref)
    assert await waiting.after(0.001, NOTHING_THERE, part) is None
    assert await waiting.after(0.002, "told in words", tool) == pytest.approx(FIRST)


async def test_who_cancels_need_not_wait() -> None:
    call = call_of(BRAND, "read", "sop://hr/pay")
    waiting = asyncio.ensure_future(Ticks([HIDES], sleep=lambda _: asyncio.Event().wait()).refuse(call, NOTHING_THERE))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_sleep_is_never_too_short() -> None:
    loop = asyncio.get_running_loop()
    for seconds in (0.0, 0.0005, 0.004):
        begun = loop.time()
        await sleep_exactly(seconds)
        assert loop.time() - begun >= seconds


async def missed(house: House, op: Op, uri: str, given: dict[str, Any]) -> bool:
    call = call_of(BRAND, op, uri, **given)
    try:
        reply = house.policy(call, house._next)
        await reply
    except OctavoError:
        pass
    return call.trail.missed


FURTHER: list[tuple[Op, dict[str, Any]]] = [("invoke", {}), ("render", {})]


@pytest.mark.parametrize(("op", "given"), [*WAYS, *FURTHER], ids=[*NAMED, "invoke", "render"])
async def test_hidden_and_absent_wait_in_every_way_to_ask(op: Op, given: dict[str, Any]) -> None:
    house = sops(ALL, HIDES, rule("*", "*", "tool://undo", "prompt://secret", deny=True, hide=True))
    names = {"invoke": ("tool://undo", "tool://udno"), "render": ("prompt://secret", "prompt://absent")}
    for uri in names.get(op, ("sop://hr/pay", "sop://rh/pay")):
        assert await missed(house, op, uri, given), uri


async def test_what_is_there_is_given_at_once() -> None:
    house = House([ALL, HIDES], MemorySource("sop", {"brand/guide": "guide", "hr/pay": "pay"}))
    looks: tuple[Op, ...] = ("read", "stat", "list")
    for op in looks:
        assert not await missed(house, op, "sop://brand/guide", {}), op
