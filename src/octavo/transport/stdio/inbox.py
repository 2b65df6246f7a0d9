"""Messages of one stdio connection that wait: for the SDK, which reads what the lane declined in its order, and for an
earlier request to be answered.

The SDK starts a task for every request it is given and bounds nothing, so calls are handed out only while those it
works on are few enough. All else passes: notifications, answers of the client, for which a call may be waiting, and
requests that take no place, such as a ping.
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

from octavo.transport.mcp.calls import CALLING
from octavo.transport.mcp.fast_path import Taken


class WaitingRequests:
    def __init__(self) -> None:
        self._waiting: deque[tuple[Taken, int]] = deque()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, taken: Taken, size: int) -> None:
        self._waiting.append((taken, size))
        self.bytes += size

    def pop(self) -> tuple[Taken, int]:
        """The first one."""
        taken, size = self._waiting.popleft()
        self.bytes -= size
        return taken, size

    def withdraw(self, request_id: types.RequestId) -> list[Taken]:
        """Takes back what the client cancelled."""
        wanted = coerce_request_id(request_id)
        gone = [one for one in self._waiting if coerce_request_id(one[0].id) == wanted]
        for one in gone:
            self._waiting.remove(one)
            self.bytes -= one[1]
        return [taken for taken, _ in gone]


OTHERS = 256  # requests that are no calls, beside listen streams, of which there may be so many


class _WaitingMessage(NamedTuple):
    message: types.JSONRPCMessage
    size: int


class Inbox:
    def __init__(self, *, room: Callable[[], bool], streams: Callable[[], int], changed: Callable[[], None]) -> None:
        """`room` says whether the SDK may be given one more call, `streams` how many listen streams there may be.
        `changed` is called when less waits, or less is worked on."""
        self._room, self._streams, self._changed = room, streams, changed
        self._waiting: deque[_WaitingMessage] = deque()
        self._open: dict[types.RequestId, list[tuple[int, bool]]] = {}  # what the SDK works on: size, whether a call
        self.calls = self._others = 0  # how many of them
        self.bytes = 0  # of all messages, waiting or worked on
        self._ready = asyncio.Event()
        self._finished = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def open(self) -> int:
        """Requests that the SDK works on."""
        return self.calls + self._others

    def put(self, message: types.JSONRPCMessage, size: int) -> None:
        self._waiting.append(_WaitingMessage(message, size))
        self.bytes += size
        self._ready.set()

    def look(self) -> None:
        """There may be room now."""
        if self._waiting:
            self._ready.set()

    def done(self, request_id: types.RequestId) -> None:
        """The SDK has ended its work on a request. Harmless for one that it does not have."""
        known = self._open.get(request_id)
        if known is not None:
            size, calls = known.pop()
            self.bytes -= size
            self._count(calls, -1)
            if not known:
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
                self.bytes -= waiting.size
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
        calls, others = self._room(), self._others < OTHERS + self._streams()
        for index, (message, size) in enumerate(self._waiting):
            if isinstance(message, types.JSONRPCRequest):
                a_call = message.method in CALLING
                if not (calls if a_call else others):
                    continue
                self._open.setdefault(message.id, []).append((size, a_call))
                self._count(a_call, 1)
            else:
                self.bytes -= size
            del self._waiting[index]
            return message
        return None

    def _count(self, a_call: bool, change: int) -> None:
        if a_call:
            self.calls += change
        else:
            self._others += change

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
