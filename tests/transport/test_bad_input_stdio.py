"""stdio with a client that does everything wrong: a typed error or an end, never a traceback, a hang or a leak.

Demands: A12, B5, T7; protocol.md T1, T7, T11; security.md §6.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gate.twins import INITIALIZED, META, frame, initialize
from tests.transport.processes import Program, program

pytestmark = [pytest.mark.seed("A12", "T7"), pytest.mark.slow]

READ = frame("resources/read", {"uri": "file://guide.md", "_meta": META}, "good")
OLD_READ = frame("resources/read", {"uri": "file://guide.md"}, "good")
BAD = {
    "no JSON": (b"hello", -32700, None),
    "half a message": (b'{"jsonrpc":"2.0","id":1,', -32700, None),
    "a batch": (b"[" + READ + b"]", -32600, None),
    "a number": (b"7", -32600, None),
    "an object that is no message": (b'{"a":1}', -32600, None),
    "another version of JSON-RPC": (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
    "an id that is none": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    "an id that is true": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    "an id that is a fraction": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
    "params as a list": (b'{"jsonrpc":"2.0","id":2,"method":"ping","params":[]}', -32600, 2),
    "params as text": (b'{"jsonrpc":"2.0","id":2,"method":"ping","params":"x"}', -32600, 2),
    "bad UTF-8": (b'{"jsonrpc":"2.0","id":3,"method":"\xff"}', -32700, None),
    "half a surrogate pair": (rb'{"jsonrpc":"2.0","id":3,"method":"\ud800"}', -32700, None),
    "NaN": (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":{"x":NaN}}', -32700, None),
    "a number beyond every range": (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":{"x":1e400}}', -32700, None),
    "a depth of 2000": (
        b'{"jsonrpc":"2.0","id":3,"method":"ping","params":' + b"[" * 2000 + b"]" * 2000 + b"}",
        -32600,
        None,
    ),
    "a member twice": (b'{"jsonrpc":"2.0","id":3,"id":4,"method":"ping"}', -32600, None),
    "five megabytes": (b'{"jsonrpc":"2.0","id":3,"method":"' + b"x" * (5 << 20) + b'"}', -32600, None),
    "an id of a megabyte": (frame("ping", {"_meta": META}, "x" * (1 << 20)), -32600, None),
    "an id of a megabyte where the lane answers": (
        frame("resources/read", {"uri": "file://guide.md", "_meta": META}, "x" * (1 << 20)), -32600, None,
    ),
    "a method of a megabyte": (frame("x" * (1 << 20), {"_meta": META}, 5), -32600, 5),
    "a progress token of a megabyte": (frame("ping", {"_meta": {**META, "progressToken": "x" * 999999}}, 5), -32600, 5),
    "an unknown method": (frame("no/such", {"_meta": META}, 5), -32601, 5),
    "a method of the other era": (frame("resources/subscribe", {"uri": "mem://one", "_meta": META}, 5), -32601, 5),
    "no envelope": (frame("tools/list", {}, 6), -32602, 6),
    "an unknown version": (
        frame("tools/list", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}}, 6), -32022, 6,
    ),
    "a handshake": (initialize("2025-11-25", 7), -32022, 7),
    "an address that is a number": (frame("resources/read", {"uri": 7, "_meta": META}, 8), -32602, 8),
    "an unknown scheme": (frame("resources/read", {"uri": "what://x", "_meta": META}, 8), -32602, 8),
    "a huge address": (frame("resources/read", {"uri": "file://" + "x" * 200_000, "_meta": META}, 8), -32602, 8),
    "an invalid cursor": (frame("resources/list", {"cursor": "☃", "_meta": META}, 9), -32602, 9),
    "an unknown tool": (frame("tools/call", {"name": "../../x", "_meta": META}, 9), -32602, 9),
}  # fmt: skip
STEPS = {
    "no envelope": "versions with a handshake begin with initialize",
    "an unknown version": "use one of data.supported",
    "a handshake": "send requests with their envelope, or connect again",
}
SILENT = {
    "an empty line": b"",
    "blanks": b"  \t\r",
    "an unknown notification": b'{"jsonrpc":"2.0","method":"notifications/none"}',
    "a notification with bad params": b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
    "an answer to nothing": b'{"jsonrpc":"2.0","id":77,"result":{}}',
    "an error to nothing": b'{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"x"}}',
}


@pytest.fixture
def server(folder: Path) -> Iterator[Program]:
    with program(folder, "--as", "hr") as started:
        yield started


def test_every_bad_message_gets_its_error_and_disturbs_nobody(server: Program) -> None:
    assert "result" in server.ask(READ)[0]
    for name, (line, code, request_id) in BAD.items():
        answers = {one["id"]: one for one in server.ask(line, READ)}
        assert answers.pop("good")["result"]["contents"][0]["text"].startswith("# Guide"), name
        (refused,) = answers.values()
        assert (refused["error"]["code"], refused["id"]) == (code, request_id), name
        assert len(str(refused)) < 2000, name
        assert refused["error"]["data"].keys() & {"reason", "uri"}, name
        if name in STEPS:
            assert refused["error"]["message"].endswith(STEPS[name]), name
    for name, line in SILENT.items():
        server.write(line + b"\n")
        assert [one["id"] for one in server.ask(READ)] == ["good"], name
    assert server.process.stdin is not None
    server.process.stdin.close()
    assert server.ends() == 0
    assert server.lines(1) == []
    server.clean()


def test_messages_in_pieces_and_many_at_once_are_the_same(server: Program) -> None:
    for byte in READ + b"\n":
        server.write(bytes([byte]))
    assert server.lines(1)[0]["id"] == "good"
    many = [frame("resources/read", {"uri": f"file://notes/n{n % 6}.txt", "_meta": META}, n) for n in range(3000)]
    server.ask(*many[:6])  # what is kept needs no place among the calls in flight
    assert sorted(one["id"] for one in server.ask(*many) if "result" in one) == [*range(3000)]


def test_a_last_line_without_its_end_is_answered(server: Program) -> None:
    server.ask(READ)
    server.write(READ)
    assert server.process.stdin is not None
    server.process.stdin.close()
    assert [one["id"] for one in server.lines(1)] == ["good"]
    assert server.ends() == 0


@pytest.mark.parametrize("old", [True, False], ids=["handshake", "modern"])
def test_when_the_client_closes_its_end_running_calls_are_told_and_the_program_ends(server: Program, old: bool) -> None:
    meta = {} if old else {"_meta": META}
    server.ask(initialize("2025-11-25") if old else READ)
    slow = [frame("tools/call", {"name": "slow", **meta}, number) for number in range(5)]
    server.write(b"".join(line + b"\n" for line in slow))
    server.ask(frame("resources/read", {"uri": "mem://one", **meta}, "after"))
    assert server.process.stdin is not None
    server.process.stdin.close()
    told = {one["id"]: one["error"]["code"] for one in server.lines(5)}
    assert told == dict.fromkeys(range(5), -32000)
    assert server.ends() == 0
    server.clean()


def test_when_the_client_stops_listening_the_program_ends(server: Program) -> None:
    server.ask(READ)
    assert server.process.stdout is not None
    server.process.stdout.close()
    assert server.process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it may have noticed already
        os.write(server.process.stdin.fileno(), READ + b"\n")
    assert server.ends() == 0
    server.clean()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("old", [True, False], ids=["handshake", "modern"])
def test_a_signal_ends_it_with_streams_and_calls_open(server: Program, number: int, old: bool) -> None:
    meta = {} if old else {"_meta": META}
    if old:
        server.ask(initialize("2025-11-25"))
        server.write(INITIALIZED + b"\n")
        server.ask(frame("resources/subscribe", {"uri": "mem://*"}, "sub"))
    else:
        server.ask(
            frame("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["mem://*"]}, **meta}, "sub")
        )
    server.write(frame("tools/call", {"name": "slow", **meta}, 1) + b"\n")
    server.ask(frame("resources/read", {"uri": "mem://one", **meta}, 2))
    assert server.ends(number) == (130 if number == signal.SIGINT else 0)
    last = {one["id"]: one for one in server.lines(1 if old else 2)}
    assert last[1]["error"]["code"] == -32000
    assert old or "result" in last["sub"]
    server.clean()


@pytest.mark.parametrize("old", [True, False], ids=["handshake", "modern"])
def test_a_client_that_never_reads_is_not_read_from(server: Program, old: bool) -> None:
    """Small requests with large answers: without a bound on what waits, a few megabytes in are gigabytes out."""
    server.ask(initialize("2025-11-25") if old else READ)
    uri = "file://chapter.txt"  # 60 KB
    lines = [frame("resources/read", {"uri": uri, **({} if old else {"_meta": META})}, n) for n in range(60_000)]
    data = b"".join(line + b"\n" for line in lines)
    assert server.process.stdin is not None
    descriptor = server.process.stdin.fileno()
    os.set_blocking(descriptor, False)
    taken = 0
    while select.select([], [descriptor], [], 1.0)[1]:  # until it has taken nothing for a second
        taken += os.write(descriptor, data[taken : taken + (1 << 16)])
        assert taken < len(data), "everything was read, and nothing was answered"
    assert server.peak() < 300 << 20
    whole = data[:taken].count(b"\n")
    server.hear(whole)  # once it is listened to, every answer comes
    if not data[:taken].endswith(b"\n"):
        server.write(b"\n")
