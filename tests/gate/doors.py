"""The two doors of a house in process: stdio over real pipes, HTTP by the bare ASGI interface."""

from __future__ import annotations

import array
import asyncio
import contextlib
import fcntl
import json
import os
import termios
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, NamedTuple

from octavo.app import Octavo
from octavo.core.routes import Routes, no_routes
from octavo.core.values import Principal
from octavo.transport.http import serve as serve_http
from octavo.transport.http.front import Authentication, Front
from octavo.transport.mcp.fast_path import Lane
from octavo.transport.stdio import serve as serve_stdio

LIMIT = 30.0  # seconds for anything here
TURNS = 12  # of the loop with nothing to do, after which nothing will come


class Json(NamedTuple):
    """A document in one canonical spelling: types are exact, `7` is not `"7"` and not `7.0`."""

    text: str

    @classmethod
    def of(cls, raw: bytes) -> Json:
        """Fails for a member that is there twice."""
        return cls(json.dumps(json.loads(raw, object_pairs_hook=_members), sort_keys=True, ensure_ascii=False))

    @property
    def value(self) -> Any:
        return json.loads(self.text)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    assert len(members) == len(pairs), f"a member is there twice: {pairs}"
    if "incident" in members:
        members["incident"] = "#"  # random
    return members


class Pipe:
    """A client at one stdio connection, in the same process."""

    def __init__(self, house: Octavo, who: Principal, *, lane: bool) -> None:
        self.house = house
        self.connection = serve_stdio.StdioConnection(house, who, lane=lane, strict_codes=False)
        self._to_server = os.pipe()
        self._from_server = os.pipe()
        self._got = bytearray()
        self._serving: asyncio.Task[None] | None = None

    @property
    def lane(self) -> Lane:
        return self.connection.lane

    async def __aenter__(self) -> Pipe:
        loop = asyncio.get_running_loop()
        os.set_blocking(self._to_server[1], False)
        os.set_blocking(self._from_server[0], False)
        self._serving = loop.create_task(self.connection.serve(self._to_server[0], self._from_server[1]))
        self.listen(True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    def listen(self, yes: bool) -> None:
        loop = asyncio.get_running_loop()
        if yes:
            loop.add_reader(self._from_server[0], self._read)
        else:
            loop.remove_reader(self._from_server[0])

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._from_server[0], 1 << 20)
            if not data:
                self.listen(False)
            self._got += data

    async def leave(self) -> None:
        """Closes the client's end and waits for the server to end."""
        if self._serving is None:
            return
        serving, self._serving = self._serving, None
        os.close(self._to_server[1])
        try:
            done, _ = await asyncio.wait({serving}, timeout=LIMIT)
            assert done, "the server did not end"
            serving.result()
        finally:
            serving.cancel()
            await asyncio.wait({serving})
            self._drain()
            self.listen(False)
            os.close(self._from_server[0])

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._from_server[0], 1 << 20):
                self._got += data

    async def write(self, data: bytes) -> None:
        """All of it, however slowly the server takes it."""
        async with asyncio.timeout(LIMIT):
            while data:
                try:
                    data = data[os.write(self._to_server[1], data) :]
                except BlockingIOError:
                    await asyncio.sleep(0)

    async def settle(self, *, hanging: int = 0) -> list[bytes]:
        """The lines that came, once the server has nothing left to do; so many calls may hang."""
        idle = 0
        async with asyncio.timeout(LIMIT):
            while idle < TURNS * (3 if hanging else 1):
                await asyncio.sleep(0)
                idle = 0 if self.busy(hanging) else idle + 1
        lines = bytes(self._got).split(b"\n")
        assert lines[-1] == b"", lines[-1][:200]
        self._got.clear()
        return lines[:-1]

    async def until(self, count: int) -> list[bytes]:
        """At least so many lines."""
        async with asyncio.timeout(LIMIT):
            while self._got.count(b"\n") < count:
                await asyncio.sleep(0)
        return await self.settle()

    def busy(self, hanging: int) -> bool:
        pipes = self.connection.pipes
        inbox = pipes.inbox
        between = _waiting(self._to_server[0]) or _waiting(self._from_server[0])
        moving = between or inbox.waiting or pipes._held or pipes._out
        working = inbox.open - len(pipes._listening) + len(pipes._running)
        return bool(moving or working > hanging)

    async def ask(self, *frames: bytes, hanging: int = 0) -> list[Json]:
        await self.write(b"".join(frame + b"\n" for frame in frames))
        return [Json.of(line) for line in await self.settle(hanging=hanging)]


def _waiting(descriptor: int) -> int:
    """Bytes in a pipe."""
    size = array.array("i", [0])
    with contextlib.suppress(OSError):
        fcntl.ioctl(descriptor, termios.FIONREAD, size)
    return size[0]


