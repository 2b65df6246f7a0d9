"""Streams that only listen are served without the SDK, and nobody can tell (O10, A4, T7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.gate.doors import Web, modern_headers
from tests.gate.twins import META
from tests.gate.world import KEYS, configuration, frozen_time, house, records
from tests.transport.test_credentials import Stream
from tests.transport.test_subscriptions import change

from octavo.app import Octavo
from octavo.transport.http import listening

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O10", "A4", "T7")]

LIMIT = 30.0


def asked(wanted: dict[str, Any], number: Any = 9, **more: Any) -> dict[str, Any]:
    params = {"notifications": wanted, "_meta": META, **more}
    return {"jsonrpc": "2.0", "id": number, "method": "subscriptions/listen", "params": params}


def opened(web: Web, body: dict[str, Any], *more: tuple[str, str]) -> Stream:
    return Stream(web, [*modern_headers(body, KEYS["BRAND_KEY"]), *more], json.dumps(body).encode())


@asynccontextmanager
async def served(folder: Path, *, lane: bool = True, rate: str = "off") -> AsyncIterator[tuple[Web, Octavo]]:
    """A door that has seen the caller and his envelope once."""
    async with house(configuration(folder, rate=rate)) as octavo, Web(octavo, lane=lane) as web:
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
        for _ in range(2):
            await web.ask(json.dumps(body).encode(), modern_headers(body, KEYS["BRAND_KEY"]))
        assert web.lane.hits == int(lane)
        yield web, octavo


def outcomes(octavo: Octavo, since: int) -> list[tuple[str, str, str]]:
    return [(one["op"], one["outcome"], one.get("uri", "")) for one in records(octavo, since)]


WANTED: dict[str, dict[str, Any]] = {
    "one": {"resourceSubscriptions": ["mem://one"]},
    "patterns and lists": {
        "resourceSubscriptions": ["mem://*", "mem://one", "file://**/*.md"],
        "resourcesListChanged": True, "toolsListChanged": True, "promptsListChanged": False,
    },
    "twice the same": {"resourceSubscriptions": ["mem://one", "mem://one"]},
    "what may not be watched": {"resourceSubscriptions": ["file://hr/*", "mem://two", "mem://one"]},
    "nothing that is a pattern": {"resourceSubscriptions": ["nope", "mem://["]},
}  # fmt: skip
LEFT: dict[str, dict[str, Any]] = {
    "none": {},
    "no pattern": {"resourceSubscriptions": [], "toolsListChanged": True},
    "too many": {"resourceSubscriptions": [f"mem://{n}" for n in range(6)]},
    "tasks": {"resourceSubscriptions": ["mem://one"], "taskIds": ["t"]},
    "no texts": {"resourceSubscriptions": [1]},
    "no list": {"resourceSubscriptions": "mem://one"},
    "a number": {"resourceSubscriptions": ["mem://one"], "toolsListChanged": 1},
}


async def exchanged(folder: Path, wanted: dict[str, Any], number: Any, *, lane: bool) -> tuple[list[Any], list[Any]]:
    """All that was sent, and what was recorded."""
    with frozen_time():
        async with served(folder, lane=lane) as (web, octavo):
            before, hits = len(records(octavo)), web.lane.hits
            stream = opened(web, asked(wanted, number))
            async with asyncio.timeout(LIMIT):
                while not stream.sent and not stream.task.done():
                    await asyncio.sleep(0)
            if not stream.task.done():
                octavo.feed.publish(change("mem://one"))
                octavo.feed.publish(change("mem://new", "created"))
                web.hub.list_changed("tools")
                for _ in range(50):
                    await asyncio.sleep(0)
                web.app.stop()
                web.hub.close()
            await stream.ended()
            assert web.lane.hits == hits + int(lane and wanted in WANTED.values())
            return stream.sent, outcomes(octavo, before)


@pytest.mark.parametrize(
    ("name", "number"), [*((name, 9) for name in WANTED), *(("one", number) for number in (0, -1, "nine", "한글"))]
)
async def test_what_is_told_and_recorded_is_what_the_sdk_would_tell(folder: Path, name: str, number: Any) -> None:
    here, there = [await exchanged(folder, WANTED[name], number, lane=lane) for lane in (True, False)]
    assert here == there
    assert here[0][0]["status"] == 200


@pytest.mark.parametrize("name", LEFT)
async def test_what_is_not_the_plain_case_is_left_to_the_sdk(folder: Path, name: str) -> None:
    here, there = [await exchanged(folder, LEFT[name], 9, lane=lane) for lane in (True, False)]
    assert here == there


@pytest.mark.parametrize(
    "more",
    [("Mcp-Name", "x"), ("Mcp-Param-A", "x"), ("Mcp-Method", "subscriptions/listen"), ("Accept", "application/json")],
)
async def test_other_headers_are_left_to_the_sdk(folder: Path, more: tuple[str, str]) -> None:
    async with served(folder) as (web, _):
        hits = web.lane.hits
        stream = opened(web, asked(WANTED["one"]), more)
        for _ in range(200):
            await asyncio.sleep(0)
        web.hub.close()
        await stream.ended()
        assert web.lane.hits == hits


async def test_an_envelope_that_nobody_knows_is_learnt_from_a_stream_that_goes_on(folder: Path) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        streams: list[Stream] = []
        for count in range(3):
            streams.append(opened(web, asked(WANTED["one"])))
            await streams[-1].begun("acknowledged")
            assert web.lane.hits == count
        octavo.feed.publish(change("mem://one"))
        for stream in streams:
            await stream.begun("resources/updated")
        web.hub.close()
        for stream in streams:
            await stream.ended()


async def test_a_quiet_stream_says_that_it_is_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "QUIET", 0.01)
    monkeypatch.setattr(listening, "LOOK", 0.005)
    async with served(folder) as (web, octavo):
        stream = opened(web, asked(WANTED["one"]))
        await stream.begun(": ping")
        octavo.feed.publish(change("mem://one"))
        await stream.begun("resources/updated")
        seen = len(stream.sent)
        async with asyncio.timeout(LIMIT):
            while len(stream.sent) < seen + 2:
                await asyncio.sleep(0)
        assert stream.sent[-1] == {"type": "http.response.body", "body": b": ping\r\n\r\n", "more_body": True}
        web.hub.close()
        await stream.ended()


async def test_a_client_that_leaves_leaves_nothing_behind(folder: Path) -> None:
    async with served(folder) as (web, octavo):
        before, left = len(records(octavo)), asyncio.Event()
        body = asked(WANTED["one"])
        headers = modern_headers(body, KEYS["BRAND_KEY"])
        asking = asyncio.ensure_future(web.ask(json.dumps(body).encode(), headers, leave=left))
        async with asyncio.timeout(LIMIT):
            while not web.hub.subscribers:
                await asyncio.sleep(0)
            left.set()
            reply = await asking
        assert web.hub.subscribers == 0 and '"result"' not in reply.body
        assert outcomes(octavo, before) == [("watch", "ok", "mem://one"), ("watch mem://one", "end", "")]


async def test_an_agent_that_is_removed_hears_nothing_more(folder: Path) -> None:
    async with served(folder) as (web, octavo):
        stream = opened(web, asked(WANTED["one"]))
        await stream.begun("acknowledged")
        loaded = configuration(folder)
        agents = {name: agent for name, agent in loaded.config.agents.items() if name != "brand"}
        await octavo.reload(replace(loaded, config=loaded.config.model_copy(update={"agents": agents})))
        octavo.feed.publish(change("mem://one"))
        reply = await stream.ended()
        assert "updated" not in reply.body and '"resultType":"complete"' in reply.body


async def test_streams_of_one_agent_are_limited_and_refusals_recorded(folder: Path) -> None:
    async with served(folder) as (web, octavo):
        streams = [opened(web, asked(WANTED["one"], number)) for number in range(5)]
        for stream in streams:
            await stream.begun("acknowledged")
        before, hits = len(records(octavo)), web.lane.hits
        sixth = await opened(web, asked(WANTED["one"])).ended()
        assert (sixth.json["error"]["data"]["reason"], web.lane.hits) == ("rate_limited", hits + 1)
        assert outcomes(octavo, before) == [("subscriptions/listen", "rate_limited", "")]
        web.hub.close()
        for stream in streams:
            await stream.ended()


async def test_a_rate_counts_streams_too(folder: Path) -> None:
    with frozen_time():
        async with served(folder, rate="4/s") as (web, octavo):
            replies: list[str] = []
            for number in range(6):
                stream = opened(web, asked(WANTED["one"], number))
                async with asyncio.timeout(LIMIT):
                    while not stream.sent and not stream.task.done():
                        await asyncio.sleep(0)
                replies.append(str(stream.sent))
                if not stream.task.done():
                    for subscriber in list(web.hub._subscribers):
                        subscriber.close()
                await stream.ended()
            assert "acknowledged" in replies[0] and "rate_limited" in replies[-1]
            assert outcomes(octavo, 0)[-1][1] == "rate_limited"
