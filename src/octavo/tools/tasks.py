"""Calls of tools that last: a task is made of one when it has not ended soon, and outlives the process.

The caller's request has walked all folds. The work itself is a child call of it, with the rights of the caller and a
record of its own when it ends.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from octavo.core.arguments import AnswerArguments, TaskArguments
from octavo.core.calls import Builder
from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import Conflict, InternalError, OctavoError, RateLimited, TooLarge
from octavo.core.ports.chain import Ask, Reply
from octavo.core.sizes import MIB
from octavo.core.tasks import ENDED, Ended, Heard, Lost, Speaks, StoredTask, Task, TaskStore
from octavo.core.tools import ToolInfo, unknown_task, unknown_tool
from octavo.core.values import Call, Principal
from octavo.tools.task_channel import Parked, Running

logger = logging.getLogger(__name__)

LARGEST = 16 * MIB  # bytes of the end of a task
LOOK = 20.0  # seconds between two looks whether another process has died
STOPPED = "The server was stopped while the tool was working; call it again"


class Bounds(Struct, frozen=True):
    after: float = 0.5  # seconds that a call may take before it becomes a task
    running: int = 16  # of one principal
    kept: int = 1000  # of one principal
    keep: float = 3600.0  # seconds that the end of a task can be asked for


class TaskContext(Struct, frozen=True):
    """What a task needs of one configuration: it stays with the one that it began with."""

    ask: Ask
    tool: Callable[[str], ToolInfo | None]
    bounds: Bounds
    known: Callable[[Principal], Principal]
    at_work: set[asyncio.Future[Reply]]


def _unspoken(tool: str, reply: Reply | BaseException) -> Ended:
    raise InternalError(f"Nobody can be told what became of {tool}")


class LongWork:
    def __init__(
        self,
        store: TaskStore,
        context: Callable[[], TaskContext],
        *,
        clock: Clock | None = None,
        look: float = LOOK,
    ) -> None:
        """`works` are those of the configuration that holds now."""
        self._store, self._context, self._look = store, context, look
        self._clock = clock or SystemClock()
        self.speaks: Speaks = _unspoken
        self._running: dict[str, Running] = {}
        self._at_once: Counter[str] = Counter()  # by principal
        self._listeners: list[Heard] = []
        self._opened = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None
        self._watching: set[asyncio.Task[None]] = set()

    # -- what the pipeline asks for

    async def begin(self, call: Call, context: TaskContext) -> Reply | Task:
        """What the tool gives, or the task that its call has become. Raises what the tool raises meanwhile."""
        await self._open()
        info = context.tool(call.ref.path)
        if info is None:
            raise unknown_tool(call.ref.path)
        running = self._started(call, info, context)
        work, bounds = running.work, context.bounds
        assert work is not None
        asked = asyncio.ensure_future(running.asked.wait())
        try:
            await asyncio.wait((work, asked), timeout=bounds.after, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            arguments = dict(call.values) if info.resumes else None
            kept = StoredTask(task=running.task, principal=call.principal, arguments=arguments)
            await self._store.add(kept, most=bounds.kept)
        except BaseException:  # nobody could ever ask for it
            await _ended(work)
            raise
        finally:
            asked.cancel()
        running.give()
        self._follow(running)
        return running.task

    async def poll(self, call: Call) -> Task:
        return await self._of(call)

    async def answer(self, call: Call) -> None:
        task = await self._of(call)
        running = self._running.get(task.id)
        if running is not None:
            running.answer(call.given(AnswerArguments).answers)
        elif task.status not in ENDED:
            raise _elsewhere(task)

    async def cancel(self, call: Call) -> None:
        """Stops the work. The task says so once the tool has ended."""
        task = await self._of(call)
        running = self._running.get(task.id)
        if running is not None and running.work is not None:
            running.stopped = True
            running.work.cancel()
        elif task.status not in ENDED:
            raise _elsewhere(task)

    # -- beside it

    async def find(self, who: str, task_id: str) -> Task | None:
        await self._open()
        running = self._running.get(task_id)
        if running is not None and running.task.who == who:
            return running.task
        return await self._store.find(who, task_id)

    def on_change(self, listener: Heard) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def wake(self) -> None:
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._look_after_others())

    async def close(self) -> None:
        """What still works is stopped and says so, but for what the next process can begin again."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
        for running in self._running.values():
            if running.work is not None:
                running.work.cancel()
        if self._watching:
            await asyncio.wait(set(self._watching))
        await self._store.close()

    # -- the work

    def _started(self, call: Call, info: ToolInfo, context: TaskContext, task: Task | None = None) -> Running:
        who, bounds = call.principal.id, context.bounds
        if self._at_once[who] >= bounds.running:
            raise RateLimited(
                "Too many tasks are at work; wait for one of them, or cancel one",
                retry_after=1.0,
                limit="tasks.running",
                allowed=bounds.running,
            )
        now = self._clock.wall()
        made = task or Task(
            id=secrets.token_urlsafe(24), who=who, tool=info.name, status="working", created=now, updated=now,
            ttl=bounds.keep + info.timeout,
        )  # fmt: skip
        running = Running(made, self._clock, self._tell)
        channel = Parked(running, call.channel)
        above = call._replace(channel=channel)
        child = above.child("invoke", call.ref, uri=call.uri, arguments=call.arguments)._replace(channel=channel)
        work = running.work = asyncio.ensure_future(context.ask(child))
        context.at_work.add(work)
        work.add_done_callback(context.at_work.discard)
        self._at_once[who] += 1

        def left(_: asyncio.Future[Reply]) -> None:
            self._at_once[who] -= 1
            if not self._at_once[who]:
                del self._at_once[who]

        work.add_done_callback(left)
        return running

    def _follow(self, running: Running) -> None:
        self._running[running.task.id] = running
        watching = asyncio.get_running_loop().create_task(self._conclude(running))
        self._watching.add(watching)
        watching.add_done_callback(self._watching.discard)

    async def _conclude(self, running: Running) -> None:
        task, work = running.task, running.work
        assert work is not None
        await asyncio.wait({work})
        try:
            if not work.cancelled():
                fault = work.exception()
                ended = self.speaks(task.tool, work.result() if fault is None else fault)
                if len(ended.outcome) > LARGEST:
                    ended = self.speaks(task.tool, _too_large(task.tool, len(ended.outcome)))
            elif running.stopped:
                ended = Ended("cancelled", b"", "Cancelled by its caller")
            else:
                info = self._context().tool(task.tool)
                if info is not None and info.resumes:
                    return  # as a kill would leave it
                ended = self.speaks(task.tool, Lost(STOPPED))
            kept = await self._store.end(task, ended) or await self._store.find(task.who, task.id)
            running.end(kept or replace(running.task, status=ended.status, outcome=ended.outcome, questions={}))
        except OctavoError as fault:
            logger.error("The end of a task of %s could not be kept: %s", task.tool, fault)
        finally:
            self._running.pop(task.id, None)

    def _tell(self, task: Task) -> None:
        for listener in tuple(self._listeners):
            listener(task)

    # -- what other processes left

    async def _open(self) -> None:
        self.wake()
        await self._opened.wait()

    async def _look_after_others(self) -> None:
        """Processes on the same state may die at any time, and nobody may ever start in their place."""
        while True:
            try:
                await self._take_over()
            finally:
                self._opened.set()
            await asyncio.sleep(self._look)

    async def _take_over(self) -> None:
        try:
            left = await self._store.take_over()
        except OctavoError as fault:
            logger.error("What became of earlier tasks is not known: %s", fault)
            return
        for kept in left:
            try:
                self._resume(kept)
            except OctavoError as fault:
                lost = fault if isinstance(fault, Lost) else Lost(f"{STOPPED} ({fault.message})")
                await self._store.end(kept.task, self.speaks(kept.task.tool, lost))

    def _resume(self, kept: StoredTask) -> None:
        """Raises where it cannot be done again."""
        task, context = kept.task, self._context()
        info = context.tool(task.tool)
        if kept.arguments is None or info is None or not info.resumes:
            raise Lost(STOPPED)
        who = context.known(kept.principal)
        running = self._started(_again(who, task, kept.arguments), info, context, task)
        running.give()
        self._follow(running)

    async def _of(self, call: Call) -> Task:
        asked = call.given(TaskArguments).task
        found = await self.find(call.principal.id, asked)
        if found is None:
            raise unknown_task(asked)
        return found


def _again(who: Principal, task: Task, arguments: Mapping[str, Any]) -> Call:
    return Builder.invoke(who, task.tool, arguments)


def _too_large(tool: str, size: int) -> TooLarge:
    return TooLarge(
        f"The answer of the tool {tool} has {size:,} bytes, and of a task {LARGEST:,} are kept: ask it for less",
        toolName=tool, size=size, limit=LARGEST,
    )  # fmt: skip


def _elsewhere(task: Task) -> Conflict:
    return Conflict("The task is at work in another process of this server; ask there", taskId=task.id)


async def _ended(work: asyncio.Future[Reply]) -> None:
    if not work.done():
        work.cancel()
        await asyncio.wait({work})
    elif not work.cancelled():
        work.exception()
