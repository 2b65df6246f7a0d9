"""Overload: whether more is waiting than can be answered in time, and whose requests must wait or go.

The processor time that a request has cost lately, times the requests that are open, is how long a new one would have to
wait. Where others take the processor away, the time by which the loop is late counts too. Above `TARGET` a request is
refused, before its body is looked at, so that the others are answered in time. Whoever has less than an equal share of
what can be done in time is let in all the same: those who send most are refused first.

Many that come at once are no flood: beyond its share a caller may have `BURST` requests let in, until all of its own
are answered, if the last of them would still be answered within its deadline. What waits is begun in turns, so that a
long queue is long for its own caller alone. Whoever goes on sending has its share, as before.

A request is open from the moment that all of it has arrived: a client that sends slowly takes no room. One that only
waits, for a slow source or for a person, costs no processor time; once it is `OLD` it is not counted at all.
"""

from __future__ import annotations

import asyncio
import time

TARGET = 0.25  # seconds of work that may lie ahead of a request
CROWD = 2 * TARGET  # the same where each of those who ask has one
BURST = 2048  # requests beyond its share that a caller may have sent at once
FLOOR = 8  # requests that may be open whatever they cost, and callers that may have one
OLD = 2.0  # seconds after which a request that is still open waits for something else
INTERVAL = 0.1  # seconds between two looks
ENOUGH = 20  # answered requests that say what one costs
WINDOW = 5.0  # seconds in which they must come, or others wait: else the processor was busy with something else


class Backlog:
    def __init__(self) -> None:
        self.cost = 0.0  # seconds of processor time of one request, lately
        self.refused = 0
        self._open: dict[object, tuple[str, float]] = {}  # who, and since when; the oldest first
        self._of: dict[str, int] = {}  # how many of whom
        self._beyond: dict[str, int] = {}  # how many of theirs came beyond their share, since they had none open
        self._now = 0.0
        self._done, self._spent, self._since = 0, 0.0, 0.0
        self._seen: float | None = None  # processor time at the last look

    @property
    def waiting(self) -> int:
        """Requests that are open, but for old ones."""
        return len(self._open)

    def full(self, who: str, patience: float) -> bool:
        """Whether one more of theirs is refused, which is counted. `patience` is how long it may wait."""
        count = len(self._open)
        if count < FLOOR:
            return False
        mine = self._of.get(who, 0)
        if (count + mine) * self.cost < TARGET:  # nobody has more open than there is room left
            return False
        if not mine and len(self._of) < FLOOR:  # one each of a few, whatever they cost
            return False
        everybody = (len(self._of) + (not mine)) * self.cost
        if everybody < CROWD:
            if mine * everybody < TARGET:
                return False
            beyond = self._beyond.get(who, 0)
            if beyond < BURST and self._ahead(mine) * self.cost < patience:
                self._beyond[who] = beyond + 1
                return False
        self.refused += 1
        return True

    def _ahead(self, mine: int) -> int:
        """Requests that are begun before one more of somebody who has so many."""
        return sum(min(theirs, mine + 1) for theirs in self._of.values())

    def enter(self, who: str) -> object:
        """What to `leave` with."""
        token = object()
        self._open[token] = who, self._now
        self._of[who] = self._of.get(who, 0) + 1
        return token

    def leave(self, token: object) -> None:
        self._done += 1
        self._forget(token)

    async def watch(self) -> None:
        """Until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self.look(loop.time(), time.process_time())
            await asyncio.sleep(INTERVAL)

    def look(self, now: float, spent: float) -> None:
        """`spent` is the processor time of this process so far."""
        if self._seen is not None:
            late = now - self._now - INTERVAL
            self._spent += max(spent - self._seen, late)
        self._now, self._seen = now, spent
        over = now - self._since > WINDOW
        if self._done >= ENOUGH or (over and self._done and len(self._open) >= FLOOR):
            cost = self._spent / self._done
            self.cost = (self.cost + cost) / 2 if self.cost else cost
        if self._done >= ENOUGH or over:
            self._done, self._spent, self._since = 0, 0.0, now
        while self._open:
            token, (_, since) = next(iter(self._open.items()))
            if now - since < OLD:
                return
            self._forget(token)

    def _forget(self, token: object) -> None:
        known = self._open.pop(token, None)
        if known is not None:
            who = known[0]
            if left := self._of[who] - 1:
                self._of[who] = left
            else:
                del self._of[who]
                self._beyond.pop(who, None)
