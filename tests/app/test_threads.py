"""Threads of sources are their own, and no thread keeps a process that should end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import anyio
import pytest

from octavo.app.threads import MOST, Threads
from octavo.core.errors import SourceUnavailable
from octavo.core.foreign import owner

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
