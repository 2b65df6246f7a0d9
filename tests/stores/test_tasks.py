"""Tasks that survive their process: kept, found, ended once, expired, taken over, and of use to their owner alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.stores.task_files import closed, task_file

from octavo.core.clock import FrozenClock
from octavo.core.errors import RateLimited
from octavo.core.tasks import Ended, StoredTask, Task
from octavo.core.values import Principal
from octavo.stores.tasks import NAME

__all__ = ["closed"]

pytestmark = pytest.mark.seed("T9")

DONE = Ended("completed", b'{"content":[]}')


def kept(name: str, who: str = "kim", *, clock: FrozenClock, ttl: float = 60.0, resumes: bool = False) -> StoredTask:
    now = clock.wall()
    task = Task(id=name, who=who, tool="work", status="working", created=now, updated=now, ttl=ttl)
    return StoredTask(
        task=task, principal=Principal(who, frozenset({"a", "b"}), "key"), arguments={"n": 1} if resumes else None
    )


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path


def test_a_task_is_found_by_its_owner_until_it_expires(state: Path, clock: FrozenClock) -> None:
    file = task_file(state, clock=clock)
    file.add(kept("one", clock=clock), most=10)
    found = task_file(state, clock=clock).find("kim", "one")
    assert found is not None and found.status == "working"
    assert file.find("lee", "one") is None and file.find("kim", "two") is None
    clock.advance(59.9)
    assert file.find("kim", "one") is not None
    clock.advance(0.2)
    assert file.find("kim", "one") is None
    assert (state / NAME).stat().st_mode & 0o777 == 0o600


def test_a_task_ends_once(state: Path, clock: FrozenClock) -> None:
    file = task_file(state, clock=clock)
    file.add(kept("one", clock=clock), most=10)
    ended = file.end("one", DONE)
    assert ended is not None and (ended.status, ended.outcome) == ("completed", DONE.outcome)
    assert file.end("one", Ended("failed", b"{}")) is None
    assert file.find("kim", "one") == ended


def test_nobody_keeps_more_than_he_may(state: Path, clock: FrozenClock) -> None:
    file = task_file(state, clock=clock)
    file.add(kept("one", clock=clock), most=2)
    file.add(kept("two", clock=clock), most=2)
    with pytest.raises(RateLimited) as refused:
        file.add(kept("three", clock=clock), most=2)
    assert 0 < refused.value.retry_after <= 60
    file.add(kept("other", "lee", clock=clock), most=2)
    clock.advance(61)
    file.add(kept("three", clock=clock), most=2)


def test_what_a_dead_process_left_is_taken_over_once(state: Path, clock: FrozenClock) -> None:
    dead, living = task_file(state, clock=clock), task_file(state, clock=clock)
    dead.add(kept("left", clock=clock, resumes=True), most=10)
    dead.add(kept("ended", clock=clock), most=10)
    dead.end("ended", DONE)
    living.add(kept("mine", clock=clock), most=10)
    dead.close()  # the kernel does the same for one that is killed
    third = task_file(state, clock=clock)
    (left,) = third.take_over()
    assert left.task.id == "left" and left.arguments == {"n": 1}
    assert left.principal == Principal("kim", frozenset({"a", "b"}), "key")
    assert third.take_over() == []
    assert len(list(state.glob("tasks-*.lock"))) == 2  # of the two that live


def test_the_arguments_of_a_task_are_gone_with_its_end(state: Path, clock: FrozenClock) -> None:
    file = task_file(state, clock=clock)
    file.add(kept("one", clock=clock, resumes=True), most=10)
    file.end("one", DONE)
    file.close()
    with sqlite3.connect(state / NAME) as database:
        assert database.execute("SELECT arguments FROM tasks").fetchall() == [(None,)]


def test_a_damaged_file_is_set_aside(state: Path, clock: FrozenClock, caplog: pytest.LogCaptureFixture) -> None:
    (state / NAME).write_bytes(b"no database at all" * 100)
    file = task_file(state, clock=clock)
    assert file.find("kim", "one") is None
    file.add(kept("one", clock=clock), most=10)
    assert file.find("kim", "one") is not None
    assert len(list(state.glob(f"{NAME}.damaged-*"))) == 1 and "damaged" in caplog.text


def test_without_a_state_directory_tasks_are_kept_in_memory(clock: FrozenClock) -> None:
    file = task_file(None, clock=clock)
    file.add(kept("one", clock=clock), most=10)
    assert file.end("one", DONE) is not None and file.find("kim", "one") is not None
    assert file.take_over() == []
