"""Tasks that survive their process: kept, found, ended once, expired, taken over, and of use to their owner alone."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.stores.stored import Opening, given, made, opens

from octavo.core.clock import FrozenClock
from octavo.core.errors import RateLimited
from octavo.core.ports.stores import Opens
from octavo.core.tasks import Ended, StoredTask, Task
from octavo.core.values import Principal
from octavo.stores.presence import InFolder, InStore, Presence
from octavo.stores.tasks import StoredTasks

__all__ = ["made", "opens"]

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T9")]

DONE = Ended("completed", b'{"content":[]}')


class Process:
    """One of several on the same store."""

    def __init__(self, opens: Opens, presence: Presence, clock: FrozenClock) -> None:
        self.presence = presence
        self.tasks = StoredTasks(opens, presence, clock=clock)


class Processes:
    def __init__(self, opens: Opens, folder: Path | None, clock: FrozenClock) -> None:
        self._opens, self._folder, self._clock = opens, folder, clock
        self.begun: list[Process] = []

    def another(self) -> StoredTasks:
        presence = InStore(self._opens) if self._folder is None else InFolder(self._folder)
        self.begun.append(Process(self._opens, presence, self._clock))
        return self.begun[-1].tasks


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def processes(
    opens: Opens, clock: FrozenClock, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Processes]:
    """Those of a folder know each other by locks, those of a database by leases."""
    found = Processes(opens, tmp_path if "sqlite" in request.node.name else None, clock)
    yield found
    for one in found.begun:
        await one.tasks.close()


def kept(name: str, who: str = "kim", *, clock: FrozenClock, ttl: float = 60.0, resumes: bool = False) -> StoredTask:
    now = clock.wall()
    task = Task(id=name, who=who, tool="work", status="working", created=now, updated=now, ttl=ttl)
    return StoredTask(
        task=task, principal=Principal(who, frozenset({"a", "b"}), "key"), arguments={"n": 1} if resumes else None
    )


async def test_a_task_is_found_by_its_owner_until_it_expires(processes: Processes, clock: FrozenClock) -> None:
    tasks = processes.another()
    await tasks.add(kept("one", clock=clock), most=10)
    found = await processes.another().find("kim", "one")
    assert found is not None and found.status == "working"
    assert await tasks.find("lee", "one") is None and await tasks.find("kim", "two") is None
    clock.advance(59.9)
    assert await tasks.find("kim", "one") is not None
    clock.advance(0.2)
    assert await tasks.find("kim", "one") is None


async def test_a_task_ends_once(processes: Processes, clock: FrozenClock) -> None:
    tasks, one = processes.another(), kept("one", clock=clock)
    await tasks.add(one, most=10)
    ended = await tasks.end(one.task, DONE)
    assert ended is not None and (ended.status, ended.outcome) == ("completed", DONE.outcome)
    assert await tasks.end(one.task, Ended("failed", b"{}")) is None
    assert await tasks.find("kim", "one") == ended


async def test_nobody_keeps_more_than_he_may(processes: Processes, clock: FrozenClock) -> None:
    tasks = processes.another()
    await tasks.add(kept("one", clock=clock), most=2)
    await tasks.add(kept("two", clock=clock), most=2)
    with pytest.raises(RateLimited) as refused:
        await tasks.add(kept("three", clock=clock), most=2)
    assert 0 < refused.value.retry_after <= 60
    await tasks.add(kept("other", "lee", clock=clock), most=2)
    clock.advance(61)
    await tasks.add(kept("three", clock=clock), most=2)


async def test_what_a_dead_process_left_is_taken_over_once(processes: Processes, clock: FrozenClock) -> None:
    dead, living = processes.another(), processes.another()
    left, ended = kept("left", clock=clock, resumes=True), kept("ended", clock=clock)
    await dead.add(left, most=10)
    await dead.add(ended, most=10)
    await dead.end(ended.task, DONE)
    await living.add(kept("mine", clock=clock), most=10)
    await dead.close()  # the kernel does the same for one that is killed, and the end of a lease
    third = processes.another()
    (taken,) = await third.take_over()
    assert taken.task.id == "left" and taken.arguments == {"n": 1}
    assert taken.principal == Principal("kim", frozenset({"a", "b"}), "key")
    assert await third.take_over() == [] and await living.take_over() == []
    assert await dead.end(left.task, DONE) is None, "one that was thought dead ends nothing any more"
    assert await third.end(left.task, DONE) is not None


async def test_the_arguments_of_a_task_are_gone_with_its_end(
    processes: Processes, opens: Opens, clock: FrozenClock
) -> None:
    tasks, one = processes.another(), kept("one", clock=clock, resumes=True)
    await tasks.add(one, most=10)
    await tasks.end(one.task, DONE)
    pairs = await (await opens()).keys.scan("tasks")
    assert len(pairs) == 2 and all(b'"n"' not in value for _, value in pairs)


async def test_what_cannot_be_read_is_no_task(processes: Processes, opens: Opens, clock: FrozenClock) -> None:
    tasks = processes.another()
    await tasks.add(kept("one", clock=clock), most=1)
    keys = (await opens()).keys
    (pair,) = await keys.scan("tasks/")
    await keys.set(pair.key, b"{")
    assert await tasks.find("kim", "one") is None and await processes.another().take_over() == []
    await tasks.add(kept("two", clock=clock), most=1)


async def test_a_lease_that_was_not_renewed_makes_a_process_dead(made: Opening) -> None:
    async with made() as store:
        one, other = InStore(given(store), ttl=1.0), InStore(given(store))
        await one.begin()
        assert await other.lives(one.name)
        await one.close()
        assert not await other.lives(one.name)


async def test_the_locks_of_the_dead_are_cleared_away(tmp_path: Path) -> None:
    one, other, third = InFolder(tmp_path), InFolder(tmp_path), InFolder(tmp_path)
    await one.begin()
    await other.begin()
    assert await one.lives(other.name) and await other.lives(one.name)
    (tmp_path / "process-1-ff.lock").touch()
    await third.begin()
    await one.close()
    assert not await other.lives(one.name)
    assert len([name for name in os.listdir(tmp_path) if name.startswith("process-")]) == 2
    await other.close()
    await third.close()
