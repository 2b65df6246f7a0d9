"""Calls that last: what becomes a task and what does not, what it may, how it ends, and what a restart makes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.stores.stored import given

from octavo.core.approval import ApprovalQuestion
from octavo.core.arguments import AnswerArguments, OwnArguments, TaskArguments
from octavo.core.errors import Conflict, InvalidParams, RateLimited, Unauthenticated
from octavo.core.forms import Answer, Form, form
from octavo.core.ports.stores import Store
from octavo.core.ref import Ref
from octavo.core.tasks import Ended, Lost, Task
from octavo.core.tools import Hints, ToolInfo
from octavo.core.values import Call, Principal, Trail
from octavo.stores.memory import MemoryStore
from octavo.stores.presence import InFolder, InStore, Presence
from octavo.stores.sqlite import SQLiteStore
from octavo.stores.tasks import StoredTasks
from octavo.tools import tasks
from octavo.tools.tasks import LOOK, Bounds, LongWork, TaskContext

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T9")]

HINTS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
SOON = Bounds(after=0.01)
NAME = form("Who?", {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})


class Client:
    """Waits for a call, and shows forms."""

    lasts, waits, wire, locales = True, False, None, ("ko",)

    def __init__(self, *, asks: bool = True) -> None:
        self.asks = asks
        self.heard: list[float] = []

    async def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        self.heard.append(value)

    async def ask(self, wanted: Form) -> Answer | None:
        raise AssertionError("the task asks, not the call")

    async def approve(self, question: ApprovalQuestion) -> Any:
        raise AssertionError("the task asks, not the call")


class World:
    """Work that goes on until it is told how to end."""

    def __init__(
        self,
        store: Store | None = None,
        presence: Presence | None = None,
        *,
        bounds: Bounds = SOON,
        resumes: bool = False,
        look: float = LOOK,
    ) -> None:
        self.info = ToolInfo(
            name="work", description="x", input_schema={"type": "object"}, hints=HINTS, task="may", resumes=resumes
        )
        self.known = True
        self.told: list[Task] = []
        self.begun: list[Call] = []
        self.ended: asyncio.Event = asyncio.Event()
        self.act: Callable[[Call], Awaitable[Any]] = self._until_told
        self.works = TaskContext(
            ask=self._ask, tool=lambda name: self.info if name == "work" else None, bounds=bounds, known=self._known,
            at_work=set(),
        )  # fmt: skip
        kept = StoredTasks(given(store or MemoryStore()), presence or InFolder(None))
        self.long = LongWork(kept, lambda: self.works, look=look)
        self.long.speaks = self._speaks
        self.long.on_change(self._heard)
        self._news = asyncio.Condition()

    async def begin(self, client: Client | None = None, who: str = "kim") -> Any:
        return await self.long.begin(self.call(client, who), self.works)

    def call(self, client: Client | None = None, who: str = "kim", **arguments: Any) -> Call:
        return Call(
            "invoke",
            Ref("tool", ("work",)),
            Principal(who),
            Trail(),
            "tool://work",
            OwnArguments(arguments),
            channel=client,
        )

    def about(self, asked: TaskArguments, who: str = "kim") -> Call:
        return self.call(None, who)._replace(arguments=asked)

    async def poll(self, task: Task, who: str = "kim") -> Task:
        return await self.long.poll(self.about(TaskArguments(task.id), who))

    async def until(self, status: str, question: str = "") -> Task:
        def found() -> Task | None:
            fit = (one for one in self.told if one.status == status and (not question or question in one.questions))
            return next(fit, None)

        async with asyncio.timeout(20), self._news:
            await self._news.wait_for(found)
        task = found()
        assert task is not None
        return task

    def _heard(self, task: Task) -> None:
        self.told.append(task)
        self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def _ask(self, call: Call) -> Any:
        self.begun.append(call)
        return await self.act(call)

    async def _until_told(self, call: Call) -> str:
        await self.ended.wait()
        return "done"

    def _known(self, who: Principal) -> Principal:
        if not self.known:
            raise Unauthenticated("This agent is no longer known here")
        return who

    def _speaks(self, tool: str, reply: Any) -> Ended:
        if isinstance(reply, Lost):
            return Ended("failed", json.dumps({"message": str(reply)}).encode(), str(reply))
        return Ended("completed", json.dumps({"said": str(reply)}).encode())


async def test_what_ends_soon_is_no_task() -> None:
    world = World(bounds=Bounds(after=20))
    world.ended.set()
    assert await world.begin() == "done" and not world.told


async def test_what_fails_soon_is_raised() -> None:
    world = World(bounds=Bounds(after=20))

    async def fail(call: Call) -> Any:
        raise Conflict("no")

    world.act = fail
    with pytest.raises(Conflict):
        await world.begin()


async def test_the_work_is_a_child_with_the_rights_of_its_caller() -> None:
    world = World()
    task = await world.begin(Client())
    (child,) = world.begun
    assert child.channel.locales == ("ko",)
    assert child.parent is not None and child.principal == Principal("kim") and child.op == "invoke"
    world.ended.set()
    await world.until("completed")
    assert json.loads((await world.poll(task)).outcome) == {"said": "done"}
    with pytest.raises(InvalidParams):
        await world.poll(task, "lee")


async def test_a_call_that_asks_becomes_a_task_at_once_and_an_approval_is_asked_in_it() -> None:
    world = World(bounds=Bounds(after=20))

    async def asks(call: Call) -> Any:
        answer = await call.channel.ask(NAME)
        verdict = await call.channel.approve(ApprovalQuestion("May I?", "state", 10.0))
        return answer.content["name"], verdict

    world.act = asks
    task = await world.begin(Client())
    assert (await world.poll(task)).questions == {"question-1": NAME}
    fits = Answer("accept", {"name": "Kim"})
    await world.long.answer(world.about(AnswerArguments(task.id, {"question-1": Answer("accept", {}), "other": fits})))
    assert (await world.poll(task)).status == "input_required"
    await world.long.answer(world.about(AnswerArguments(task.id, {"question-1": fits})))
    assert list((await world.until("input_required", "question-2")).questions) == ["question-2"]
    allowed = Answer("accept", {"allow": True})
    await world.long.answer(world.about(AnswerArguments(task.id, {"question-2": allowed})))
    done = await world.until("completed")
    assert json.loads(done.outcome) == {"said": "('Kim', 'allow')"}


async def test_progress_goes_to_the_client_while_it_waits_and_to_the_task_afterwards() -> None:
    world, client = World(), Client()
    said, more = asyncio.Event(), asyncio.Event()

    async def tells(call: Call) -> Any:
        await call.channel.progress(1, 2)
        await world.ended.wait()
        await call.channel.progress(2, 2, "nearly")
        said.set()
        await more.wait()
        return "done"

    world.act = tells
    task = await world.begin(client)
    assert client.heard == [1]
    world.ended.set()
    await said.wait()
    assert (await world.poll(task)).message == "2 of 2: nearly"
    more.set()
    done = await world.until("completed")
    assert client.heard == [1] and not done.message


async def test_an_answer_that_is_too_large_to_be_kept_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "LARGEST", 100)
    world = World()

    async def much(call: Call) -> str:
        await world.ended.wait()
        return "x" * 200

    world.act = much
    task = await world.begin()
    world.ended.set()
    ended = await world.until("completed")
    assert b"of a task 100 are kept" in ended.outcome and (await world.poll(task)).outcome == ended.outcome


async def test_a_cancelled_task_is_stopped() -> None:
    world, stopped = World(), asyncio.Event()

    async def stops(call: Call) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    world.act = stops
    task = await world.begin()
    await world.long.cancel(world.about(TaskArguments(task.id)))
    assert (await world.until("cancelled")).id == task.id and stopped.is_set()
    await world.long.cancel(world.about(TaskArguments(task.id)))


async def test_a_caller_who_leaves_before_he_has_the_handle_stops_the_work() -> None:
    world, stopped = World(bounds=Bounds(after=20)), asyncio.Event()
    begun = asyncio.Event()

    async def stops(call: Call) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    world.act = stops
    asking = asyncio.ensure_future(world.begin())
    await begun.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert stopped.is_set() and not world.works.at_work


async def test_nobody_has_more_at_work_than_he_may() -> None:
    world = World(bounds=Bounds(after=0.01, running=2))
    await world.begin()
    await world.begin()
    with pytest.raises(RateLimited):
        await world.begin()
    await world.begin(who="lee")
    world.ended.set()


@pytest.mark.parametrize("resumes", [False, True])
async def test_what_a_process_left_is_lost_or_begun_again(tmp_path: Path, resumes: bool) -> None:
    async with SQLiteStore(tmp_path) as store:
        first = World(store, InFolder(tmp_path), resumes=resumes)
        task = await first.begin()
        await first.long.close()
        second = World(store, InFolder(tmp_path), resumes=resumes)
        second.ended.set()
        if resumes:
            second.long.wake()
            assert (await second.until("completed")).id == task.id
        else:
            told = await second.poll(task)
            assert told.status == "failed" and "stopped" in told.message and not second.begun
        await second.long.close()


async def test_a_process_that_lives_takes_over_from_one_that_dies_meanwhile() -> None:
    store = MemoryStore()
    second = World(store, InStore(given(store)), resumes=True, look=0.05)
    second.ended.set()
    second.long.wake()
    dying = InStore(given(store), ttl=0.5)
    first = World(store, dying, resumes=True)
    task = await first.begin()
    await dying.close()  # as a kill would end it, once its lease is over
    assert (await second.until("completed")).id == task.id
    first.ended.set()
    assert (await first.until("completed")).outcome == (await second.poll(task)).outcome  # and not another one
    await first.long.close()
    await second.long.close()


async def test_what_cannot_be_begun_again_is_lost(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path) as store:
        first = World(store, InFolder(tmp_path), resumes=True)
        task = await first.begin()
        await first.long.close()
        second = World(store, InFolder(tmp_path), resumes=True)
        second.known = False
        assert (await second.poll(task)).status == "failed" and not second.begun
        await second.long.close()
