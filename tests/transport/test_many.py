"""As many requests at once as a caller likes: what finds no place waits, over stdio and over HTTP, in both eras.

Demands: A5, T9. Refused is only what finds the queue full or would be answered too late (tests/pipeline/test_quota.py).
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Headers, Pipe, Web, modern_headers
from tests.gate.twins import META, frame, initialize
from tests.gate.world import KEYS, accounts, configuration, house, lay_out
from tests.transport.test_sessions import limited, opens

from octavo.app import Octavo
from octavo.stores.audit.query import RecordFilter, found
from octavo.stores.state import StateDirectory
from octavo.transport.http import limits

pytestmark = pytest.mark.seed("A5", "T9")

MANY = 2000
BRAND, HR = KEYS["BRAND_KEY"], KEYS["HR_KEY"]
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def many_files(folder: Path, count: int) -> list[str]:
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"f{number}.md").write_text(f"text {number}", encoding="utf-8")
    return [f"f{number}.md" for number in range(count)]


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
def test_a_served_folder_answers_two_thousand_reads_that_arrive_together(tmp_path: Path, era: str) -> None:
    names = many_files(tmp_path / "docs", MANY)
    modern = era.startswith("2026")
    meta = {"_meta": META} if modern else {}
    opening = [] if modern else [initialize(era, "init"), INITIALIZED]
    reads = [frame("resources/read", {"uri": f"file://{name}", **meta}, i) for i, name in enumerate(names)]
    program = subprocess.Popen(
        [sys.executable, "-m", "octavo", "serve", str(tmp_path / "docs")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
    )  # fmt: skip
    assert program.stdin is not None and program.stdout is not None
    stdin, stdout = program.stdin, program.stdout

    def send() -> None:
        stdin.write(b"".join(line + b"\n" for line in (*opening, *reads)))
        stdin.flush()

    sending = threading.Thread(target=send)
    sending.start()
    answers: dict[Any, Any] = {}
    try:
        while len(answers) < MANY + len(opening[:1]):
            line = stdout.readline()
            assert line, "it has ended"
            answer = json.loads(line)
            answers[answer.get("id")] = answer
    finally:
        sending.join()
        stdin.close()
        assert program.wait(30) == 0
        stdout.close()
    texts = [answers[number].get("result", answers[number]) for number in range(MANY)]
    assert [text["contents"][0]["text"] for text in texts] == [f"text {number}" for number in range(MANY)]


def asked(
    method: str, key: str, *, session: Headers | None = None, number: int = 1, **params: Any
) -> tuple[bytes, Headers]:
    if session is not None:
        return frame(method, params, number), session
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    return json.dumps(body).encode(), modern_headers(body, key)


async def until(so: Any) -> None:
    async with asyncio.timeout(60):
        while not so():
            await asyncio.sleep(0)


@pytest.mark.anyio
@pytest.mark.parametrize("modern", [True, False], ids=["modern", "handshake"])
async def test_so_does_one_over_http(tmp_path: Path, modern: bool) -> None:
    many_files(tmp_path / "docs" / "many", MANY)
    loaded = limited(configuration(lay_out(tmp_path)), time=60.0)
    async with house(loaded) as octavo, Web(octavo, lane=True) as web:
        session = None if modern else await opens(web)
        await web.ask(*asked("resources/read", BRAND, session=session, uri="mem://one"))
        web.app.backlog.cost = 0.002  # as it is on a slow machine: four seconds of work
        replies = await asyncio.gather(
            *(
                web.ask(
                    *asked("resources/read", BRAND, session=session, number=number, uri=f"file://many/f{number}.md")
                )
                for number in range(MANY)
            )
        )
        assert {reply.status for reply in replies} == {200}
        assert all(f"text {number}" in reply.body for number, reply in enumerate(replies))


async def held(web: Web, count: int, leave: asyncio.Event) -> list[asyncio.Task[Any]]:
    """So many calls of one agent that never end by themselves, two of them at work and the others waiting."""
    tasks = [
        asyncio.ensure_future(web.ask(*asked("tools/call", BRAND, name="slow"), leave=leave)) for _ in range(count)
    ]
    await until(lambda: accounts(web.house).get("brand", (0, 0))[1] == min(2, count))
    await until(lambda: web.house.works.quota.waiting == max(0, count - 2))
    return tasks


@pytest.mark.anyio
async def test_one_that_waits_over_http_leaves_the_queue_when_its_client_hangs_up(folder: Path) -> None:
    async with house(limited(configuration(folder), in_flight=2)) as octavo, Web(octavo, lane=True) as web:
        await web.ask(*asked("resources/read", BRAND, uri="mem://one"))
        end, gone = asyncio.Event(), asyncio.Event()
        tasks = await held(web, 2, end)
        waits = asyncio.ensure_future(web.ask(*asked("tools/call", BRAND, name="slow"), leave=gone))
        await until(lambda: octavo.works.quota.waiting == 1)
        gone.set()
        await until(lambda: octavo.works.quota.waiting == 0)
        assert accounts(octavo)["brand"][1] == 2
        end.set()
        await asyncio.wait({*tasks, waits})


@pytest.mark.anyio
async def test_a_cached_read_of_another_agent_passes_all_that_wait(folder: Path) -> None:
    async with house(limited(configuration(folder), in_flight=2)) as octavo, Web(octavo, lane=True) as web:
        for key in (BRAND, HR):
            await web.ask(*asked("resources/read", key, uri="mem://one"))
        end = asyncio.Event()
        tasks = await held(web, 300, end)
        assert (await web.ask(*asked("resources/read", HR, uri="mem://one"))).status == 200
        end.set()
        await asyncio.wait(tasks)


@pytest.mark.anyio
async def test_what_waits_too_long_is_refused_with_a_hint_and_has_its_record(folder: Path, tmp_path: Path) -> None:
    loaded = limited(configuration(folder), in_flight=1, time=0.05)
    async with Octavo(loaded, state=StateDirectory.open(tmp_path / "state")) as octavo, Web(octavo, lane=True) as web:
        await web.ask(*asked("resources/read", BRAND, uri="mem://one"))
        place = octavo.works.quota._accounts["brand"]
        place.in_flight += 1  # of a call that nothing ends
        reply = await web.ask(*asked("tools/call", BRAND, name="slow"))
        place.in_flight -= 1
        assert "No place became free in time" in reply.body and "retryAfterMs" in reply.body
    outcomes = [one["outcome"] for one in found(tmp_path / "state" / "audit", RecordFilter()) if one["op"] == "invoke"]
    assert outcomes == ["rate_limited"]


@pytest.mark.anyio
async def test_one_agent_cannot_fill_the_memory_with_bodies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OF_ONE", 4 << 20)
    loaded = limited(configuration(folder), in_flight=2)
    async with house(loaded) as octavo, Web(octavo, lane=True) as web:
        end = asyncio.Event()
        large = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "slow", "arguments": {"n": 1, "uri": "x" * (1 << 20)}, "_meta": META}}).encode()  # fmt: skip
        headers = modern_headers(json.loads(large), BRAND)
        tasks = [asyncio.ensure_future(web.ask(large, headers, leave=end, chunks=4)) for _ in range(3)]
        await until(lambda: octavo.works.quota.waiting == 1)
        reply = await web.ask(large, headers, chunks=4)
        assert reply.status == 429 and reply.json["error"]["data"]["limit"] == "bodies"
        assert {"retry-after": "1", "connection": "close"}.items() <= dict(reply.headers).items()
        assert (await web.ask(*asked("resources/read", BRAND, uri="mem://one"))).status == 200
        assert (await web.ask(*asked("resources/read", HR, uri="mem://one"))).status == 200
        end.set()
        await asyncio.wait(tasks)
        assert not web.app._weights._of and web.app._weights._free == limits.OF_ALL


@pytest.mark.anyio
@pytest.mark.parametrize("lane", [True, False], ids=["lane", "no lane"])
async def test_one_that_waits_on_stdio_can_be_cancelled_and_a_ping_passes_it(folder: Path, lane: bool) -> None:
    async with house(limited(configuration(folder), in_flight=1, waiting=2)) as octavo:
        brand = octavo.works.identity.launched("brand")
        async with Pipe(octavo, brand, lane=lane) as pipe:
            await pipe.ask(initialize("2025-11-25"), INITIALIZED)
            slow = [frame("tools/call", {"name": "slow", "arguments": {}}, number) for number in range(5)]
            await pipe.write(b"".join(one + b"\n" for one in slow))
            await pipe.write(frame("ping", None, "ping") + b"\n")
            await until(lambda: b'"ping"' in bytes(pipe._got))
            cancels = [
                b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n' % number
                for number in (4, 3, 2, 1, 0)
            ]
            await pipe.write(b"".join(cancels))
            await until(lambda: not octavo.works.quota.waiting and not octavo.works.quota.in_flight)
            answers = await pipe.ask(frame("resources/read", {"uri": "mem://one"}, "after"))
            assert any("하나" in answer.text for answer in answers)
            assert not any("rate_limited" in answer.text for answer in answers)
