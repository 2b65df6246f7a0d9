"""The threads of `asyncio.to_thread`: what sources of plugins ask for does not take those of the house.

The house has few, which never wait for long. A thread that hangs cannot be ended, so each source has a number of its
own, and the end of the process waits for none of them.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

from octavo.core.errors import SourceUnavailable
from octavo.core.foreign import owner

P = ParamSpec("P")
T = TypeVar("T")

MOST: Final = 16  # of one source, at once


class Threads(ThreadPoolExecutor):
    """The default executor of a loop that serves."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="octavo-loop")
        self._taken: Counter[str] = Counter()
        self._counting = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        name = owner.get()
        return self._apart(name, partial(fn, *args, **kwargs)) if name else super().submit(fn, *args, **kwargs)

    def _apart(self, name: str, work: Callable[[], T]) -> Future[T]:
        with self._counting:
            if self._taken[name] >= MOST:
                raise SourceUnavailable(f"Source unavailable: {name}", source=name)
            self._taken[name] += 1
        done: Future[T] = Future()

        def run() -> None:
            try:
                if done.set_running_or_notify_cancel():
                    done.set_result(work())
            except StopIteration:  # which no future may carry
                done.set_exception(RuntimeError("a function raised StopIteration"))
            except BaseException as error:  # whatever it is belongs to who waits
                done.set_exception(error)
            finally:
                with self._counting:
                    self._taken[name] -= 1

        threading.Thread(target=run, name=f"octavo-{name}", daemon=True).start()
        return done
