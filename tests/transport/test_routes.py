"""Routes beside the protocol: what a room gives as a value is served under the front's identity, limits and records.

Demands: A8, O14, T7, T9; no room parses HTTP by itself, and a plugin has no way in.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Reply, Web
from tests.gate.world import CONFIG, KEYS, configuration, house, lay_out, records
from tests.transport import processes
from tests.transport.test_credentials import Stream

from octavo.app.configuration import load_text
from octavo.core.errors import NotFound, SourceUnavailable
from octavo.core.ports.chain import expected
from octavo.core.ref import Ref
from octavo.core.routes import EVENTS, Anybody, Route, RouteAnswer, RouteRequest
from octavo.core.values import Content

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A8", "T7", "T9")]

LIMIT = 30.0
ROOT = Path(__file__).parents[2]
HOST = ("Host", "127.0.0.1:8321")
WHAT = Ref.parse("server://config")
ADMIN = '{who: hr, may: admin, what: "server://config"}'


class Room:
    """What a room would offer, one route of each sort."""

    def __init__(self) -> None:
        self.seen: list[RouteRequest] = []
        self.more = asyncio.Event()
        self.ended = asyncio.Event()
        self.hook = 3.0
        self.offers = True

    def routes(self) -> Iterator[Route]:
        if not self.offers:
            return
        for path, handle in {"/note": self._note, "/slow": self._slow, "/broken": self._broken}.items():
            yield Route(
                path=path, methods=("GET", "POST"), stands_for="admin", what=WHAT, needs="admin", handle=handle, body=64
            )
        yield Route(
            path="/text", methods=("GET",), stands_for="read", what=Ref("mem"), needs="agent", handle=self._text
        )
        yield Route(
            path="/events", methods=("GET",), stands_for="watch", what=Ref("mem"), needs="agent", handle=self._events
        )
        yield Route(
            path="/hooks/", methods=("POST",), stands_for="watch", what=Ref("mem"), needs=Anybody(self.hook), body=64,
            handle=self._note,
        )  # fmt: skip
        yield Route(
            path="/hooks/deeper/", methods=("POST",), stands_for="watch", what=Ref("mem"), needs=Anybody(None),
            handle=self._broken,
        )  # fmt: skip

    async def _note(self, asked: RouteRequest) -> RouteAnswer:
        self.seen.append(asked)
        return RouteAnswer(body=json.dumps({"heard": len(asked.body)}).encode())

    async def _text(self, asked: RouteRequest) -> RouteAnswer:
        assert asked.who is not None
        uri = asked.query.get("uri")
        if uri is None:
            raise NotFound("Nothing was asked for", uri="")
        content = expected(await asked.ask(self.build.read(asked.who, uri)), Content)
        return RouteAnswer(body=str(content.body).encode(), media_type="text/plain")

    async def _events(self, asked: RouteRequest) -> RouteAnswer:
        async def pieces() -> AsyncGenerator[bytes, None]:
            try:
                yield b"data: one\n\n"
                await self.more.wait()
                if "breaks" in asked.query:
                    raise RuntimeError("secret detail")
                yield b"data: two\n\n"
                await asyncio.get_running_loop().create_future()
            finally:
                self.ended.set()

        return RouteAnswer(body=pieces(), media_type=EVENTS)

    async def _slow(self, asked: RouteRequest) -> RouteAnswer:
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            self.ended.set()

    async def _broken(self, asked: RouteRequest) -> RouteAnswer:
        match asked.query.get("how"):
            case "answer":
                return RouteAnswer(media_type="text/plain\r\nset-cookie: a=b")
            case "down":
                raise SourceUnavailable("It is down", retry_after=7.2)
            case _:
                raise RuntimeError("secret detail")

    build: Any = None


@asynccontextmanager
async def served(folder: Path, room: Room | None = None, **options: Any) -> AsyncIterator[tuple[Web, Room]]:
    room = room or Room()
    async with house(configuration(folder, rule=ADMIN)) as octavo:
        room.build = octavo.works.calls
        async with Web(octavo, lane=True, routes=room.routes, **options) as web:
            yield web, room


def told(key: str = "", *more: tuple[str, str]) -> list[tuple[str, str]]:
    return [HOST, *([("Authorization", f"Bearer {KEYS[key]}")] if key else []), *more]


async def ask(web: Web, path: str, key: str = "", body: bytes = b"", *, method: str = "", query: str = "") -> Reply:
    return await exchange(web, path, told(key), body, method=method, query=query)


async def exchange(
    web: Web, path: str, headers: list[tuple[str, str]], body: bytes = b"", *, method: str = "", query: str = ""
) -> Reply:
    return await web.ask(body, headers, method=method or ("POST" if body else "GET"), path=path, query=query)


def kept(web: Web) -> list[tuple[str, str, str, str]]:
    return [(one["who"], one["op"], one["outcome"], one.get("uri", "")) for one in records(web.house)]


async def test_a_request_is_a_value_without_what_proves_who_asks(folder: Path) -> None:
    async with served(folder) as (web, room):
        headers = told("HR_KEY", ("X-One", "a"), ("X-One", "b"), ("Cookie", "c=d"))
        reply = await exchange(web, "/note", headers, b"abc", query="a=1&b=%ED%95%9C")
        assert (reply.status, reply.json) == (200, {"heard": 3})
        assert dict(reply.headers)["cache-control"] == "no-store"
        assert dict(reply.headers)["x-content-type-options"] == "nosniff"
        (asked,) = room.seen
        assert (asked.method, asked.body, asked.query) == ("POST", b"abc", {"a": "1", "b": "한"})
        assert asked.headers["x-one"] == "a, b"
        assert not {"authorization", "cookie"} & asked.headers.keys()
        assert asked.who is not None and asked.who.id == "hr"
        assert kept(web) == [("hr", "admin", "ok", "server://config")]


async def test_an_unknown_method_is_told_which_there_are(folder: Path) -> None:
    async with served(folder) as (web, _):
        for path, allow in (("/note", "GET, POST, HEAD"), ("/healthz", "GET, HEAD"), ("/hooks/x", "POST")):
            reply = await ask(web, path, "HR_KEY", method="DELETE")
            assert (reply.status, dict(reply.headers)["allow"]) == (405, allow)
        assert {(who, outcome) for who, _, outcome, _ in kept(web)} == {("unknown", "status 405")}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("Host", "evil.example")], 421),
        ([], 421),
        ([HOST, HOST], 421),
        ([HOST, ("Origin", "https://evil.example")], 403),
    ],
)
@pytest.mark.parametrize("path", ["/note", "/hooks/x", "/events"])
async def test_host_and_origin_are_checked_before_anything_else(
    folder: Path, path: str, headers: list[tuple[str, str]], status: int
) -> None:
    async with served(folder) as (web, room):
        shown = [*headers, ("Authorization", f"Bearer {KEYS['HR_KEY']}")]
        assert (await exchange(web, path, shown, b"x")).status == status
        assert kept(web) == [("unknown", "http", f"status {status}", "")] and not room.seen


async def test_who_shows_no_good_key_is_refused_with_a_challenge_and_a_record(folder: Path) -> None:
    async with served(folder) as (web, room):
        for shown in (told(), told("", ("Authorization", "Bearer wrong"))):
            reply = await exchange(web, "/note", shown, b"x")
            assert reply.status == 401 and dict(reply.headers)["www-authenticate"].startswith("Bearer")
        assert kept(web) == [("unknown", "http", "unauthenticated", "")] * 2 and not room.seen


async def test_what_is_for_an_admin_is_refused_to_others_with_a_record(folder: Path) -> None:
    async with served(folder) as (web, room):
        reply = await ask(web, "/note", "BRAND_KEY", b"x")
        assert (reply.status, reply.json["error"]) == (403, "forbidden")
        assert kept(web) == [("brand", "admin", "forbidden", "server://config")] and not room.seen


async def test_a_rate_counts_requests_of_routes_too(folder: Path) -> None:
    room = Room()
    loaded = configuration(folder, rule=ADMIN, rate="2/s")
    async with house(loaded) as octavo, Web(octavo, lane=True, routes=room.routes) as web:
        statuses = [(await ask(web, "/note", "HR_KEY")).status for _ in range(20)]
        assert statuses[0] == 200 and statuses[-1] == 429
        refused = await ask(web, "/note", "HR_KEY")
        assert int(dict(refused.headers)["retry-after"]) >= 1
        assert kept(web)[-1] == ("hr", "admin", "rate_limited", "server://config")


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_over_the_limit_of_the_route_is_refused(folder: Path, announced: bool) -> None:
    async with served(folder) as (web, room):
        headers = told("HR_KEY", *([("Content-Length", "65")] if announced else []))
        assert (await exchange(web, "/note", headers, b"x" * 64)).status == (413 if announced else 200)
        reply = await exchange(web, "/note", headers, b"x" * 65)
        assert (reply.status, dict(reply.headers)["connection"]) == (413, "close")
        assert (await exchange(web, "/text", told("HR_KEY"), b"x", method="GET")).status == 413, "it takes none"
        assert len(room.seen) == (0 if announced else 1)
        assert kept(web)[-1][2] == "status 413"


async def test_a_body_that_does_not_come_meets_the_deadline_of_the_front(folder: Path) -> None:
    async with served(folder, body_seconds=0.05) as (web, room):
        given = [{"type": "http.request", "body": b"x", "more_body": True}]

        async def receive() -> Any:
            return given.pop() if given else await asyncio.get_running_loop().create_future()

        reply = await web.exchange(receive, told("HR_KEY"), path="/note")
        assert (reply.status, dict(reply.headers)["connection"]) == (408, "close")
        assert kept(web) == [("hr", "admin", "status 408", "server://config")] and not room.seen


async def test_what_a_handler_asks_of_the_pipeline_is_its_record_and_the_policy_decides(folder: Path) -> None:
    async with served(folder) as (web, _):
        assert (await ask(web, "/text", "BRAND_KEY", query="uri=mem://one")).body == "하나"
        assert (await ask(web, "/text", "BRAND_KEY", query="uri=mem://two")).status == 403
        assert (await ask(web, "/text", "BRAND_KEY")).status == 404
        assert kept(web) == [
            ("brand", "read", "ok", "mem://one"),
            ("brand", "read", "forbidden", "mem://two"),
            ("brand", "read", "not_found", "mem://"),
        ]


@pytest.mark.parametrize("query", ["a=1&a=2", "a&a", "a=%FF", "&".join(f"n{number}=" for number in range(101))])
async def test_a_query_that_can_be_read_in_two_ways_is_refused(folder: Path, query: str) -> None:
    async with served(folder) as (web, room):
        reply = await ask(web, "/note", "HR_KEY", query=query)
        assert (reply.status, reply.json["error"]) == (400, "invalid_params") and not room.seen


@pytest.mark.parametrize(
    ("path", "below"),
    [("/hooks/", ()), ("/hooks/a", ("a",)), ("/hooks/a/한글", ("a", "한글")), ("/hooks/deep", ("deep",))],
)
async def test_a_prefix_gives_the_names_below(folder: Path, path: str, below: tuple[str, ...]) -> None:
    async with served(folder) as (web, room):
        assert (await ask(web, path, body=b"x")).status == 200
        assert (room.seen[0].below, room.seen[0].who) == (below, None)
        assert kept(web) == [("unknown", "watch", "ok", "mem://")]


@pytest.mark.parametrize(
    "path",
    ["/hooks", "/hooks/../note", "/hooks/a//b", "/hooks/.", "/hooks/a/", "/hooks/a\x00", "/hooks/a\\b", "/note/"],
)
async def test_no_path_leads_elsewhere(folder: Path, path: str) -> None:
    async with served(folder) as (web, room):
        assert (await ask(web, path, "HR_KEY", b"x")).status == 404 and not room.seen


async def test_a_sign_of_life_is_given_whatever_the_query(folder: Path) -> None:
    """Balancers add what they like."""
    async with served(folder) as (web, _):
        for query in ("verbose", "1700000000", "a=1&a=2", "a=%FF"):
            assert (await ask(web, "/readyz", query=query)).json == {"status": "ready"}


async def test_callers_whom_nobody_knows_have_a_budget_and_a_sign_of_life_has_none(folder: Path) -> None:
    async with served(folder) as (web, _):
        statuses = [(await ask(web, "/hooks/x", body=b"x")).status for _ in range(6)]
        assert statuses == [200] * 3 + [429] * 3, "time stands still"
        assert {(await ask(web, "/healthz")).status for _ in range(50)} == {200}
        assert kept(web)[3:] == [("unknown", "watch", "rate_limited", "mem://")] * 3


async def test_a_fault_of_a_handler_is_an_incident_and_no_more(folder: Path) -> None:
    async with served(folder) as (web, _):
        for query in ("how=boom", "how=answer"):
            reply = await ask(web, "/broken", "HR_KEY", query=query)
            assert (reply.status, reply.json) == (500, {"error": "internal", "message": "Internal error"})
            assert "set-cookie" not in dict(reply.headers)
        down = await ask(web, "/broken", "HR_KEY", query="how=down")
        assert (down.status, dict(down.headers)["retry-after"]) == (503, "8")
        assert [outcome for _, _, outcome, _ in kept(web)] == ["crash", "crash", "source_unavailable"]


async def test_a_handler_that_does_not_answer_meets_the_time_of_every_request(folder: Path) -> None:
    text = CONFIG.replace("RATE", "off").replace("limits: {", "limits: {time: 50ms, ")
    loaded = load_text(text.replace("\nresources:", f"\n  - {ADMIN}\nresources:"), file=folder / "x", environ=KEYS)
    room = Room()
    async with house(loaded) as octavo, Web(octavo, lane=True, routes=room.routes) as web:
        assert (await ask(web, "/slow", "HR_KEY")).status == 504
        assert room.ended.is_set()
        assert kept(web) == [("hr", "admin", "timeout", "server://config")]


async def test_whoever_leaves_ends_what_is_done_for_him(folder: Path) -> None:
    async with served(folder) as (web, room):
        left = asyncio.Event()
        left.set()
        reply = await web.ask(b"", told("HR_KEY"), method="GET", path="/slow", leave=left)
        assert reply.status == 0 and room.ended.is_set()
        assert kept(web) == [("hr", "admin", "disconnected", "server://config")]


class Events(Stream):
    def __init__(self, web: Web, query: str = "") -> None:
        self.sent: list[Any] = []
        self._given = [{"type": "http.request", "body": b"", "more_body": False}]
        asked = web.exchange(
            self._receive, told("BRAND_KEY"), method="GET", path="/events", query=query, sent=self.sent
        )
        self.task = asyncio.ensure_future(asked)


def ended_well(stream: Events) -> bool:
    return stream.sent[-1] == {"type": "http.response.body", "body": b""}


async def test_a_stream_goes_on_until_the_server_stops(folder: Path) -> None:
    async with served(folder) as (web, room):
        stream = Events(web)
        await stream.begun("one")
        room.more.set()
        await stream.begun("two")
        web.app.stop()
        reply = await stream.ended()
        assert (reply.status, reply.body) == (200, "data: one\n\ndata: two\n\n")
        assert dict(reply.headers)["content-type"] == EVENTS
        assert ended_well(stream) and room.ended.is_set()
        assert kept(web) == [("brand", "watch", "ok", "mem://"), ("brand", "watch", "end", "mem://")]


@pytest.mark.parametrize("how", ["gone", "no route", "another rule"])
async def test_a_stream_ends_with_what_let_it_begin(folder: Path, how: str) -> None:
    from msgspec.structs import replace

    async with served(folder) as (web, room):
        stream = Events(web)
        await stream.begun("one")
        loaded = configuration(folder, rule=ADMIN)
        if how == "gone":
            agents = {name: agent for name, agent in loaded.config.agents.items() if name != "brand"}
            loaded = replace(loaded, config=loaded.config.model_copy(update={"agents": agents}))
        elif how == "no route":
            room.offers = False
        await web.house.reload(loaded)
        if how == "another rule":  # which does not concern it
            room.more.set()
            await stream.begun("two")
            web.app.stop()
        await stream.ended()
        assert ended_well(stream) and room.ended.is_set()


async def test_a_stream_that_breaks_is_cut_off_and_tells_nothing(folder: Path) -> None:
    async with served(folder) as (web, room):
        stream = Events(web, "breaks=1")
        await stream.begun("one")
        room.more.set()
        reply = await stream.ended()
        assert reply.body == "data: one\n\n" and "secret" not in str(stream.sent)
        assert stream.sent[-1]["more_body"], "a client sees that it is not whole"


async def test_streams_of_one_caller_are_limited(folder: Path) -> None:
    async with served(folder) as (web, _):
        streams = [Events(web) for _ in range(5)]  # as many subscriptions as there may be here
        for one in streams:
            await one.begun("one")
        assert (await ask(web, "/events", "BRAND_KEY")).status == 429
        web.app.stop()
        for one in streams:
            await one.ended()


async def test_the_head_of_a_stream_has_no_pieces(folder: Path) -> None:
    async with served(folder) as (web, _):
        reply = await ask(web, "/events", "BRAND_KEY", method="HEAD")
        assert (reply.status, reply.body) == (200, "")


def route(path: str, **changed: Any) -> Route:
    async def handle(asked: RouteRequest) -> RouteAnswer:
        return RouteAnswer()

    told = {"methods": ("GET",), "stands_for": None, "what": WHAT, "needs": Anybody(1.0), "handle": handle, **changed}
    return Route(path=path, **told)


@pytest.mark.parametrize(
    "routes",
    [
        [route("/mcp")],
        [route("/mcp/")],
        [route("/healthz")],
        [route("/one"), route("/one")],
        [route("one")],
        [route("/a b")],
        [route("/a/../b")],
        [route("/")],
        [route("/one", methods=())],
        [route("/one", needs="admin")],
        [route("/one", stands_for="admin")],
        [route("/one", needs="agent", any_host=True)],
    ],
)
async def test_routes_that_cannot_stand_there_stop_the_start(folder: Path, routes: list[Route]) -> None:
    async with house(configuration(folder)) as octavo:
        with pytest.raises(ValueError, match="route"):
            Web(octavo, lane=True, routes=lambda: routes)


async def test_a_plugin_cannot_add_one(tmp_path: Path) -> None:
    from octavo.tools.plugins import Plugin, PluginError

    assert not [name for name in vars(Plugin) if "route" in name.lower()]
    folder = lay_out(tmp_path)
    (folder / "plugin.py").write_text("def register(octavo):\n    octavo.route('/x', None)\n", encoding="utf-8")
    with pytest.raises(PluginError, match="route"):
        async with house(configuration(folder)):
            pass


async def test_what_cannot_be_recorded_is_not_answered(folder: Path) -> None:
    async with served(folder) as (web, _):
        web.house.ledger.refuses = True  # type: ignore[attr-defined]
        assert (await ask(web, "/note", "HR_KEY")).status == 503
        web.house.ledger.refuses = False  # type: ignore[attr-defined]
        assert (await ask(web, "/note", "HR_KEY")).status == 200


async def test_a_flood_of_unknown_callers_fills_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    from octavo.core.errors import RateLimited
    from octavo.transport.http import limits

    monkeypatch.setattr(limits, "ADDRESSES", 8)
    made = limits.AddressRates()
    for number in range(100):
        made.take("/hooks/", f"10.0.0.{number}", 1.0)
    assert len(made._left) == 8
    with pytest.raises(RateLimited):
        for number in range(3):
            made.take("/hooks/", f"2001:db8::{number}", 1.0)  # one site


# -- over real sockets


def raw(port: int, request: str, *more: str) -> bytes:
    head = "".join(f"{line}\r\n" for line in (request, f"Host: 127.0.0.1:{port}", *more))
    return f"{head}\r\n".encode()


METRICS = "serve: {http: {metrics: admin, deadlines: {body: 1s}}}\n"


@pytest.mark.slow
def test_a_connection_goes_on_after_every_answer_and_a_head_has_no_body(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lay_out(tmp_path)
    rule = '  - {who: hr, may: admin, what: "server://metrics"}\n'
    text = CONFIG.replace("\nresources:", f"\n{rule}resources:") + METRICS
    monkeypatch.setattr(processes, "CONFIG", text)
    with processes.program(folder, "--http", "127.0.0.1:0") as server:
        port = server.port()
        key = f"Authorization: Bearer {KEYS['HR_KEY']}"
        with processes.connect(port) as connection:
            for request, shown, status, body in (
                ("GET /healthz HTTP/1.1", "", 200, True),
                ("HEAD /healthz HTTP/1.1", "", 200, False),
                ("GET /metrics HTTP/1.1", "", 401, True),
                ("GET /metrics HTTP/1.1", key, 200, True),
                ("HEAD /metrics HTTP/1.1", key, 200, False),
                ("GET /readyz?verbose&x=1&x=2 HTTP/1.1", "", 200, True),
                ("GET /%6detrics HTTP/1.1", key, 404, True),
                ("GET /readyz HTTP/1.1", key, 200, True),
            ):
                connection.sendall(raw(port, request, *([shown] if shown else [])))
                got = processes.until(connection, b"\r\n\r\n")
                head, _, rest = got.partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 %d " % status), (request, head)
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                assert length > 0 and b"connection: close" not in head
                while body and len(rest) < length:
                    rest += connection.recv(1 << 16)
                assert len(rest) == (length if body else 0), request
        with processes.connect(port) as connection:  # a body that never comes, at a path that takes none
            connection.sendall(raw(port, "GET /metrics HTTP/1.1", key, "Transfer-Encoding: chunked"))
            assert processes.until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 408 ")
            while connection.recv(1 << 16):  # and it is closed
                pass
        assert server.ends(signal.SIGTERM) == 0
        server.clean()


@pytest.fixture
def streaming(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    file = tmp_path / "octavo.yaml"
    file.write_text("version: 1\nsources: {mem: {kind: memory, scheme: mem, resources: {}}}\n", encoding="utf-8")
    command = [sys.executable, "-m", "tests.transport.routed", str(file)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process, int(process.stderr.readline().rpartition(":")[2].partition("/")[0])
        finally:
            process.kill()


@pytest.mark.slow
def test_over_a_socket_a_stream_ends_whole_when_the_server_does(streaming: tuple[subprocess.Popen[str], int]) -> None:
    process, port = streaming
    with processes.connect(port) as connection:
        connection.sendall(raw(port, "GET /events HTTP/1.1"))
        got = processes.until(connection, b"one\n\n\r\n")
        assert b"transfer-encoding: chunked" in got.lower()
        process.send_signal(signal.SIGTERM)
        assert processes.until(connection, b"0\r\n\r\n") == b"0\r\n\r\n", "its last chunk"
    assert process.wait(LIMIT) == 0
    assert process.stderr is not None and process.stderr.read() == "the stream has ended\n"


@pytest.mark.slow
def test_over_a_socket_whoever_does_not_take_a_stream_is_closed(streaming: tuple[subprocess.Popen[str], int]) -> None:
    process, port = streaming
    with processes.connect(port) as connection:
        connection.sendall(raw(port, "GET /events?size=65536 HTTP/1.1"))
        assert process.stderr is not None and process.stderr.readline() == "the stream has ended\n"
    with processes.connect(port) as other:
        other.sendall(raw(port, "GET /healthz HTTP/1.1"))
        assert processes.until(other, b"ok").startswith(b"HTTP/1.1 200 ")
    assert process.poll() is None
