"""Accepts many new connections in one turn of the event loop.

The loop itself takes one in a turn. Under load its turns are long, and newcomers would wait for seconds while those who
are in are served: overload could neither be seen nor shared out.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections import Counter
from functools import partial

import uvicorn

logger = logging.getLogger(__name__)

AT_ONCE = 256  # connections taken in during one turn
PAUSE = 1.0  # seconds without new ones, when the system has no descriptor left


class AcceptingServer(uvicorn.Server):
    """`handshake` is how long a client may take to agree on encryption, in seconds; `most` how many may do so."""

    def __init__(self, config: uvicorn.Config, *, handshake: float, most: int) -> None:
        super().__init__(config)
        self._handshake, self._most = handshake, most
        self._arriving: dict[asyncio.Task[object], str] = {}  # from which address; the oldest first

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if sys.platform == "win32":
            await super().startup(sockets)
            return
        await super().startup([])
        for listening in sockets or ():
            listening.setblocking(False)
            self._listen(listening)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in sockets or ():
            asyncio.get_running_loop().remove_reader(listening)
        for task in self._arriving:
            task.cancel()
        await super().shutdown(sockets)

    def _listen(self, listening: socket.socket) -> None:
        if not self.should_exit:
            asyncio.get_running_loop().add_reader(listening, partial(self._accept, listening))

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(AT_ONCE):
            try:
                connected, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                logger.warning("No new connections for a moment: %s", error.strerror)
                loop.remove_reader(listening)
                loop.call_later(PAUSE, self._listen, listening)
                return
            task: asyncio.Task[object] = loop.create_task(self._welcome(connected))
            self._arriving[task] = str(address[0]) if address else ""
            task.add_done_callback(partial(self._arrived, connected))
            if len(self._arriving) > self._most:
                self._make_room()

    def _make_room(self) -> None:
        """The oldest goes of the address from which most arrive: whoever never agrees on encryption keeps out nobody
        else."""
        (most, _), *_ = Counter(self._arriving.values()).most_common(1)
        oldest = next(task for task, address in self._arriving.items() if address == most)
        del self._arriving[oldest]
        oldest.cancel()

    async def _welcome(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        if connected.family != getattr(socket, "AF_UNIX", None):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        secure = self.config.ssl
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol,
                connected,
                ssl=secure,
                ssl_handshake_timeout=None if secure is None else self._handshake,
            )
        except OSError:  # who came has left again, is too slow, or does not speak TLS
            connected.close()

    def _arrived(self, connected: socket.socket, task: asyncio.Task[object]) -> None:
        self._arriving.pop(task, None)
        if task.cancelled():  # it may never have begun
            connected.close()

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made
