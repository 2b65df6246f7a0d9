"""What arrives over HTTP is begun in turns, and floods that are refused are counted and hurt nobody else.

Demands: A5, T9; security.md G. By order, not by time. Before, what arrived was begun in the order of the connections.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Headers, Reply, Web, modern_headers
from tests.gate.twins import META, initialize
from tests.gate.world import KEYS, accounts, configuration, house
from tests.transport.test_credentials import Stream
from tests.transport.test_sessions import limited, lives, old, opens, refused

from octavo.app import Octavo
from octavo.stores.audit.query import RecordFilter, found
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A5", "T9")]

BRAND, HR = KEYS["BRAND_KEY"], KEYS["HR_KEY"]
FLOOD = 100
SOON = 10  # it is begun with the first, and takes a few turns of the loop


def asked(method: str, key: str, **params: Any) -> tuple[bytes, Headers]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    return json.dumps(body).encode(), modern_headers(body, key)


def read(key: str) -> tuple[bytes, Headers]:
    return asked("resources/read", key, uri="mem://one")


async def in_order(web: Web, *requests: tuple[str, tuple[bytes, Headers]]) -> tuple[list[str], dict[str, Reply]]:
    """All of them arrive at once: the order in which they were answered, and the last answer of each caller."""
    served, replies = list[str](), dict[str, Reply]()

    async def one(who: str, request: tuple[bytes, Headers]) -> None:
        replies[who] = await web.ask(*request)
        served.append(who)

    async with asyncio.timeout(60):
        await asyncio.gather(*(one(who, request) for who, request in requests))
    return served, replies


@pytest.mark.parametrize("lane", [True, False], ids=["lane", "no lane"])
async def test_a_single_request_is_not_behind_the_hundred_of_another(folder: Path, lane: bool) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=lane) as web:
        for key in (BRAND, HR, BRAND, HR):
            await web.ask(*read(key))  # both are known, and what they ask is in the cache
        hostile = [("hostile", read(BRAND))] * FLOOD
        served, replies = await in_order(web, *hostile, ("polite", read(HR)))
        assert {reply.status for reply in replies.values()} == {200}
        assert served.index("polite") < SOON


async def test_nor_behind_the_hundred_refusals_of_another(folder: Path) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        for key in (BRAND, HR, BRAND, HR):
            await web.ask(*read(key))
        web.app.backlog.cost = 10.0  # as if each took so long
        holding = [web.app.backlog.enter("brand") for _ in range(FLOOD)]
        hostile = [("hostile", read(BRAND))] * FLOOD
        served, replies = await in_order(web, *hostile, ("polite", read(HR)))
        assert replies["hostile"].status == 429 and replies["polite"].status == 200
        assert served.index("polite") < SOON
        assert len(holding) == FLOOD


async def test_nor_behind_its_hundred_handshakes(folder: Path) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        polite = await opens(web, HR)
        hostile = [("hostile", (initialize("2025-11-25"), old(BRAND)))] * FLOOD
        served, _ = await in_order(web, *hostile, ("polite", (initialize("2025-11-25"), old(HR))))
        assert served.index("polite") < SOON
        assert await lives(web, polite)


@asynccontextmanager
async def recorded(folder: Path, **limits: Any) -> AsyncIterator[Web]:
    """A house whose audit log is in files, where floods have summaries."""
    state = StateDirectory.open(folder / "state")
    async with Octavo(limited(configuration(folder), **limits), state=state) as octavo, Web(octavo, lane=True) as web:
        yield web


def counted(folder: Path, who: str, op: str) -> tuple[int, int]:
    """How many of these the audit log says were refused, and in how many records."""
    records = [
        one
        for one in found(folder / "state" / "audit", RecordFilter())
        if (one["who"], one["op"], one["outcome"]) == (who, op, "rate_limited")
    ]
    return sum(one.get("count", 1) for one in records), len(records)


async def test_a_refused_flood_of_sessions_is_counted_and_others_open_theirs(folder: Path) -> None:
    async with recorded(folder, sessions=2) as web:
        polite = await opens(web, HR)
        streams = [Stream(web, await opens(web), method="GET") for _ in range(2)]
        for stream in streams:
            await stream.begun()
        for _ in range(FLOOD):
            assert refused(await web.ask(initialize("2025-11-25"), old(BRAND))) == "sessions"
        assert await lives(web, polite)
        assert await lives(web, await opens(web, HR))
        for stream in streams:
            stream.task.cancel()
            await asyncio.wait({stream.task})
    number, records = counted(folder, "brand", "request")
    assert number == FLOOD
    assert records <= 42  # twenty a minute, and a summary
    assert counted(folder, "hr", "request") == (0, 0)


async def test_a_refused_flood_of_requests_under_way_is_counted_and_others_are_answered(folder: Path) -> None:
    async with recorded(folder, in_flight=2, waiting=1, time=60.0) as web:
        leave = asyncio.Event()
        held = [asyncio.ensure_future(web.ask(*asked("tools/call", BRAND, name="slow"), leave=leave)) for _ in range(2)]
        async with asyncio.timeout(60):
            while accounts(web.house).get("brand", (0, 0))[1] < 2:
                await asyncio.sleep(0)
        held.append(asyncio.ensure_future(web.ask(*asked("tools/call", BRAND, name="slow"), leave=leave)))
        async with asyncio.timeout(60):
            while not web.house.works.quota.waiting:
                await asyncio.sleep(0)
        for _ in range(FLOOD):
            reply = await web.ask(*asked("tools/call", BRAND, name="slow"))
            assert "rate_limited" in reply.body and "in_flight" in reply.body, reply
            assert (await web.ask(*read(HR))).status == 200
        leave.set()
        await asyncio.wait(held)
    number, records = counted(folder, "brand", "invoke")
    assert number == FLOOD
    assert records <= 42
    assert counted(folder, "hr", "read") == (0, 0)
