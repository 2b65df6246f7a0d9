"""One ordered change feed out of the watches of all sources.

A change gets its sequence number here, in the order in which the feed hears of it; listeners are called
on the event loop in that order and must not block. A source whose watch ends or fails is watched again
after a pause, and said.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from octavo.core.model import Change
from octavo.core.ports import Listener, Source, Watches
from octavo.core.ref import Ref

logger = logging.getLogger(__name__)

RECENT = 10_000  # changes kept for `since`
PAUSE = 5.0  # seconds before a broken watch is tried again


class ChangeFeed:
    """`recent` is how many changes `since` can give. `sleep` is there for tests."""

    def __init__(self, *, recent: int = RECENT, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        self._listeners: dict[int, Listener] = {}
        self._next_listener = 0
        self._seq = 0
        self._recent: deque[Change] = deque(maxlen=recent)
        self._untold: deque[Change] = deque()
        self._telling = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._sleep = sleep

    @property
    def seq(self) -> int:
        """The number of the latest change."""
        return self._seq

    def publish(self, change: Change) -> Change:
        self._seq += 1
        change = replace(change, seq=self._seq)
        self._recent.append(change)
        self._untold.append(change)
        if not self._telling:  # a listener may publish: then the others first hear of the change at hand
            self._telling = True
            try:
                while self._untold:
                    self._tell(self._untold.popleft())
            finally:
                self._telling = False
        return change

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        number = self._next_listener = self._next_listener + 1
        self._listeners[number] = listener

        def leave() -> None:
            self._listeners.pop(number, None)

        return leave

    def since(self, seq: int) -> list[Change] | None:
        """Everything after `seq`, oldest first; None if `seq` is further back than is kept, or not of this feed."""
        if not self._seq - len(self._recent) <= seq <= self._seq:
            return None
        return [change for change in self._recent if change.seq > seq]

    def follow(self, sources: Iterable[Source]) -> Callable[[], Awaitable[None]]:
        """Begin to watch every source that can be watched. Returns the way to stop."""
        loop = asyncio.get_running_loop()
        tasks = {loop.create_task(self._follow(one, one.scheme)) for one in sources if isinstance(one, Watches)}
        self._tasks |= tasks

        async def stop() -> None:
            self._tasks -= tasks
            await _cancelled(tasks)

        return stop

    async def close(self) -> None:
        await _cancelled(self._tasks)
        self._tasks.clear()

    def _tell(self, change: Change) -> None:
        for number, listener in list(self._listeners.items()):
            if number not in self._listeners:
                continue  # it left while the others were told
            try:
                listener(change)
            except Exception:  # one listener's fault must not silence the others
                logger.exception("A listener of the change feed failed")

    async def _follow(self, source: Watches, scheme: str) -> None:
        while True:
            try:
                async for change in source.watch(Ref(scheme)):
                    self.publish(change)
                logger.warning("The watch of %s:// ended; watching again in %g s", scheme, PAUSE)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                logger.warning("The watch of %s:// cancelled itself; watching again in %g s", scheme, PAUSE)
            except Exception:  # a watch must survive whatever its source throws
                logger.exception("The watch of %s:// failed; watching again in %g s", scheme, PAUSE)
            await self._sleep(PAUSE)


async def _cancelled(tasks: Iterable[asyncio.Task[None]]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
