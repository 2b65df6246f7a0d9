"""One worker process, seen from the server: started, asked, killed, and gone without a trace."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Final, Protocol, cast

import msgspec

from octavo.core.errors import InternalError
from octavo.sources._shared.documents.frames import LENGTHS, MAX_HEADER, pack
from octavo.sources._shared.documents.model import ConversionLimits

_WORKER: Final = "octavo.sources._shared.documents.worker"
_START_SECONDS: Final = 30.0


class Reply(msgspec.Struct):
    """What a worker says of its work. It has read the bytes of strangers, so it is believed as little."""

    ready: bool = False
    error: str | None = None
    message: str = ""
    parts: list[str] = []
    truncated: bool = False
    mime: str = ""
    spent: bool = False


class Gone(Exception):
    """The process ended, or talked nonsense and was ended, before it answered."""

    def __init__(self, out_of_time: bool) -> None:
        super().__init__()
        self.out_of_time = out_of_time


class _Pipe(Protocol):
    def write(self, data: bytes) -> None: ...


class ConverterProcess(asyncio.SubprocessProtocol):
    """Answers one request at a time. Whoever stops waiting for an answer must kill it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._answer: asyncio.Future[tuple[Reply, bytes]] = self._loop.create_future()
        self._max_bytes = 0
        self._buffer = bytearray()

    @classmethod
    async def start(cls, limits: ConversionLimits) -> ConverterProcess:
        """Raises InternalError when no process can be started."""
        try:
            _, child = await asyncio.get_running_loop().subprocess_exec(
                cls, sys.executable, "-S", "-B", "-P", "-m", _WORKER, json.dumps(limits),
                stderr=asyncio.subprocess.DEVNULL,
                cwd="/",
                env={"PYTHONPATH": _module_path()},  # all of its environment
                start_new_session=True,
            )  # fmt: skip
        except OSError:
            raise InternalError("No process could be started to read the document") from None
        return child

    async def ready(self) -> None:
        """Until it has limited itself and waits for work."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._answer
        except (Gone, TimeoutError):
            raise InternalError("The process that reads documents did not start") from None

    @property
    def alive(self) -> bool:
        return not self._gone.done() and self._transport.get_returncode() is None

    async def ask(self, header: dict[str, object], body: bytes, *, max_bytes: int) -> tuple[Reply, bytes]:
        """Raises Gone, also for an answer of more than max_bytes."""
        self._answer, self._max_bytes = self._loop.create_future(), max_bytes
        if self._gone.done():
            self._fail()
        else:
            for piece in pack(header, body):
                self._stdin.write(piece)
        return await self._answer

    def kill(self) -> None:
        if self.alive:
            self._transport.kill()

    async def gone(self) -> None:
        """Waits until the process is reaped and its pipes are closed."""
        await asyncio.shield(self._gone)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._stdin = cast(_Pipe, self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) < LENGTHS.size:
            return
        header, body = LENGTHS.unpack_from(self._buffer)
        if header > MAX_HEADER or body > self._max_bytes or self._answer.done():
            self._nonsense()
            return
        end = LENGTHS.size + header + body
        if len(self._buffer) < end:
            return
        try:
            reply = msgspec.json.decode(self._buffer[LENGTHS.size : LENGTHS.size + header], type=Reply)
        except msgspec.DecodeError:
            self._nonsense()
            return
        with memoryview(self._buffer) as whole:  # a slice of the buffer would be one more copy
            self._answer.set_result((reply, bytes(whole[LENGTHS.size + header : end])))
        self._buffer.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport.close()
        self._fail()
        self._gone.set_result(None)

    def _nonsense(self) -> None:
        self.kill()
        self._fail()

    def _fail(self) -> None:
        if not self._answer.done():
            self._answer.set_exception(Gone(self._transport.get_returncode() == -signal.SIGXCPU))
            self._answer.exception()  # nobody may be waiting, which is no mistake


def _module_path() -> str:
    """Where this process finds its modules, in the same order."""
    return os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
