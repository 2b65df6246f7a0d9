"""Octavo typed by a person: a real pseudo-terminal, and what Ctrl-C does to whatever runs."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

LIMIT = 30.0
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
OCTAVO = (sys.executable, "-m", "octavo")


class Terminal:
    """A program whose stdin, stdout and stderr are one terminal of so many columns."""

    def __init__(self, *args: str | Path, columns: int = 80, environ: Mapping[str, str] | None = None) -> None:
        self.pid, self.screen = pty.fork()
        if self.pid == 0:  # pragma: no cover: another program
            os.execve(sys.executable, [*OCTAVO, *map(str, args)], {**os.environ, **(environ or {})})
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.shown = ""

    def wait_for(self, pattern: str) -> None:
        until = time.monotonic() + LIMIT
        while not re.search(pattern, self.shown):
            assert time.monotonic() < until and self._look(), self.shown

    def type(self, keys: bytes) -> None:
        os.write(self.screen, keys)

    def ends(self) -> int:
        """Its exit code, as a shell tells it."""
        while self._look():
            pass
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = 0
        return code if code >= 0 else 128 - code

    def _look(self) -> bool:
        assert select.select([self.screen], [], [], LIMIT)[0], self.shown
        try:
            data = os.read(self.screen, 1 << 16)
        except OSError:  # the other end is closed
            return False
        self.shown += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)


@contextmanager
def terminal(*args: str | Path, columns: int = 80, **environ: str) -> Iterator[Terminal]:
    made = Terminal(*args, columns=columns, environ=environ)
    try:
        yield made
    finally:
        if made.pid:
            with suppress(ProcessLookupError):
                os.kill(made.pid, signal.SIGKILL)
            os.waitpid(made.pid, 0)
        os.close(made.screen)


def frame(method: str, number: int, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": META}}) + "\n"


@pytest.fixture
def notes(empty: Path) -> Path:
    (empty / "notes").mkdir()
    (empty / "notes" / "a.md").write_text("# One\n", encoding="utf-8")
    return empty / "notes"


@pytest.mark.seed("F1")
@pytest.mark.parametrize("columns", [20, 80])
def test_a_person_is_told_what_it_waits_for_and_the_first_ctrl_c_ends_it(notes: Path, columns: int) -> None:
    with terminal("serve", notes, columns=columns) as person:
        person.wait_for("to end it: Ctrl-C")
        assert "waiting for an MCP client on stdin and stdout" in person.shown
        assert f"claude mcp add octavo -- octavo serve {notes}\n" in person.shown
        assert f"octavo serve {notes} --http --no-auth\n" in person.shown
        person.type(b"\x03")
        assert person.ends() == 130
        assert "Traceback" not in person.shown


def test_in_korean_where_the_terminal_is(notes: Path) -> None:
    with terminal("serve", notes, LC_ALL="ko_KR.UTF-8") as person:
        person.wait_for("끝내려면 Ctrl-C를 누르십시오")
        assert "MCP 클라이언트를 기다립니다" in person.shown
        person.type(b"\x03")
        assert person.ends() == 130


def test_a_person_may_also_talk_to_it_and_end_the_input(notes: Path) -> None:
    with terminal("serve", notes) as person:
        person.wait_for("to end it: Ctrl-C")
        person.type(frame("resources/list", 1).encode())
        person.wait_for(r'"uri":\s?"file://')
        person.type(b"\x04")
        assert person.ends() == 0


def test_a_client_that_starts_it_hears_no_such_words(notes: Path) -> None:
    done = subprocess.run(
        [*OCTAVO, "serve", notes], input=frame("ping", 1), capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["id"] == 1


def test_plain_files_for_input_and_output(notes: Path, tmp_path: Path) -> None:
    asked, answers = tmp_path / "asked", tmp_path / "answers"
    asked.write_text(frame("resources/list", 1), encoding="utf-8")
    with asked.open("rb") as reads, answers.open("wb") as writes:
        done = subprocess.run([*OCTAVO, "serve", notes], stdin=reads, stdout=writes, timeout=LIMIT, check=False)
    assert done.returncode == 0
    assert json.loads(answers.read_text(encoding="utf-8"))["id"] == 1


def test_over_http_a_person_is_told_how_to_end_it(notes: Path) -> None:
    with terminal("serve", notes, "--http", "127.0.0.1:0", "--no-auth") as person:
        person.wait_for("to end it: Ctrl-C")
        assert re.search(r"octavo: serving MCP at http://127\.0\.0\.1:\d+/mcp\n", person.shown)
        person.type(b"\x03")
        assert person.ends() == 130
