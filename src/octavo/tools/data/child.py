"""The data process, seen from the server: started for one piece of work, killed if it does not end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from octavo.core.errors import InternalError, InvalidParams, OctavoError, SourceUnavailable, Timeout, TooLarge
from octavo.core.fair import FairQueue
from octavo.core.sizes import GIB, PIECE

LENGTH: Final = struct.Struct(">I")
_WORKER: Final = "octavo.tools.data.worker"
_START: Final = 5.0  # seconds beside the work: modules are large
_MAX_MESSAGE: Final = 2_000
_TOLD: Final[Mapping[str, type[OctavoError]]] = {
    kind.reason: kind for kind in (InvalidParams, TooLarge, SourceUnavailable)
}


class Done(NamedTuple):
    answer: Mapping[str, Any]
    body: bytes


class Work:
    """Asks the data process. At most `at_once` of them run, and one fewer for a single caller."""

    def __init__(self, *, seconds: float, memory: int = GIB, at_once: int = 3) -> None:
        self._seconds, self._memory = seconds, memory
        self._room = FairQueue(at_once, "data tools", spare=min(1, at_once - 1))

    async def do(self, what: str, asked: Mapping[str, Any], inputs: Sequence[str | bytes], *, max_bytes: int) -> Done:
        """Raises InvalidParams for data that are not what they should be, TooLarge and Timeout for too much of it,
        SourceUnavailable where something is not installed."""
        bodies = [one.encode("utf-8", "surrogatepass") if isinstance(one, str) else one for one in inputs]
        header = {**asked, "do": what, "sizes": [len(body) for body in bodies], "max_bytes": max_bytes}
        limits = json.dumps([self._memory, self._seconds])
        try:
            async with asyncio.timeout(self._seconds + _START), self._room.turn():  # the wait is a part of it
                raw = await self._answered(limits, [json.dumps(header).encode(), *bodies], max_bytes + PIECE)
        except TimeoutError:
            raise self._late() from None
        return _read(raw)

    async def _answered(self, limits: str, pieces: list[bytes], most: int) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-S", "-B", "-P", "-m", _WORKER, limits,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd="/",
                # All of its environment. Arrow's own allocator would reserve more than the process may have.
                env={"PYTHONPATH": _module_path(), "ARROW_DEFAULT_MEMORY_POOL": "system", "LANG": "C.UTF-8"},
                start_new_session=True,
            )  # fmt: skip
        except OSError:
            raise InternalError("No process could be started to work on the data") from None
        try:
            _, raw = await asyncio.gather(_feed(process, pieces), _collect(process, most))
            await process.wait()
        finally:
            if process.returncode is None:
                try:
                    process.kill()
                except ProcessLookupError:
                    pass
            await process.wait()
        if not raw:
            raise self._late() if process.returncode == -signal.SIGXCPU else _crashed()
        return raw

    def _late(self) -> Timeout:
        return Timeout(f"The data were not done within {self._seconds:g} s; ask for less of them", telling=False)


async def _feed(process: asyncio.subprocess.Process, pieces: list[bytes]) -> None:
    assert process.stdin is not None  # it is a pipe
    try:
        process.stdin.write(LENGTH.pack(len(pieces[0])))
        for piece in pieces:
            process.stdin.write(piece)
            await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it ended, and its answer or the lack of one says why


async def _collect(process: asyncio.subprocess.Process, most: int) -> bytes:
    assert process.stdout is not None  # it is a pipe
    raw = bytearray()
    while piece := await process.stdout.read(PIECE):
        raw += piece
        if len(raw) > most:
            raise _crashed()
    return bytes(raw)


def _read(raw: bytes) -> Done:
    """It has read the bytes of strangers, so it is believed as little."""
    try:
        (length,) = LENGTH.unpack_from(raw)
        answer = json.loads(raw[LENGTH.size : LENGTH.size + length])
        error, message = answer.get("error"), str(answer.get("message", ""))
    except (struct.error, ValueError, AttributeError):
        raise _crashed() from None
    if error is not None:
        raise _TOLD.get(error, InternalError)(message[:_MAX_MESSAGE])
    return Done(answer, raw[LENGTH.size + length :])


def _crashed() -> InvalidParams:
    return InvalidParams(
        "The data cannot be read: their reader gave up, as it does on damaged files and on those that need too much "
        "memory; give a smaller part, or save the file anew"
    )


def _module_path() -> str:
    """Where this process finds its modules, in the same order."""
    return os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
