"""The hot lane against the SDK on requests with a name (performance.md §6: the equality gate).

Each case runs twice over, so that the lane sees a miss and a hit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.gate.corpus import CASES, ERAS, PRINCIPALS, WITH_LANE
from tests.gate.doors import modern_headers
from tests.gate.twins import META, StdioTwins, frame, houses, stdio_twins, web_twins
from tests.gate.world import KEYS, configuration

from octavo.core.clock import FrozenClock

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("clock")]


def enveloped(params: dict[str, Any] | None, era: str) -> dict[str, Any] | None:
    return {**(params or {}), "_meta": META} if era == "modern" else params


@pytest.mark.parametrize("who", PRINCIPALS)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.seed("A2", "O13", "B2", "A7")
async def test_on_stdio_lane_and_SDK_cannot_be_told_apart(folder: Path, era: str, who: str) -> None:
    async with houses(folder) as pair, stdio_twins(pair, who) as twins:
        await twins.open(era)
        for method, params in CASES.values():
            for request_id in (1, "둘"):
                answers = await twins.same(frame(method, enveloped(params, era), request_id))
                assert [one.value["id"] for one in answers if "id" in one.value] == [request_id]
        assert (twins.hits > 100) is (era in WITH_LANE), twins.fast.lane.declined
        assert len(twins.fast.lane.declined) > 0 or era not in WITH_LANE


@pytest.mark.parametrize("who", ["brand", "hr", "nobody"])
@pytest.mark.seed("A2", "O13", "B2", "A7")
async def test_on_HTTP_lane_and_SDK_cannot_be_told_apart(folder: Path, who: str) -> None:
    key = KEYS[f"{who.upper()}_KEY"]
    async with houses(folder) as pair, web_twins(pair) as twins:
        for _ in range(2):
            for method, params in CASES.values():
                body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": enveloped(params, "modern")}
                await twins.same(json.dumps(body).encode(), modern_headers(body, key))
        assert twins.hits > 80, twins.fast.lane.declined


async def pages(twins: StdioTwins, era: str, cursor: str | None) -> Any:
    params = {"cursor": cursor} if cursor is not None else {}
    answers = await twins.same(frame("resources/list", enveloped(params, era)))
    (answer,) = [one for one in answers if "id" in one.value]  # others tell that a list changed
    return answer.value


@pytest.mark.parametrize("era", WITH_LANE)
@pytest.mark.seed("A2", "F6")
async def test_every_page_of_a_listing_is_the_same_and_its_cursor_too(folder: Path, era: str) -> None:
    async with houses(folder) as pair, stdio_twins(pair, "brand") as twins, stdio_twins(pair, "hr") as others:
        await twins.open(era)
        await others.open(era)
        for _ in range(2):
            cursor, seen = None, []
            while True:
                result = (await pages(twins, era, cursor))["result"]
                seen += [entry["uri"] for entry in result["resources"]]
                cursor = result.get("nextCursor")
                if cursor is None:
                    break
                tampered = cursor[:-2] + ("AA" if cursor[-2:] != "AA" else "BB")
                assert (await pages(twins, era, tampered))["error"]["data"]["reason"] == "invalid_cursor"
                assert (await pages(others, era, cursor))["error"]["data"]["reason"] == "invalid_cursor"
            assert len(seen) == len(set(seen)) > 8
        assert twins.hits > 8


@pytest.mark.parametrize("era", WITH_LANE)
async def test_a_cursor_outlives_no_change_of_the_policy(folder: Path, era: str) -> None:
    """house.md §6: cursors hold the policy epoch. The lane must not serve what it kept from before."""
    async with houses(folder) as pair, stdio_twins(pair, "brand") as twins:
        await twins.open(era)
        read = frame("resources/read", enveloped({"uri": "file://guide.md"}, era))
        for _ in range(2):
            cursor = (await pages(twins, era, None))["result"]["nextCursor"]
            await twins.same(read)
        stricter = configuration(folder, rule='{who: brand, may: "*", what: "file://guide.md", effect: deny}')
        for one in pair:
            await one.reload(stricter)
            one.works.audit.nonce = "run"
        assert (await pages(twins, era, cursor))["error"]["data"]["reason"] == "stale_cursor"
        (refused,) = await twins.same(read)
        assert refused.value["error"]["code"] == -32003


@pytest.mark.parametrize("era", WITH_LANE)
@pytest.mark.seed("A5", "O13")
async def test_the_rate_limit_strikes_both_at_the_same_request(folder: Path, clock: FrozenClock, era: str) -> None:
    async with houses(folder, rate="5/s") as pair, stdio_twins(pair, "brand", keyed=True) as twins:
        await twins.open(era)
        outcomes = []
        for number in range(30):
            if number == 20:
                clock.advance(0.4)
            uri = "file://guide.md" if number % 2 else "file://nope.md"
            (answer,) = await twins.same(frame("resources/read", enveloped({"uri": uri}, era), number))
            outcomes.append(answer.value.get("error", {}).get("code"))
        assert -32004 in outcomes and twins.hits > 20


@pytest.mark.seed("A5", "O13")
async def test_over_HTTP_the_rate_limit_strikes_both_at_the_same_request(folder: Path, clock: FrozenClock) -> None:
    async with houses(folder, rate="5/s") as pair, web_twins(pair) as twins:
        statuses = []
        for number in range(30):
            params = {"uri": "file://guide.md" if number % 2 else "file://nope.md", "_meta": META}
            body = {"jsonrpc": "2.0", "id": number, "method": "resources/read", "params": params}
            reply = await twins.same(json.dumps(body).encode(), modern_headers(body, KEYS["BRAND_KEY"]))
            statuses.append(reply.json.get("error", {}).get("code"))
        assert -32004 in statuses and -32602 in statuses and None in statuses and twins.hits > 20


@pytest.mark.parametrize("era", WITH_LANE)
async def test_a_prompt_of_a_file_takes_the_lane_where_the_language_cannot_matter(folder: Path, era: str) -> None:
    method, params = CASES["prompt of a file"]
    async with houses(folder) as pair, stdio_twins(pair, "brand") as twins:
        await twins.open(era)
        before = twins.hits
        (answer,) = await twins.same(frame(method, enveloped(params, era), 1))
        assert "messages" in answer.value["result"] and twins.hits == before + 1, twins.fast.lane.declined
