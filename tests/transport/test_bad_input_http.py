"""HTTP with a client that does everything wrong: a status and a typed error, never a traceback, a hang or a leak.

Demands: A8, A12, O14, T7; protocol.md T4, T7, T19; security.md §6 "HTTP in".
"""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Web, modern_headers, reply_of
from tests.gate.twins import INITIALIZED, META, frame, initialize
from tests.gate.world import KEYS, configuration, house, records
from tests.transport.processes import connect, post, program, until

from octavo.transport.http.front import Authentication

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A12", "A8", "T7")]

BODY: dict[str, Any] = {
    "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "file://guide.md", "_meta": META},
}  # fmt: skip
RAW = json.dumps(BODY).encode()
GOOD = modern_headers(BODY, KEYS["BRAND_KEY"])
OLD = [(k, v) for k, v in GOOD if not k.lower().startswith("mcp-")]


def but(name: str, value: str | None) -> list[tuple[str, str]]:
    return [(k, v) for k, v in GOOD if k.lower() != name.lower()] + ([] if value is None else [(name, value)])


@pytest.mark.parametrize("known", [False, True], ids=["first", "after a good one"])
@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1:8321", None, 200),
        ("127.0.0.1:1", "http://127.0.0.1:3000", 200),
        ("octavo.example", "https://console.example", 200),
        ("127.0.0.1:8321", "https://evil.example", 403),
        ("127.0.0.1:8321", "null", 403),
        ("127.0.0.1:8321", "http://127.0.0.1.evil.example", 403),
        ("evil.example", None, 421),
        ("evil.example", "https://console.example", 421),
        ("127.0.0.1.evil.example", None, 421),
        (None, None, 421),
        *(
            (f"127.0.0.1:{port}", None, 421)
            for port in ("", "*", "0", "65536", "+80", "8321.evil.example", "@evil.example")
        ),
        *(("127.0.0.1:8321", f"http://127.0.0.1:{port}", 403) for port in ("", "x", "3000.evil.example", "3000/")),
        ("octavo.example:80", None, 421),
        ("127.0.0.1:8321", "https://console.example:443", 403),
    ],
)
async def test_host_and_origin(folder: Path, host: str | None, origin: str | None, status: int, known: bool) -> None:
    """Another web page must not reach a local server through the user's browser (DNS rebinding)."""
    headers = but("Host", host) + ([("Origin", origin)] if origin is not None else [])
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        for _ in range(2 if known else 0):
            assert (await web.ask(RAW, GOOD)).status == 200
        reply = await web.ask(RAW, headers)
        assert reply.status == status
        assert ("Guide" in reply.body) is (status == 200)


@pytest.mark.parametrize(("name", "value", "status"), [("Host", "evil.example", 421), ("Origin", "null", 403)])
async def test_host_and_origin_are_there_once(folder: Path, name: str, value: str, status: int) -> None:
    good = {"Host": "127.0.0.1:8321", "Origin": "http://127.0.0.1:3000"}
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        for twice in ([good[name], value], [value, good[name]]):
            headers = but(name, None) + [(name, one) for one in twice]
            assert (await web.ask(RAW, headers)).status == status


@pytest.mark.parametrize("known", [False, True], ids=["first", "after a good one"])
@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", f"Basic {KEYS['BRAND_KEY']}", KEYS["BRAND_KEY"], "Bearer \xff"],
)
@pytest.mark.seed("O14")
async def test_without_a_known_key_nobody_gets_in(folder: Path, authorization: str | None, known: bool) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        for _ in range(2 if known else 0):
            assert (await web.ask(RAW, GOOD)).status == 200
        for method in ("POST", "GET", "DELETE"):
            refused = await web.ask(RAW, but("Authorization", authorization), method=method)
            assert refused.status == 401
            assert dict(refused.headers)["www-authenticate"].startswith("Bearer")
            assert refused.json["error"] == "unauthenticated"