Headers = Iterable[tuple[str, str]]


class Reply(NamedTuple):
    status: int
    headers: tuple[tuple[str, str], ...]  # without date and length, sorted
    body: str
    raw: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def same(self) -> tuple[object, ...]:
        return self.status, self.headers, self.body


class Web:
    """A client at the ASGI application of a house."""

    def __init__(
        self,
        house: Octavo,
        *,
        lane: bool,
        access: Authentication | None = None,
        body_seconds: float = 30.0,
        traced: bool = False,
        routes: Routes = no_routes,
    ) -> None:
        self.house = house
        app, self.hub = serve_http.application(
            house, access=access or Authentication(), hosts=["127.0.0.1:*", "octavo.example"],
            origins=["http://127.0.0.1:*", "https://console.example"], lane=lane, strict_codes=False,
            body_seconds=body_seconds, traced=traced, routes=routes,
        )  # fmt: skip
        self.app: Front = app
        self._to_app: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._up, self._down = asyncio.Event(), asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    @property
    def lane(self) -> Lane:
        return self.app.lane

    async def __aenter__(self) -> Web:
        async def told(message: Any) -> None:
            assert message["type"].endswith(".complete"), message
            (self._up if "startup" in message["type"] else self._down).set()

        self._life = asyncio.get_running_loop().create_task(self.app({"type": "lifespan"}, self._to_app.get, told))
        self._to_app.put_nowait({"type": "lifespan.startup"})
        async with asyncio.timeout(LIMIT):
            await self._up.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._life is not None
        self.hub.close()
        self._to_app.put_nowait({"type": "lifespan.shutdown"})
        async with asyncio.timeout(LIMIT):
            await self._down.wait()
            await self._life

    async def ask(
        self,
        body: bytes,
        headers: Headers,
        *,
        method: str = "POST",
        path: str = "/mcp",
        query: str = "",
        chunks: int = 1,
        leave: asyncio.Event | None = None,
    ) -> Reply:
        """One exchange. `leave`: when the client goes away; never, unless told."""
        size = max(1, -(-len(body) // chunks))
        parts = [body[i : i + size] for i in range(0, len(body), size)] or [b""]
        incoming = [
            {"type": "http.request", "body": part, "more_body": i + 1 < len(parts)} for i, part in enumerate(parts)
        ]
        done = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if incoming:
                return incoming.pop(0)
            await (leave or done).wait()
            return {"type": "http.disconnect"}

        return await self.exchange(receive, headers, method=method, path=path, query=query)

    async def exchange(
        self,
        receive: Any,
        headers: Headers,
        *,
        method: str = "POST",
        path: str = "/mcp",
        query: str = "",
        sent: list[Any] | None = None,
    ) -> Reply:
        heard: list[dict[str, Any]] = [] if sent is None else sent

        async def send(message: Any) -> None:
            heard.append(dict(message))

        scope: dict[str, Any] = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
            "raw_path": path.encode(), "query_string": query.encode("latin-1"), "root_path": "", "scheme": "http",
            "headers": [(k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in headers],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8321), "state": {},
        }  # fmt: skip
        async with asyncio.timeout(LIMIT):
            await self.app(scope, receive, send)
        return reply_of(heard)


def reply_of(heard: list[dict[str, Any]]) -> Reply:
    if not heard:
        return Reply(0, (), "")
    start, *rest = heard
    assert start["type"] == "http.response.start", heard
    assert all(message["type"] == "http.response.body" for message in rest), heard
    raw = b"".join(message.get("body", b"") for message in rest)
    told = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in start["headers"]}
    assert told.pop("content-length", str(len(raw))) == str(len(raw))
    told.pop("date", None)
    kind = told.get("content-type", "")
    body = Json.of(raw).text if kind.startswith("application/json") and raw else raw.decode("utf-8", "replace")
    return Reply(start["status"], tuple(sorted(told.items())), body, raw)


@contextlib.asynccontextmanager
async def both(*doors: Any) -> AsyncIterator[tuple[Any, ...]]:
    async with contextlib.AsyncExitStack() as stack:
        yield tuple([await stack.enter_async_context(door) for door in doors])


def modern_headers(body: Mapping[str, Any], key: str | None = None) -> list[tuple[str, str]]:
    """What a well-behaved modern client sends with this body."""
    from mcp.shared.inbound import encode_header_value

    params = body.get("params") or {}
    name = params.get("uri") if body["method"] == "resources/read" else params.get("name")
    named = body["method"] in ("resources/read", "tools/call", "prompts/get") and isinstance(name, str)
    return [
        ("Host", "127.0.0.1:8321"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", str(body["method"])),
        *([("Mcp-Name", encode_header_value(name))] if named else []),
        *([("Authorization", f"Bearer {key}")] if key else []),
    ]
