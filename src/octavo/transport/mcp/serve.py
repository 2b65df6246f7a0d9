"""Serving one house over stdio or HTTP until the client or the operator ends it."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage

from octavo.core.house import House
from octavo.core.model import Principal
from octavo.transport.mcp import stdio
from octavo.transport.mcp.calls import Calls
from octavo.transport.mcp.events import SessionEvents
from octavo.transport.mcp.http import PATH, Access, App, Front, mark_recorded, principal_of
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
    calls = Calls(house, strict_codes=strict_codes)
    hub = Hub(house)
    recorded: set[str] = set()
    server = McpServer(calls, hub, lambda _ctx: who, lambda ctx: recorded.add(str(ctx.request_id)))
    hot = Lane(calls, server_info=server.sdk.server_info_stamp, on=lane)
    pipes = stdio.Pipes(house, hot, who, recorded)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, pipes.end)
    await pipes.open(*stdio.claim())
    try:
        await server.sdk.run(pipes.inbox, pipes.outbox, server.sdk.create_initialization_options())
    finally:
        hub.close()
        pipes.close()


async def _serve_stock_stdio(house: House, who: Principal, *, strict_codes: bool) -> None:
    """Where the descriptors are plain files or terminals: the SDK's own streams, and no lane."""
    calls = Calls(house, strict_codes=strict_codes)
    hub = Hub(house)
    server = McpServer(calls, hub, lambda _ctx: who, lambda _ctx: None)
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

    async def __aexit__(self, *_raised: object) -> None:
        await self.aclose()


def http_app(
    house: House,
    *,
    access: Access,
    hosts: list[str],
    origins: list[str],
    lane: bool,
    strict_codes: bool,
) -> tuple[App, Hub]:
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
    return Front(inner, house, hot, security, access), hub


async def serve_http(app: App, hub: Hub, listening: socket.socket, ready: Callable[[str], None]) -> None:
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
    server = _Uvicorn(config, hub)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        host, port = listening.getsockname()[:2]
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}")
    with suppress(asyncio.CancelledError):
        await serving


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # First the streams: an open one would hold up the shutdown, and its client is owed a proper end.
        self._hub.close()
        super().handle_exit(sig, frame)
