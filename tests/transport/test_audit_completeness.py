"""Exactly one root record a request, whatever becomes of it, and no answer before its record (house.md §6, A7)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Pipe, Web, modern_headers
from tests.gate.twins import INITIALIZED, META, frame, initialize
from tests.gate.world import KEYS, Journal, configuration, house, principal, records

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A7", "F9", "B7")]

CALLS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "read": ("resources/read", {"uri": "file://guide.md"}, "read", "ok"),
    "read again": ("resources/read", {"uri": "file://guide.md"}, "read", "ok"),
    "denied": ("resources/read", {"uri": "file://hr/pay.md"}, "read", "forbidden"),
    "hidden": ("resources/read", {"uri": "file://hidden/plan.md"}, "read", "not_found"),
    "missing": ("resources/read", {"uri": "file://nope"}, "read", "not_found"),
    "no address": ("resources/read", {"uri": "weird"}, "read", "invalid_params"),
    "too large": ("resources/read", {"uri": "file://large.txt"}, "read", "too_large"),
    "crash": ("tools/call", {"name": "boom"}, "invoke", "crash"),
    "unknown tool": ("tools/call", {"name": "none"}, "invoke", "not_found"),
    "bad cursor": ("resources/list", {"cursor": "x"}, "list", "invalid_params"),
    "bad params": ("resources/read", {"uri": 7}, "resources/read", "invalid_params"),
    "unknown method": ("no/such", {}, "no/such", "error -32601"),
}


def roots(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(one["op"], one["outcome"]) for one in found if "parent" not in one]


@pytest.mark.parametrize("lane", [True, False], ids=["lane", "no lane"])
@pytest.mark.parametrize("era", ["modern", "2025-11-25"])
async def test_on_stdio_every_request_has_one_record(folder: Path, era: str, lane: bool) -> None:
    meta = {"_meta": META} if era == "modern" else {}
    async with house(configuration(folder)) as octavo, Pipe(octavo, principal(octavo, "brand"), lane=lane) as pipe:

        async def one(line: bytes) -> list[tuple[str, str]]:
            seen = len(records(octavo))
            await pipe.ask(line)
            return roots(records(octavo, seen))

        if era == "modern":
            assert await one(frame("server/discover", meta)) == [("server/discover", "ok")]
            assert await one(initialize("2025-11-25")) == [("request", "error -32022")]
            assert await one(frame("tools/list", {})) == [("request", "error -32602")]
        else:
            assert await one(frame("tools/list", {})) == [("tools/list", "error -32602")]
            assert await one(initialize(era)) == [("initialize", "ok")]
            assert await one(INITIALIZED) == []
            assert await one(frame("ping")) == [("ping", "ok")]
            assert await one(frame("tools/list", {"_meta": META})) == [("request", "error -32600")]
        for name, (method, params, op, outcome) in CALLS.items():
            got = await one(frame(method, {**params, **meta}))
            if name == "unknown tool":
                assert [got[0][0], len(got)] == [op, 1]
            else:
                assert got == [(op, outcome)], name
        assert await one(b"not json") == [("malformed", "error -32700")]
        assert await one(b'{"jsonrpc":"2.0","id":true,"method":"ping"}') == [("malformed", "error -32600")]
        for request_id in ("", 0, "0", "run"):  # ids that are easily confused
            assert len(await one(frame("resources/read", {"uri": "file://guide.md", **meta}, request_id))) == 1
            assert len(await one(frame("no/such", meta, request_id))) == 1
        slow = frame("tools/call", {"name": "slow", **meta}, 5)
        seen = len(records(octavo))
        await pipe.ask(slow, hanging=1)
        await pipe.ask(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}')
        assert roots(records(octavo, seen)) == [("invoke", "cancelled")]
        seen = len(records(octavo))
        await pipe.ask(slow, slow, hanging=2)
        await pipe.leave()
        assert roots(records(octavo, seen)) == [("invoke", "cancelled")] * 2


@pytest.mark.parametrize("lane", [True, False], ids=["lane", "no lane"])
async def test_over_HTTP_every_request_has_one_record(folder: Path, lane: bool) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=lane) as web:
        key = KEYS["BRAND_KEY"]

        async def one(body: bytes, headers: Any, **how: Any) -> list[tuple[str, str]]:
            seen = len(records(octavo))
            await web.ask(body, headers, **how)
            return roots(records(octavo, seen))

        for name, (method, params, op, outcome) in CALLS.items():
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
            got = await one(json.dumps(body).encode(), modern_headers(body, key))
            assert got == [(op, outcome)] or (name in ("unknown tool", "bad params") and len(got) == 1), name
        good = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
        raw, headers = json.dumps(good).encode(), modern_headers(good, key)
        without = [(k, v) for k, v in headers if k != "Authorization"]
        assert await one(raw, without) == [("http", "unauthenticated")]
        assert await one(raw, [*without, ("Authorization", "Bearer no")]) == [("http", "unauthenticated")]
        assert await one(raw, [(k, v if k != "Host" else "evil") for k, v in headers]) == [("http", "status 421")]
        assert await one(b"not json", headers) == [("malformed", "error -32700")]
        assert await one(b"x" * (4 << 20) + b"y", headers) == [("malformed", "error -32600")]
        assert await one(raw, [(k, v if k != "Mcp-Method" else "x") for k, v in headers]) == [("request", "status 400")]
        assert await one(b"", headers, method="GET") == [("GET", "status 405")]
        notification = b'{"jsonrpc":"2.0","method":"notifications/x"}'
        assert await one(notification, headers) == [("request", "status 202")]
        # Handshake era: the answer is a stream that begins before the call ends.
        old = [(k, v) for k, v in headers if not k.lower().startswith("mcp-")]
        seen = len(records(octavo))
        opened = await web.ask(initialize("2025-11-25"), old)
        assert roots(records(octavo, seen)) == [("initialize", "ok")]
        session = [*old, ("Mcp-Session-Id", dict(opened.headers)["mcp-session-id"])]
        assert await one(INITIALIZED, session) == [("request", "status 202")]
        assert await one(frame("ping"), session) == [("ping", "ok")]
        assert await one(frame("resources/read", {"uri": "file://guide.md"}), session) == [("read", "ok")]
        assert await one(frame("resources/read", {"uri": "file://nope"}), session) == [("read", "not_found")]
        assert await one(frame("no/such"), session) == [("no/such", "error -32601")]
        assert await one(b"", session, method="DELETE") == [("DELETE", "status 200")]
        assert await one(frame("ping"), session) == [("request", "status 404")]


@pytest.mark.parametrize("era", ["modern", "2025-11-25"])
async def test_a_subscription_has_a_beginning_and_an_end(folder: Path, era: str) -> None:
    async with house(configuration(folder)) as octavo, Pipe(octavo, principal(octavo, "brand"), lane=True) as pipe:
        if era == "modern":
            asked = {"notifications": {"resourceSubscriptions": ["mem://*", "mem://two"]}, "_meta": META}
            await pipe.ask(frame("subscriptions/listen", asked, 9))
            assert roots(records(octavo)) == [("watch", "ok"), ("watch", "forbidden")]
            await pipe.ask(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}')
            assert roots(records(octavo, 2)) == [("watch mem://*", "end")]
        else:
            await pipe.ask(initialize(era))
            await pipe.ask(INITIALIZED)
            await pipe.ask(frame("resources/subscribe", {"uri": "mem://*"}, 1))
            await pipe.ask(frame("resources/subscribe", {"uri": "mem://two"}, 2))
            assert roots(records(octavo, 1)) == [("watch", "ok"), ("watch", "forbidden")]
            await pipe.ask(frame("resources/unsubscribe", {"uri": "mem://*"}, 3))
            ended = roots(records(octavo, 3))
            assert ended == [("watch mem://*", "end"), ("resources/unsubscribe", "ok")]


# -- the barrier


@pytest.mark.parametrize("lane", [True, False], ids=["lane", "no lane"])
@pytest.mark.parametrize("era", ["modern", "2025-11-25"])
async def test_on_stdio_no_content_leaves_without_its_record(folder: Path, era: str, lane: bool) -> None:
    """A ledger that refuses: the client is told so, with the id of its request, and nothing else."""
    meta = {"_meta": META} if era == "modern" else {}
    read = frame("resources/read", {"uri": "file://guide.md", **meta}, 7)
    async with house(configuration(folder)) as octavo, Pipe(octavo, principal(octavo, "brand"), lane=lane) as pipe:
        if era != "modern":
            await pipe.ask(initialize(era))
        assert "Guide" in (await pipe.ask(read))[0].text
        journal = octavo.ledger
        assert isinstance(journal, Journal)
        journal.refuses = True
        for _ in range(2):
            (answer,) = await pipe.ask(read)
            assert answer.value["id"] == 7
            assert answer.value["error"]["code"] == -32603
            assert "Guide" not in answer.text
        journal.refuses = False
        assert "Guide" in (await pipe.ask(read))[0].text
        assert [one["op"] for one in records(octavo)].count("read") == 4  # none lost, none doubled


@pytest.mark.parametrize("lane", [True, False], ids=["lane", "no lane"])
async def test_over_HTTP_no_content_leaves_without_its_record(folder: Path, lane: bool) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "file://guide.md", "_meta": META}}
    raw, headers = json.dumps(body).encode(), modern_headers(body, KEYS["BRAND_KEY"])
    async with house(configuration(folder)) as octavo, Web(octavo, lane=lane) as web:
        assert "Guide" in (await web.ask(raw, headers)).body
        journal = octavo.ledger
        assert isinstance(journal, Journal)
        journal.refuses = True
        for _ in range(2):
            refused = await web.ask(raw, headers)
            assert refused.status == 503
            assert "Guide" not in refused.body
        journal.refuses = False
        assert "Guide" in (await web.ask(raw, headers)).body


@pytest.mark.parametrize("lane", [True, False], ids=["lane", "no lane"])
async def test_every_answer_finds_its_record_flushed(folder: Path, lane: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with house(configuration(folder)) as octavo, Pipe(octavo, principal(octavo, "brand"), lane=lane) as pipe:
        await pipe.ask(frame("tools/list", {"_meta": META}))
        journal = octavo.ledger
        assert isinstance(journal, Journal)
        writer = pipe.connection.pipes._writer
        pending: list[int] = []

        class Watched:
            def writelines(self, lines: list[bytes]) -> None:
                pending.append(len(journal._pending))
                writer.writelines(lines)  # type: ignore[union-attr]

            def is_closing(self) -> bool:
                return False

        monkeypatch.setattr(pipe.connection.pipes, "_writer", Watched())
        for number in range(20):
            await pipe.ask(frame("resources/read", {"uri": f"file://notes/n{number % 6}.txt", "_meta": META}, number))
        monkeypatch.undo()
        assert pending and set(pending) == {0}
        await asyncio.sleep(0)
