"""A proxy in front of a real service that breaks its connections: they are refused, hang, or end amid an answer.

async with Proxy("/run/service.sock") as proxy:
    store = MyStore(f"service://{proxy.host}:{proxy.port}")
    proxy.fault = "hangs"
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Literal

from octavo.core.sizes import KIB

Fault = Literal["refused", "hangs", "half", "emptied"]
FAULTS: Final[tuple[Fault, ...]] = ("refused", "hangs", "half", "emptied")
CHUNK: Final = 64 * KIB


class Proxy:
    """Listens on a port of the loopback address that stays its own while nothing listens there.

    `refused`: no connection is taken, and those that there were are reset. `hangs`: connections are taken and nothing
    is ever answered. `half`: of each answer half is given, then the connection ends. `emptied` breaks nothing here:
    the service behind is made empty by whoever sets it."""

    host: Final = "127.0.0.1"

    def __init__(self, target: str) -> None:
        self._target = target
        self._fault: Fault | None = None
        self._server: asyncio.Server | None = None
        self._relays: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._mended = asyncio.Event()

    async def __aenter__(self) -> Proxy:
        self._kept = socket.socket()
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._kept.bind((self.host, 0))
        self.port: int = self._kept.getsockname()[1]
        self._mended.set()
        await self._listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()
        self._kept.close()

    async def break_(self, fault: Fault) -> None:
        self._fault = fault
        if fault == "hangs":
            self._mended.clear()
        elif fault == "refused":
            await self._close()
        elif fault == "emptied":
            self.cut()

    async def mend(self) -> None:
        fault, self._fault = self._fault, None
        self._mended.set()
        if fault == "refused":
            await self._listen()
        elif fault == "hangs":
            self.cut()  # what hung for long is not taken up where it was

    def cut(self) -> None:
        """Ends every connection."""
        for writer in self._writers:
            writer.transport.abort()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accepted, self.host, self.port, reuse_address=True)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()
        self._mended.set()
        relays = set(self._relays)
        for relay in relays:
            relay.cancel()
        if relays:
            await asyncio.wait(relays)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.ensure_future(self._relay(reader, writer))
        self._relays.add(relay)
        relay.add_done_callback(self._relays.discard)
        await asyncio.wait([relay])

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        behind: asyncio.StreamWriter | None = None
        try:
            back, behind = await asyncio.open_unix_connection(self._target)
            self._writers.add(behind)
            ways = [
                asyncio.ensure_future(way)
                for way in (self._pass_on(reader, behind, self._asked), self._pass_on(back, writer, self._answered))
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.wait(ways)
        except OSError:
            return
        finally:
            for one in (writer, behind):
                if one is not None:
                    self._writers.discard(one)
                    one.transport.abort()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        passing: Callable[[bytes], Awaitable[tuple[bytes, bool]]],
    ) -> None:
        try:
            while data := await reader.read(CHUNK):
                data, goes_on = await passing(data)
                writer.write(data)
                await writer.drain()
                if not goes_on:
                    return
        except (OSError, asyncio.IncompleteReadError):
            return

    async def _asked(self, data: bytes) -> tuple[bytes, bool]:
        await self._mended.wait()
        return data, True

    async def _answered(self, data: bytes) -> tuple[bytes, bool]:
        await self._mended.wait()
        if self._fault == "half":
            return data[: len(data) // 2], False
        return data, True
