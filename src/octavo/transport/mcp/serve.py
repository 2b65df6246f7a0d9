"""Serving one house over stdio or HTTP until the client or the operator ends it."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage

from octavo.core.errors import OctavoError
from octavo.core.house import House
from octavo.core.model import Principal
from octavo.transport.mcp import stdio
from octavo.transport.mcp.calls import Calls
from octavo.transport.mcp.events import SessionEvents
from octavo.transport.mcp.http import BODY_SECONDS, PATH, Access, Front, mark_recorded, principal_of
from octavo.transport.mcp.hub import Hub
from octavo.transport.mcp.lane import Lane
from octavo.transport.mcp.sdk_compat import events_per_session
from octavo.transport.mcp.server import McpServer

Context = ServerRequestContext[Any, Any]
SHUTDOWN_SECONDS = 5
RETRY_MS = 1000  # after which a handshake-era client asks again for a stream that was closed


async def serve_stdio(house: House, who: Principal, *, lane: bool, strict_codes: bool) -> None:
    """Until the client closes its end, or a signal comes."""
    if not stdio.usable(0, 1):
        await _serve_stock_stdio(house, who, strict_codes=strict_codes)
        return
    connection = StdioConnection(house, who, lane=lane, strict_codes=strict_codes)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, connection.stop)
    await connection.serve(*stdio.claim())


class StdioConnection:
    """One client at two descriptors."""

    def __init__(self, house: House, who: Principal, *, lane: bool, strict_codes: bool) -> None:
        calls = Calls(house, strict_codes=strict_codes)
        caller = _Caller(house, who)
        recorded = stdio.Recorded()
        self.hub = Hub(house)

        def has_its_record(ctx: Context, _succeeded: bool) -> None:
            if ctx.request_id is not None:
                recorded.add(ctx.request_id)

        self._server = McpServer(calls, self.hub, lambda _ctx: caller(), has_its_record)
        self.lane = Lane(calls, server_info=self._server.sdk.server_info_stamp, on=lane)
        self.pipes = stdio.Pipes(house, self.lane, caller, recorded)
        self._stopping: asyncio.Task[None] | None = None

    async def serve(self, stdin: int, stdout: int) -> None:
        """Until the client closes its end, or `stop`."""
        sdk = self._server.sdk
        await self.pipes.open(stdin, stdout)
        try:
            await sdk.run(self.pipes.inbox, self.pipes.outbox, sdk.create_initialization_options())
        finally:
            self.hub.close()
            await self.pipes.close()

    def stop(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop())

    async def _stop(self) -> None:
        # First the streams: their clients are owed a proper end.
        self.hub.close()
        await self.pipes.quiet()
        self.pipes.end()


class _Caller:
    """Whoever started the process, with the roles that the current configuration gives."""

    def __init__(self, house: House, who: Principal) -> None:
        self._house, self._who = house, who
        house.on_swap(self._refresh)

    def __call__(self) -> Principal:
        return self._who

    def _refresh(self) -> None:
        with suppress(OctavoError):  # no longer known: the identity step refuses the old one
            self._who = self._house.works.identity.launched(self._who.id)


async def _serve_stock_stdio(house: House, who: Principal, *, strict_codes: bool) -> None:
    """Where the descriptors are plain files or terminals: the SDK's own streams, and no lane."""
    calls = Calls(house, strict_codes=strict_codes)
    hub = Hub(house)
    caller = _Caller(house, who)
    server = McpServer(calls, hub, lambda _ctx: caller(), lambda _ctx, _ok: None)
    async with stdio_server() as (read, write):
        try:
            await server.sdk.run(read, _Recorded(house, write), server.sdk.create_initialization_options())
        finally:
            hub.close()


class _Recorded:
    """A write stream through which nothing passes before its audit record is stored."""

    def __init__(self, house: House, inner: Any) -> None:
        self._house, self._inner = house, inner
        self.aclose = inner.aclose

    async def send(self, item: SessionMessage, /) -> None:
        self._house.ledger.flush()
        await self._inner.send(item)

    async def __aenter__(self) -> _Recorded:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.aclose()


def http_app(
    house: House,
    *,
    access: Access,
    hosts: list[str],
    origins: list[str],
    lane: bool,
    strict_codes: bool,
    body_seconds: float = BODY_SECONDS,
) -> tuple[Front, Hub]:
    """The whole HTTP side as one ASGI application, and the hub to close before it stops."""
    calls = Calls(house, strict_codes=strict_codes)
    hub = Hub(house)
    server = McpServer(calls, hub, lambda ctx: principal_of(ctx.request), mark_recorded)
    hot = Lane(calls, server_info=server.sdk.server_info_stamp, on=lane)
    # Always explicit: without settings the SDK does not check Host and Origin.
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
    inner = server.sdk.streamable_http_app(
        streamable_http_path=PATH,
        event_store=SessionEvents(),
        retry_interval=RETRY_MS,
        transport_security=security,
        max_request_body_size=house.works.limits.line,
    )
    events_per_session(server.sdk.session_manager, SessionEvents)
    return Front(inner, house, hot, security, access, body_seconds=body_seconds), hub


async def serve_http(app: Front, hub: Hub, listening: socket.socket, ready: Callable[[str], None]) -> None:
    """Until SIGTERM or SIGINT. `ready` gets the address once connections are accepted."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    server = _Uvicorn(config, app, hub)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        host, port = listening.getsockname()[:2]
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}")
    with suppress(asyncio.CancelledError):
        await serving


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, front: Front, hub: Hub) -> None:
        super().__init__(config)
        self._front, self._hub = front, hub

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # First the streams: an open one would hold up the shutdown, and its client is owed a proper end.
        self._hub.close()
        self._front.stop()
        # Not the base's way: it raises the signal once more at the end, before the house has closed its ledger.
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
