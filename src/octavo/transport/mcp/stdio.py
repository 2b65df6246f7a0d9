"""stdio without threads: our own streams under the SDK's server, with the hot lane before it.

The wire is moved to private descriptors first, so that a stray print or a child process cannot damage a
frame. Every write is preceded by a flush of the audit ledger: nothing leaves before its record is stored.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections import deque
from types import TracebackType
from typing import Any, Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from octavo.core.house import House
from octavo.core.model import Principal
from octavo.transport.mcp import frames, keys
from octavo.transport.mcp.codes import WireError
from octavo.transport.mcp.lane import Lane

WAITING = 1024  # frames that wait for the SDK before the input is paused
_OLDEST_LANE_VERSION = "2025-06-18"  # older clients need other result shapes: the SDK's business


class Pipes:
    """Both directions of one stdio connection."""

    def __init__(self, house: House, lane: Lane, who: Principal, recorded: set[str]) -> None:
        self._house, self._lane, self._who = house, lane, who
        self._loop = asyncio.get_running_loop()
        self.inbox = Inbox(self)
        self.outbox = Outbox(self)
        self._recorded = recorded  # ids of requests that have their audit record
        self._reader: asyncio.ReadTransport | None = None
        self._writer: asyncio.WriteTransport | None = None
        self._buffer = bytearray()
        self._skipping = False  # inside a line that is too long
        self._out: list[bytes] = []
        self._flush_planned = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._era: bool | None = None  # None: not known yet; True: modern
        self._opening: str | None = None  # id of the first request, which fixes the era
        self._opening_is_modern = False
        self._learning: dict[str, bytes] = {}  # envelopes that the SDK is being asked about
        self._running: dict[str, asyncio.Task[Any]] = {}  # suspended lane calls

    async def open(self, stdin: int, stdout: int) -> None:
        self._writer, _ = await self._loop.connect_write_pipe(lambda: _WriteSide(self), _binary(stdout, "wb"))
        self._reader, _ = await self._loop.connect_read_pipe(lambda: _ReadSide(self), _binary(stdin, "rb"))

    def close(self) -> None:
        for task in self._running.values():
            task.cancel()
        self._write_out()
        if self._reader is not None:
            self._reader.close()
        if self._writer is not None:
            self._writer.close()

    # -- in

    def feed(self, data: bytes) -> None:
        self._buffer += data
        limit = self._house.works.limits.line
        start = 0
        while (end := self._buffer.find(b"\n", start)) >= 0:
            if self._skipping:
                self._skipping = False
            elif end - start > limit:
                self._refuse_long(limit)
            elif line := bytes(self._buffer[start:end]).strip():
                self._line(line)
            start = end + 1
        del self._buffer[:start]
        if len(self._buffer) > limit:
            if not self._skipping:
                self._refuse_long(limit)
            self._skipping = True
            self._buffer.clear()
        self._write_out()
        self.balance()

    def end(self) -> None:
        for task in self._running.values():
            task.cancel()
        self.inbox.finish()

    def balance(self) -> None:
        """Reads only while what was read can be worked off and answered."""
        if self._reader is None or self._reader.is_closing():
            return
        full = len(self.inbox) >= WAITING or not self._writable.is_set()
        if full and self._reader.is_reading():
            self._reader.pause_reading()
        elif not full and not self._reader.is_reading():
            self._reader.resume_reading()

    def _line(self, line: bytes) -> None:
        if self._era is not None:
            taken = self._lane.take(line, self._who, modern=self._era)
            if taken is not None:
                self._run(taken)
                return
        if (fault := frames.fault(line)) is not None:
            self._refuse(fault)
            return
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            self._refuse(WireError(-32600, "Invalid Request", {"reason": "invalid_request"}))
            return
        if isinstance(message, types.JSONRPCRequest):
            self._notice(message, line)
        elif isinstance(message, types.JSONRPCNotification) and self._cancelled(message):
            return
        self.inbox.put(SessionMessage(message))

    def _run(self, taken: Any) -> None:
        task = self._lane.run(taken, self._answered)
        if task is not None:
            key = str(taken.id)
            self._running[key] = task
            task.add_done_callback(lambda _: self._running.pop(key, None))

    def _notice(self, request: types.JSONRPCRequest, line: bytes) -> None:
        meta = (request.params or {}).get("_meta")
        enveloped = isinstance(meta, dict) and keys.PROTOCOL_VERSION in meta
        if self._opening is None:
            self._opening = str(request.id)
            self._opening_is_modern = enveloped and request.method != "initialize"
        if enveloped and len(self._learning) < WAITING and (envelope := self._lane.envelope(line)) is not None:
            self._learning[str(request.id)] = envelope

    def _cancelled(self, message: types.JSONRPCNotification) -> bool:
        """Whether a notification was the cancellation of a call that the lane runs."""
        if message.method != "notifications/cancelled":
            return False
        task = self._running.get(str((message.params or {}).get("requestId")))
        return task is not None and task.cancel()

    def _refuse_long(self, limit: int) -> None:
        self._refuse(WireError(-32600, f"A message is longer than {limit} bytes", {"reason": "too_large"}))

    def _refuse(self, error: WireError) -> None:
        self._house.note(self._who.id, "malformed", f"error {error.code}")
        self._answered(frames.error_frame(error))

    # -- out

    def _answered(self, frame: bytes) -> None:
        self._out.append(frame)
        self._out.append(b"\n")
        if not self._flush_planned:
            self._flush_planned = True
            self._loop.call_soon(self._write_out)

    async def send(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id is not None:
            self._settled(str(message.id), message)
        self._answered(message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8"))
        await self._writable.wait()

    def _settled(self, key: str, answer: types.JSONRPCResponse | types.JSONRPCError) -> None:
        succeeded = isinstance(answer, types.JSONRPCResponse)
        if key in self._recorded:
            self._recorded.discard(key)
        else:
            # Refused by the SDK before it looked at the method.
            outcome = "ok" if isinstance(answer, types.JSONRPCResponse) else f"error {answer.error.code}"
            self._house.note(self._who.id, "request", outcome)
        envelope = self._learning.pop(key, None)
        if envelope is not None and succeeded:
            self._lane.learn(envelope)
        if self._era is None and key == self._opening and isinstance(answer, types.JSONRPCResponse):
            if self._opening_is_modern:
                self._era = True
            elif str(answer.result.get("protocolVersion", "")) >= _OLDEST_LANE_VERSION:
                self._era = False

    def _write_out(self) -> None:
        self._flush_planned = False
        if not self._out or self._writer is None or self._writer.is_closing():
            return
        data, self._out = b"".join(self._out), []
        self._house.ledger.flush()
        self._writer.write(data)

    def writable(self, yes: bool) -> None:
        if yes:
            self._writable.set()
        else:
            self._writable.clear()
        self.balance()

    def broken(self) -> None:
        """Nobody reads any more."""
        self._writable.set()
        self.inbox.finish()


class _ReadSide(asyncio.Protocol):
    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes

    def data_received(self, data: bytes) -> None:
        self._pipes.feed(data)

    def eof_received(self) -> bool:
        self._pipes.end()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._pipes.end()


class _WriteSide(asyncio.Protocol):
    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes

    def pause_writing(self) -> None:
        self._pipes.writable(False)

    def resume_writing(self) -> None:
        self._pipes.writable(True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pipes.broken()


class Inbox:
    """What the SDK reads: the frames that the lane declined, in their order."""

    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes
        self._frames: deque[SessionMessage] = deque()
        self._ready = asyncio.Event()
        self._finished = False

    def __len__(self) -> int:
        return len(self._frames)

    def put(self, frame: SessionMessage) -> None:
        self._frames.append(frame)
        self._ready.set()

    def finish(self) -> None:
        self._finished = True
        self._ready.set()

    async def receive(self) -> SessionMessage:
        while not self._frames:
            if self._finished:
                raise anyio.EndOfStream
            self._ready.clear()
            await self._ready.wait()
        frame = self._frames.popleft()
        self._pipes.balance()
        return frame

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


class Outbox:
    """Where the SDK writes."""

    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes

    async def send(self, item: SessionMessage, /) -> None:
        await self._pipes.send(item.message)

    async def aclose(self) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.aclose()


def usable(*descriptors: int) -> bool:
    """Whether the event loop can watch these: pipes and sockets. uvloop aborts on a plain file."""
    if sys.platform == "win32":
        return False
    kinds = (os.fstat(descriptor).st_mode for descriptor in descriptors)
    return all(stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) for kind in kinds)


def claim() -> tuple[int, int]:
    """Moves the wire to private descriptors; 0 becomes the null device, 1 goes to stderr."""
    stdin, stdout = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return stdin, stdout


def _binary(descriptor: int, mode: str) -> Any:
    return os.fdopen(descriptor, mode, buffering=0)
