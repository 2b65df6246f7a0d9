"""Questions that wait for somebody: asked once, answered once, used once."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.core.clock import FrozenClock
from octavo.core.errors import Conflict, InvalidParams, NotFound, RateLimited, SourceUnavailable
from octavo.core.forms import Answer, form
from octavo.stores import waiting
from octavo.stores.questions import QuestionFile
from octavo.stores.waiting import MOST_OF_ONE

pytestmark = pytest.mark.seed("T5")

FORM = form("Which?", {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]})
NOTICE = form("Done.", {"type": "object", "properties": {}})
BLUE = Answer("accept", {"answer": "blue"})


@pytest.fixture
def steps() -> list[str]:
    return []


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def file(tmp_path: Path, steps: list[str], clock: FrozenClock) -> QuestionFile:
    return QuestionFile(tmp_path, lambda step, asked: steps.append(step), clock=clock)


def ask(file: QuestionFile, request: str = "r", who: str = "kim") -> str:
    return file.ask(who, "ask_user", FORM, request, seconds=60).id


def test_a_question_stands_until_it_is_answered_and_its_answer_is_used_once(
    file: QuestionFile, steps: list[str], tmp_path: Path
) -> None:
    name = ask(file)
    assert ask(file) == name and file.take("r") is None
    other = QuestionFile(tmp_path, lambda step, asked: None, clock=FrozenClock())
    assert [one.id for one in other.standing()] == [name]
    other.answer(name, "lee", BLUE)
    assert file.take("r") == BLUE and file.take("r") is None
    assert steps == ["asked", "used"]
    assert (tmp_path / "questions.json").stat().st_mode & 0o777 == 0o600


def test_what_does_not_fit_or_comes_twice_or_too_late_is_refused(file: QuestionFile, clock: FrozenClock) -> None:
    name = ask(file)
    with pytest.raises(InvalidParams):
        file.answer(name, "lee", Answer("accept", {"other": 1}))
    file.answer(name, "lee", BLUE)
    with pytest.raises(Conflict):
        file.answer(name, "lee", BLUE)
    clock.advance(61)
    assert file.take("r") is None
    with pytest.raises(NotFound):
        file.answer(name, "lee", BLUE)


def test_nobody_asks_more_than_he_may(file: QuestionFile) -> None:
    for number in range(MOST_OF_ONE):
        ask(file, str(number))
    with pytest.raises(RateLimited):
        ask(file, "one more")
    ask(file, "another's", "lee")


def test_nothing_is_written_that_could_not_be_read_again(file: QuestionFile, monkeypatch: pytest.MonkeyPatch) -> None:
    name = ask(file)
    monkeypatch.setattr(waiting, "MAX_BYTES", 500)
    with pytest.raises(SourceUnavailable, match="wait until"):
        for number in range(10):
            ask(file, str(number))
    assert file.standing()[0].id == name


def test_a_notice_that_was_seen_is_gone(file: QuestionFile) -> None:
    name = file.ask("kim", "notify", NOTICE, "n", seconds=60).id
    file.answer(name, "lee", Answer("accept"))
    assert not file.standing()


def test_a_damaged_file_answers_nothing_and_stays(file: QuestionFile, tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_bytes(b"{")
    with pytest.raises(SourceUnavailable):
        ask(file)
    assert (tmp_path / "questions.json").read_bytes() == b"{"
