"""Runs a coroutine without making a task until it first has to wait.

A cache hit never waits, so its answer can be ready before the loop turns. Only a coroutine that really
suspends gets a task. The context is copied first: a variable that one request sets must not reach the
next request of the same connection.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.tasks import _enter_task, _leave_task  # for those who step tasks themselves
from collections.abc import Coroutine, Generator
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")

if sys.version_info >= (3, 12):

    def start(work: Coroutine[Any, Any, T]) -> tuple[T, None] | tuple[None, asyncio.Task[T]]:
        """The result, if there was no waiting; else a task. Raises what the coroutine raises."""
        task = asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)
        return (task.result(), None) if task.done() else (None, task)

    begin = start

else:

    def begin(work: Coroutine[Any, Any, T]) -> tuple[T, None] | tuple[None, asyncio.Task[T]]:
        """The same for work that may ask for its task, as that of a tool does: it has one from its first step."""
        loop, context, begun = asyncio.get_running_loop(), copy_context(), _Begun()
        task: asyncio.Task[Any] = loop.create_task(_go_on(work, begun), context=context)
        around = asyncio.current_task()
        if around is not None:
            _leave_task(loop, around)
        _enter_task(loop, task)
        try:
            begun.waiting_for = context.run(work.send, None)
            begun.waits = True
        except StopIteration as done:
            return done.value, None
        finally:
            _leave_task(loop, task)
            if around is not None:
                _enter_task(loop, around)
        task.add_done_callback(lambda _: context.run(work.close))
        return None, task

    class _Begun:
        """Whether work goes on after its first step, and what it waits for."""

        waits = False
        waiting_for: Any = None

    async def _go_on(work: Coroutine[Any, Any, T], begun: _Begun) -> T | None:
        return await _continue(work, begun.waiting_for) if begun.waits else None

    def start(work: Coroutine[Any, Any, T]) -> tuple[T, None] | tuple[None, asyncio.Task[T]]:
        """The result, if there was no waiting; else a task. Raises what the coroutine raises."""
        context = copy_context()
        try:
            waiting_for = context.run(work.send, None)
        except StopIteration as done:
            return done.value, None
        # Only now: asking for the running loop costs a system call here.
        task = asyncio.get_running_loop().create_task(_continue(work, waiting_for), context=context)
        # A task that is cancelled before its first step never reaches `work`, which must be left all the same.
        task.add_done_callback(lambda _: context.run(work.close))
        return None, task

    class _Continue:
        """Awaits first the future on which the coroutine already waits, then passes everything through."""

        def __init__(self, work: Coroutine[Any, Any, T], waiting_for: Any) -> None:
            self._work, self._waiting_for = work, waiting_for

        def __await__(self) -> Generator[Any, Any, Any]:
            work, waiting_for = self._work, self._waiting_for
            while True:
                try:
                    value = yield waiting_for
                except BaseException as raised:
                    error: BaseException | None = raised
                    value = None
                else:
                    error = None
                try:
                    waiting_for = work.send(value) if error is None else work.throw(error)
                except StopIteration as done:
                    return done.value

    async def _continue(work: Coroutine[Any, Any, T], waiting_for: Any) -> T:
        result: T = await _Continue(work, waiting_for)
        return result
