"""Runs plain functions of authors in threads that do not hold up the end of the server.

A function that hangs keeps its thread, since none can be killed. So one caller never has more than half of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from octavo.core.fair import FairQueue
from octavo.core.foreign import sound

T = TypeVar("T")

MOST: Final = 64  # at once

_places: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, FairQueue]] = WeakKeyDictionary()


async def in_thread(work: Callable[[], T]) -> T:
    """Raises what the work raises. Waits for the caller's turn while too many are running, and raises RateLimited while
    too many wait. Who stops waiting leaves the work alone."""
    loop = asyncio.get_running_loop()
    places = _places.get(loop)
    if places is None:
        places = _places[loop] = FairQueue(MOST, "functions", spare=MOST // 2)
    who = await places.enter()
    done: Future[T] = Future()

    def run() -> None:
        try:
            outcome = work()
        except BaseException as error:  # whatever it is belongs to who waits
            raised = _carried(error)
            _settle(done, lambda: done.set_exception(raised))
        else:
            _settle(done, lambda: done.set_result(outcome))
        finally:
            with contextlib.suppress(RuntimeError):  # the loop has ended before
                loop.call_soon_threadsafe(places.leave, who)

    try:
        threading.Thread(target=run, name="octavo-tool", daemon=True).start()
    except RuntimeError:
        places.leave(who)
        raise
    return await asyncio.wrap_future(done)


def _carried(error: BaseException) -> Exception:
    """A loop that is handed one of the others ends, and the server with it, or never hears of it."""
    error = sound(error)
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"the function raised {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped


def _settle(done: Future[T], tell: Callable[[], None]) -> None:
    if done.set_running_or_notify_cancel():
        tell()
