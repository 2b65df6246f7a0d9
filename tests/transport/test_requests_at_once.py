"""Requests that were all said before the first answer: a file as standard input, or a pipe whose writer has gone."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gate.twins import INITIALIZED, META, frame, initialize
from tests.transport.processes import Program, program

from octavo.transport.stdio.streams import STALL

pytestmark = [pytest.mark.seed("A12", "T7"), pytest.mark.slow]

both_eras = pytest.mark.parametrize("old", [True, False], ids=["handshake", "modern"])
MANY = 3000  # more than may wait at once
COMPLETION = {"ref": {"type": "ref/resource", "uri": "mem://item/{id}"}, "argument": {"name": "id", "value": "a"}}


def said(old: bool, *requests: tuple[str, dict[str, Any]]) -> bytes:
    """The lines of a client that waits for nothing; the last one without its end."""
    meta = {} if old else {"_meta": META}
    first = [initialize("2025-11-25"), INITIALIZED] if old else []
    return b"\n".join([*first, *(frame(how, {**what, **meta}, n) for n, (how, what) in enumerate(requests))])


def asking(number: int) -> tuple[str, dict[str, Any]]:
    """Some that are answered at once, some that take a thread, some that the SDK looks at."""
    return (
        ("resources/read", {"uri": f"file://notes/n{number % 6}.txt"}),
        ("tools/call", {"name": "search", "arguments": {"query": "note"}}),
        ("resources/list", {}),
        ("completion/complete", COMPLETION),
    )[number % 4]


@contextlib.contextmanager
def from_file(folder: Path, lines: bytes) -> Iterator[Program]:
    file = folder / "requests.jsonl"
    file.write_bytes(lines)
    with file.open("rb") as opened, program(folder, "--as", "hr", stdin=opened.fileno()) as server:
        yield server


def all_of(server: Program) -> dict[Any, dict[str, Any]]:
    """Every answer until it has ended by itself."""
    told = {one["id"]: one for one in server.lines(1 << 30)}
    assert server.ends() == 0
    server.clean()
    return told


@both_eras
@pytest.mark.parametrize("count", [1, 5, MANY])
def test_each_request_of_a_file_is_answered_before_the_server_ends(folder: Path, old: bool, count: int) -> None:
    with from_file(folder, said(old, *(asking(n) for n in range(count)))) as server:
        told = all_of(server)
    assert [told.get(n) for n in range(count) if "result" not in told.get(n, {})] == []


@both_eras
@pytest.mark.parametrize("count", [5, MANY])
def test_what_a_client_said_before_it_closed_its_end_is_answered(folder: Path, old: bool, count: int) -> None:
    with program(folder, "--as", "hr") as server:
        server.write(said(old, *(asking(n) for n in range(count))))
        assert server.process.stdin is not None
        server.process.stdin.close()
        told = all_of(server)
    assert [told.get(n) for n in range(count) if "result" not in told.get(n, {})] == []


@both_eras
def test_a_server_that_is_not_let_run_refuses_nothing_for_it(folder: Path, old: bool) -> None:
    """What stands still because the machine has no time for the server is no queue that nothing moves in."""
    with from_file(folder, said(old, *(asking(n) for n in range(MANY)))) as server:
        told = {}
        for _ in range(4):
            told |= {one["id"]: one for one in server.lines(100)}
            server.process.send_signal(signal.SIGSTOP)
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.process.wait(1.5 * STALL)
            server.process.send_signal(signal.SIGCONT)
        told |= all_of(server)
    assert [told.get(n) for n in range(MANY) if "result" not in told.get(n, {})] == []


@both_eras
def test_a_ping_behind_calls_of_which_none_ends_is_answered(folder: Path, old: bool) -> None:
    """What the client says may be what the calls wait for; what finds no place to wait is refused."""
    calls = [("tools/call", {"name": "slow"}) for _ in range(2000)]
    with program(folder, "--as", "hr") as server:
        server.write(said(old, *calls, ("ping", {})) + b"\n")
        told: dict[Any, dict[str, Any]] = {}
        while len(calls) not in told:
            told |= {one["id"]: one for one in server.lines(1)}
    refused = [one["error"]["data"]["reason"] for one in told.values() if "error" in one and one["id"] != len(calls)]
    assert refused and set(refused) == {"rate_limited"}


def test_a_stream_does_not_keep_a_server_that_has_read_its_file(folder: Path) -> None:
    listen = ("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["mem://*"]}})
    with from_file(folder, said(False, listen, *(asking(n) for n in range(1, 5)))) as server:
        told = [one for one in server.lines(1 << 30) if "result" in one]
        assert sorted(one["id"] for one in told) == [0, 1, 2, 3, 4]
        assert server.ends() == 0
        server.clean()


@both_eras
def test_a_call_that_was_taken_back_does_not_keep_it_either(folder: Path, old: bool) -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    lines = said(old, asking(0), ("tools/call", {"name": "slow"})) + b"\n" + json.dumps(cancel).encode()
    with from_file(folder, lines) as server:
        told = all_of(server)
    assert "result" in told[0] and "result" not in told.get(1, {})


@pytest.mark.parametrize("count", [16, 64])  # a little more than a pipe of the kernel holds, and much more
def test_answers_of_a_file_wait_for_whoever_reads_them_late(folder: Path, count: int) -> None:
    chapter = ("resources/read", {"uri": "file://chapter.txt"})  # 60 KB, and with their escapes 67
    with from_file(folder, said(False, *[chapter] * count)) as server:
        with pytest.raises(subprocess.TimeoutExpired):  # longer than is waited for a client that has left
            server.process.wait(timeout=4)
        told = all_of(server)
    assert [told.get(n) for n in range(count) if "result" not in told.get(n, {})] == []


def test_a_signal_ends_one_whose_answers_nobody_reads(folder: Path) -> None:
    with from_file(folder, said(False, *[("resources/read", {"uri": "file://chapter.txt"})] * 64)) as server:
        server.hear(1)
        assert server.ends(signal.SIGTERM) == 0
        server.clean()


def test_a_signal_ends_a_server_that_has_read_its_file(folder: Path) -> None:
    with from_file(folder, said(False, asking(0), ("tools/call", {"name": "slow"}))) as server:
        assert server.lines(1)[0]["id"] == 0
        assert server.ends(signal.SIGTERM) == 0
        assert [one["error"]["code"] for one in server.lines(1)] == [-32000]
        server.clean()
