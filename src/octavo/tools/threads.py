"""Plain functions of authors, each call in a thread that nothing waits for when the server ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from octavo.core.errors import RateLimited

T = TypeVar("T")

MOST: Final = 64  # at once; a function that hangs keeps its thread, since none can be killed

_running: Final = threading.BoundedSemaphore(MOST)


async def in_thread(work: Callable[[], T]) -> T:
    """Raises what the work raises, and RateLimited while too many are running. Who stops waiting leaves it alone."""
    if not _running.acquire(blocking=False):
        raise RateLimited(f"{MOST} calls of plain functions are running; wait until some have ended", retry_after=1.0)
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
            _running.release()

    try:
        threading.Thread(target=run, name="octavo-tool", daemon=True).start()
    except RuntimeError:
        _running.release()
        raise
    return await asyncio.wrap_future(done)


def _carried(error: BaseException) -> Exception:
    """A loop that is handed one of the others ends, and the server with it, or never hears of it."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"the function raised {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped


def _settle(done: Future[T], tell: Callable[[], None]) -> None:
    if done.set_running_or_notify_cancel():
        tell()
