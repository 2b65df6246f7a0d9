"""How long a connection may keep the server waiting, and how many there may be.

A client that sends its request byte by byte, or never reads its answer, holds a socket and nothing else: no thread,
no buffer that grows, and not for ever. What each connection waits for is looked at once a second, so that a request
in time costs nothing. When more than half of the places are taken, slow headers get less time.

When all are taken, a newcomer gets the place of whoever has most of them, the one that was idle for longest: those of
one agent count together, and so do those of one address that have not said yet who they are. Nobody loses a connection
with a request under way, and nobody loses one to somebody who has more.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, NamedTuple, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

CONNECTION = "octavo.connection"  # in the scope: the one that a request came over
INTERVAL = 1.0  # seconds between two looks
GRACE = 5.0  # seconds that a connection stays after its body is too late: until then a status is sent
HURRIED = 2.0  # seconds for headers, while places are scarce


class Deadlines(NamedTuple):
    headers: float = 10.0  # seconds until a request has said what it wants
    body: float = 30.0  # and sent all of it
    send: float = 30.0  # until an answer that fills all buffers is taken
    connections: int = 4096


class Connection(HttpToolsProtocol):
    """One connection. `patience` is set by whoever listens, once for all connections."""

    patience: Patience
    paused: object | None = None  # while the client does not read; another one each time
    seen: tuple[str, object] | None = None  # what it waited for at the last look, and since when
    since = 0.0
    whose = ""  # among whose connections it counts
    answered: RequestResponseCycle | None = None  # the request that is being answered, or was last

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.patience.came(self)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)[CONNECTION] = self

    def used_by(self, who: str) -> None:
        """A request of this caller has come."""
        if not self.transport.is_closing():
            self.patience.belongs(self, f"as {who}")

    def is_idle(self) -> bool:
        """Whether nothing is under way but what the client owes."""
        cycle: Any = self.cycle
        return cycle is None or cycle.response_complete or self.waits() is not None

    def connection_lost(self, exc: Exception | None) -> None:
        self.patience.left(self)
        # The base tells the newest request only; behind it an earlier one may still be answered, into nothing.
        answered = self.answered
        if answered is not None and not answered.response_complete:
            answered.disconnected = True
            answered.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.answered = cycle
        super()._start_asgi_task(cycle, app)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.paused = object()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.paused = None

    def waits(self) -> tuple[str, object] | None:
        """What the client owes, and a mark that changes when it owes it anew; None if it owes nothing."""
        cycle: Any = self.cycle  # None before the first request
        if self.paused is not None:
            return "send", self.paused
        if self.transport.is_closing():
            return "send", self
        if cycle is None or cycle.response_complete:
            # Between two requests the keep-alive timer runs, until the first byte of the next one.
            return None if self.timeout_keep_alive_task is not None else ("headers", cycle)
        return ("body", cycle) if cycle.more_body and not self.pipeline else None


class Patience:
    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self.connections: set[Connection] = set()  # all that are open; uvicorn's own
        self.ended: Counter[str] = Counter()  # connections that were closed, by reason
        self._whose: dict[str, dict[Connection, None]] = {}  # what was used last is last
        self._count = 0  # of all of them

    def came(self, connection: Connection) -> None:
        self.connections = connection.connections  # type: ignore[assignment]  # they are all of this class
        self.belongs(connection, f"from {connection.client[0] if connection.client else ''}")
        if self._count > self._deadlines.connections:
            self._end(self._least_needed(connection), "crowded")

    def belongs(self, connection: Connection, whose: str) -> None:
        """From now on it counts among theirs, as the one that was used last."""
        self.left(connection)
        connection.whose = whose
        self._whose.setdefault(whose, {})[connection] = None
        self._count += 1

    def left(self, connection: Connection) -> None:
        mine = self._whose.get(connection.whose, {})
        if connection in mine:
            del mine[connection]
            self._count -= 1
            if not mine:
                del self._whose[connection.whose]

    def _least_needed(self, newcomer: Connection) -> Connection:
        """What makes room for one more, which may be the newcomer itself."""
        least = len(self._whose[newcomer.whose])
        for theirs in sorted(self._whose.values(), key=len, reverse=True):
            if len(theirs) < least:
                break
            idle = next((one for one in theirs if one is not newcomer and one.is_idle()), None)
            if idle is not None:
                return idle
        return newcomer

    async def watch(self) -> None:
        """Until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(INTERVAL)
            self.look(loop.time())

    def look(self, now: float) -> None:
        """Ends the connections whose time is over."""
        scarce = len(self.connections) > self._deadlines.connections // 2
        allowed = {
            "headers": min(self._deadlines.headers, HURRIED) if scarce else self._deadlines.headers,
            "body": self._deadlines.body + GRACE,
            "send": self._deadlines.send,
        }
        for connection in list(self.connections):
            waits = connection.waits()
            if waits != connection.seen:
                connection.seen, connection.since = waits, now
            elif waits is not None and now - connection.since >= allowed[waits[0]]:
                self._end(connection, waits[0])

    def _end(self, connection: Connection, why: str) -> None:
        self.ended[why] += 1
        self.left(connection)
        connection.transport.abort()  # `close` would wait for a client that does not read
