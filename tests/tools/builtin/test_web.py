"""`http_request` and `websocket` against servers of this machine, good ones and bad ones."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpcore2
import pytest
from tests.tools.builtin.conftest import Serve, Tools

from octavo.core.errors import (
    ApprovalRequired,
    Conflict,
    Forbidden,
    InvalidParams,
    NotFound,
    OctavoError,
    SourceUnavailable,
    Timeout,
    TooLarge,
)
from octavo.core.external import SocketMessage
from octavo.core.tools import Embedded, Image, Text
from octavo.net.sockets import WebSocket

pytestmark = pytest.mark.anyio

TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA

Speaks = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Site:
    """A server of a test: what it was asked, and what it answers, by path."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, bytes | Speaks] = {}

    def ok(self, path: str, body: bytes = b"ok", status: str = "200 OK", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.answers[path] = "\r\n".join((*lines, "", "")).encode() + body

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                text = head.decode("latin-1")
                lines = text.lower().split("\r\n")
                size = next((int(line[15:]) for line in lines if line.startswith("content-length:")), 0)
                self.asked.append(text + (await reader.readexactly(size)).decode())
                answer = self.answers.get(text.split(" ", 2)[1], b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n")
                if not isinstance(answer, bytes):
                    await answer(reader, writer)
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def open(self, stack: AsyncExitStack) -> str:
        server = await asyncio.start_server(self.meet, "127.0.0.1", 0)
        stack.callback(server.close)
        self.port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self.url


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        site = Site()
        await site.open(stack)
        yield site


Web = Callable[..., Awaitable[Tools]]


@pytest.fixture
def web(serve: Serve, site: Site) -> Web:
    async def web(rule: str = "methods: [GET, HEAD, POST]", more: str = "") -> Tools:
        return await serve(
            f"""
            sources: {{work: {{kind: file, roots: [./work]}}}}
            toolsets: [web]
            policy: [{{who: "*", may: "*", what: "**", approve: never}}]
            web:
              hosts: [{{host: 127.0.0.1, ports: [{site.port}], plain: true, websocket: true, {rule}}}]
              inside: [127.0.0.0/8]
              {more}
            """
        )

    return web


def body(result: Any) -> str:
    assert isinstance(result.content[1], Text)
    return result.content[1].text


@pytest.mark.seed("T4")
async def test_a_page_is_told_with_its_status_and_type(web: Web, site: Site) -> None:
    site.ok("/a?b=1", "안녕".encode(), content_type="text/plain; charset=utf-8", etag='"x"')
    result = await (await web())("http_request", url=f"{site.url}/a?b=1")
    assert body(result) == "안녕" and not result.is_error
    assert result.structured["status"] == 200 and result.structured["headers"]["etag"] == '"x"'


async def test_json_goes_out_and_comes_back(web: Web, site: Site) -> None:
    site.ok("/x", b'{"a": 1}', content_type="application/json")
    result = await (await web())("http_request", url=f"{site.url}/x", method="POST", json={"n": ["가"]})
    assert body(result) == '{"a": 1}'
    assert site.asked[0].endswith('{"n": ["가"]}') and "content-type: application/json" in site.asked[0]


async def test_a_picture_is_a_picture_and_other_bytes_are_a_resource(web: Web, site: Site) -> None:
    site.ok("/p", b"\x89PNG", content_type="image/png")
    site.ok("/b", b"\x00\x01", content_type="application/zip")
    tools = await web()
    assert (await tools("http_request", url=f"{site.url}/p")).content[1] == Image(b"\x89PNG", "image/png")
    assert isinstance((await tools("http_request", url=f"{site.url}/b")).content[1], Embedded)


async def test_an_error_of_the_server_is_told_as_one(web: Web, site: Site) -> None:
    result = await (await web())("http_request", url=f"{site.url}/missing")
    assert result.is_error and result.structured["status"] == 404


async def test_connections_are_used_again(web: Web, site: Site) -> None:
    site.ok("/a")
    tools, met = await web(), list[int]()
    original = site.meet

    async def counting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append(1)
        await original(reader, writer)

    site.meet = counting  # type: ignore[method-assign]
    for _ in range(3):
        await tools("http_request", url=f"{site.url}/a")
    assert len(site.asked) == 3 and len(met) <= 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"url": "https://example.com/"}, Forbidden),
        ({"url": "http://127.0.0.2:{port}/"}, Forbidden),
        ({"url": "http://127.0.0.1:1/"}, Forbidden),
        ({"url": "{url}/", "method": "DELETE"}, Forbidden),
        ({"url": "{url}/", "headers": {"authorization": "Bearer x"}}, InvalidParams),
        ({"url": "{url}/", "headers": {"Host": "x"}}, InvalidParams),
        ({"url": "{url}/", "headers": {"cookie": "x"}}, InvalidParams),
        ({"url": "{url}/", "headers": {"accept": "a\r\nx: y"}}, InvalidParams),
        ({"url": "{url}/", "headers": {"accept": "가"}}, InvalidParams),
        ({"url": "{url}/", "body": "x", "json": 1}, InvalidParams),
        ({"url": "{url}/", "method": "POST", "body": "x" * 2_000_000}, TooLarge),
        ({"url": "file:///etc/passwd"}, InvalidParams),
    ],
)
async def test_what_is_not_allowed_is_refused_before_anybody_is_asked(
    web: Web, site: Site, arguments: dict[str, Any], error: type[OctavoError]
) -> None:
    arguments["url"] = arguments["url"].replace("{url}", site.url).replace("{port}", str(site.port))
    tools = await web()
    with pytest.raises(error):
        await tools("http_request", **arguments)
    assert site.asked == []


