"""The real program as a process, and raw hands on its wires. Everything waits for an event, within a bound."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from tests.gate.world import CONFIG, KEYS

LIMIT = 30.0
_MESSAGE = msgspec.json.Decoder(dict[str, msgspec.Raw])


def configured(folder: Path) -> Path:
    file = folder / "octavo.yaml"
    file.write_text(CONFIG.replace("RATE", "off"), encoding="utf-8")
    return file


class Program:
    def __init__(self, folder: Path, *options: str, stdin: int | None = subprocess.PIPE) -> None:
        self.errors = folder / f"stderr-{os.urandom(4).hex()}"
        command = [sys.executable, "-m", "octavo", "serve", "--config", str(configured(folder)), *options]
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=stdin, stdout=subprocess.PIPE, stderr=errors, bufsize=0, env={**os.environ, **KEYS}
            )
        self._got = bytearray()

    # -- stdio

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        descriptor = self.process.stdin.fileno()
        os.set_blocking(descriptor, False)
        assert self.process.stdout is not None
        while data:
            heard, ready, _ = select.select([self.process.stdout], [descriptor], [], LIMIT)
            assert heard or ready, "the server does not read"
            if heard and not self._read():
                return  # it has ended
            if ready:
                data = data[os.write(descriptor, data[: 1 << 16]) :]

    def lines(self, count: int) -> list[dict[str, Any]]:
        """At least so many answers."""
        return [json.loads(line) for line in self._lines(count)]  # nothing but JSON ever comes out

    def hear(self, count: int) -> None:
        """At least so many answers, none of which is kept: together they may be a gigabyte."""
        heard = 0
        for line in self._lines(count):
            _MESSAGE.decode(line)
            heard += 1
        assert heard >= count

    def _lines(self, count: int) -> Iterator[bytes]:
        """What has come, until it is so many lines or the program ends."""
        while True:
            *whole, rest = bytes(self._got).split(b"\n")
            self._got[:] = rest
            yield from whole
            count -= len(whole)
            if count <= 0 or not self._read():
                return

    def _read(self) -> bytes:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], LIMIT)
        assert ready, f"no answer; stderr: {self.errors.read_text(encoding='utf-8')[-2000:]}"
        data = os.read(self.process.stdout.fileno(), 1 << 20)
        self._got += data
        return data

    def ask(self, *frames: bytes) -> list[dict[str, Any]]:
        self.write(b"".join(frame + b"\n" for frame in frames))
        return self.lines(len(frames))

    # -- HTTP

    def port(self) -> int:
        """Once the program says where it listens."""
        until = time.monotonic() + LIMIT
        while time.monotonic() < until and self.process.poll() is None:
            found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp\n", self.errors.read_text(encoding="utf-8"))
            if found:
                return int(found[1])
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=0.02)
        raise AssertionError(self.errors.read_text(encoding="utf-8"))

    # -- the end

    def ends(self, number: int | None = None) -> int:
        """Its exit code."""
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(timeout=LIMIT)

    def clean(self) -> None:
        """No traceback anywhere."""
        told = self.errors.read_text(encoding="utf-8")
        assert "Traceback" not in told, told

    def peak(self) -> int:
        """Bytes of memory at the highest."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found
        return int(found[1]) * 1024


@contextlib.contextmanager
def program(folder: Path, *options: str, stdin: int | None = subprocess.PIPE) -> Iterator[Program]:
    made = Program(folder, *options, stdin=stdin)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.send_signal(signal.SIGKILL)
            made.process.wait(timeout=LIMIT)
        for stream in (made.process.stdin, made.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=LIMIT)


def post(body: bytes, headers: list[tuple[str, str]], port: int, *, length: int | None = None) -> bytes:
    kept = [(k, v) for k, v in headers if k != "Host"]
    told = [("Host", f"127.0.0.1:{port}"), *kept, ("Content-Length", str(len(body) if length is None else length))]
    head = "".join(f"{name}: {value}\r\n" for name, value in told)
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body


def until(connection: socket.socket, mark: bytes) -> bytes:
    got = b""
    while mark not in got:
        data = connection.recv(1 << 16)
        if not data:
            break
        got += data
    return got