async def test_an_agent_that_is_gone_after_a_reload_is_not_let_in(folder: Path) -> None:
    """Neither by its key nor, with `--no-auth --as`, as everybody: a refusal, never a crash."""
    from msgspec.structs import replace

    loaded = configuration(folder)
    agents = {name: agent for name, agent in loaded.config.agents.items() if name != "brand"}
    without = replace(loaded, config=loaded.config.model_copy(update={"agents": agents}))
    for access in (Authentication(), Authentication(everybody="brand")):
        async with house(loaded) as octavo, Web(octavo, lane=True, access=access) as web:
            for _ in range(3):
                assert (await web.ask(RAW, GOOD)).status == 200
            await octavo.reload(without)
            assert (await web.ask(RAW, GOOD)).status == 401


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (but("Content-Type", "text/plain"), RAW, 400),
        (but("Content-Type", None), RAW, 400),
        (but("Accept", "text/html"), RAW, 406),
        (but("Accept", None), RAW, 406),
        (but("Content-Length", str(5 << 20)), RAW, 413),
        (but("Content-Length", "9" * 100), RAW, 413),
        (GOOD, b"x" * (5 << 20), 413),
        (GOOD, b"not json", 400),
        (GOOD, b"", 400),
        (GOOD, b"[" + RAW + b"]", 400),
        (GOOD, b"[" * 5000, 400),
        (GOOD, RAW.replace(b'"id": 1', b'"id": 1, "id": 2'), 400),
        (GOOD, RAW.replace(b'"id": 1', b'"id": null'), 400),
        (but("Mcp-Name", "file://nope.md"), RAW, 400),
        (but("Mcp-Method", "tools/list"), RAW, 400),
        (but("MCP-Protocol-Version", "2099-01-01"), RAW, 400),
        (but("Mcp-Method", "no/such"), RAW.replace(b"resources/read", b"no/such"), 404),
        (OLD, RAW, 400),
        ([*OLD, ("Mcp-Session-Id", "made-up")], frame("ping"), 404),
    ],
)
async def test_what_cannot_be_served_has_its_status(folder: Path, headers: Any, body: bytes, status: int) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        reply = await web.ask(body, headers, chunks=3)
        assert reply.status == status
        assert "Traceback" not in reply.body and len(reply.body) < 1000
        assert (await web.ask(RAW, GOOD)).status == 200
        assert len([one for one in records(octavo) if "parent" not in one]) == 2


def changed(**members: Any) -> bytes:
    return json.dumps({**BODY, **members}).encode()


NO_SUCH_SESSION = [*OLD, ("Mcp-Session-Id", "made-up")]


@pytest.mark.parametrize(
    ("method", "headers", "body", "status", "code", "reason", "step"),
    [
        ("POST", GOOD, changed(params={"uri": "file://guide.md"}), 400, -32602, "invalid_params", "with initialize"),
        ("POST", GOOD, changed(jsonrpc="1.0"), 400, -32600, "invalid_request", "text or an integer"),
        ("POST", GOOD, changed(id={}), 400, -32600, "invalid_request", "text or an integer"),
        ("POST", but("Mcp-Name", "file://no.md"), RAW, 400, -32020, "header_mismatch", "the same request"),
        ("POST", but("Mcp-Method", "tools/list"), RAW, 400, -32020, "header_mismatch", "the same request"),
        ("POST", but("MCP-Protocol-Version", "2099-01-01"), RAW, 400, -32020, "header_mismatch", "the same request"),
        ("POST", but("Accept", "text/html"), RAW, 406, -32600, "not_acceptable", "text/event-stream"),
        ("POST", but("Content-Type", "text/x"), RAW, 400, -32600, "unsupported_media_type", "Type: application/json"),
        ("GET", GOOD, b"", 405, -32600, "method_not_allowed", "send POST"),
        ("POST", NO_SUCH_SESSION, frame("ping"), 404, -32600, "session_not_found", "send initialize again"),
        ("GET", NO_SUCH_SESSION, b"", 404, -32600, "session_not_found", "send initialize again"),
        ("DELETE", NO_SUCH_SESSION, b"", 404, -32600, "session_not_found", "send initialize again"),
        ("POST", OLD, frame("ping"), 400, -32600, "missing_session", "Mcp-Session-Id each time"),
        ("POST", [*OLD[:2], ("Accept", "x/y"), *OLD[3:]], RAW, 406, -32600, "not_acceptable", "text/event-stream"),
        ("POST", OLD, changed(jsonrpc="1.0"), 400, -32602, "invalid_request", "text or an integer"),
    ],
)
@pytest.mark.parametrize("lane", [True, False])
async def test_what_the_protocol_refuses_has_a_reason_and_a_next_step(
    folder: Path, method: str, headers: Any, body: bytes, status: int, code: int, reason: str, step: str, lane: bool
) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=lane) as web:
        reply = await web.ask(body, headers, method=method)
        error = reply.json["error"]
        assert (reply.status, error["code"], error["data"]["reason"]) == (status, code, reason)
        assert error["message"].endswith(step) and len(error["message"]) < 250
        told = dict(reply.headers)
        assert told["content-type"] == "application/json"
        assert ("allow" in told) is (status == 405)


