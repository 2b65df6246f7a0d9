"""`/healthz`, `/readyz` and `/metrics`: what they tell, and to whom."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Reply, Web, modern_headers
from tests.gate.twins import META
from tests.gate.world import CONFIG, KEYS, Journal

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.stores.audit.ledger import MemoryLedger
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T8")]

LOCAL = [("Host", "127.0.0.1:8321")]
ADMIN = '  - {who: hr, may: admin, what: "server://metrics"}\n'


@contextlib.asynccontextmanager
async def web(folder: Path, metrics: str = "off", rate: str = "off") -> AsyncIterator[Web]:
    text = CONFIG.replace("RATE", rate).replace("\nresources:", f"\n{ADMIN}resources:")
    loaded = load_text(f"{text}serve: {{http: {{metrics: {metrics}}}}}\n", file=folder / "octavo.yaml", environ=KEYS)
    house = Octavo(loaded, state=StateDirectory(None, b"s" * 32), counted=metrics != "off")
    async with house as opened, Web(opened, lane=True) as door:
        yield door


async def get(door: Web, path: str, *, method: str = "GET", key: str = "") -> Reply:
    return await door.ask(
        b"", LOCAL + ([("Authorization", f"Bearer {KEYS[key]}")] if key else []), method=method, path=path
    )


async def ask(door: Web, method: str, key: str = "BRAND_KEY", **params: Any) -> Reply:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    return await door.ask(json.dumps(body).encode(), modern_headers(body, KEYS[key]))


async def test_health_and_readiness_tell_whether_and_nothing_else(folder: Path) -> None:
    async with web(folder) as door:
        assert (await get(door, "/healthz")).json == {"status": "ok"}
        assert (await get(door, "/readyz")).json == {"status": "ready"}
        assert (await get(door, "/readyz", method="POST")).status == 405
        door.app.stop()
        ready = await get(door, "/readyz")
        assert (ready.status, ready.json) == (503, {"status": "not ready"})
        assert (await get(door, "/healthz")).status == 200


STRANGE = {
    "an address": [("Host", "10.1.2.3:8321")],
    "a name of somebody's": [("Host", "rebound.example")],
    "two": [*LOCAL, ("Host", "rebound.example")],
    "none": [],
    "a page elsewhere": [*LOCAL, ("Origin", "https://rebound.example")],
}


@pytest.mark.parametrize("headers", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("metrics", ("off", "open", "admin"))
async def test_whoever_asks_by_another_name_learns_whether_and_nothing_else(
    folder: Path, headers: list[tuple[str, str]], metrics: str
) -> None:
    """A load balancer asks by an address; a page that was rebound to here has a name of its own."""
    async with web(folder, metrics) as door:
        door.house.held_up("file", "a fault for operators")  # type: ignore[attr-defined]
        key = [("Authorization", f"Bearer {KEYS['HR_KEY']}")]
        assert (await get(door, "/readyz", key="HR_KEY")).json["degraded"] == 1
        for shown in ([], key):
            told = await door.ask(b"", headers + shown, method="GET", path="/readyz")
            assert (told.status, told.json) == (200, {"status": "ready"})
        door.app.stop()
        assert (await door.ask(b"", headers, method="GET", path="/readyz")).status == 503


async def test_whoever_says_who_he_is_is_counted_and_recorded_and_leaves_nothing_behind(folder: Path) -> None:
    async with web(folder, "admin") as door:
        door.house.held_up("file", "a fault for operators")  # type: ignore[attr-defined]
        assert "sources" not in (await get(door, "/readyz")).json and not recorded(door)
        assert "sources" in (await get(door, "/readyz", key="HR_KEY")).json
        assert "sources" not in (await get(door, "/readyz", key="BRAND_KEY")).json
        assert (
            await door.ask(b"", [*LOCAL, ("Authorization", "Bearer x")], method="GET", path="/readyz")
        ).status == 401
        told = [(one["who"], one["outcome"]) for one in recorded(door)]
        assert told == [("hr", "ok"), ("brand", "ok"), ("unknown", "unauthenticated")]
        assert not door.app._weights._of and not door.app._door._running


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/.well-known/oauth-protected-resource", "/none"])
async def test_where_a_key_decides_nothing_it_is_not_looked_at(folder: Path, path: str) -> None:
    async with web(folder, "admin") as door:
        plain = await get(door, path)
        bad = await door.ask(b"", [*LOCAL, ("Authorization", "Bearer x")], method="GET", path=path)
        for shown in (bad, await get(door, path, key="HR_KEY")):
            assert (shown.status, shown.body) == (plain.status, plain.body)
        assert not [one for one in recorded(door) if one["who"] != "unknown" or one["outcome"] == "unauthenticated"]


async def test_a_server_that_cannot_record_is_not_ready(folder: Path) -> None:
    async with web(folder) as door:
        journal = door.house.ledger = Journal()
        journal.refuses = True
        assert (await get(door, "/readyz")).status == 503
        journal.refuses = False
        assert (await get(door, "/readyz")).status == 200


async def test_without_configuration_there_are_no_metrics(folder: Path) -> None:
    async with web(folder) as door:
        assert (await get(door, "/metrics")).status == 404


async def test_metrics_are_for_those_whom_a_rule_grants_them(folder: Path) -> None:
    async with web(folder, "admin") as door:
        assert (await get(door, "/metrics")).status == 401
        assert (await get(door, "/metrics", key="BRAND_KEY")).status == 403
        assert (await get(door, "/metrics", key="HR_KEY")).status == 200


async def test_another_web_page_cannot_read_open_metrics(folder: Path) -> None:
    async with web(folder, "open") as door:
        assert (await door.ask(b"", [("Host", "evil.example")], method="GET", path="/metrics")).status == 421


async def test_every_request_is_counted_once_with_words_of_ours_alone(folder: Path) -> None:
    async with web(folder, "open") as door:
        await ask(door, "resources/read", uri="file://guide.md")
        await ask(door, "resources/read", uri="file://guide.md")
        await ask(door, "resources/read", uri="file://hr/pay.md")
        await ask(door, "resources/read", uri="made-up-scheme://x")
        await ask(door, "tools/call", name="show", arguments={"uri": "file://guide.md"})
        await ask(door, "tools/call", name="made_up_tool", arguments={})
        await ask(door, "made/up")
        reply = await get(door, "/metrics")
        assert dict(reply.headers)["content-type"].startswith("text/plain; version=0.0.4")
        told = reply.body
        assert 'octavo_requests_total{op="read",scheme="file",outcome="ok"} 2' in told
        assert 'octavo_requests_total{op="read",scheme="file",outcome="forbidden"} 1' in told
        assert 'octavo_tool_calls_total{tool="show",outcome="ok"} 1' in told
        assert 'octavo_child_calls_total{op="read",scheme="file",outcome="ok"} 1' in told
        assert 'octavo_request_seconds_count{op="read"} 4' in told
        assert 'octavo_source_up{scheme="file"} 1' in told
        assert "made" not in told
        for line in told.splitlines():
            assert line.startswith(("# HELP ", "# TYPE ")) or float(line.rpartition(" ")[2]) >= 0


async def test_a_refusal_because_of_load_says_when_to_come_back(folder: Path) -> None:
    async with web(folder) as door:
        assert isinstance(door.house.ledger, MemoryLedger)
        door.app.backlog.cost = 60.0
        tokens = [door.app.backlog.enter(f"somebody {number}") for number in range(8)]
        refused = await ask(door, "resources/read", uri="file://guide.md")
        assert refused.status == 429
        assert dict(refused.headers)["retry-after"] == "1"
        assert refused.json["error"]["data"] == {"reason": "rate_limited", "limit": "load", "retryAfterMs": 1000}
        for token in tokens:
            door.app.backlog.leave(token)
        assert (await ask(door, "resources/read", uri="file://guide.md")).status == 200


async def test_no_header_leads_past_the_checks_of_a_body(folder: Path) -> None:
    async with web(folder) as door:
        body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {"_meta": META}}
        refused = await door.ask(b'{"jsonrpc": "2.0", "id": 1e400}', modern_headers(body, KEYS["BRAND_KEY"]))
        assert refused.status == 400
        assert any(record["op"] == "malformed" for record in recorded(door))


def recorded(door: Web) -> list[dict[str, Any]]:
    ledger = door.house.ledger
    assert isinstance(ledger, MemoryLedger)
    return [json.loads(record) for record in ledger._records]
