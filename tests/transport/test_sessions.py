"""Sessions and everything that becomes no call, counted for each principal: nobody locks others out.

Demands: A5, T9, B2; security.md G. Before, 10,000 sessions of one agent, made in seconds, were a 503 for all others for
half an hour, and pings, notifications and handshakes were counted for nobody.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.gate.doors import Headers, Reply, Web, modern_headers
from tests.gate.twins import INITIALIZED, META, frame, initialize
from tests.gate.world import KEYS, configuration, house, records
from tests.transport.test_credentials import Stream

from octavo.config.load import Loaded
from octavo.config.sections.limits import Allowance
from octavo.core.clock import FrozenClock
from octavo.transport.http import replay
from octavo.transport.http.front import Authentication

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A5", "T9")]

BRAND, HR = KEYS["BRAND_KEY"], KEYS["HR_KEY"]
PING = frame("ping")


def limited(loaded: Loaded, **limits: Any) -> Loaded:
    config = loaded.config
    return replace(loaded, config=config.model_copy(update={"limits": config.limits.model_copy(update=limits)}))


def old(key: str | None) -> list[tuple[str, str]]:
    """The headers of a handshake-era client."""
    headers = modern_headers({"method": "ping"}, key)
    return [(name, value) for name, value in headers if not name.lower().startswith("mcp-")]


async def opens(web: Web, key: str | None = BRAND) -> list[tuple[str, str]]:
    reply = await web.ask(initialize("2025-11-25"), old(key))
    assert reply.status == 200, reply.body
    return [*old(key), ("Mcp-Session-Id", dict(reply.headers)["mcp-session-id"])]


async def lives(web: Web, session: Headers) -> bool:
    status = (await web.ask(PING, session)).status
    assert status in (200, 404)
    return status == 200


def refused(reply: Reply) -> str:
    """The limit that was met."""
    assert reply.status == 429, reply.body
    assert dict(reply.headers)["retry-after"].isdigit()
    limit: str = reply.json["error"]["data"]["limit"]
    return limit


async def test_one_more_than_allowed_ends_the_one_of_the_same_principal_that_was_idle_for_longest(folder: Path) -> None:
    async with house(limited(configuration(folder), sessions=3)) as octavo, Web(octavo, lane=True) as web:
        polite = await opens(web, HR)
        first, second, third = [await opens(web) for _ in range(3)]
        assert await lives(web, first)  # so the second was idle for longest
        fourth = await opens(web)
        assert [await lives(web, one) for one in (first, second, third, fourth)] == [True, False, True, True]
        assert await lives(web, polite)
        assert [one["reason"] for one in records(octavo) if one["op"] == "session"] == ["limits.sessions"]


async def test_any_number_of_sessions_that_one_agent_opens_leave_room_for_all_others(folder: Path) -> None:
    async with house(limited(configuration(folder), sessions=2)) as octavo, Web(octavo, lane=True) as web:
        for _ in range(20):
            await opens(web)
        polite = await opens(web, HR)
        at_once = await asyncio.gather(*(web.ask(initialize("2025-11-25"), old(BRAND)) for _ in range(20)))
        assert {reply.status for reply in at_once} == {200}  # they take turns, and each ends the one before
        assert await lives(web, polite)


async def test_a_session_in_use_is_not_ended_and_one_who_uses_all_is_refused_another(folder: Path) -> None:
    async with house(limited(configuration(folder), sessions=2)) as octavo, Web(octavo, lane=True) as web:
        busy = [await opens(web) for _ in range(2)]
        streams = [Stream(web, session, method="GET") for session in busy]
        for stream in streams:
            await stream.begun()
        assert refused(await web.ask(initialize("2025-11-25"), old(BRAND))) == "sessions"
        assert [await lives(web, one) for one in busy] == [True, True]
        assert await lives(web, await opens(web, HR))
        for stream in streams:
            stream.task.cancel()
            await asyncio.wait({stream.task})
        assert await lives(web, await opens(web))


async def test_callers_without_a_key_have_twenty_together_and_other_limits_by_name(folder: Path) -> None:
    everybody = Authentication(everybody="")
    loaded = configuration(folder)
    async with house(loaded) as octavo, Web(octavo, lane=True, access=everybody) as web:
        first, *others = [await opens(web, None) for _ in range(21)]
        assert [await lives(web, first), await lives(web, others[0])] == [False, True]
    given = {"local": Allowance(sessions=2), "role:marketing": Allowance(sessions=1)}
    async with house(limited(loaded, principals=given)) as octavo, Web(octavo, lane=True, access=everybody) as web:
        first, second, third = [await opens(web, None) for _ in range(3)]
        assert [await lives(web, one) for one in (first, second, third)] == [False, True, True]
    async with house(limited(loaded, principals=given)) as octavo, Web(octavo, lane=True) as web:
        first, second = [await opens(web) for _ in range(2)]
        assert [await lives(web, one) for one in (first, second)] == [False, True]


async def test_what_has_ended_by_itself_is_not_counted(folder: Path) -> None:
    async with house(limited(configuration(folder), sessions=2)) as octavo, Web(octavo, lane=True) as web:
        first, second = [await opens(web) for _ in range(2)]
        assert (await web.ask(b"", second, method="DELETE")).status == 200
        third = await opens(web)
        assert [await lives(web, one) for one in (first, second, third)] == [True, False, True]


MODERN_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": META}}
NO_URI = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"_meta": META}}
IN_A_SESSION: dict[str, bytes] = {
    "ping": PING,
    "level": frame("logging/setLevel", {"level": "debug"}),
    "unsubscribe": frame("resources/unsubscribe", {"uri": "file://guide.md"}),
    "unknown method": frame("no/such"),
    "wrong params": frame("resources/read", {"uri": 7}),
    "notification": INITIALIZED,
    "unknown notification": b'{"jsonrpc":"2.0","method":"notifications/none"}',
    "answer to nothing": b'{"jsonrpc":"2.0","id":77,"result":{}}',
    "malformed": b"not json",
}


async def test_whatever_becomes_no_call_is_counted_as_a_request(folder: Path, clock: FrozenClock) -> None:
    """Ten at once are allowed after a rest, and the time stands still."""
    clock.advance(1000)
    for name, body in IN_A_SESSION.items():
        async with house(configuration(folder, rate="5/s")) as octavo, Web(octavo, lane=True) as web:
            session = await opens(web)  # the first
            for _ in range(9):
                reply = await web.ask(body, session)
                assert reply.status in (200, 202, 400) and "rate" not in reply.body, (name, reply)
            last = await web.ask(body, session)
            assert last.status == 429 or '"limit":"rate"' in last.raw.decode().replace(" ", ""), (name, last)
            assert (await web.ask(body, session)).status in (200, 429)
            assert await lives(web, await opens(web, HR))


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_so_are_other_methods_handshakes_and_what_the_protocol_refuses(
    folder: Path, clock: FrozenClock, method: str
) -> None:
    clock.advance(1000)
    nowhere = [*old(BRAND), ("Mcp-Session-Id", "made-up")]
    for body, headers, how in (
        (b"", nowhere, method),
        (PING, nowhere, "POST"),
        (initialize("2025-11-25"), old(BRAND), "POST"),
        (frame("ping"), old(BRAND), "POST"),
        (frame("", MODERN_PING), modern_headers(MODERN_PING, BRAND), "POST"),
    ):
        async with house(configuration(folder, rate="5/s")) as octavo, Web(octavo, lane=True) as web:
            for _ in range(10):
                assert (await web.ask(body, headers, method=how)).status != 429
            assert refused(await web.ask(body, headers, method=how)) == "rate"
            assert await lives(web, await opens(web, HR))


async def test_requests_of_the_modern_era_that_become_no_call_are_counted(folder: Path, clock: FrozenClock) -> None:
    clock.advance(1000)
    discover = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": META}}
    for asked in (discover, NO_URI):
        async with house(configuration(folder, rate="5/s")) as octavo, Web(octavo, lane=True) as web:
            raw, headers = json.dumps(asked).encode(), modern_headers(asked, BRAND)
            for _ in range(10):
                assert "rate_limited" not in (await web.ask(raw, headers)).body
            assert "rate_limited" in (await web.ask(raw, headers)).body


async def test_a_call_is_counted_once(folder: Path, clock: FrozenClock) -> None:
    clock.advance(1000)
    async with house(configuration(folder, rate="5/s")) as octavo, Web(octavo, lane=False) as web:
        session = await opens(web)
        for _ in range(9):
            assert "contents" in (await web.ask(frame("resources/read", {"uri": "file://guide.md"}), session)).body
        assert "rate_limited" in (await web.ask(frame("resources/read", {"uri": "file://guide.md"}), session)).body


async def test_one_whose_envelopes_all_differ_keeps_nobody_else_from_the_lane(folder: Path) -> None:
    """It remembers 256 that the protocol's own parser has accepted; of one principal 32."""

    def read(name: str) -> dict[str, Any]:
        meta = {**META, "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}}
        return {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "mem://one", "_meta": meta}}

    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:

        async def asks(key: str, name: str) -> bool:
            """Whether the lane answered."""
            before, asked = web.lane.hits, read(name)
            assert (await web.ask(json.dumps(asked).encode(), modern_headers(asked, key))).status == 200
            return web.lane.hits > before

        for _ in range(2):
            await asks(HR, "polite")
        for number in range(300):
            await asks(BRAND, f"hostile {number}")
        assert [await asks(HR, "polite"), await asks(BRAND, "hostile 299"), await asks(BRAND, "hostile 1")] == [
            True, True, False,
        ]  # fmt: skip


