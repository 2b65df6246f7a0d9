"""Who listens in this process, and how hints reach them without waiting for anybody."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final

from octavo.core.ports.stores import Hint

WAITING: Final = 1_024  # hints of one listener that it has not read; the oldest go first


class Listener:
    """The hints of one listener. Ends when the store is closed."""

    def __init__(self, topics: Iterable[str]) -> None:
        self.topics = frozenset(topics)
        self._hints: deque[Hint] = deque(maxlen=WAITING)
        self._news = asyncio.Event()
        self._ended = False

    def tell(self, hint: Hint) -> None:
        self._hints.append(hint)
        self._news.set()

    def end(self) -> None:
        self._ended = True
        self._news.set()

    def __aiter__(self) -> AsyncIterator[Hint]:
        return self

    async def __anext__(self) -> Hint:
        while not self._hints:
            if self._ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._hints.popleft()


class Listeners:
    """`begin` is awaited before the first of them is let in, for what brings the hints of other processes; `idle` is
    called when the last has gone."""

    def __init__(
        self, *, begin: Callable[[], Awaitable[None]] | None = None, idle: Callable[[], None] | None = None
    ) -> None:
        self._listeners: set[Listener] = set()
        self._begin, self._idle = begin, idle

    @asynccontextmanager
    async def listen(self, topics: Iterable[str]) -> AsyncGenerator[AsyncIterator[Hint]]:
        listener = Listener(topics)
        self._listeners.add(listener)  # at first, so that none is lost while the rest begins
        try:
            if self._begin is not None:
                await self._begin()
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners and self._idle is not None:
                self._idle()

    def tell(self, hint: Hint) -> None:
        for listener in self._listeners:
            if hint.topic in listener.topics:
                listener.tell(hint)

    def tell_of_a_loss(self) -> None:
        for listener in self._listeners:
            for topic in sorted(listener.topics):
                listener.tell(Hint(topic, b""))

    def end(self) -> None:
        for listener in self._listeners:
            listener.end()
