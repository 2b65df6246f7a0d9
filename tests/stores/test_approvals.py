"""Where questions for humans and their answers are kept: used once, not too late, not twice, by one process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from octavo.core.approval import Approval, Step, Wanted
from octavo.core.clock import FrozenClock
from octavo.core.errors import Conflict, NotFound, RateLimited, SourceUnavailable
from octavo.stores.approvals import ApprovalFile
from octavo.stores.waiting import MOST_OF_ONE

pytestmark = pytest.mark.seed("T5")

Steps = list[tuple[Step, str]]


class Desk:
    def __init__(self, path: Path | None) -> None:
        self.clock, self.steps = FrozenClock(), Steps()
        self.file = ApprovalFile(path, self._told, clock=self.clock)

    def _told(self, step: Step, approval: Approval, person: str) -> None:
        self.steps.append((step, person))

    def ask(self, request: str = "r", versions: str = "v", people: int = 1, who: str = "agent") -> Approval:
        wanted = Wanted(
            who=who, act="invoke tool://wipe", rule="policy[0]", people=people, request=request, versions=versions
        )
        return self.file.ask(wanted, seconds=600)


@pytest.fixture(params=["on disk", "in memory"])
def dispatch(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    return Desk(tmp_path if request.param == "on disk" else None)


def test_what_is_allowed_counts_once(dispatch: Desk) -> None:
    name = dispatch.ask().id
    assert not dispatch.file.use(name)
    assert dispatch.file.answer(name, "kim", allow=True).state == "allowed"
    assert dispatch.ask().id == name
    assert dispatch.file.use(name)
    assert not dispatch.file.use(name)
    assert dispatch.ask().id != name
    assert dispatch.steps == [("asked", ""), ("allowed", "kim"), ("used", ""), ("asked", "")]


def test_what_was_answered_cannot_be_answered_again(dispatch: Desk) -> None:
    name = dispatch.ask().id
    dispatch.file.answer(name, "kim", allow=False)
    for allow in (True, False):
        with pytest.raises(Conflict, match="was denied by kim already"):
            dispatch.file.answer(name, "lee", allow=allow)
    assert dispatch.ask().denied == "kim" and not dispatch.file.use(name)


def test_an_answer_that_comes_too_late_is_none(dispatch: Desk) -> None:
    name = dispatch.ask().id
    dispatch.clock.advance(600)
    with pytest.raises(NotFound, match="has expired"):
        dispatch.file.answer(name, "kim", allow=True)
    assert dispatch.steps == [("asked", ""), ("expired", "")]
    assert dispatch.ask().id != name


def test_an_answer_counts_as_long_as_a_question_stands(dispatch: Desk) -> None:
    name = dispatch.ask().id
    dispatch.clock.advance(599)
    dispatch.file.answer(name, "kim", allow=True)
    dispatch.clock.advance(599)
    assert [one.id for one in dispatch.file.standing()] == [name]
    dispatch.clock.advance(1)
    assert not dispatch.file.use(name)
    assert not dispatch.file.standing()


def test_a_clock_that_is_set_back_makes_nothing_last_longer(dispatch: Desk) -> None:
    name = dispatch.ask().id
    dispatch.file.answer(name, "kim", allow=True)
    dispatch.clock.advance(-3600)
    assert not dispatch.file.use(name)


def test_two_people_are_two_people(dispatch: Desk) -> None:
    name = dispatch.ask(people=2).id
    assert dispatch.file.answer(name, "kim", allow=True).state == "pending"
    with pytest.raises(Conflict, match="another person"):
        dispatch.file.answer(name, "kim", allow=True)
    assert not dispatch.file.use(name)
    assert dispatch.file.answer(name, "lee", allow=True).state == "allowed"
    assert dispatch.file.use(name)


def test_a_rule_that_wants_more_people_wants_them_for_what_stands_too(dispatch: Desk) -> None:
    name = dispatch.ask().id
    dispatch.file.answer(name, "kim", allow=True)
    assert (dispatch.ask(people=2).id, dispatch.ask(people=2).state) == (name, "pending")
    assert not dispatch.file.use(name)
    dispatch.file.answer(name, "lee", allow=True)
    assert dispatch.file.use(name)


def test_what_has_changed_meanwhile_is_asked_for_anew(dispatch: Desk) -> None:
    name = dispatch.ask().id
    dispatch.file.answer(name, "kim", allow=True)
    fresh = dispatch.ask(versions="other")
    assert fresh.id != name and not fresh.allowed
    assert not dispatch.file.use(name)
    assert ("outdated", "") in dispatch.steps


def test_one_principal_cannot_flood_the_humans(dispatch: Desk) -> None:
    for number in range(MOST_OF_ONE):
        dispatch.ask(request=str(number))
    with pytest.raises(RateLimited) as caught:
        dispatch.ask(request="one more")
    assert caught.value.retry_after == 600
    assert dispatch.ask(request="of another", who="other")


def test_a_damaged_file_approves_nothing_and_is_left_alone(tmp_path: Path) -> None:
    dispatch = Desk(tmp_path)
    name = dispatch.ask().id
    (tmp_path / "approvals.json").write_text("{", encoding="utf-8")
    for act in (dispatch.ask, dispatch.file.standing, lambda: dispatch.file.use(name)):
        with pytest.raises(SourceUnavailable, match="damaged"):
            act()
    assert (tmp_path / "approvals.json").read_text(encoding="utf-8") == "{"


def test_only_its_owner_can_read_the_file(tmp_path: Path) -> None:
    Desk(tmp_path).ask()
    assert (tmp_path / "approvals.json").stat().st_mode & 0o077 == 0
    assert json.loads((tmp_path / "approvals.json").read_text(encoding="utf-8"))["version"] == 1


RACE = """
import sys
from pathlib import Path
from octavo.stores.approvals import ApprovalFile

file = ApprovalFile(Path(sys.argv[1]), lambda *_: None)
print("ready", flush=True)
sys.stdin.readline()
print(sum(file.use(name) for name in sys.argv[2:]))
"""


def test_of_processes_that_race_for_an_approval_one_gets_it(tmp_path: Path) -> None:
    file = ApprovalFile(tmp_path, lambda *_: None)
    names = []
    for number in range(20):
        wanted = Wanted(who="agent", act="invoke tool://wipe", rule="r", request=str(number), versions="")
        names.append(file.ask(wanted, seconds=600).id)
        file.answer(names[-1], "kim", allow=True)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(tmp_path), *names],
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
    assert sum(int(racer.communicate(timeout=60)[0]) for racer in racers) == len(names)
    assert not file.standing()