async def test_what_all_sessions_of_one_principal_keep_for_replay_is_bounded_and_its_oldest_goes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred sessions would have kept 400 MiB. Here three answers of 60 KB are too much for one principal."""
    monkeypatch.setattr(replay, "OF_ONE", 150_000)
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:

        async def reads(session: Headers) -> str:
            """What to ask for all of it again with."""
            reply = await web.ask(frame("resources/read", {"uri": "file://chapter.txt"}), session)
            assert reply.body.count("chapter") > 1000
            return next(line[4:] for line in reply.body.splitlines() if line.startswith("id: "))

        async def again(session: Headers, event: str) -> bool:
            stream = Stream(web, [*session, ("Last-Event-ID", event)], method="GET")
            await stream.begun()
            for _ in range(200):
                await asyncio.sleep(0)
            stream.task.cancel()
            await asyncio.wait({stream.task})
            return "chapter" in str(stream.sent)

        newest = ("Mcp-Protocol-Version", "2025-11-25")  # whose answers begin with an event of their own
        polite = [*await opens(web, HR), newest]
        theirs = await reads(polite)
        sessions = [[*await opens(web), newest] for _ in range(3)]
        first, second, third = [await reads(session) for session in sessions]
        assert await again(polite, theirs)
        kept = [await again(*one) for one in zip(sessions, (first, second, third), strict=True)]
        assert kept == [False, True, True]


async def test_one_whose_headers_all_differ_makes_nobody_else_show_a_key_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1024 combinations of headers are known to be good; of one principal 32."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "mem://one", "_meta": META}}
    raw, shown = json.dumps(asked).encode(), list[str]()
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        by_credential = octavo.works.identity.by_credential

        async def counted(text: str) -> Any:
            shown.append(text)
            return await by_credential(text)

        monkeypatch.setattr(octavo.works.identity, "by_credential", counted)
        for _ in range(2):
            await web.ask(raw, modern_headers(asked, HR))
        for number in range(1100):
            headers = [(k, f"127.0.0.1:{number + 1}" if k == "Host" else v) for k, v in modern_headers(asked, BRAND)]
            assert (await web.ask(raw, headers)).status == 200
        assert (await web.ask(raw, modern_headers(asked, HR))).status == 200
    assert (shown.count(HR), shown.count(BRAND)) == (1, 1100)
