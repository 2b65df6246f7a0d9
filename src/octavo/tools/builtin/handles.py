"""Things that stay open between calls (connections, processes): bounded in number and time, each its caller's
alone."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct

from octavo.core.errors import Conflict, NotFound

T = TypeVar("T")


class _Held(Struct, Generic[T]):
    thing: T
    timer: asyncio.TimerHandle


class Handles(Generic[T]):
    """By the id of a principal and a name that was made up for it: nobody sees what is another's."""

    def __init__(self, what: str, close: Callable[[T], Awaitable[None]], *, most: int, idle: float) -> None:
        """`what` it is, for people; `most` of one caller. What is not asked for in `idle` seconds is closed."""
        self._what, self._close, self._most, self._idle = what, close, most, idle
        self._held: dict[tuple[str, str], _Held[T]] = {}
        self._opening: Counter[str] = Counter()
        self._closing: set[asyncio.Task[None]] = set()
        self._over = False

    async def open(self, owner: str, make: Callable[[], Awaitable[T]]) -> tuple[str, T]:
        """Raises Conflict when the caller has too many, and whatever `make` raises."""
        if self._over or self._opening[owner] + len([*self.of(owner)]) >= self._most:
            raise Conflict(
                f"You have {self._most} of these ({self._what}) open already; end one first", limit=self._most
            )
        self._opening[owner] += 1
        try:
            thing = await make()
        finally:
            self._opening[owner] -= 1
        if self._over:
            await self._close(thing)
            raise Conflict("The server is ending")
        name = secrets.token_hex(4)
        self._held[owner, name] = _Held(thing, self._timer(owner, name))
        return name, thing

    def get(self, owner: str, name: str) -> T:
        """Raises NotFound, for another's too. To ask for it keeps it open."""
        held = self._held.get((owner, name))
        if held is None:
            raise NotFound(f"There is no {self._what} {name[:40]!r} of yours; it may have ended")
        held.timer.cancel()
        held.timer = self._timer(owner, name)
        return held.thing

    def of(self, owner: str) -> Iterator[tuple[str, T]]:
        return ((name, held.thing) for (whose, name), held in self._held.items() if whose == owner)

    async def close(self, owner: str, name: str) -> None:
        held = self._held.pop((owner, name), None)
        if held is not None:
            held.timer.cancel()
            await self._close(held.thing)

    async def aclose(self) -> None:
        self._over = True
        await asyncio.gather(*(self.close(*key) for key in [*self._held]), *self._closing)

    def _timer(self, owner: str, name: str) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._idle, self._expire, owner, name)

    def _expire(self, owner: str, name: str) -> None:
        task = asyncio.get_running_loop().create_task(self.close(owner, name))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
