"""What the SDK reads from stdio: the messages that the lane declined, in their order.

The SDK starts a task for every request it is given and bounds nothing, so requests are handed out only
while those it works on are few enough. Notifications and answers of the client pass at once: a request
may be waiting for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

import anyio
import mcp_types as types
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage

WAITING = 1024  # messages that wait before the input is paused
BYTES = 8 << 20  # and what they may weigh, waiting or worked on


class _Waiting(NamedTuple):
    message: types.JSONRPCMessage
    size: int


class Inbox:
    def __init__(self, *, at_once: Callable[[], int], changed: Callable[[], None]) -> None:
        """`at_once` says how many requests the SDK may work on; `changed` is called when there is more room."""
        self._at_once, self._changed = at_once, changed
        self._waiting: deque[_Waiting] = deque()
        self._open: dict[types.RequestId, list[int]] = {}  # sizes of the requests that the SDK works on
        self._open_count = 0
        self._bytes = 0
        self._ready = asyncio.Event()
        self._finished = False

    @property
    def full(self) -> bool:
        return len(self._waiting) >= WAITING or self._bytes >= BYTES

    def put(self, message: types.JSONRPCMessage, size: int) -> None:
        self._waiting.append(_Waiting(message, size))
        self._bytes += size
        self._ready.set()

    def done(self, request_id: types.RequestId) -> None:
        """The SDK has ended its work on a request. Harmless for one that it does not have."""
        sizes = self._open.get(request_id)
        if sizes is not None:
            self._bytes -= sizes.pop()
            self._open_count -= 1
            if not sizes:
                del self._open[request_id]
            self._ready.set()
            self._changed()

    def withdraw(self, request_id: types.RequestId) -> types.JSONRPCRequest | None:
        """Takes back a request that the client cancelled before the SDK saw it."""
        wanted = coerce_request_id(request_id)
        for waiting in self._waiting:
            message = waiting.message
            if isinstance(message, types.JSONRPCRequest) and coerce_request_id(message.id) == wanted:
                self._waiting.remove(waiting)
                self._bytes -= waiting.size
                return message
        return None

    def finish(self) -> None:
        self._finished = True
        self._ready.set()

    async def receive(self) -> SessionMessage:
        while (found := self._next()) is None:
            if self._finished:
                raise anyio.EndOfStream
            self._ready.clear()
            await self._ready.wait()
        self._changed()
        return SessionMessage(found)

    def _next(self) -> types.JSONRPCMessage | None:
        if not self._waiting:
            return None
        room = self._open_count < self._at_once()
        for index, (message, size) in enumerate(self._waiting):
            if isinstance(message, types.JSONRPCRequest):
                if not room:
                    continue
                self._open.setdefault(message.id, []).append(size)
                self._open_count += 1
            else:
                self._bytes -= size
            del self._waiting[index]
            return message
        return None

    async def aclose(self) -> None:
        self.finish()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.aclose()
