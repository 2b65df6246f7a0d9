"""What the server hands to one principal is of no use to another: cursors, subscriptions, states, questions, approvals.

Every kind is tried in both directions and in both eras, with the hot lane and without.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.gate.doors import Pipe, Web, modern_headers
from tests.gate.fixtures import folder
from tests.gate.twins import INITIALIZED, META, frame
from tests.gate.world import KEYS, Journal, configuration, principal

from octavo.app import Octavo
from octavo.core.ref import Ref
from octavo.stores.state import StateDirectory

__all__ = ["folder"]

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A2", "B2", "T5")]

ERAS = ("modern", "2025-11-25")
FORMS = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
ASKS = '{who: "*", may: invoke, what: "tool://unsafe", approve: human}'
both_eras = pytest.mark.parametrize("era", ERAS)
both_ways = pytest.mark.parametrize(("owner", "other"), [("brand", "hr"), ("hr", "brand")])


class Client:
    """One principal at one connection."""

    def __init__(self, pipe: Pipe, era: str) -> None:
        self.pipe, self.modern = pipe, era == "modern"

    async def open(self, era: str, capabilities: dict[str, Any]) -> None:
        if not self.modern:
            info = {"name": "handles", "version": "1"}
            asked = {"protocolVersion": era, "capabilities": capabilities, "clientInfo": info}
            await self.pipe.ask(frame("initialize", asked, "init"))
            await self.pipe.ask(INITIALIZED)

    async def ask(self, method: str, params: dict[str, Any], *, number: Any = 1, forms: bool = False) -> Any:
        meta = {"_meta": FORMS if forms else META} if self.modern else {}
        (answer,) = await self.pipe.ask(frame(method, {**params, **meta}, number))
        return answer.value


@asynccontextmanager
async def open_house(folder: Path) -> AsyncIterator[Octavo]:
    with TemporaryDirectory() as state:  # the folder is every test's
        octavo = Octavo(configuration(folder, rule=ASKS), state=StateDirectory(Path(state), b"s" * 32))
        octavo.ledger = Journal()
        async with octavo as opened:
            yield opened


@asynccontextmanager
async def two(
    folder: Path, era: str, owner: str, other: str, *, lane: bool = True, forms: bool = False
) -> AsyncIterator[tuple[Octavo, Client, Client]]:
    async with (
        open_house(folder) as octavo,
        Pipe(octavo, principal(octavo, owner), lane=lane) as one,
        Pipe(octavo, principal(octavo, other), lane=lane) as two,
    ):
        await one.settle()
        clients = Client(one, era), Client(two, era)
        for client in clients:
            await client.open(era, {"elicitation": {}} if forms else {})
        yield octavo, *clients


@both_eras
@both_ways
@pytest.mark.parametrize("lane", [True, False], ids=["lane", "sdk"])
@pytest.mark.parametrize("method", ["resources/list"])
async def test_a_cursor(folder: Path, era: str, owner: str, other: str, lane: bool, method: str) -> None:
    async with two(folder, era, owner, other, lane=lane) as (_, mine, theirs):
        for _ in range(3):  # until the lane knows the frame
            cursor = (await mine.ask(method, {}))["result"]["nextCursor"]
        assert (await mine.ask(method, {"cursor": cursor}))["result"]
        for _ in range(3):
            refused = (await theirs.ask(method, {"cursor": cursor}))["error"]
            assert (refused["code"], refused["data"]["reason"]) == (-32602, "invalid_cursor")
        assert (await mine.ask(method, {"cursor": cursor}))["result"]


@both_eras
@both_ways
async def test_a_cursor_of_a_tool(folder: Path, era: str, owner: str, other: str) -> None:
    asked: dict[str, Any] = {"name": "list", "arguments": {"target": "file://notes", "limit": 2}}
    async with two(folder, era, owner, other) as (_, mine, theirs):
        cursor = (await mine.ask("tools/call", asked))["result"]["structuredContent"]["cursor"]
        again = {**asked, "arguments": {**asked["arguments"], "cursor": cursor}}
        assert not (await mine.ask("tools/call", again))["result"]["isError"]
        refused = (await theirs.ask("tools/call", again))["result"]
        assert refused["isError"] and "cursor" in refused["content"][0]["text"]


@both_ways
async def test_the_state_of_a_request(folder: Path, owner: str, other: str) -> None:
    call: dict[str, Any] = {"name": "unsafe", "arguments": {}}
    said = {"inputResponses": {"approval": {"action": "accept", "content": {"allow": True}}}}
    async with two(folder, "modern", owner, other) as (_, mine, theirs):
        states = [
            (await client.ask("tools/call", call, forms=True))["result"]["requestState"] for client in (mine, theirs)
        ]
        for client, foreign in ((theirs, states[0]), (mine, states[1])):
            refused = (await client.ask("tools/call", {**call, "requestState": foreign, **said}, forms=True))["error"]
            assert (refused["code"], refused["data"]["reason"]) == (-32602, "invalid_request_state")
        done = (await mine.ask("tools/call", {**call, "requestState": states[0], **said}, forms=True))["result"]
        assert not done["isError"]


@both_ways
async def test_the_state_of_a_request_in_the_handshake_era(folder: Path, owner: str, other: str) -> None:
    call: dict[str, Any] = {"name": "unsafe", "arguments": {}}
    said = {"inputResponses": {"approval": {"action": "accept", "content": {"allow": True}}}}
    async with (
        two(folder, "modern", owner, other) as (octavo, mine, _),
        Pipe(octavo, principal(octavo, other), lane=True) as pipe,
    ):
        state = (await mine.ask("tools/call", call, forms=True))["result"]["requestState"]
        old = Client(pipe, ERAS[1])
        await old.open(ERAS[1], {})
        given = await old.ask("tools/call", {**call, "requestState": state, **said})
        assert "error" in given or given["result"]["isError"]


@both_ways
async def test_the_answer_to_a_question(folder: Path, owner: str, other: str) -> None:
    """In the handshake era the server asks by a request of its own, whose number another connection may guess."""
    async with two(folder, ERAS[1], owner, other, forms=True) as (_, mine, theirs):
        await mine.pipe.write(frame("tools/call", {"name": "unsafe", "arguments": {}}, 7) + b"\n")
        asked: list[Any] = []
        async with asyncio.timeout(30):
            while not asked:
                asked = [json.loads(line) for line in await mine.pipe.settle(hanging=1)]
        (question,) = [one for one in asked if one.get("method") == "elicitation/create"]
        yes = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"allow": True}}}
        await theirs.pipe.write(json.dumps(yes).encode() + b"\n")
        assert await theirs.pipe.settle() == [] and await mine.pipe.settle(hanging=1) == []
        no = {**yes, "result": {"action": "decline"}}
        (answer,) = await mine.pipe.ask(json.dumps(no).encode())
        assert answer.value["id"] == 7 and answer.value["result"]["isError"]


@both_eras
@both_ways
async def test_an_approval(folder: Path, era: str, owner: str, other: str) -> None:
    call: dict[str, Any] = {"name": "unsafe", "arguments": {}}
    async with two(folder, era, owner, other) as (octavo, mine, theirs):

        async def pending(client: Client) -> str:
            given = (await client.ask("tools/call", call))["result"]
            error = given["_meta"]["dev.octavo/error"]
            assert given["isError"] and error["data"]["reason"] == "approval_required", given
            return str(error["data"]["approval"])

        name = await pending(mine)
        await octavo.approvals.answer(name, "a person", allow=True)
        assert await pending(theirs) != name
        # Nor does it help to know what it is called.
        assert (await theirs.ask("tools/call", {**call, "arguments": {"approval": name}}))["result"]["isError"]
        assert not (await mine.ask("tools/call", call))["result"]["isError"]
        assert await pending(mine) != name, "it counts once"


@both_eras
@both_ways
async def test_a_subscription(folder: Path, era: str, owner: str, other: str) -> None:
    async with two(folder, era, owner, other) as (octavo, mine, theirs):
        if era == "modern":
            wanted = {"notifications": {"resourceSubscriptions": ["mem://one"]}}
            await mine.ask("subscriptions/listen", wanted, number=9)
            await theirs.pipe.ask(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}')
        else:
            await mine.ask("resources/subscribe", {"uri": "mem://one"})
            await theirs.ask("resources/unsubscribe", {"uri": "mem://one"})
        memory: Any = next(source for source in octavo.works.sources if source.scheme == "mem")
        await memory.write(Ref.parse("mem://one"), "new", if_match=None)
        told = [json.loads(line)["method"] for line in await mine.pipe.settle()]
        assert told == ["notifications/resources/updated"]
        assert await theirs.pipe.settle() == []


@both_ways
async def test_a_session_over_HTTP(folder: Path, owner: str, other: str) -> None:
    def headers(who: str, session: str = "") -> list[tuple[str, str]]:
        base = modern_headers({"method": "ping"}, KEYS[f"{who.upper()}_KEY"])
        kept = [one for one in base if one[0] not in ("MCP-Protocol-Version", "Mcp-Method")]
        return [*kept, *([("Mcp-Session-Id", session), ("MCP-Protocol-Version", ERAS[1])] if session else [])]

    async with open_house(folder) as octavo, Web(octavo, lane=True) as web:
        info = {"protocolVersion": ERAS[1], "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        opened = await web.ask(frame("initialize", info), headers(owner))
        session = dict(opened.headers).get("mcp-session-id", "")
        for method in ("POST", "DELETE"):
            body = frame("resources/subscribe", {"uri": "mem://one"}) if method == "POST" else b""
            refused = await web.ask(body, headers(other, session or "x"), method=method)
            assert refused.status >= 400 or "error" in refused.json, refused
        assert (await web.ask(frame("ping"), headers(owner, session))).status == 200 or not session
