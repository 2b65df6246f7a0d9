"""Whatever standard input and output are, messages meet the same frames, bounds and records.

Demands: A12, B5, T7: a message over the limit, a member that is there twice and what is no JSON are refused, answered
and recorded from a pipe, a socket, a plain file, the null device and a terminal, with uvloop and without.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import audit_records
from tests.gate.twins import META, frame

pytestmark = [pytest.mark.seed("A12", "T7"), pytest.mark.slow]

LIMIT = 30.0
WITHOUT_UVLOOP = "import sys; sys.modules['uvloop'] = None; from octavo.cli import main; main()"
LOOPS = {"uvloop": ["-m", "octavo"], "asyncio": ["-c", WITHOUT_UVLOOP]}
CONFIG = """
version: 1
sources: {mem: {kind: memory, scheme: mem, resources: {one: {text: one}}}}
limits: {line: 4MiB}
"""
TWICE = b'{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"mem://none","uri":"mem://one"}}'
BAD = {
    b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (5 << 20) + b'"}': -32600,
    TWICE: -32600,
    b"no JSON": -32700,
    b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{"x":NaN}}': -32700,
    b"[" * 100 + b"]" * 100: -32600,
}
INPUT = b"".join(line + b"\n" for line in BAD)
KINDS = ["pipe", "socket", "connection", "terminal", "plain file"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "octavo.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


class Ends:
    """The client's and the server's ends of one wire of some kind."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.answers = folder / "answers"
        if kind == "pipe":
            self.stdin, self.asks = os.pipe()
            self.hears, self.stdout = os.pipe()
        elif kind == "socket":
            self._both(*(one.detach() for one in socket.socketpair()))
        elif kind == "connection":
            with socket.create_server(("127.0.0.1", 0)) as listening:
                near = socket.create_connection(listening.getsockname())
                self._both(near.detach(), listening.accept()[0].detach())
        elif kind == "terminal":
            near, far = pty.openpty()
            tty.setraw(far)
            self._both(near, far)
        else:
            asked = folder / "asked"
            asked.write_bytes(INPUT)
            self.stdin, self.asks = os.open(asked, os.O_RDONLY), -1
            self.stdout, self.hears = os.open(self.answers, os.O_WRONLY | os.O_CREAT), -1

    def _both(self, near: int, far: int) -> None:
        self.asks, self.hears, self.stdin, self.stdout = near, os.dup(near), far, os.dup(far)

    def begun(self) -> None:
        """The server has its own copies of its ends."""
        os.close(self.stdin)
        os.close(self.stdout)

    def write(self, data: bytes) -> None:
        """Beside whatever is heard meanwhile: a terminal holds little."""

        def write() -> None:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self.asks, rest[: 1 << 16]) :]

        threading.Thread(target=write, daemon=True).start()

    def lines(self, count: int) -> list[dict[str, Any]]:
        got = b""
        while got.count(b"\n") < count:
            assert select.select([self.hears], [], [], LIMIT)[0], got
            data = os.read(self.hears, 1 << 16)
            assert data, got
            got += data
        return [json.loads(line) for line in got.splitlines()]

    def close(self) -> None:
        for one in {self.asks, self.hears} - {-1}:
            with contextlib.suppress(OSError):
                os.close(one)
        self.asks = self.hears = -1


@contextlib.contextmanager
def serving(ends: Ends, place: Path, loop: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, *LOOPS[loop], "serve", "--config", str(place / "octavo.yaml")]
    with (place / "stderr").open("wb") as errors:
        process = subprocess.Popen(command, stdin=ends.stdin, stdout=ends.stdout, stderr=errors, start_new_session=True)
    ends.begun()
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(LIMIT)
        ends.close()
    told = (place / "stderr").read_text(encoding="utf-8")
    assert "Traceback" not in told, told


def refused(answers: list[dict[str, Any]]) -> list[int]:
    return [one["error"]["code"] for one in answers]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_no_message_is_refused_answered_and_recorded(place: Path, kind: str, loop: str) -> None:
    ends = Ends(kind, place)
    with serving(ends, place, loop) as process:
        if kind == "plain file":
            assert process.wait(LIMIT) == 0
            answers = [json.loads(line) for line in ends.answers.read_text(encoding="utf-8").splitlines()]
        else:
            ends.write(INPUT)
            answers = ends.lines(len(BAD))
            read = frame("resources/read", {"uri": "mem://one", "_meta": META}, "good")
            ends.write(read + b"\n")
            (good,) = ends.lines(1)
            assert good["result"]["contents"][0]["text"] == "one"
            ends.close()
            assert process.wait(LIMIT) == 0
    assert refused(answers) == list(BAD.values())
    assert all(one["id"] is None and len(str(one)) < 1000 for one in answers)
    kept = [(one["op"], one["outcome"]) for one in audit_records(place)]
    assert kept[: len(BAD)] == [("malformed", f"error {code}") for code in BAD.values()]
    assert [op for op, _ in kept[len(BAD) :]] == ([] if kind == "plain file" else ["read"])


@pytest.mark.parametrize("loop", LOOPS)
def test_the_null_device_is_an_input_that_ends_at_once(place: Path, loop: str) -> None:
    ends = Ends("plain file", place)
    os.close(ends.stdin)
    os.close(ends.stdout)
    ends.stdin, ends.stdout = os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)
    with serving(ends, place, loop) as process:
        assert process.wait(LIMIT) == 0


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("kind", ["pipe", "plain file"])
def test_an_input_that_is_for_writing_is_one_that_ends_at_once(place: Path, kind: str, loop: str) -> None:
    ends = Ends("plain file", place)
    os.close(ends.stdin)
    other = -1
    if kind == "pipe":
        other, ends.stdin = os.pipe()
    else:
        ends.stdin = os.open(place / "asked", os.O_WRONLY)
    with serving(ends, place, loop) as process:
        assert process.wait(LIMIT) == 0
    if other >= 0:
        os.close(other)


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
@pytest.mark.parametrize("loop", LOOPS)
def test_an_input_that_somebody_made_non_blocking_is_waited_for(place: Path, kind: str, loop: str) -> None:
    """Node does so with terminals, and whoever else has one open shares it."""
    ends = Ends(kind, place)
    os.set_blocking(ends.stdin, False)
    os.set_blocking(ends.stdout, False)
    with serving(ends, place, loop) as process:
        for number in range(3):
            ends.write(frame("resources/read", {"uri": "mem://one", "_meta": META}, number) + b"\n")
            assert [one["id"] for one in ends.lines(1)] == [number]
        ends.close()
        assert process.wait(LIMIT) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_a_terminal_says_nothing(place: Path, number: int) -> None:
    ends = Ends("terminal", place)
    with serving(ends, place, "uvloop") as process:
        ends.write(frame("resources/read", {"uri": "mem://one", "_meta": META}, 1) + b"\n")
        ends.lines(1)
        process.send_signal(number)
        assert process.wait(LIMIT) == (130 if number == signal.SIGINT else 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_an_output_that_takes_nothing_ends_it(place: Path) -> None:
    ends = Ends("pipe", place)
    os.close(ends.stdout)
    ends.stdout = os.open("/dev/full", os.O_WRONLY)
    with serving(ends, place, "uvloop") as process:
        ends.write(frame("resources/read", {"uri": "mem://one", "_meta": META}, 1) + b"\n")
        assert process.wait(LIMIT) == 0
