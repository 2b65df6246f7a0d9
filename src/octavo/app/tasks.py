"""Puts long-running tools together; loaded by servers that have one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from octavo.config.model import Tasks
from octavo.core.errors import InternalError
from octavo.core.ports.chain import Ask, Reply
from octavo.core.values import Call, Principal
from octavo.tools.registry import ToolRegistry
from octavo.tools.tasks import Bounds, LongWork, TaskContext


class Lasting:
    """The tasks of one configuration."""

    def __init__(self, options: Tasks, tasks: Callable[[], LongWork], tools: ToolRegistry) -> None:
        self._tools = tools
        self._bounds = Bounds(after=options.after, running=options.running, kept=options.kept, keep=options.keep)
        self._context: TaskContext | None = None
        self.begin: Callable[[Call], Awaitable[Reply]] = lambda call: tasks().begin(call, self.works)

    def bind(self, ask: Ask, known: Callable[[Principal], Principal]) -> None:
        self._context = TaskContext(ask=ask, tool=self._tools.tool, bounds=self._bounds, known=known, at_work=set())

    @property
    def works(self) -> TaskContext:
        if self._context is None:
            raise InternalError("The tasks are not bound to a pipeline yet")
        return self._context

    async def idle(self) -> None:
        """Once nothing of this configuration is at work."""
        while self.works.at_work:
            await asyncio.wait(set(self.works.at_work))


def nothing(known: Callable[[Principal], Principal]) -> TaskContext:
    """For a configuration without tools that last: what was begun under another one can still be asked for."""

    async def refuse(call: Call) -> Reply:
        raise InternalError("No tool lasts here")

    return TaskContext(ask=refuse, tool=lambda name: None, bounds=Bounds(), known=known, at_work=set())
