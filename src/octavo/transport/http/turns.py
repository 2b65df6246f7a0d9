"""Fairness between callers: in each turn of the event loop one request of each is begun.

All who ask over HTTP share one thread. It reads what has arrived in the order of the connections, so whoever has
hundreds of them would be answered hundreds of times before somebody else once, and be refused as often. What has
arrived waits here instead: a single request of one caller is begun together with the first of another's hundreds.

To wait costs more than a cached read, so whoever has been alone for a while has many requests begun in a turn: as many
as somebody who comes then stands behind, once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

ALONE: Final = 32  # requests of a single caller that are begun in one turn
A_WHILE: Final = 1_000  # turns of the loop in which nobody else has come


class Turns:
    def __init__(self) -> None:
        self._begun: dict[str, int] = {}  # how many of each were begun in this turn of the loop
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._armed = False
        self._last = ""  # who came last
        self._most = ALONE
        self._turns_alone = A_WHILE

    async def come(self, who: str) -> None:
        """Until a request of this caller may be begun: at once where not too many were in this turn."""
        if who != self._last:
            self._last, self._most, self._turns_alone = who, 1, 0
        begun = self._begun.get(who, 0)
        if begun < self._most and who not in self._waiting:
            self._begun[who] = begun + 1
            if not self._armed:
                self._armed = True
                asyncio.get_running_loop().call_soon(self._turn)
            return
        given = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(given)
        await given

    def _turn(self) -> None:
        self._begun.clear()
        self._turns_alone += 1
        if self._turns_alone >= A_WHILE and len(self._waiting) < 2:
            self._most = ALONE
        for who, queue in [*self._waiting.items()]:
            begun = 0
            while queue and begun < self._most:
                given = queue.popleft()
                if not given.done():  # else whoever waited has given up
                    given.set_result(None)
                    begun += 1
            self._begun[who] = begun
            if not queue:
                del self._waiting[who]
        self._armed = bool(self._begun)
        if self._armed:
            asyncio.get_running_loop().call_soon(self._turn)
