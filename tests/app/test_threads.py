"""Threads of sources are their own, and no thread keeps a process that should end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import anyio
import pytest

from octavo.app.serve import MOST, Threads
from octavo.core.errors import SourceUnavailable
from octavo.core.foreign import owner
from octavo.core.ref import Ref
from octavo.core.tools import Hints, ToolInfo
from octavo.core.values import Call, Content, Entry, Principal, Trail
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool, ToolRegistry

pytestmark = pytest.mark.anyio


@pytest.fixture
def over() -> threading.Event:
    return threading.Event()


async def test_a_source_whose_threads_hang_takes_none_from_the_house(over: threading.Event) -> None:
    asyncio.get_running_loop().set_default_executor(Threads())
    hanging = []
    token = owner.set("own")
    try:
        for _ in range(MOST):
            hanging.append(asyncio.ensure_future(asyncio.to_thread(over.wait)))
            await asyncio.sleep(0)
        with pytest.raises(SourceUnavailable):
            await asyncio.to_thread(over.wait)
    finally:
        owner.reset(token)
    with anyio.fail_after(30):
        assert await asyncio.to_thread(len, "house") == 5
        over.set()
        assert await asyncio.gather(*hanging) == [True] * MOST


async def test_a_tool_whose_threads_hang_takes_none_from_the_house(over: threading.Event) -> None:
    async def handler(ctx: ToolContext, arguments: object) -> str:
        await ctx.read("note://a")
        await asyncio.to_thread(over.wait)
        return "done"

    async def ask(call: Call) -> Content:
        assert await asyncio.to_thread(owner.get) == "", "what is read is read by the house"
        return Content(entry=Entry(ref=call.ref, name="a"), body="")

    asyncio.get_running_loop().set_default_executor(Threads())
    hints = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
    info = ToolInfo(name="slow", description="Slow.", input_schema={"type": "object"}, hints=hints)
    tools = ToolRegistry()
    tools.register(Tool(info, handler, max_answer=1000))
    tools.bind(ask)
    call = Call("invoke", Ref("tool", ("slow",)), Principal("a"), Trail())
    calls = [asyncio.ensure_future(tools.invoke(call)) for _ in range(MOST + 4)]
    with anyio.fail_after(30):
        done, hanging = await asyncio.wait(calls, return_when=asyncio.FIRST_EXCEPTION)
        assert [type(one.exception()) for one in done][:1] == [SourceUnavailable]
        assert await asyncio.to_thread(len, "house") == 5
        over.set()
        await asyncio.wait(hanging)


@pytest.mark.parametrize("error", [SystemExit, StopIteration, ValueError])
async def test_what_a_thread_raises_is_for_who_waits(error: type[BaseException]) -> None:
    def work() -> None:
        raise error

    asyncio.get_running_loop().set_default_executor(Threads())
    token = owner.set("own")
    try:
        with anyio.fail_after(30), pytest.raises(RuntimeError if error is StopIteration else error):
            await asyncio.to_thread(work)
    finally:
        owner.reset(token)


STAYS = """
import threading
from octavo.app import watchdog
watchdog.ENDING = 0.05
before = {*threading.enumerate()}
threading.Thread(target=threading.Event().wait, name="stays").start()
watchdog.leave_no_threads(before)
"""


def test_a_thread_that_stays_does_not_keep_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", STAYS], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert "a thread did not end within 0.05 s; these threads run: stays" in done.stderr
