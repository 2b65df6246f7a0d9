"""Keys that expire, follow one another and are taken back; and handles that belong to one principal (O14, S10)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Reply, Web, modern_headers, reply_of
from tests.gate.twins import INITIALIZED, META, frame, initialize
from tests.gate.world import KEYS, configuration, frozen_time, house
from tests.security.issuer import issuer
from tests.security.test_tokens import configured

from octavo.app import Octavo
from octavo.app.follow import follow_file
from octavo.core.clock import SystemClock
from octavo.core.errors import Conflict, SourceUnavailable
from octavo.stores.state import StateDirectory
from octavo.transport.http.auth import PEER, Authentication

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O14", "A8")]

BODY: dict[str, Any] = {
    "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "mem://one", "_meta": META},
}  # fmt: skip
RAW = json.dumps(BODY).encode()
LISTEN = {
    "jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen",
    "params": {"notifications": {"resourceSubscriptions": ["mem://one"]}, "_meta": META},
}  # fmt: skip
LIMIT = 30.0


@asynccontextmanager
async def serving(folder: Path, state: Path) -> AsyncIterator[tuple[Octavo, Web]]:
    """With a state folder, unlike the houses of the gate."""
    kept = StateDirectory.open(state)
    async with Octavo(configuration(folder), state=kept, keyed=True) as octavo, Web(octavo, lane=True) as web:
        yield octavo, web


async def ask(web: Web, key: str | None, body: dict[str, Any] = BODY) -> Reply:
    return await web.ask(json.dumps(body).encode(), modern_headers(body, key))


async def issue(octavo: Octavo, *, seconds: float = 3600.0, overlap: float = 3600.0) -> tuple[str, str]:
    """The key and its id."""
    now = SystemClock.wall()
    text, made = await octavo.keys.issue("brand", now=now, expires=now + seconds, overlap=overlap)
    await octavo.rekey()
    return text, made.id


class Stream:
    """An exchange that goes on, until the server ends it."""

    def __init__(self, web: Web, headers: list[tuple[str, str]], body: bytes = b"", method: str = "POST") -> None:
        self.sent: list[Any] = []
        self._given = [{"type": "http.request", "body": body, "more_body": False}]
        self.task = asyncio.ensure_future(web.exchange(self._receive, headers, method=method, sent=self.sent))

    async def _receive(self) -> Any:
        return self._given.pop() if self._given else await asyncio.get_running_loop().create_future()

    async def begun(self, text: str = "") -> None:
        async with asyncio.timeout(LIMIT):
            while not self.sent or text not in str(self.sent):
                await asyncio.sleep(0)
        assert not self.task.done()

    async def ended(self) -> Reply:
        async with asyncio.timeout(LIMIT):
            return await self.task


async def old_session(web: Web, key: str) -> list[tuple[str, str]]:
    old = [(name, value) for name, value in modern_headers(BODY, key) if not name.lower().startswith("mcp-")]
    reply = await web.ask(initialize("2025-11-25"), old)
    session = [*old, ("Mcp-Session-Id", dict(reply.headers)["mcp-session-id"])]
    assert (await web.ask(INITIALIZED, session)).status == 202
    return session


async def test_two_keys_of_one_agent_overlap_and_a_third_is_refused(folder: Path, tmp_path: Path) -> None:
    with frozen_time() as clock:
        async with serving(folder, tmp_path) as (octavo, web):
            first, _ = await issue(octavo, seconds=9000)
            second, _ = await issue(octavo, seconds=9000)
            for key in (first, second, KEYS["BRAND_KEY"]):
                assert "하나" in (await ask(web, key)).body
            with pytest.raises(Conflict, match="2 keys already"):
                await issue(octavo)
            clock.advance(3601)  # the overlap is over
            replies = [await ask(web, key) for key in (first, second)]
            assert [one.status for one in replies] == [401, 200]
            assert "expired" in replies[0].body
            await issue(octavo)  # now there is room


async def test_a_key_that_expires_is_refused_although_it_was_good_before(folder: Path, tmp_path: Path) -> None:
    with frozen_time() as clock:
        async with serving(folder, tmp_path) as (octavo, web):
            key, _ = await issue(octavo, seconds=60)
            for _ in range(3):
                assert (await ask(web, key)).status == 200
            clock.advance(60)
            assert (await ask(web, key)).status == 401


@pytest.mark.parametrize("end", ["revoked", "expired"])
async def test_streams_end_with_the_key_that_opened_them(folder: Path, tmp_path: Path, end: str) -> None:
    """A modern one with its result, a handshake-era one by closing; those of another key go on."""
    async with serving(folder, tmp_path) as (octavo, web):
        key, name = await issue(octavo, seconds=3600.0 if end == "revoked" else 1.5)
        session, other = await old_session(web, key), await old_session(web, KEYS["HR_KEY"])
        modern = Stream(web, modern_headers(LISTEN, key), json.dumps(LISTEN).encode())
        legacy, stays = Stream(web, session, method="GET"), Stream(web, other, method="GET")
        await modern.begun("acknowledged")
        await legacy.begun()
        await stays.begun()
        if end == "revoked":
            await octavo.keys.revoke(name)
            await octavo.rekey()
        assert '"result"' in (await modern.ended()).raw.decode()
        await legacy.ended()
        assert legacy.sent[-1].get("more_body", False) is False
        assert not stays.task.done()
        assert (await ask(web, key)).status == 401
        stays.task.cancel()
        await asyncio.wait({stays.task})


async def test_the_stream_of_a_token_ends_with_it(tmp_path: Path) -> None:
    with issuer() as made:
        async with house(configured(tmp_path, made.url, oauth="skew: 0s")) as octavo, Web(octavo, lane=True) as web:
            now = SystemClock.wall()
            token = made.token(iat=now - 5, nbf=now - 5, exp=now + 1.5)
            stream = Stream(web, modern_headers(LISTEN, token), json.dumps(LISTEN).encode())
            await stream.begun("acknowledged")
            assert '"result"' in (await stream.ended()).raw.decode()
            assert (await ask(web, token)).status == 401


async def test_a_server_that_runs_learns_of_new_and_revoked_keys(folder: Path, tmp_path: Path) -> None:
    (folder / "octavo.yaml").write_text("# followed, and never changed here\n", encoding="utf-8")
    async with serving(folder, tmp_path) as (octavo, web):
        told = asyncio.Event()
        octavo.on_swap(told.set)
        following = asyncio.ensure_future(follow_file(octavo, folder / "octavo.yaml", wake=asyncio.Event()))
        await asyncio.sleep(0)
        text, made = await octavo.keys.issue("brand", now=SystemClock.wall(), expires=None, overlap=0.0)
        async with asyncio.timeout(LIMIT):
            await told.wait()
        assert (await ask(web, text)).status == 200
        told.clear()
        await octavo.keys.revoke(made.id)
        async with asyncio.timeout(LIMIT):
            await told.wait()
        assert (await ask(web, text)).status == 401
        following.cancel()
        await asyncio.wait({following})


async def test_keys_of_a_store_that_is_away_hold_for_a_while_and_not_for_ever(folder: Path, tmp_path: Path) -> None:
    """One of them may have been revoked meanwhile, on a server that reaches the store."""
    with frozen_time() as clock:
        async with serving(folder, tmp_path) as (octavo, web):
            key, _ = await issue(octavo, seconds=9000)
            await octavo.home.close()
            for passed, status in ((0, 200), (59, 200), (2, 401)):
                clock.advance(passed)
                with pytest.raises(SourceUnavailable):
                    await octavo.rekey()
                octavo.forget_keys(60.0)
                assert (await ask(web, key)).status == status
                assert octavo.remarks()["store"] == "away"
            assert (await ask(web, KEYS["BRAND_KEY"])).status == 200


@pytest.mark.parametrize(
    "more",
    [
        [("X-Agent", "hr")], [("X-User", "hr")], [("X-Forwarded-User", "hr")], [("Remote-User", "hr")],
        [("X-Octavo-Agent", "hr")], [("Cookie", f"key={KEYS['HR_KEY']}")], [("X-Api-Key", KEYS["HR_KEY"])],
        [("From", "hr")], [("Forwarded", "for=hr")], [("Proxy-Authorization", f"Bearer {KEYS['HR_KEY']}")],
    ],
    ids=lambda more: more[0][0],
)  # fmt: skip
async def test_no_header_of_convenience_says_who_asks(folder: Path, more: list[tuple[str, str]]) -> None:
    asked = {**BODY, "params": {"uri": "file://hr/pay.md", "_meta": META}}
    body = json.dumps(asked).encode()
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        assert (await web.ask(body, [*modern_headers(asked), *more])).status == 401
        assert "급여" not in (await web.ask(body, [*modern_headers(asked, KEYS["BRAND_KEY"]), *more])).body
        assert "급여" in (await web.ask(body, modern_headers(asked, KEYS["HR_KEY"]))).body


async def test_two_credentials_are_none(folder: Path) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        for other in (KEYS["HR_KEY"], KEYS["BRAND_KEY"], "x"):
            twice = [*modern_headers(BODY, KEYS["BRAND_KEY"]), ("Authorization", f"Bearer {other}")]
            assert (await web.ask(RAW, twice)).status == 401


async def test_client_info_and_arguments_say_nothing(folder: Path) -> None:
    meta = {**META, "io.modelcontextprotocol/clientInfo": {"name": "hr", "version": "1"}, "dev.octavo/agent": "hr"}
    asked = {**BODY, "params": {"uri": "file://hr/pay.md", "_meta": meta}}
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        reply = await ask(web, KEYS["BRAND_KEY"], asked)
        assert "급여" not in reply.body and '"agent": "brand"' in reply.body


# -- handles


async def test_a_cursor_of_another_principal_is_refused(folder: Path) -> None:
    """In both directions, hot and cold."""
    first = {"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {"_meta": META}}
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        keys = [KEYS["BRAND_KEY"], KEYS["HR_KEY"]]
        cursors = {key: (await ask(web, key, first)).json["result"]["nextCursor"] for key in keys}
        for _ in range(2):
            for key, cursor in cursors.items():
                following = {**first, "params": {"cursor": cursor, "_meta": META}}
                assert "result" in (await ask(web, key, following)).json
                other = keys[1 - keys.index(key)]
                assert (await ask(web, other, following)).json["error"]["data"]["reason"] == "invalid_cursor"


async def test_a_session_of_a_token_belongs_to_its_subject(tmp_path: Path) -> None:
    """A newer token of the same subject goes on with it; another subject, and a key, find nothing there."""
    with issuer() as made:
        async with house(configured(tmp_path, made.url)) as octavo, Web(octavo, lane=True) as web:
            session = await old_session(web, made.token())

            def shown(credential: str) -> list[tuple[str, str]]:
                return [(k, f"Bearer {credential}" if k == "Authorization" else v) for k, v in session]

            assert (await web.ask(frame("ping"), shown(made.token(jti="2")))).status == 200
            for other in (made.token(sub="bob"), KEYS["BRAND_KEY"]):
                for method, body in (("POST", frame("ping")), ("GET", b""), ("DELETE", b"")):
                    assert (await web.ask(body, shown(other), method=method)).status == 404


async def test_events_of_another_principal_cannot_be_resumed(folder: Path) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        mine, theirs = await old_session(web, KEYS["BRAND_KEY"]), await old_session(web, KEYS["HR_KEY"])
        reply = await web.ask(frame("resources/read", {"uri": "file://hr/pay.md"}), theirs)
        event = next(line[4:] for line in reply.body.splitlines() if line.startswith("id: "))
        session = next(value for name, value in theirs if name == "Mcp-Session-Id")
        stolen = [(k, session if k == "Mcp-Session-Id" else v) for k, v in mine]
        assert (await web.ask(b"", [*stolen, ("Last-Event-ID", event)], method="GET")).status == 404


async def test_a_peer_of_a_socket_is_who_the_kernel_says(folder: Path) -> None:
    """Without a key; and what was remembered for one user does not serve another."""
    from msgspec.structs import replace

    from octavo.config.sections.http import Peer

    loaded = configuration(folder)
    http = loaded.config.serve.http.model_copy(update={"peers": (Peer(uid=1001, agent="hr"),)})
    served = loaded.config.serve.model_copy(update={"http": http})
    loaded = replace(loaded, config=loaded.config.model_copy(update={"serve": served}))

    async def by(web: Web, uid: int | None, key: str | None = None) -> Reply:
        sent: list[Any] = []
        given = [{"type": "http.request", "body": RAW, "more_body": False}]

        async def receive() -> Any:
            return given.pop() if given else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(dict(message))

        headers = [(k.lower().encode(), v.encode()) for k, v in modern_headers(BODY, key)]
        scope: dict[str, Any] = {
            "type": "http", "method": "POST", "path": "/mcp", "headers": headers, "query_string": b"", "client": None,
            **({} if uid is None else {PEER: uid}),
        }  # fmt: skip
        await web.app(scope, receive, send)
        return reply_of(sent)

    async with house(loaded) as octavo, Web(octavo, lane=True, access=Authentication()) as web:
        await ask(web, KEYS["BRAND_KEY"])  # so that the lane knows the envelope
        for _ in range(3):
            assert (await by(web, 1001)).status == 200
            assert [(await by(web, uid)).status for uid in (0, 1000, None)] == [401, 401, 401]
            assert (await by(web, 1001, "wrong")).status == 401
            assert (await by(web, 0, KEYS["BRAND_KEY"])).status == 200