@pytest.mark.parametrize("lane", [True, False])
async def test_ids_and_names_of_megabytes_are_refused_and_not_repeated(folder: Path, lane: bool) -> None:
    """In answers, in the audit log, and in what is told of progress: by both eras, with the lane and without it."""
    long = "x" * (1 << 20)
    read = {"uri": "file://guide.md", "_meta": META}
    token = {**META, "progressToken": long}
    async with house(configuration(folder)) as octavo, Web(octavo, lane=lane) as web:
        session = await opened(web, KEYS["BRAND_KEY"])
        assert (await web.ask(RAW, GOOD)).status == 200
        for body, headers in (
            (frame("resources/read", read, long), GOOD),
            (frame("resources/read", {"uri": "file://guide.md"}, long), session),
            (frame(long, {"_meta": META}), but("Mcp-Method", "x")),
            (frame(long), session),
            (frame("resources/read", {**read, "_meta": token}), GOOD),
            (frame("resources/read", {"uri": "file://guide.md", "_meta": {"progressToken": long}}), session),
            (f'{{"jsonrpc":"2.0","method":"{long}"}}'.encode(), session),
            (f'{{"jsonrpc":"2.0","id":"{long}","result":{{}}}}'.encode(), session),
        ):
            reply = await web.ask(body, headers)
            assert (reply.status, reply.json["error"]["data"]["reason"]) == (400, "name_too_long")
            assert len(reply.raw) < 300
        assert (await web.ask(frame("resources/read", read, "x" * 256), GOOD)).status == 200
        assert all(len(str(record)) < 1000 for record in records(octavo))


async def test_a_slash_at_the_end_of_the_path_is_the_same_door(folder: Path) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        for _ in range(2):  # in the SDK, then in the lane
            assert "Guide" in (await web.ask(RAW, GOOD, path="/mcp/")).body
        assert (await web.ask(RAW, but("Authorization", None), path="/mcp/")).status == 401


async def test_an_unknown_path_is_no_door(folder: Path) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        for path in ("/", "/mcp//", "/mcp/x", "/MCP", "//mcp", "/sse"):
            refused = await web.ask(RAW, GOOD, path=path)
            assert (refused.status, refused.json["message"]) == (404, "MCP is served at /mcp")
        assert (await web.ask(b"", [], method="GET", path="/healthz")).json == {"status": "ok"}


async def test_a_body_that_does_not_come_is_not_waited_for(folder: Path) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True, body_seconds=0.01) as web:
        given = [{"type": "http.request", "body": RAW[:10], "more_body": True}]

        async def receive() -> Any:
            return given.pop() if given else await asyncio.get_running_loop().create_future()

        reply = await web.exchange(receive, GOOD)
        assert (reply.status, reply.json["error"]["data"]["reason"]) == (408, "timeout")


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_forgotten(folder: Path) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        steps = [{"type": "http.request", "body": RAW[:10], "more_body": True}, {"type": "http.disconnect"}]

        async def receive() -> Any:
            return steps.pop(0)

        assert (await web.exchange(receive, GOOD)).status == 0
        assert [one["outcome"] for one in records(octavo)] == ["disconnected"]


@pytest.mark.parametrize("lane", [True, False], ids=["lane", "no lane"])
async def test_a_client_that_leaves_cancels_its_call(folder: Path, lane: bool) -> None:
    """M (protocol.md §3): disconnect = cancel. Nothing is sent after it, and the record says so."""
    slow = {**BODY, "method": "tools/call", "params": {"name": "slow", "_meta": META}}
    raw, headers = json.dumps(slow).encode(), modern_headers(slow, KEYS["BRAND_KEY"])
    async with house(configuration(folder)) as octavo, Web(octavo, lane=lane) as web:
        await web.ask(RAW, GOOD)
        seen, leave, sent = len(records(octavo)), asyncio.Event(), []
        given = [{"type": "http.request", "body": raw, "more_body": False}]

        async def receive() -> Any:
            if given:
                return given.pop()
            await leave.wait()
            return {"type": "http.disconnect"}

        asking = asyncio.ensure_future(web.exchange(receive, headers, sent=sent))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not asking.done()
        leave.set()
        async with asyncio.timeout(5):
            await asking
        assert sent == [] or reply_of(sent).status in (200, 499, 500)
        assert [(one["op"], one["outcome"]) for one in records(octavo, seen)] == [("invoke", "cancelled")]