async def test_a_redirect_is_followed_and_looked_at_like_a_request(web: Web, site: Site) -> None:
    site.ok("/one", status="302 Found", location="../x/./../two")
    site.ok("/two", b"there", content_type="text/plain")
    site.ok("/out", status="302 Found", location="http://127.0.0.2:1/")
    site.ok("/post", status="303 See Other", location="/two")
    site.ok("/round", status="302 Found", location="/round")
    tools = await web()
    result = await tools("http_request", url=f"{site.url}/one")
    assert body(result) == "there" and result.structured["url"] == f"{site.url}/two"
    assert body(await tools("http_request", url=f"{site.url}/post", method="POST", body="x")) == "there"
    assert site.asked[-1].startswith("GET ")
    with pytest.raises(Forbidden):
        await tools("http_request", url=f"{site.url}/out")
    with pytest.raises(SourceUnavailable, match="more than 3 times"):
        await tools("http_request", url=f"{site.url}/round")


async def test_what_was_meant_for_one_host_is_not_told_to_another(serve: Serve, site: Site) -> None:
    async with AsyncExitStack() as stack:
        other = Site()
        await other.open(stack)
        other.ok("/end", b"there", content_type="text/plain")
        for name, status in (("see", "303 See Other"), ("same", "307 Temporary Redirect")):
            site.ok(f"/{name}", status=status, location=f"{other.url}/end")
        tools = await serve(
            f"""
            sources: {{work: {{kind: file, roots: [./work]}}}}
            toolsets: [web]
            policy: [{{who: "*", may: "*", what: "**", approve: never}}]
            web:
              hosts: [{{host: 127.0.0.1, ports: [{site.port}, {other.port}], plain: true, takes: [x-key],
                        methods: [GET, POST]}}]
              inside: [127.0.0.0/8]
            """
        )
        asked = {"headers": {"X-Key": "secret", "Accept": "text/plain"}, "body": "private"}
        assert body(await tools("http_request", url=f"{site.url}/see", method="POST", **asked)) == "there"
        assert "x-key: secret" in site.asked[0] and "text/plain" in other.asked[0]
        assert not any(word in other.asked[0] for word in ("secret", "private"))
        with pytest.raises(Forbidden, match="not followed"):
            await tools("http_request", url=f"{site.url}/same", method="POST", **asked)
        assert len(other.asked) == 1


async def test_networks_inside_are_for_hosts_that_are_named_and_not_for_every_host(serve: Serve, site: Site) -> None:
    site.ok("/", b"ok", content_type="text/plain")
    for host, let_in in (('"*"', False), ("127.0.0.1", True)):
        tools = await serve(
            f"""
            sources: {{work: {{kind: file, roots: [./work]}}}}
            toolsets: [web]
            policy: [{{who: "*", may: "*", what: "**", approve: never}}]
            web:
              hosts: [{{host: {host}, ports: [{site.port}], plain: true}}]
              inside: [127.0.0.0/8]
            """
        )
        if let_in:
            assert body(await tools("http_request", url=site.url)) == "ok"
        else:
            with pytest.raises(Forbidden, match="public address"):
                await tools("http_request", url=site.url)
            assert site.asked == []


