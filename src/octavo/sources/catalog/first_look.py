"""The first look at a catalog: it goes on by itself, whoever waits for it.

It begins when the server opens, or with the first request, and no request that gives up waiting ends it. While nobody
waits for it, it leaves half of the time to others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Final

from octavo.core.clock import Clock
from octavo.core.errors import SourceUnavailable

logger = logging.getLogger(__name__)

AGAIN: Final = 3.0  # seconds after which somebody may ask again
_TURN: Final = 0.005  # seconds of work between two turns of the event loop
_RESTS: Final = 0.1  # seconds at the most


class FirstLook:
    """`work` is given this, to say how far it is and to let others have their turn."""

    def __init__(self, scheme: str, work: Callable[[], Awaitable[object]], clock: Clock) -> None:
        self._scheme, self._work, self._now = scheme, work, clock.monotonic
        self._task: asyncio.Task[BaseException | None] | None = None
        self._waiting = 0
        self._files = self._done = 0
        self._moves = 0  # how often anything was heard of the store
        self._turn = 0.0
        self.is_over = False
        self.missed = False  # somebody was told that it is not over
        self.when_missed: Callable[[], None] = _nothing  # called when it is over, if it was missed

    def begin(self) -> asyncio.Task[BaseException | None]:
        """In nobody's name: whoever asks first does not pay for it alone."""
        if self._task is None:
            self._files = self._done = 0
            self._turn = self._now()
            self._task = asyncio.get_running_loop().create_task(self._fault_of_it(), context=Context())
            self._task.add_done_callback(self._ended)
        return self._task

    async def over(self, seconds: float | None) -> None:
        """Raises what it raises, and SourceUnavailable where it takes longer."""
        if self.is_over:
            return
        task, moves = self.begin(), self._moves
        self._waiting += 1
        try:
            await asyncio.wait({task}, timeout=seconds)
        finally:
            self._waiting -= 1
            self.missed = self.missed or not task.done()
            if not self._waiting and moves == self._moves:
                task.cancel()  # the store hangs: whoever comes next begins anew with what is known
        if not task.done():
            raise self._not_yet()
        if task.cancelled():
            raise SourceUnavailable(f"Source unavailable: {self._scheme}", source=self._scheme)
        if (fault := task.result()) is not None:
            raise fault

    def listed(self) -> None:
        """One more name."""
        self._moves += 1

    def found(self, files: int) -> None:
        self._files = files

    async def step(self, done: int) -> None:
        """Before each file, with the number of those that were read."""
        self._done = done
        self._moves += 1
        worked = self._now() - self._turn
        if worked >= _TURN:
            await asyncio.sleep(0 if self._waiting else min(worked, _RESTS))
            self._turn = self._now()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _fault_of_it(self) -> BaseException | None:
        """For whoever waits: what a store lets slip may be one that ends a loop."""
        try:
            await self._work()
        except asyncio.CancelledError:
            raise
        except BaseException as fault:
            return fault
        return None

    def _ended(self, task: asyncio.Task[BaseException | None]) -> None:
        self._task = None  # what failed is begun again by whoever comes next
        if task.cancelled() or task.result() is not None:
            return
        self.is_over = True
        if self.missed:
            logger.info("%s:// has been read: %d files", self._scheme, self._files)
            self.when_missed()

    def _not_yet(self) -> SourceUnavailable:
        """In a share of a hundred: how many files there are is nothing that whoever may see a part of them learns."""
        far = f"{100 * self._done // self._files}% of its files so far" if self._files else "its files are being listed"
        logger.info("%s:// is being read for the first time: %d of %d files", self._scheme, self._done, self._files)
        message = f"{self._scheme}:// is being read for the first time, {far}; ask again in a few seconds"
        return SourceUnavailable(message, retry_after=AGAIN, telling=False, source=self._scheme)


def _nothing() -> None:
    """Nobody waits to hear of it."""
