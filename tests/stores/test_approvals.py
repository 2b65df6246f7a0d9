"""Where questions for humans and their answers are kept: used once, not too late, not twice, by one process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from tests.stores.stored import given, made, opens

from octavo.core.approval import Approval, Step, Wanted
from octavo.core.clock import FrozenClock
from octavo.core.errors import Conflict, NotFound, RateLimited
from octavo.core.ports.stores import Opens
from octavo.stores.approvals import StoredApprovals
from octavo.stores.sqlite import SQLiteStore
from octavo.stores.waiting import MOST_OF_ONE

__all__ = ["made", "opens"]

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T5")]

Steps = list[tuple[Step, str]]


class Desk:
    def __init__(self, opens: Opens) -> None:
        self.clock, self.steps = FrozenClock(), Steps()
        self.file = StoredApprovals(opens, self._told, clock=self.clock)

    def _told(self, step: Step, approval: Approval, person: str) -> None:
        self.steps.append((step, person))

    async def ask(self, request: str = "r", versions: str = "v", people: int = 1, who: str = "agent") -> Approval:
        wanted = Wanted(
            who=who, act="invoke tool://wipe", rule="policy[0]", people=people, request=request, versions=versions
        )
        return await self.file.ask(wanted, seconds=600)


@pytest.fixture
def dispatch(opens: Opens) -> Desk:
    return Desk(opens)


async def test_what_is_allowed_counts_once(dispatch: Desk) -> None:
    name = (await dispatch.ask()).id
    assert not await dispatch.file.use(name)
    assert (await dispatch.file.answer(name, "kim", allow=True)).state == "allowed"
    assert (await dispatch.ask()).id == name
    assert await dispatch.file.use(name)
    assert not await dispatch.file.use(name)
    assert (await dispatch.ask()).id != name
    assert dispatch.steps == [("asked", ""), ("allowed", "kim"), ("used", ""), ("asked", "")]


async def test_what_was_answered_cannot_be_answered_again(dispatch: Desk) -> None:
    name = (await dispatch.ask()).id
    await dispatch.file.answer(name, "kim", allow=False)
    for allow in (True, False):
        with pytest.raises(Conflict, match="was denied by kim already"):
            await dispatch.file.answer(name, "lee", allow=allow)
    assert (await dispatch.ask()).denied == "kim" and not await dispatch.file.use(name)


async def test_an_answer_that_comes_too_late_is_none(dispatch: Desk) -> None:
    name = (await dispatch.ask()).id
    dispatch.clock.advance(600)
    with pytest.raises(NotFound, match="has expired"):
        await dispatch.file.answer(name, "kim", allow=True)
    assert dispatch.steps == [("asked", ""), ("expired", "")]
    assert (await dispatch.ask()).id != name


async def test_an_answer_counts_as_long_as_a_question_stands(dispatch: Desk) -> None:
    name = (await dispatch.ask()).id
    dispatch.clock.advance(599)
    await dispatch.file.answer(name, "kim", allow=True)
    dispatch.clock.advance(599)
    assert [one.id for one in await dispatch.file.standing()] == [name]
    dispatch.clock.advance(1)
    assert not await dispatch.file.use(name)
    assert not await dispatch.file.standing()


async def test_a_clock_that_is_set_back_makes_nothing_last_longer(dispatch: Desk) -> None:
    name = (await dispatch.ask()).id
    await dispatch.file.answer(name, "kim", allow=True)
    dispatch.clock.advance(-3600)
    assert not await dispatch.file.use(name)


async def test_two_people_are_two_people(dispatch: Desk) -> None:
    name = (await dispatch.ask(people=2)).id
    assert (await dispatch.file.answer(name, "kim", allow=True)).state == "pending"
    with pytest.raises(Conflict, match="another person"):
        await dispatch.file.answer(name, "kim", allow=True)
    assert not await dispatch.file.use(name)
    assert (await dispatch.file.answer(name, "lee", allow=True)).state == "allowed"
    assert await dispatch.file.use(name)


async def test_a_rule_that_wants_more_people_wants_them_for_what_stands_too(dispatch: Desk) -> None:
    name = (await dispatch.ask()).id
    await dispatch.file.answer(name, "kim", allow=True)
    assert ((await dispatch.ask(people=2)).id, (await dispatch.ask(people=2)).state) == (name, "pending")
    assert not await dispatch.file.use(name)
    await dispatch.file.answer(name, "lee", allow=True)
    assert await dispatch.file.use(name)


async def test_what_has_changed_meanwhile_is_asked_for_anew(dispatch: Desk) -> None:
    name = (await dispatch.ask()).id
    await dispatch.file.answer(name, "kim", allow=True)
    fresh = await dispatch.ask(versions="other")
    assert fresh.id != name and not fresh.allowed
    assert not await dispatch.file.use(name)
    assert ("outdated", "") in dispatch.steps


async def test_one_principal_cannot_flood_the_humans(dispatch: Desk) -> None:
    for number in range(MOST_OF_ONE):
        await dispatch.ask(request=str(number))
    with pytest.raises(RateLimited) as caught:
        await dispatch.ask(request="one more")
    assert caught.value.retry_after == 600
    assert await dispatch.ask(request="of another", who="other")


async def test_what_cannot_be_read_approves_nothing_and_is_left_alone(opens: Opens) -> None:
    dispatch = Desk(opens)
    name = (await dispatch.ask()).id
    keys = (await opens()).keys
    await keys.set(f"approvals/{name}", b"{")
    assert not await dispatch.file.standing() and not await dispatch.file.use(name)
    assert (await dispatch.ask()).id != name
    assert await keys.get(f"approvals/{name}") == b"{"


async def test_a_step_that_cannot_be_recorded_has_not_happened(opens: Opens) -> None:
    name = (await Desk(opens).ask()).id

    def full(step: Step, approval: Approval, person: str) -> None:
        raise OSError("the audit log is full")

    refusing = StoredApprovals(opens, full, clock=FrozenClock())
    with pytest.raises(OSError, match="full"):
        await refusing.answer(name, "kim", allow=True)
    assert (await Desk(opens).file.named(name)).state == "pending"


RACE = """
import asyncio, sys
from tests.stores.stored import given
from octavo.stores.approvals import StoredApprovals
from octavo.stores.sqlite import SQLiteStore

async def main():
    async with SQLiteStore(__import__("pathlib").Path(sys.argv[1])) as store:
        approvals = StoredApprovals(given(store), lambda *_: None)
        print("ready", flush=True)
        sys.stdin.readline()
        print(sum([await approvals.use(name) for name in sys.argv[2:]]))

asyncio.run(main())
"""


async def test_of_processes_that_race_for_an_approval_one_gets_it(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path) as store:
        approvals = StoredApprovals(given(store), lambda *_: None)
        names = []
        for number in range(20):
            wanted = Wanted(who="agent", act="invoke tool://wipe", rule="r", request=str(number), versions="")
            names.append((await approvals.ask(wanted, seconds=600)).id)
            await approvals.answer(names[-1], "kim", allow=True)
        assert await anyio.to_thread.run_sync(_race, tmp_path, names) == len(names)
        assert not await approvals.standing()


def _race(folder: Path, names: list[str]) -> int:
    """How many uses several processes had of them."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(folder), *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        for _ in range(3)
    ]
    for racer in racers:
        assert racer.stdout is not None and racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    return sum(int(racer.communicate(timeout=60)[0]) for racer in racers)
