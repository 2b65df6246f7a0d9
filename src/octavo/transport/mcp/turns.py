"""Whose request the loop begins with next: in each of its turns one of every caller that has some.

All who ask over HTTP share one thread. It reads what has arrived in the order of the connections, so whoever has
hundreds of them would be answered hundreds of times before somebody else once, and be refused as often. What has
arrived waits here instead: a single request of one caller is begun together with the first of another's hundreds.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    def __init__(self) -> None:
        self._begun: set[str] = set()  # those of whom one was begun in this turn of the loop
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._armed = False

    async def come(self, who: str) -> None:
        """Until a request of this caller may be begun: at once where none was in this turn."""
        if who not in self._begun and who not in self._waiting:
            self._begun.add(who)
            if not self._armed:
                self._armed = True
                asyncio.get_running_loop().call_soon(self._turn)
            return
        given = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(given)
        await given

    def _turn(self) -> None:
        self._begun.clear()
        for who, queue in [*self._waiting.items()]:
            while queue:
                given = queue.popleft()
                if not given.done():  # else whoever waited has given up
                    given.set_result(None)
                    self._begun.add(who)
                    break
            if not queue:
                del self._waiting[who]
        self._armed = bool(self._begun)
        if self._armed:
            asyncio.get_running_loop().call_soon(self._turn)
