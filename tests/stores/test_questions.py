"""Questions that wait for somebody: asked once, answered once, used once."""

from __future__ import annotations

import pytest
from tests.stores.stored import made, opens

from octavo.core.clock import FrozenClock
from octavo.core.errors import Conflict, InvalidParams, NotFound, RateLimited
from octavo.core.forms import Answer, form
from octavo.core.ports.stores import Opens
from octavo.stores.questions import StoredQuestions
from octavo.stores.waiting import MOST_OF_ONE

__all__ = ["made", "opens"]

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T5")]

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
def file(opens: Opens, steps: list[str], clock: FrozenClock) -> StoredQuestions:
    return StoredQuestions(opens, lambda step, asked: steps.append(step), clock=clock)


async def ask(file: StoredQuestions, request: str = "r", who: str = "kim") -> str:
    return (await file.ask(who, "ask_user", FORM, request, seconds=60)).id


async def test_a_question_stands_until_it_is_answered_and_its_answer_is_used_once(
    file: StoredQuestions, steps: list[str], opens: Opens
) -> None:
    name = await ask(file)
    assert await ask(file) == name and await file.take("r") is None
    other = StoredQuestions(opens, lambda step, asked: None, clock=FrozenClock())
    assert [one.id for one in await other.standing()] == [name]
    await other.answer(name, "lee", BLUE)
    assert await file.take("r") == BLUE and await file.take("r") is None
    assert steps == ["asked", "used"]


async def test_what_does_not_fit_or_comes_twice_or_too_late_is_refused(
    file: StoredQuestions, clock: FrozenClock
) -> None:
    name = await ask(file)
    with pytest.raises(InvalidParams):
        await file.answer(name, "lee", Answer("accept", {"other": 1}))
    await file.answer(name, "lee", BLUE)
    with pytest.raises(Conflict):
        await file.answer(name, "lee", BLUE)
    clock.advance(61)
    assert await file.take("r") is None
    with pytest.raises(NotFound):
        await file.answer(name, "lee", BLUE)


async def test_nobody_asks_more_than_he_may(file: StoredQuestions) -> None:
    for number in range(MOST_OF_ONE):
        await ask(file, str(number))
    with pytest.raises(RateLimited):
        await ask(file, "one more")
    await ask(file, "another's", "lee")


async def test_a_notice_that_was_seen_is_gone(file: StoredQuestions) -> None:
    name = (await file.ask("kim", "notify", NOTICE, "n", seconds=60)).id
    await file.answer(name, "lee", Answer("accept"))
    assert not await file.standing()


async def test_what_cannot_be_read_answers_nothing_and_stays(file: StoredQuestions, opens: Opens) -> None:
    name = await ask(file)
    keys = (await opens()).keys
    await keys.set(f"questions/{name}", b"{")
    assert not await file.standing() and await file.take("r") is None
    assert await ask(file) != name
    assert await keys.get(f"questions/{name}") == b"{"


async def test_what_has_expired_leaves_nothing_behind(file: StoredQuestions, opens: Opens, clock: FrozenClock) -> None:
    await ask(file)
    clock.advance(61)
    await ask(file, "another")
    assert len(await (await opens()).keys.scan("questions/")) == 1