@pytest.mark.parametrize("charset", ["idna", "undefined", "rot13", "unicode_escape", "nonsense"])
async def test_a_page_in_an_encoding_that_no_page_has_is_shown_nevertheless(web: Web, site: Site, charset: str) -> None:
    site.ok("/odd", b"hello", content_type=f"text/plain; charset={charset}")
    assert body(await (await web())("http_request", url=f"{site.url}/odd")) == "hello"


async def _sent(writer: asyncio.StreamWriter, *pieces: bytes) -> None:
    for piece in pieces:
        writer.write(piece)
        await writer.drain()


def bad_servers() -> dict[str, tuple[Speaks, type[OctavoError], str]]:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"
    bomb = gzip.compress(bytes(50_000_000))

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def drips(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _sent(writer, head + b"content-length: 1000000\r\n\r\n")
        while not writer.is_closing():
            await _sent(writer, b"x")
            await asyncio.to_thread(reader.at_eof)

    async def endless_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _sent(writer, head)
        while not writer.is_closing():
            await _sent(writer, b"x-more: " + b"y" * 1000 + b"\r\n")

    async def one_endless_header(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _sent(writer, head + b"x: ")
        while not writer.is_closing():
            await _sent(writer, b"y" * 10_000)

    async def endless_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _sent(writer, head + b"\r\n")
        while not writer.is_closing():
            await _sent(writer, b"y" * 100_000)

    def says(*pieces: bytes) -> Speaks:
        async def says(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _sent(writer, *pieces)

        return says

    packed = head + b"content-encoding: gzip\r\nconnection: close\r\n\r\n"
    return {
        "says nothing": (silent, Timeout, "did not answer"),
        "drips bytes": (drips, Timeout, "did not answer"),
        "sends headers without end": (endless_headers, SourceUnavailable, "as a server should"),
        "sends one header without end": (one_endless_header, SourceUnavailable, "as a server should"),
        "sends a body without end": (endless_body, TooLarge, "larger than"),
        "promises more than it sends": (says(head, b"content-length: 100\r\n\r\nshort"), SourceUnavailable, "should"),
        "has two lengths": (
            says(head, b"content-length: 1\r\ncontent-length: 2\r\n\r\nab"), SourceUnavailable, "should"
        ),
        "is no server": (says(b"SSH-2.0-x\r\n"), SourceUnavailable, "as a server should"),
        "hangs up": (says(), SourceUnavailable, "as a server should"),
        "sends a bomb": (says(packed, bomb), TooLarge, "larger than"),
        "sends a double bomb": (says(packed, gzip.compress(bomb)), OctavoError, "-"),
        "sends broken gzip": (says(packed, b"\x1f\x8b\x08nonsense"), SourceUnavailable, "decoded"),
        "cuts gzip": (says(packed, gzip.compress(b"abc" * 1000)[:-9]), SourceUnavailable, "in the middle"),
        "sends what was not asked for": (
            says(head, b"content-encoding: br\r\ncontent-length: 2\r\n\r\nab"), SourceUnavailable, "encoding"
        ),
    }  # fmt: skip


@pytest.mark.parametrize("kind", bad_servers())
@pytest.mark.seed("T7")
async def test_a_bad_server_is_contained_and_explained(web: Web, site: Site, kind: str) -> None:
    speaks, error, said = bad_servers()[kind]
    site.answers["/bad"] = speaks
    tools = await web(more="time: 2s\n              answer: 1MB")
    if kind == "sends a double bomb":  # what is inside stays packed: small, and no text that could be shown
        result = await tools("http_request", url=f"{site.url}/bad")
        assert result.structured["size"] < 1_000_000
        return
    with pytest.raises(error, match=said):
        await tools("http_request", url=f"{site.url}/bad")
    site.ok("/good", b"fine", content_type="text/plain")
    assert body(await tools("http_request", url=f"{site.url}/good")) == "fine"


async def test_deflate_is_understood(web: Web, site: Site) -> None:
    site.ok("/z", zlib.compress(b"small"), content_encoding="deflate", content_type="text/plain")
    assert body(await (await web())("http_request", url=f"{site.url}/z")) == "small"


# -- WebSockets


async def agreed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, site: Site) -> None:
    key = next(line[19:] for line in site.asked[-1].split("\r\n") if line.startswith("sec-websocket-key: "))
    digest = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
    accept = base64.b64encode(digest)
    await _sent(
        writer,
        b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: "
        + accept
        + b"\r\n\r\n",
    )


def frame(code: int, payload: bytes, *, final: bool = True) -> bytes:
    head = bytes([(0x80 if final else 0) | code])
    if len(payload) < 126:
        return head + bytes([len(payload)]) + payload
    return head + bytes([126]) + len(payload).to_bytes(2) + payload


async def heard(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    first, second = await reader.readexactly(2)
    size = second & 0x7F
    if size == 126:
        size = int.from_bytes(await reader.readexactly(2))
    key = await reader.readexactly(4)
    data = await reader.readexactly(size)
    return first & 0x0F, bytes(byte ^ key[index % 4] for index, byte in enumerate(data))


def echo(site: Site) -> Speaks:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agreed(reader, writer, site)
        while True:
            code, data = await heard(reader)
            if code == CLOSE:
                return
            if data == b"bytes":
                await _sent(writer, frame(BINARY, b"\x00\x01"))
            elif data == b"pieces":
                await _sent(writer, frame(TEXT, b"one ", final=False), frame(PING, b"?"), frame(0, b"two"))
                assert await heard(reader) == (PONG, b"?")
            elif data == b"bye":
                await _sent(writer, frame(CLOSE, b""))
            else:
                await _sent(writer, frame(TEXT, b"echo " + data))

    return echo


@pytest.mark.seed("T4")
async def test_messages_go_out_and_come_back(web: Web, site: Site) -> None:
    site.answers["/ws"] = echo(site)
    tools = await web()
    name = (await tools("websocket", action="connect", url=f"ws://127.0.0.1:{site.port}/ws")).structured["socket"]

    async def said(text: str) -> Any:
        await tools("websocket", action="send", socket=name, message=text)
        return await tools("websocket", action="receive", socket=name, seconds=20)

    assert (await said("가" * 100)).content[0] == Text("echo " + "가" * 100)
    assert (await said("pieces")).content[0] == Text("one two")
    assert (await said("bytes")).structured == {"socket": name, "kind": "binary", "size": 2}
    nothing = await tools("websocket", action="receive", socket=name, seconds=0.01)
    assert nothing.structured["kind"] == "none"
    with pytest.raises(SourceUnavailable, match="closed"):
        await said("bye")
    with pytest.raises(NotFound):
        await tools("websocket", action="send", socket=name, message="x")


async def test_a_socket_is_its_callers_alone_and_callers_have_few(web: Web, site: Site, serve: Serve) -> None:
    site.answers["/ws"] = echo(site)
    tools = await serve(
        f"""
        sources: {{work: {{kind: file, roots: [./work]}}}}
        toolsets: [web]
        agents: {{ann: {{}}, bob: {{}}}}
        policy: [{{who: "*", may: [invoke], what: "tool://*", approve: never}}]
        web:
          hosts: [{{host: 127.0.0.1, ports: [{site.port}], plain: true, websocket: true}}]
          inside: [127.0.0.0/8]
          sockets: 2
        """
    )
    url = f"ws://127.0.0.1:{site.port}/ws"
    names = [(await tools.data("websocket", who="ann", action="connect", url=url))["socket"] for _ in range(2)]
    with pytest.raises(Conflict):
        await tools("websocket", who="ann", action="connect", url=url)
    for action in ("receive", "close"):
        with pytest.raises(NotFound):
            await tools("websocket", who="bob", action=action, socket=names[0])
    await tools("websocket", who="ann", action="close", socket=names[0])
    await tools("websocket", who="ann", action="connect", url=url)


async def test_a_socket_that_nobody_asks_for_is_closed(web: Web, site: Site) -> None:
    ended = asyncio.Event()

    async def waits(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agreed(reader, writer, site)
        assert (await heard(reader))[0] == CLOSE
        ended.set()

    site.answers["/ws"] = waits
    tools = await web(more="idle: 50ms")
    name = (await tools.data("websocket", action="connect", url=f"ws://127.0.0.1:{site.port}/ws"))["socket"]
    await asyncio.wait_for(ended.wait(), 20)
    with pytest.raises(NotFound):
        await tools("websocket", action="receive", socket=name)


@pytest.mark.parametrize(
    "frames",
    [
        frame(0x3, b"x"),
        frame(0, b"x"),
        frame(PING, b"x", final=False),
        frame(TEXT, b"\xff\xfe"),
        bytes([0x81, 0x81]) + b"mask" + b"x",
        bytes([0xF1, 1]) + b"x",
        bytes([0x81, 127]) + (1 << 40).to_bytes(8),
    ],
    ids=["unknown", "continued nothing", "cut ping", "no UTF-8", "masked", "extended", "too large"],
)
async def test_nonsense_ends_a_socket_and_says_why(web: Web, site: Site, frames: bytes) -> None:
    async def talks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agreed(reader, writer, site)
        await _sent(writer, frame(TEXT, b"first"), frames)
        await reader.read()

    site.answers["/ws"] = talks
    tools = await web()
    name = (await tools.data("websocket", action="connect", url=f"ws://127.0.0.1:{site.port}/ws"))["socket"]
    assert await tools.text("websocket", action="receive", socket=name, seconds=20) == "first"
    with pytest.raises(SourceUnavailable, match="no message"):
        await tools("websocket", action="receive", socket=name, seconds=20)


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 101 X\r\nsec-websocket-accept: wrong\r\n\r\n", b"x" * 20_000, b""],
    ids=["200", "wrong accept", "endless", "nothing"],
)
async def test_a_server_that_does_not_agree_is_refused(web: Web, site: Site, answer: bytes) -> None:
    async def talks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _sent(writer, answer)

    site.answers["/ws"] = talks
    tools = await web()
    with pytest.raises(SourceUnavailable):
        await tools("websocket", action="connect", url=f"ws://127.0.0.1:{site.port}/ws")


async def test_sockets_lead_where_requests_may_go_and_nowhere_else(web: Web, site: Site) -> None:
    tools = await web()
    for url in (f"ws://127.0.0.2:{site.port}/", "wss://example.com/", f"ws://127.0.0.1:{site.port + 1}/"):
        with pytest.raises(Forbidden):
            await tools("websocket", action="connect", url=url)
    with pytest.raises(InvalidParams):
        await tools("websocket", action="connect", url=site.url)
    with pytest.raises(InvalidParams, match="needs url"):
        await tools("websocket", action="connect")
    assert site.asked == []


class Endless(httpcore2.AsyncNetworkStream):
    """Sends the same again and again, and counts both ways."""

    def __init__(self, piece: bytes = frame(TEXT, b"x" * 1000)) -> None:
        self.sent = self.heard = 0
        self.ended = asyncio.Event()
        self._piece = piece

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        await asyncio.sleep(0)
        self.sent += 1
        return self._piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await asyncio.sleep(0)
        self.heard += 1

    async def aclose(self) -> None:
        self.ended.set()


async def test_each_ping_is_answered_before_more_is_read() -> None:
    stream = Endless(frame(PING, b"?") * 30)
    socket = WebSocket(stream, b"", "x", 1000)
    while stream.sent < 3:
        await asyncio.sleep(0)
    assert stream.heard == 60
    await socket.aclose()


def part(payload: bytes = b"") -> bytes:
    return frame(0, payload, final=False)


@pytest.mark.parametrize("control", [frame(PONG, b""), frame(PONG, b"x" * 125), frame(PING, b"")])
async def test_pings_and_pongs_without_end_end_a_socket_although_nobody_asks(control: bytes) -> None:
    stream = Endless(control * 20_000)
    socket = WebSocket(stream, b"", "the host", 1000)
    await asyncio.wait_for(stream.ended.wait(), 20)
    assert stream.sent == 1 and stream.heard <= 101
    with pytest.raises(SourceUnavailable, match="the host sent more than 100 pings and pongs within a second"):
        await socket.receive(20)


@pytest.mark.parametrize("payload", [b"", b"x"])
async def test_a_message_in_pieces_without_end_ends_a_socket_although_nobody_asks(payload: bytes) -> None:
    stream = Endless(part(payload) * 100)
    socket = WebSocket(stream, frame(TEXT, b"a", final=False), "the host", 100_000)
    await asyncio.wait_for(stream.ended.wait(), 20)
    assert stream.sent == 11
    with pytest.raises(SourceUnavailable, match="the host sent a message in more than 1,097 pieces"):
        await socket.receive(20)


async def test_no_more_pieces_are_read_than_may_wait_for_their_reader() -> None:
    stream = Endless(frame(TEXT, b"a", final=False) + part() * 398 + frame(0, b"b"))
    socket = WebSocket(stream, b"", "x", 1000)

    async def read() -> int:
        for _ in range(200):
            await asyncio.sleep(0)
        return stream.sent

    assert await read() == 3
    assert await socket.receive(1) == SocketMessage("ab")
    assert await read() == 4
    await socket.aclose()


async def test_a_large_message_may_come_in_many_pieces() -> None:
    whole = frame(TEXT, b"", final=False) + part(b"x" * 1000) * 4000 + frame(0, b"y")
    socket = WebSocket(Endless(whole), b"", "x", 4_000_100)
    message = await socket.receive(60)
    assert message is not None and len(message.content) == 4_000_001
    await socket.aclose()


@pytest.mark.parametrize(
    ("begun", "flood", "why"),
    [(frame(TEXT, b"a", final=False), part(), "in more than"), (b"", frame(PONG, b""), "pings and pongs")],
    ids=["pieces", "pongs"],
)
async def test_others_are_answered_while_a_server_floods(
    serve: Serve, site: Site, begun: bytes, flood: bytes, why: str
) -> None:
    flooded, ended = asyncio.Event(), asyncio.Event()

    async def floods(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agreed(reader, writer, site)
        await _sent(writer, begun)
        try:
            while not reader.at_eof():
                await _sent(writer, flood * 20_000)
                flooded.set()
                await asyncio.sleep(0)
        except ConnectionError:
            pass
        finally:
            ended.set()

    site.answers["/ws"] = floods
    tools = await serve(
        f"""
        sources: {{work: {{kind: file, roots: [./work]}}}}
        toolsets: [files, web]
        agents: {{ann: {{}}, bob: {{}}}}
        policy: [{{who: "*", may: [list, read, invoke], what: ["file://*", "tool://*"], approve: never}}]
        web:
          hosts: [{{host: 127.0.0.1, ports: [{site.port}], plain: true, websocket: true}}]
          inside: [127.0.0.0/8]
        """
    )
    url = f"ws://127.0.0.1:{site.port}/ws"
    name = (await tools.data("websocket", who="ann", action="connect", url=url))["socket"]
    await asyncio.wait_for(flooded.wait(), 20)
    await tools("list", who="bob", target="file://")
    await asyncio.wait_for(ended.wait(), 20)
    with pytest.raises(SourceUnavailable, match=why):
        await tools("websocket", who="ann", action="receive", socket=name, seconds=20)


async def test_what_is_said_on_a_socket_stands_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    socket = WebSocket(Endless(), b"", "x", 1000)
    assert (await socket.receive(20)).content == "x" * 1000  # type: ignore[union-attr]
    await socket.send("secret")
    await socket.aclose()
    assert caplog.text == ""


async def test_no_more_is_read_of_a_socket_than_may_wait_for_its_reader() -> None:
    stream = Endless()
    socket = WebSocket(stream, b"", "x", 1000)
    for _ in range(20):
        await asyncio.sleep(0)
    assert stream.sent == 4
    await socket.receive(1)
    for _ in range(20):
        await asyncio.sleep(0)
    assert stream.sent == 5
    await socket.aclose()


@pytest.mark.parametrize("label", ["", "labels: [{what: 'tool://http_request', integrity: trusted}]"])
async def test_what_another_machine_says_is_not_believed_unless_the_operator_says_so(
    serve: Serve, site: Site, label: str
) -> None:
    site.ok("/")
    tools = await serve(
        f"""
        sources: {{work: {{kind: file, roots: [./work], write: true}}}}
        toolsets: [files, web]
        web:
          hosts: [{{host: 127.0.0.1, ports: [{site.port}], plain: true}}]
          inside: [127.0.0.1/32]
        approval: {{after_untrusted: 8h}}
        {label}
        """
    )
    await tools("http_request", url=f"{site.url}/")
    if label:
        await tools("write", target="file://new.md", content="new")
        return
    with pytest.raises(ApprovalRequired):
        await tools("write", target="file://new.md", content="new")
