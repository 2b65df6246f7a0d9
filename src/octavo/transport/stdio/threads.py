"""Transports for descriptors that the event loop cannot watch: a thread of each waits in the loop's place.

uvloop aborts the process on a plain file and on the null device, and would make a terminal non-blocking for whoever
else has it open; on Windows no loop can watch what a process is started with. What is read and written is handed to the
same protocols as that of a pipe, with the same pressure back: one piece is on its way in, and a bounded number of bytes
out.

Nobody can interrupt a thread that reads from a terminal, so these are daemons and nobody waits for them.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from octavo.core.sizes import KIB

PIECE: Final = 256 * KIB  # bytes that are read at once
HIGH: Final = 64 * KIB  # bytes that wait to be written before no more are taken


class ThreadReader(asyncio.ReadTransport):
    """Tells `protocol` of what comes, and of the end."""

    def __init__(self, descriptor: int, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._descriptor, self._protocol = descriptor, protocol
        self._loop = asyncio.get_running_loop()
        self._asked = threading.Event()
        self._asking = self._paused = self._closing = False
        _start("octavo-stdin", self._read)
        self._ask()

    def is_reading(self) -> bool:
        return not (self._paused or self._closing)

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        """What is read already is told all the same."""
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        if not self._asking:
            self._ask()

    def close(self) -> None:
        self._closing = True
        self._asked.set()

    def _ask(self) -> None:
        """For one more piece."""
        self._asking = True
        self._asked.set()

    def _take(self, piece: bytes) -> None:
        self._asking = False
        if self._closing:
            return
        if not piece:
            self.close()
            self._protocol.eof_received()
            self._protocol.connection_lost(None)
            return
        self._protocol.data_received(piece)
        if self.is_reading() and not self._asking:
            self._ask()

    def _read(self) -> None:
        """In the thread."""
        with _closed(self._descriptor):
            piece = b"-"
            while piece:
                self._asked.wait()
                if self._closing:
                    return
                self._asked.clear()
                try:
                    piece = _patiently(lambda: os.read(self._descriptor, PIECE), reads=self._descriptor)
                except OSError:  # a terminal that is gone, a folder, an end that is for writing
                    piece = b""
                _tell(self._loop, self._take, piece)


class ThreadWriter(asyncio.WriteTransport):
    """Tells `protocol` when too much waits, when it has gone, and when all is over."""

    def __init__(self, descriptor: int, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._descriptor, self._protocol = descriptor, protocol
        self._loop = asyncio.get_running_loop()
        self._changed = threading.Condition()
        self._waiting: list[bytes] = []
        self._closing = self._blocked = False
        self._size = 0  # bytes that wait, or are being written
        self._high = HIGH
        _start("octavo-stdout", self._write)

    def is_closing(self) -> bool:
        return self._closing

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._closing:
            return
        self._size += len(data)
        with self._changed:
            self._waiting.append(bytes(data))
            self._changed.notify()
        self._weigh()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """More is taken when all is written, whatever `low` says."""
        self._high = HIGH if high is None else high
        self._weigh()

    def _weigh(self) -> None:
        if self._size > self._high and not self._blocked:
            self._blocked = True
            self._protocol.pause_writing()

    def close(self) -> None:
        """What waits is written before."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def abort(self) -> None:
        with self._changed:
            self._waiting.clear()
        self.close()

    def _wrote(self, size: int) -> None:
        self._size -= size
        if self._blocked and not self._size:
            self._blocked = False
            self._protocol.resume_writing()

    def _lost(self, why: OSError | None) -> None:
        self._closing = True
        self._protocol.connection_lost(why)

    def _write(self) -> None:
        """In the thread."""
        lost: OSError | None = None
        with _closed(self._descriptor):
            while lost is None and (data := self._next()):
                rest = memoryview(data)
                try:
                    while rest:
                        rest = rest[_patiently(lambda: os.write(self._descriptor, rest), writes=self._descriptor) :]  # noqa: B023
                except OSError as error:  # nobody takes it, or there is no room for it
                    lost = error
                else:
                    _tell(self._loop, self._wrote, len(data))
        _tell(self._loop, self._lost, lost)

    def _next(self) -> bytes:
        """All that waits; nothing once it is over."""
        with self._changed:
            while not (self._waiting or self._closing):
                self._changed.wait()
            data = b"".join(self._waiting)
            self._waiting.clear()
            return data


def _patiently(does: Callable[[], Any], *, reads: int | None = None, writes: int | None = None) -> Any:
    """Also where somebody else who has the descriptor open has made it non-blocking."""
    while True:
        try:
            return does()
        except BlockingIOError:
            select.select([] if reads is None else [reads], [] if writes is None else [writes], [])


class _closed:
    """The descriptor is, at the end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            os.close(self._descriptor)


def _tell(loop: asyncio.AbstractEventLoop, listener: Callable[..., None], *told: Any) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody wants to know
        loop.call_soon_threadsafe(listener, *told)


def _start(name: str, work: Callable[[], None]) -> None:
    threading.Thread(target=work, name=name, daemon=True).start()
