"""WebSockets to hosts that are listed, over connections that were vetted."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import math
import secrets
from collections import deque
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

import httpcore2
from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, Protocol

from octavo.core.errors import Forbidden, InvalidParams, SourceUnavailable, Timeout, TooLarge
from octavo.core.external import SocketMessage
from octavo.core.sizes import KIB, PIECE
from octavo.net.client import GuardedClient, HostRule, trust
from octavo.net.dial import VettedNetwork
from octavo.net.urls import Url, spelled_url

_MOST_HEAD: Final = 16 * KIB
_WAITING: Final = 100  # messages that may wait for their reader,
_FULL: Final = 4  # of the largest only so many,
_PIECES: Final = (
    1000  # and of those in pieces so many pieces; one message may have one more for each KiB of the largest
)
_CONTROLS: Final = 100  # pings and pongs within a second
_TAKEN: Final = KIB  # bytes that are taken apart at once
_MANY: Final = 64  # frames after which others have their turn
_GUID: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of the RFC
_BROKEN: Final = (httpcore2.NetworkError, httpcore2.TimeoutException, OSError)

_SILENT: Final = logging.getLogger("websockets.octavo")  # on request it would write what is said into our log
_SILENT.setLevel(logging.WARNING)


class _Nonsense(Exception):
    """What no server may send, in words that follow its name."""


class WebSockets:
    """The `Connector` of the server."""

    def __init__(self, client: GuardedClient, network: VettedNetwork, *, seconds: float, message: int) -> None:
        self._client, self._network = client, network
        self._seconds, self._message = seconds, message

    def refuse(self, url: str) -> None:
        self._allowed(url)

    def _allowed(self, url: str) -> tuple[Url, HostRule]:
        place = spelled_url(url)
        if place.scheme not in ("ws", "wss"):
            raise InvalidParams("The URL of a WebSocket begins with wss:// or ws://")
        rule = self._client.rule(place, "GET")
        if not rule.websocket:
            why = f"The operator does not allow WebSockets to {place.host}: its rule in web.hosts needs websocket: true"
            raise Forbidden(why, host=place.host)
        return place, rule

    async def connect(self, url: str) -> WebSocket:
        place, rule = self._allowed(url)
        try:
            async with asyncio.timeout(self._seconds):
                return await self._opened(place, rule)
        except TimeoutError:
            raise Timeout(f"{place.host} did not answer within {self._seconds:g} s", telling=False) from None
        except httpcore2.ConnectError:
            raise SourceUnavailable(f"{place.host} cannot be reached safely") from None
        except _BROKEN:
            raise SourceUnavailable(f"{place.host} hung up") from None

    async def _opened(self, url: Url, rule: HostRule) -> WebSocket:
        stream = await self._network.connect_tcp(url.host, url.port, self._seconds)
        try:
            if url.secure:
                stream = await stream.start_tls(trust(), url.host, self._seconds)
            key = base64.b64encode(secrets.token_bytes(16)).decode()
            headers = {
                "host": url.authority, "upgrade": "websocket", "connection": "Upgrade", "sec-websocket-key": key,
                "sec-websocket-version": "13", "user-agent": "octavo", **rule.headers,
            }  # fmt: skip
            lines = [f"GET {url.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
            await stream.write("\r\n".join(lines).encode("latin-1"))
            return WebSocket(stream, await _agreed(stream, key, url.host), url.host, self._message)
        except BaseException:
            await stream.aclose()
            raise


async def _agreed(stream: httpcore2.AsyncNetworkStream, key: str, host: str) -> bytes:
    """What came behind the answer. Raises SourceUnavailable unless the server agrees in the words of the RFC."""
    buffer = bytearray()
    while (end := buffer.find(b"\r\n\r\n")) < 0:
        piece = b"" if len(buffer) > _MOST_HEAD else await stream.read(PIECE)
        buffer += piece
        if not piece:
            raise SourceUnavailable(f"{host} did not answer as a server should")
    first, *lines = buffer[:end].decode("latin-1").split("\r\n")
    told = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    wanted = base64.b64encode(hashlib.sha1(f"{key}{_GUID}".encode(), usedforsecurity=False).digest()).decode()
    if (
        first.split()[1:2] != ["101"]
        or told.get("sec-websocket-accept") != wanted
        or "sec-websocket-extensions" in told
    ):
        raise SourceUnavailable(f"{host} does not agree to a WebSocket: {first[:60]}")
    return bytes(buffer[end + 4 :])


class _Waiting(NamedTuple):
    message: SocketMessage
    pieces: int


class WebSocket:
    """An open one. It answers pings by itself; no more is read than may wait.

    What is no message, or not yet one, cannot wait for a reader, and could come without end: pings, pongs and pieces
    are counted, and too many of them end it."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, begun: bytes, host: str, most: int) -> None:
        self._stream, self._host, self._most = stream, host, most
        self._begun = begun  # what came behind the answer of the server
        self._frames = Protocol(CLIENT, max_size=most, logger=_SILENT)
        self._waiting: deque[_Waiting] = deque()
        self._controls, self._second = 0, -math.inf  # how many came since when
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._sending = asyncio.Lock()
        self._end = ""  # why it ended
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def send(self, content: str | bytes) -> None:
        try:
            data = content.encode() if isinstance(content, str) else content
        except UnicodeEncodeError:
            raise InvalidParams("A message must be text that UTF-8 can write") from None
        if len(data) > self._most:
            raise TooLarge(f"The message has more than {self._most:,} bytes", limit=self._most)
        if self._end:
            raise SourceUnavailable(f"{self._host} {self._end}")
        await self._write(Frame(Opcode.TEXT if isinstance(content, str) else Opcode.BINARY, data))

    async def receive(self, seconds: float) -> SocketMessage | None:
        try:
            async with asyncio.timeout(seconds):
                while not self._waiting and not self._end:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return None
        if not self._waiting:
            raise SourceUnavailable(f"{self._host} {self._end}")
        message = self._waiting.popleft().message
        self._room.set()
        return message

    async def aclose(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            await self._messages()
        except _Nonsense as nonsense:
            self._end = str(nonsense)
        except (SourceUnavailable, *_BROKEN):
            self._end = "hung up"
        finally:
            self._end = self._end or "closed the connection"
            self._news.set()
            await asyncio.shield(self._farewell())

    async def _messages(self) -> None:
        parts, kind, pieces = bytearray(), Opcode.CONT, 0
        async for frame in self._each():
            if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                kind, pieces = kind or frame.opcode, pieces + 1
                self._bound(pieces)
                parts += frame.data
                if frame.fin:
                    await self._give(_Waiting(self._message(kind, bytes(parts)), pieces))
                    parts, kind, pieces = bytearray(), Opcode.CONT, 0
                continue
            self._count_control()
            if frame.opcode is Opcode.PING:
                await self._write(Frame(Opcode.PONG, frame.data))

    def _bound(self, pieces: int) -> None:
        if pieces > (most := _PIECES + self._most // KIB):
            raise _Nonsense(f"sent a message in more than {most:,} pieces")

    def _count_control(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._second >= 1:
            self._controls, self._second = 0, now
        self._controls += 1
        if self._controls > _CONTROLS:
            raise _Nonsense(f"sent more than {_CONTROLS} pings and pongs within a second")

    async def _each(self) -> AsyncIterator[Frame]:
        """Frames until the server says goodbye or hangs up. Only a part of what was read is taken apart at once: in the
        rest there can be thousands of them. Raises _Nonsense for what no server may send."""
        piece = self._begun
        while True:
            for at in range(0, len(piece), _TAKEN):
                self._frames.receive_data(piece[at : at + _TAKEN])
                self._frames.data_to_send()  # what it would answer by itself, before its turn
                events = self._frames.events_received()
                for event in events:
                    if not isinstance(event, Frame) or event.opcode is Opcode.CLOSE:
                        return
                    yield event
                if self._frames.parser_exc is not None:
                    raise _Nonsense(self._no_message())
                if len(events) > _MANY:
                    await asyncio.sleep(0)
            if not (piece := await self._stream.read(PIECE)):
                return

    def _message(self, kind: Opcode, data: bytes) -> SocketMessage:
        if kind is Opcode.BINARY:
            return SocketMessage(data)
        try:
            return SocketMessage(data.decode())
        except UnicodeDecodeError:
            raise _Nonsense(self._no_message()) from None

    def _no_message(self) -> str:
        return f"sent what is no message, or one of more than {self._most:,} bytes"

    async def _give(self, one: _Waiting) -> None:
        self._waiting.append(one)
        self._news.set()
        while self._full():
            self._room.clear()
            await self._room.wait()

    def _full(self) -> bool:
        return (
            len(self._waiting) >= _WAITING
            or sum(len(one.message.content) for one in self._waiting) >= _FULL * self._most
            or sum(one.pieces for one in self._waiting) >= _PIECES
        )

    async def _write(self, frame: Frame) -> None:
        async with self._sending:
            try:
                await self._stream.write(frame.serialize(mask=True), timeout=10.0)
            except _BROKEN:
                raise SourceUnavailable(f"{self._host} hung up") from None

    async def _farewell(self) -> None:
        try:
            await self._stream.write(Frame(Opcode.CLOSE, (1000).to_bytes(2)).serialize(mask=True), timeout=1.0)
        except _BROKEN:
            pass
        await self._stream.aclose()
