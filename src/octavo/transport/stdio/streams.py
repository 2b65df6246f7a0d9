"""The stdio transport: reads and writes lines, tries the lane first, and feeds the rest to the SDK.

The wire is moved to private descriptors first, so that a stray print or a child process cannot damage a frame. Whatever
stands behind it (a pipe, a socket, a plain file, the null device, a terminal, on every platform), it passes the same
frames, bounds and records. Every write is preceded by a flush of the audit ledger: nothing leaves before its record is
stored. Input is read only while what was read can be worked off and its answers can leave. Where nothing is worked off
for a while, because all that runs may wait for something that the client has still to say, it is read on and what finds
no room is refused: so the two sides never wait for each other.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import mcp_types as types
import msgspec
from mcp.shared.dispatcher import as_request_id, coerce_request_id
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from octavo.core.errors import OctavoError, RateLimited, Unrecorded
from octavo.core.memo import Bounded
from octavo.core.ports.server import Server
from octavo.core.sizes import BLOCK, MIB
from octavo.core.values import Principal, moments
from octavo.transport.mcp import frames, wire_names
from octavo.transport.mcp.calls import CALLING, incident
from octavo.transport.mcp.codes import INTERNAL, WireError
from octavo.transport.mcp.fast_path import EncodedAnswer, Lane, Taken, spelled
from octavo.transport.mcp.sdk_errors import unserved
from octavo.transport.stdio.inbox import Inbox, WaitingRequests
from octavo.transport.stdio.threads import ThreadReader, ThreadWriter

BATCH = BLOCK  # bytes of answers that are written at once
PIPE = BLOCK  # what a pipe shall hold, so that a batch fits: Linux gives 64 KiB unless it is asked
LEARNING = 256  # envelopes that the SDK is being asked about
RECORDED = 4096  # requests that have their record and wait for their answer
WAITING = 1024  # messages that wait before the input is paused
BYTES = 8 * MIB  # and what they may weigh, waiting or worked on
STALL = 1.0  # seconds without an end of anything after which a paused input is read on
LOOKS = 10  # in which they are counted. One that comes late counts for nothing: this process was not let run
CLOSE_SECONDS = 2.0  # for the last answers to leave
# A client that closes its end has left, or wants what it asked for: it is answered while answers keep coming. Clients
# that have left wait for two seconds before they send a signal. A plain file ends because all of it was read.
PIPE_PATIENCE = 1.0  # seconds without an answer
PIPE_IN_ALL = 10.0
FILE_PATIENCE = 60.0  # seconds without an answer behind the end of a plain file

BEGUN = Unrecorded(begun=True)
_HANDSHAKE = frozenset(("initialize", "server/discover", "ping"))  # tells nothing that could change
_LOOKS = frozenset(  # what is told can change from when it is told
    ("resources/read", "resources/list", "resources/templates/list", "tools/list", "prompts/list")
)
_CLOSED = WireError(types.CONNECTION_CLOSED, "Connection closed", None)
_OLDEST_LANE_VERSION = "2025-06-18"  # older clients need other result shapes: the SDK's business


class Recorded:
    """Requests that have their audit record and whose answer has not left yet."""

    def __init__(self) -> None:
        # Those of cancelled requests are never answered.
        self._ids: Bounded[types.RequestId, bool | None] = Bounded(RECORDED, at_once=1)
        self.done: Callable[[types.RequestId], None] = lambda _: None

    def add(self, request_id: types.RequestId, kept: bool | None) -> None:
        """`kept`: see `Answer`."""
        self._ids.keep(request_id, kept)
        self.done(request_id)

    def kept(self, request_id: types.RequestId) -> bool | None:
        return self._ids.get(request_id)

    def forget(self, request_id: types.RequestId) -> bool:
        """Whether it was there."""
        known = request_id in self._ids
        self._ids.pop(request_id, None)
        return known


class Pipes:
    """Both directions of one stdio connection."""

    def __init__(
        self,
        server: Server,
        lane: Lane,
        who: Callable[[], Principal],
        recorded: Recorded,
        finished: Callable[[], None],
    ) -> None:
        """`finished` is called when nothing more comes in and what came is answered, within bounds."""
        self._server, self._lane, self._who, self._finished = server, lane, who, finished
        self._loop = asyncio.get_running_loop()
        self.inbox = Inbox(room=self._has_room, streams=self._streams, changed=self._plan)
        self.outbox = Outbox(self)
        self._recorded = recorded
        recorded.done = self._answered_by_sdk
        self._reader: asyncio.ReadTransport | None = None
        self._writer: asyncio.WriteTransport | None = None
        self._lines: deque[bytes] = deque()  # whole ones that wait
        self._rest = bytearray()  # the beginning of a line whose end has not come
        self._skipping = False  # inside a line that is too long
        self._ended = False
        self._file = False  # the input is a plain one
        self._finishing: asyncio.Task[None] | None = None  # the input has ended, and what it said is being answered
        self._moved = asyncio.Event()  # then: something was answered
        self._out: list[EncodedAnswer] = []
        self._out_bytes = 0
        self._flush_planned = False
        self._turn = asyncio.Lock()
        self._blocked = False  # nobody takes what is written; the event is for who waits for the end of that
        self._writable = asyncio.Event()
        self._writable.set()
        self._written = asyncio.Event()  # the output is closed, and all that could leave has left
        self._era = _Era()
        self._asked: dict[types.RequestId, int] = {}  # requests that the SDK has not answered, by their ids
        self._taken_back: set[types.RequestId] = set()  # those of them that the client cancelled
        self._sending = 0  # answers of the SDK that wait until they can leave
        self._learning: Bounded[types.RequestId, bytes] = Bounded(
            LEARNING
        )  # envelopes that the SDK is being asked about
        self._running: dict[asyncio.Task[Any], tuple[Taken, int]] = {}  # suspended lane calls, and their sizes
        self._running_bytes = 0
        self._held = WaitingRequests()
        self._full = False  # too much waits: no more is taken
        self._stalled = False  # nothing has ended for a while: taken is what needs no room, and the rest refused
        self._ends = 0  # of calls, so far
        self._looking = False  # whether anything ends, while the input is paused
        self._going_on = False  # planned
        self._listening: set[types.RequestId] = set()
        self._opening = True  # the client was told nothing yet that could change
        self._looks: set[types.RequestId] = set()  # meanwhile: requests for which the SDK tells it
        self._quiet = asyncio.Event()  # no listen stream is open
        self._quiet.set()

    async def open(self, stdin: int, stdout: int) -> None:
        """Whatever the two are: both are this connection's from here on."""
        _widen(stdin, stdout)
        self._file = stat.S_ISREG(os.fstat(stdin).st_mode)
        # uvloop closes a descriptor and then the file object of it: by then it may be the descriptor of another.
        closes = not type(self._loop).__module__.startswith("uvloop")
        if _watchable(stdout, os.O_RDONLY) and not _one_socket(stdin, stdout):
            out = _binary(stdout, "wb", closes)
            self._writer, _ = await self._loop.connect_write_pipe(lambda: _WriteSide(self), out)
        else:
            self._writer = ThreadWriter(stdout, _WriteSide(self))
        if _watchable(stdin, os.O_WRONLY):
            into = _binary(stdin, "rb", closes)
            self._reader, _ = await self._loop.connect_read_pipe(lambda: _ReadSide(self), into)
        else:
            self._reader = ThreadReader(stdin, _ReadSide(self))

    async def close(self) -> None:
        """Waits, within bounds, until the last answers have left."""
        self.end()
        await asyncio.sleep(0)  # cancelled lane calls write their records
        self._write_out()
        if self._reader is not None:
            self._reader.close()
        if self._writer is not None:
            self._writer.close()
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._written.wait()
            except TimeoutError:  # nobody reads
                self._writer.abort()

    async def quiet(self) -> None:
        """Until no listen stream is open, within bounds. Whoever asks has told the streams to end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._quiet.wait()

    # -- in

    def feed(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
            if self._skipping:
                self._skipping = False
                del lines[0]
            self._lines.extend(lines)
            self._work()
        if not self._skipping:
            self._rest += rest
            limit = self._server.works.limits.line
            if len(self._rest) > limit:
                self._refuse(frames.too_large(limit))
                self._rest.clear()
                self._skipping = True

    def _work(self) -> None:
        """Takes the lines that are there, for as long as their answers can leave."""
        lines, era, lane, answered = self._lines, self._era, self._lane, self._answered
        limit, who, moment = self._server.works.limits.line, self._who(), next(moments)
        served = False
        self._flush_planned = True  # below: no turn of the loop is needed for it
        try:
            while lines and not (self._blocked or self._full):
                line = lines.popleft().strip(b" \t\r")
                if not 0 < len(line) <= limit:
                    if line:
                        self._refuse(frames.too_large(limit))
                    continue
                modern = era.modern
                taken = None if modern is None else lane.take(line, who, modern, moment)
                if taken is None:
                    self._pass_on(line)
                    continue
                if self._running and (self._held or not self._has_room()):
                    self._hold(taken, len(line))
                    continue
                task = lane.run(taken, answered)
                if task is not None:
                    self._runs(task, taken, len(line))
                else:
                    served = True
        finally:
            self._write_out()
        if served:
            self._opened()
            self._moved.set()
        self.balance()

    # -- what waits

    def _runs(self, task: asyncio.Task[Any], taken: Taken, size: int) -> None:
        self._running[task] = taken, size
        self._running_bytes += size
        task.add_done_callback(self._ran)

    def _ran(self, task: asyncio.Task[Any]) -> None:
        self._running_bytes -= self._running.pop(task)[1]
        self._ends += 1
        self._stalled = False
        self._moved.set()
        self._opened()
        self._plan()

    def _opened(self) -> None:
        """The client has its first answer, or asks for more than answers: from now on it can be told of changes."""
        if self._opening:
            self._opening = False
            self._looks.clear()
            self._server.feed.begin()

    def _answered_by_sdk(self, request_id: types.RequestId) -> None:
        self._ends += 1
        self._stalled = False
        self.inbox.done(request_id)

    def _has_room(self) -> bool:
        """For one more call."""
        begun = len(self._running) + self.inbox.calls
        return not begun or (begun < self._server.works.ahead(self._who()) and self._running_bytes < BYTES)

    def _streams(self) -> int:
        return self._server.works.subscriptions(self._who())

    def _hold(self, taken: Taken, size: int) -> None:
        if self._overfull():  # it is stalled: else nothing would have been taken
            self._turn_away(taken.id, taken.method)
        else:
            self._held.put(taken, size)
            self._weigh()

    def _turn_away(self, request_id: types.RequestId, method: str) -> None:
        """A request that finds too many waiting, of which none moves."""
        who = self._who()
        try:
            self._server.works.count(who)
            waits = "Too many of your requests wait already: try again when some are answered"
            raise RateLimited(waits, retry_after=STALL, limit="in_flight", allowed=self._server.works.ahead(who))
        except RateLimited as why:
            self._server.note(who.id, method, why.reason)
            wire = self._lane.codes.encode(why, modern=True)
            self._answered(EncodedAnswer((frames.error_frame(wire, request_id), b"\n"), spelled(request_id)))

    def _overfull(self) -> bool:
        return (
            len(self._held) + self.inbox.waiting >= WAITING
            or self._held.bytes + self._running_bytes + self.inbox.bytes >= BYTES
        )

    def _weigh(self) -> None:
        """Whether to take more."""
        self._full = not self._stalled and self._overfull()
        if self._full and not self._looking:
            self._looking = True
            self._look_again(LOOKS)

    def _look_again(self, left: int) -> None:
        due = self._loop.time() + STALL / LOOKS
        self._loop.call_at(due, self._look, self._ends, due, left)

    def _look(self, ends: int, due: float, left: int) -> None:
        if not self._full or self._ended:
            self._looking = False
        elif ends != self._ends or self._blocked:
            self._look_again(LOOKS)
        elif self._loop.time() - due > STALL / LOOKS:
            self._look_again(left)
        elif left > 1:
            self._look_again(left - 1)
        else:
            self._looking, self._stalled, self._full = False, True, False
            self._work()

    def _plan(self) -> None:
        """There may be room: looks when the loop turns, once for all that end in this turn."""
        if not self._going_on and not self._ended:
            self._going_on = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._going_on = False
        self.inbox.look()
        while self._held and not self._blocked and (not self._running or self._has_room()):
            taken, size = self._held.pop()
            task = self._lane.run(taken, self._answered)
            if task is not None:
                self._runs(task, taken, size)
        self._weigh()
        self._work()

    def finish(self) -> None:
        """Nothing more comes in: what came is answered, within bounds."""
        if self._finishing is None and not self._ended:
            if self._rest:
                self.feed(b"\n")
            self._finishing = self._loop.create_task(self._finish())

    async def _finish(self) -> None:
        patience, in_all = (FILE_PATIENCE, None) if self._file else (PIPE_PATIENCE, PIPE_IN_ALL)
        with suppress(TimeoutError):
            async with asyncio.timeout(in_all):
                while self._unanswered():
                    await self._something_moves(patience)
                self._write_out()
                if self._writer is not None:
                    self._writer.set_write_buffer_limits(high=0)  # from now on it is blocked until all have left
                while self._blocked:
                    await self._something_moves(patience)
        self._finished()

    async def _something_moves(self, patience: float) -> None:
        """Raises TimeoutError."""
        self._moved.clear()
        async with asyncio.timeout(patience):
            await self._moved.wait()

    def _unanswered(self) -> bool:
        """Whether the client is owed something. Streams are not: they end when it has gone."""
        return bool(
            self._lines
            or self._held
            or self._running
            or self._sending
            or self._blocked
            or self._asked.keys() - self._listening - self._taken_back
        )

    def end(self) -> None:
        """Nothing more comes in. What still runs is told to the client as the SDK tells it."""
        if self._ended:
            return
        if self._rest:
            self.feed(b"\n")
        self._ended = True
        if self._finishing is not None:
            self._finishing.cancel()
        while self._held:
            taken, _ = self._held.pop()
            self._server.note(self._who().id, taken.method, "cancelled")
            self._answered(EncodedAnswer((frames.error_frame(_CLOSED, taken.id), b"\n"), taken.spelled))
        for task, (taken, _) in self._running.items():
            if task.cancel():
                self._answered(EncodedAnswer((frames.error_frame(_CLOSED, taken.id), b"\n"), taken.spelled))
        self.inbox.finish()

    def balance(self) -> None:
        """Reads only while what was read can be worked off and answered."""
        if self._reader is None or self._reader.is_closing():
            return
        full = self._full or self._blocked
        if full and self._reader.is_reading():
            self._reader.pause_reading()
        elif not full and not self._reader.is_reading():
            self._reader.resume_reading()

    def _pass_on(self, line: bytes) -> None:
        """To the SDK."""
        try:
            message = _message(line)
        except frames.Malformed as bad:
            self._refuse(bad)
            return
        if isinstance(message, types.JSONRPCRequest):
            if self._stalled and message.method in CALLING and self._overfull():
                self._turn_away(message.id, message.method)
                return
            self._notice(message, line)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._cancel(as_request_id((message.params or {}).get("requestId")))
        self.inbox.put(message, len(line))
        self._weigh()

    def _notice(self, request: types.JSONRPCRequest, line: bytes) -> None:
        if self._opening and request.method in _LOOKS:
            self._looks.add(request.id)
        elif request.method not in _HANDSHAKE:
            self._opened()
        meta = (request.params or {}).get("_meta")
        enveloped = isinstance(meta, dict) and wire_names.PROTOCOL_VERSION in meta
        self._recorded.forget(request.id)  # of a cancelled request with the same id
        self._era.asked(request, enveloped)
        if request.method == "subscriptions/listen":
            self._listening.add(request.id)
            self._quiet.clear()
        alone = self._ask(request.id)
        if not alone:  # which of them an answer is for cannot be told
            self._learning.pop(request.id, None)
        elif enveloped and (envelope := self._lane.envelope(line)) is not None:
            self._learning.keep(request.id, envelope)

    def _ask(self, request_id: types.RequestId) -> bool:
        """Whether no other request with this id waits for its answer."""
        if len(self._asked) >= RECORDED:  # those of cancelled requests, which are never answered
            self._asked.clear()
            self._taken_back.clear()
            self._learning.clear()
        self._taken_back.discard(request_id)
        others = self._asked.get(request_id, 0)
        self._asked[request_id] = others + 1
        return not others

    def _cancel(self, request_id: types.RequestId | None) -> None:
        """The SDK hears of every cancellation too, since the request may be one of its own."""
        if request_id is None:
            return
        wanted = coerce_request_id(request_id)
        for task, (taken, _) in self._running.items():
            if coerce_request_id(taken.id) == wanted:
                task.cancel()
        for listening in [one for one in self._listening if coerce_request_id(one) == wanted]:
            self._unlisten(listening)
        self._taken_back.update(one for one in self._asked if coerce_request_id(one) == wanted)
        gone = [taken.method for taken in self._held.withdraw(request_id)]
        withdrawn = self.inbox.withdraw(request_id)
        for method in gone if withdrawn is None else [*gone, withdrawn.method]:
            self._server.note(self._who().id, method, "cancelled")

    def _unlisten(self, request_id: types.RequestId) -> None:
        self._listening.discard(request_id)
        if not self._listening:
            self._quiet.set()

    def _refuse(self, bad: frames.Malformed) -> None:
        self._server.note(self._who().id, "malformed", f"error {bad.error.code}")
        self._answered(EncodedAnswer((frames.error_frame(bad.error, bad.id), b"\n"), _spelled(bad.id)))

    # -- out

    def _answered(self, answer: EncodedAnswer) -> None:
        self._out.append(answer)
        for piece in answer.pieces:
            self._out_bytes += len(piece)
        if self._out_bytes >= BATCH:
            self._write_out()
        elif not self._flush_planned:
            self._flush_planned = True
            self._loop.call_soon(self._write_out)

    async def send(self, message: types.JSONRPCMessage) -> None:
        request_id = kept = None
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id is not None:
            request_id, kept = message.id, self._recorded.kept(message.id)
            if not self._settled(request_id, message) and isinstance(message, types.JSONRPCError):
                message = message.model_copy(update={"error": unserved(message.error)})
        self._sending += 1
        try:
            async with self._turn:  # one after the other, or all who waited would encode at once
                await self._writable.wait()
                self._answered(EncodedAnswer((_encoded(message, request_id), b"\n"), _spelled(request_id), kept=kept))
        finally:
            self._sending -= 1
            self._moved.set()
        if request_id in self._looks:
            self._loop.call_soon(self._opened)  # when it has left

    def _settled(self, request_id: types.RequestId, answer: types.JSONRPCResponse | types.JSONRPCError) -> bool:
        """Whether it had a record; what has none was refused by the SDK before it looked at the method."""
        succeeded = isinstance(answer, types.JSONRPCResponse)
        recorded = self._recorded.forget(request_id)
        if not recorded:
            outcome = "ok" if isinstance(answer, types.JSONRPCResponse) else f"error {answer.error.code}"
            self._server.note(self._who().id, "request", outcome)
            self._answered_by_sdk(request_id)
        self._unlisten(request_id)
        others = self._asked.pop(request_id, 1) - 1
        if others:
            self._asked[request_id] = others
        envelope = self._learning.pop(request_id, None)
        if envelope is not None and succeeded:
            self._lane.learn(envelope, self._who())
        self._era.answered(request_id, answer.result if isinstance(answer, types.JSONRPCResponse) else None)
        return recorded

    def _write_out(self) -> None:
        self._flush_planned = False
        if not self._out:
            return
        batch, self._out, self._out_bytes = self._out, [], 0
        if self._writer is None or self._writer.is_closing():
            return
        try:
            self._server.ledger.flush()
        except OctavoError as fault:  # without its record nothing leaves but the news of it
            batch = [
                answer if answer.kept else _unrecorded(answer.id, fault if answer.kept is None else BEGUN)
                for answer in batch
                if answer.id is not None
            ]
        self._writer.writelines([piece for answer in batch for piece in answer.pieces])

    def writable(self, yes: bool) -> None:
        self._blocked = not yes
        if yes:
            self._writable.set()
            self._moved.set()
            self._go_on()
        else:
            self._writable.clear()
            self.balance()

    def broken(self) -> None:
        """Nobody reads any more."""
        self._written.set()
        self._blocked = False
        self._writable.set()
        self._lines.clear()
        self._rest.clear()
        self.end()


class _Era:
    """What the lane may assume of the connection, learnt from the requests that go to the SDK."""

    def __init__(self) -> None:
        self.modern: bool | None = None  # None: leave everything to the SDK
        self._opened: bool | None = None  # whether the first request, which fixes the era, was modern
        self._initializing: list[types.RequestId] = []
        self._version = ""

    def asked(self, request: types.JSONRPCRequest, enveloped: bool) -> None:
        initialize = request.method == "initialize"
        if self._opened is None:
            self._opened = enveloped and not initialize
            self.modern = True if self._opened else None
        if initialize and not self._opened and len(self._initializing) < 16:
            self._initializing.append(request.id)
            self.modern = None  # what follows means what the answer will say

    def answered(self, request_id: types.RequestId, result: dict[str, Any] | None) -> None:
        if request_id in self._initializing:
            self._initializing.remove(request_id)
            if result is not None:
                self._version = str(result.get("protocolVersion", ""))
            if not self._initializing and self._version >= _OLDEST_LANE_VERSION:
                self.modern = False


def _message(line: bytes) -> types.JSONRPCMessage:
    decoded = frames.check(line)
    try:
        message = types.jsonrpc_message_adapter.validate_python(decoded, by_name=False)
    except ValidationError:
        raise frames.invalid("Invalid Request", request_id=decoded.get("id")) from None
    if isinstance(message, types.JSONRPCNotification) and "id" in decoded:
        raise frames.invalid("The id of a request is text or an integer")
    return message


def _unrecorded(request_id: bytes, fault: OctavoError) -> EncodedAnswer:
    frame = frames.error_frame(INTERNAL.encode(fault, modern=True), msgspec.Raw(request_id))
    return EncodedAnswer((frame, b"\n"), None)


def _spelled(request_id: types.RequestId | None) -> bytes | None:
    return None if request_id is None else spelled(request_id)


def _encoded(message: types.JSONRPCMessage, request_id: types.RequestId | None) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8")
    except (
        ValueError,
        TypeError,
        RecursionError,
    ) as fault:  # a plugin that speaks the raw protocol can return anything
        return frames.error_frame(INTERNAL.encode(incident(fault), modern=True), request_id)


class _ReadSide(asyncio.Protocol):
    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes

    def data_received(self, data: bytes) -> None:
        self._pipes.feed(data)

    def eof_received(self) -> bool:
        self._pipes.finish()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._pipes.finish()


class _WriteSide(asyncio.Protocol):
    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes

    def pause_writing(self) -> None:
        self._pipes.writable(False)

    def resume_writing(self) -> None:
        self._pipes.writable(True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pipes.broken()


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


def _widen(*pipes: int) -> None:
    if sys.platform == "linux":
        import fcntl

        for pipe in pipes:
            with suppress(OSError):  # a socket, or more than this user may have
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)


def claim() -> tuple[int, int]:
    """Moves the wire to private descriptors; 0 becomes the null device, 1 goes to stderr."""
    stdin, stdout = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return stdin, stdout


def _watchable(descriptor: int, wrong: int) -> bool:
    """Whether the event loop can wait for it; else a thread does. `wrong` is how it is open where nothing can come or
    go: a loop would wait for ever, and a thread is told so at once."""
    if sys.platform == "win32":
        return False
    import fcntl

    kind = os.fstat(descriptor).st_mode
    usable = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != wrong
    return usable and (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind))


def _one_socket(stdin: int, stdout: int) -> bool:
    """A loop that writes takes what can be read there for the sign that the other side has gone."""
    one, other = os.fstat(stdin), os.fstat(stdout)
    return stat.S_ISSOCK(one.st_mode) and os.path.samestat(one, other)


def _binary(descriptor: int, mode: str, closes: bool) -> Any:
    return os.fdopen(descriptor, mode, buffering=0, closefd=closes)
