"""The client of a long-running call after it has been answered: progress and questions are kept for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from octavo.core.approval import CONSENT, ApprovalQuestion, Verdict, verdict
from octavo.core.clock import Clock
from octavo.core.forms import Answer, Form
from octavo.core.ports.chain import Reply
from octavo.core.ports.client import Channel
from octavo.core.tasks import ENDED, Answers, Task

LONGEST = 500  # characters of a message


class Running:
    """One call of a tool that may last. `task` is what its caller is told of it."""

    def __init__(self, task: Task, clock: Clock, changed: Callable[[Task], None]) -> None:
        self.task = task
        self.asked = asyncio.Event()  # it waits for a person, who may take his time
        self.given = False  # the handle is the caller's
        self.stopped = False  # by the caller
        self.work: asyncio.Future[Reply] | None = None
        self._wall, self._changed = clock.wall, changed
        self._waiting: dict[str, tuple[Form, asyncio.Future[Answer]]] = {}
        self._asked = 0

    def say(self, message: str) -> None:
        """For who asks how it stands. Nobody is told: a tool may say something a thousand times a second."""
        if self.task.status not in ENDED:
            self.task = replace(self.task, message=message[:LONGEST], updated=self._wall())

    def give(self) -> None:
        """From now on its caller may ask for it."""
        self.given = True

    def end(self, task: Task) -> None:
        self.task = task
        self._changed(task)

    async def ask(self, form: Form) -> Answer:
        """Waits until its caller brings an answer that fits."""
        self._asked += 1
        key = f"question-{self._asked}"  # never used again: answers are known by it
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[key] = form, answered
        self._show()
        self.asked.set()
        try:
            return await answered
        finally:
            self._waiting.pop(key, None)
            self._show()

    def answer(self, answers: Answers) -> None:
        for key, answer in answers.items():
            if key not in self._waiting:
                continue
            form, answered = self._waiting[key]
            taken = form.taken(answer)
            if not answered.done() and taken is not None:
                del self._waiting[key]
                answered.set_result(taken)
        self._show()

    def _show(self) -> None:
        waiting = {key: form for key, (form, _) in self._waiting.items()}
        self._become(status="input_required" if waiting else "working", questions=waiting)

    def _become(self, **facts: Any) -> None:
        if self.task.status in ENDED:
            return
        before, self.task = self.task, replace(self.task, **facts)
        if self.task != before:
            self.task = replace(self.task, updated=self._wall())
            if self.given:
                self._changed(self.task)


class Parked:
    """The channel of a call that may become a task: to its client while that waits, and to the task afterwards."""

    def __init__(self, running: Running, client: Channel | None) -> None:
        self._running, self._client = running, client

    async def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        if not self._running.given and self._client is not None:
            await self._client.progress(value, total, message)
        of = "" if total is None else f" of {total:g}"
        self._running.say(f"{value:g}{of}" + (f": {message}" if message else ""))

    @property
    def locales(self) -> Sequence[str]:
        return () if self._client is None else self._client.locales

    @property
    def asks(self) -> bool:
        return self._client is not None and self._client.asks

    @property
    def lasts(self) -> bool:
        return False  # it has become what it could become

    @property
    def waits(self) -> bool:
        return True

    async def approve(self, question: ApprovalQuestion) -> Verdict | None:
        if not self._running.given:
            return None if self._client is None else await self._client.approve(question)
        answer = await self.ask(Form(question.text, CONSENT))
        return None if answer is None else verdict(answer)

    async def ask(self, form: Form) -> Answer | None:
        return await self._running.ask(form) if self.asks else None

    @property
    def wire(self) -> Any:
        return None if self._client is None else self._client.wire