async def opened(web: Web, key: str) -> list[tuple[str, str]]:
    """Headers of a handshake-era session."""
    old = [(k, v) for k, v in OLD if k != "Authorization"] + [("Authorization", f"Bearer {key}")]
    reply = await web.ask(initialize("2025-11-25"), old)
    assert reply.status == 200
    session = [*old, ("Mcp-Session-Id", dict(reply.headers)["mcp-session-id"])]
    assert (await web.ask(INITIALIZED, session)).status == 202
    return session


@pytest.mark.seed("O14", "B2")
async def test_the_session_of_another_principal_is_not_there(folder: Path) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        mine = await opened(web, KEYS["BRAND_KEY"])
        theirs = [(k, f"Bearer {KEYS['HR_KEY']}" if k == "Authorization" else v) for k, v in mine]
        for method, body in (("POST", frame("ping")), ("GET", b""), ("DELETE", b"")):
            assert (await web.ask(body, theirs, method=method)).status == 404
        assert (await web.ask(frame("ping"), mine)).status == 200


@pytest.mark.seed("O14", "B2")
async def test_events_of_another_session_are_not_replayed(folder: Path) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        mine, theirs = await opened(web, KEYS["BRAND_KEY"]), await opened(web, KEYS["HR_KEY"])
        reply = await web.ask(frame("resources/read", {"uri": "file://hr/pay.md"}), theirs)
        assert "급여" in reply.body
        ids = [line[4:] for line in reply.body.splitlines() if line.startswith("id: ")]
        assert ids
        for event in ids:
            leave = asyncio.Event()
            sent: list[Any] = []

            async def receive(leave: asyncio.Event = leave) -> Any:
                await leave.wait()
                return {"type": "http.disconnect"}

            replaying = asyncio.ensure_future(
                web.exchange(receive, [*mine, ("Last-Event-ID", event)], method="GET", sent=sent)
            )
            for _ in range(100):
                await asyncio.sleep(0)
            leave.set()
            async with asyncio.timeout(5):
                await asyncio.wait({replaying})
            assert "급여" not in str(sent) and "pay.md" not in str(sent)


async def test_what_a_session_keeps_for_replay_is_bounded() -> None:
    from mcp_types import JSONRPCResponse

    from octavo.transport.http.replay import BYTES, KEPT, SessionEvents

    events = SessionEvents()
    for number in range(KEPT + 50):
        await events.store_event("s", JSONRPCResponse(jsonrpc="2.0", id=number, result={"n": number}))
    assert len(events._kept) == KEPT
    for number in range(10):
        await events.store_event("s", JSONRPCResponse(jsonrpc="2.0", id=number, result={"text": "x" * (BYTES // 3)}))
    assert len(events._kept) <= 3


# -- over real sockets


@pytest.mark.slow
def test_a_signal_ends_the_program_with_streams_open(folder: Path) -> None:
    """T7: an open stream must not hold up the shutdown; its client gets its result first."""
    asked = {"notifications": {"resourceSubscriptions": ["mem://*"]}, "_meta": META}
    listen = {"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": asked}
    with program(folder, "--http", "127.0.0.1:0") as server:
        port = server.port()
        with connect(port) as stream, connect(port) as half, connect(port) as old:
            stream.sendall(post(json.dumps(listen).encode(), modern_headers(listen, KEYS["BRAND_KEY"]), port))
            until(stream, b"acknowledged")
            half.sendall(post(RAW, GOOD, port, length=len(RAW) + 100))  # never completed
            old.sendall(post(initialize("2025-11-25"), OLD, port))
            until(old, b"protocolVersion")
            assert server.ends(signal.SIGTERM) == 0
            rest = until(stream, b"nothing can hold this")
            assert b'"result"' in rest and b"subscriptionId" in rest
        server.clean()


@pytest.mark.slow
def test_clients_that_break_off_disturb_nobody(folder: Path) -> None:
    with program(folder, "--http", "127.0.0.1:0") as server:
        port = server.port()
        for cut in (1, 40, 200, len(post(RAW, GOOD, port)) - 1):
            with connect(port) as broken:
                broken.sendall(post(RAW, GOOD, port)[:cut])
        with connect(port) as garbage:
            garbage.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20)
            assert until(garbage, b"nothing") == b"" or True
        with connect(port) as good:
            good.sendall(post(RAW, GOOD, port) * 5)  # pipelined
            got = b""
            while got.count(b"# Guide") < 5:
                got += until(good, b"# Guide")
            assert got.count(b"HTTP/1.1 200") == 5
        assert server.ends(signal.SIGTERM) == 0
        server.clean()
