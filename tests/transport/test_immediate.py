"""`immediate.start`: a coroutine runs without a task until it waits (performance.md §5.2)."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from octavo.transport.mcp.eager import begin, start

pytestmark = pytest.mark.anyio

who: ContextVar[str] = ContextVar("who", default="nobody")


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture(params=[start, begin])
def run(request: pytest.FixtureRequest) -> Any:
    return request.param


async def test_a_result_without_waiting_needs_no_task(run: Any) -> None:
    async def work() -> int:
        return 7

    assert run(work()) == (7, None)


async def test_what_begins_as_work_of_a_tool_has_a_task() -> None:
    """Time limits and most libraries ask for it."""
    mine = asyncio.current_task()

    async def work() -> str:
        assert asyncio.current_task() not in (None, mine)
        async with asyncio.timeout(30):
            await asyncio.sleep(0)
        return "done"

    result, task = begin(work())
    assert asyncio.current_task() is mine
    assert (result if task is None else await task) == "done"


async def test_an_exception_without_waiting_is_raised_at_once(run: Any) -> None:
    async def work() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run(work())


async def test_a_cancellation_from_inside_is_raised_at_once(run: Any) -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run(work())


async def test_a_variable_of_one_request_does_not_reach_the_next(run: Any) -> None:
    async def at_once() -> str:
        before = who.get()
        who.set("somebody")
        return before

    async def later(future: asyncio.Future[None]) -> str:
        before = who.get()
        who.set("somebody else")
        await future
        assert who.get() == "somebody else"  # and it stays for the request itself
        return before

    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    assert run(at_once()) == ("nobody", None)
    _, task = run(later(future))
    assert run(at_once()) == ("nobody", None)
    assert who.get() == "nobody"
    future.set_result(None)
    assert await task == "nobody"
    assert who.get() == "nobody"


async def test_whoever_waits_gets_the_value_and_the_exception_of_what_it_waits_for(run: Any) -> None:
    async def work(first: asyncio.Future[int], second: asyncio.Future[int]) -> str:
        value = await first
        try:
            await second
        except KeyError as error:
            return f"{value} {error.args[0]}"
        return "nothing"

    loop = asyncio.get_running_loop()
    first, second = loop.create_future(), loop.create_future()
    result, task = run(work(first, second))
    assert result is None
    first.set_result(1)
    await asyncio.sleep(0)
    second.set_exception(KeyError("two"))
    assert await task == "1 two"


async def test_an_exception_after_waiting_is_the_tasks(run: Any) -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise KeyError("late")

    _, task = run(work())
    with pytest.raises(KeyError):
        await task


@pytest.mark.parametrize("turns", [0, 1, 3], ids=["before its first step", "after one turn", "later"])
async def test_cancelling_leaves_the_coroutine_properly(turns: int, run: Any) -> None:
    """A request and its cancellation can come in one chunk of input, before the task has taken a step."""
    left: list[str] = []

    async def work(future: asyncio.Future[None]) -> None:
        try:
            await future
        finally:
            left.append(who.get())

    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    _, task = run(work(future))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    await asyncio.sleep(0)
    assert task.cancelled()
    assert left == ["nobody"]


async def test_a_coroutine_that_refuses_cancellation_goes_on(run: Any) -> None:
    async def work(first: asyncio.Future[None], second: asyncio.Future[int]) -> int:
        try:
            await first
        except asyncio.CancelledError:
            pass
        return await second

    loop = asyncio.get_running_loop()
    first, second = loop.create_future(), loop.create_future()
    _, task = run(work(first, second))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second.set_result(3)
    assert await task == 3


async def test_what_runs_after_the_first_waiting_has_a_task(run: Any) -> None:
    """`asyncio.timeout` needs a current task: a miss may use it, a hit may not."""

    async def work() -> str:
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
        task = asyncio.current_task()
        return "task" if task is not None else "none"

    _, task = run(work())
    assert await task == "task"


async def test_a_future_that_is_done_before_the_task_takes_over_is_not_missed(run: Any) -> None:
    async def work(future: asyncio.Future[int]) -> int:
        return await future

    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    _, task = run(work(future))
    future.set_result(5)
    assert await task == 5
