"""What brings the hints of other processes, for as long as somebody listens, and begins again when it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from octavo.core.errors import OctavoError
from octavo.core.ports.stores import Hint
from octavo.stores._shared.bounds import check_key
from octavo.stores._shared.listeners import Listeners

PAUSES: Final = (0.05, 0.2, 0.5, 1.0, 2.0)  # seconds before the next try; the last again and again


class Relay:
    """`run` connects, calls what it is given when nothing more will be missed, and then tells hints until it fails."""

    def __init__(self, run: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
        self._run = run
        self._listeners = Listeners(begin=self._begin, idle=self._idle)
        self._running: asyncio.Task[None] | None = None
        self._begun: asyncio.Future[None] | None = None
        self._tries = 0

    def listen(self, topics: tuple[str, ...]) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        for topic in topics:
            check_key(topic)
        return self._listeners.listen(topics)

    def tell(self, hint: Hint) -> None:
        self._listeners.tell(hint)

    async def close(self) -> None:
        self._listeners.end()
        running = self._running
        self._idle()
        if running is not None:
            await asyncio.wait([running])

    async def _begin(self) -> None:
        """Raises what the first try raised."""
        if self._running is None or self._begun is None:
            loop = asyncio.get_running_loop()
            self._begun = loop.create_future()
            self._running = loop.create_task(self._keep_on(self._begun))
        await asyncio.shield(self._begun)

    def _idle(self) -> None:
        if self._running is not None:
            self._running.cancel()
            self._running = None
        if self._begun is not None:
            self._begun.cancel()
            self._begun = None

    async def _keep_on(self, begun: asyncio.Future[None]) -> None:
        def ready() -> None:
            self._tries = 0
            if not begun.done():
                begun.set_result(None)
            else:
                self._listeners.tell_of_a_loss()

        while True:
            try:
                await self._run(ready)
            except OctavoError as error:
                if not begun.done():
                    begun.set_exception(error)
                    begun.exception()  # whoever waited may be gone
                    self._running = None
                    return
            await asyncio.sleep(PAUSES[min(self._tries, len(PAUSES) - 1)])
            self._tries += 1
