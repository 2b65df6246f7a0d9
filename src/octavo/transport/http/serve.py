"""Serves over HTTP until the operator ends it; on unix sockets with the user at the other end."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, cast

import uvicorn
from mcp.server.streamable_http_manager import DEFAULT_MAX_SESSIONS, DEFAULT_SESSION_IDLE_TIMEOUT
from mcp.server.transport_security import TransportSecuritySettings

from octavo.core.ports.server import Server
from octavo.core.routes import Routes, no_routes
from octavo.transport.http.accept import AcceptingServer
from octavo.transport.http.auth import PEER, Authentication
from octavo.transport.http.deadlines import Connection, Deadlines, Patience
from octavo.transport.http.front import BODY_SECONDS, PATH, Front, admitted_by, mark_recorded, was_counted
from octavo.transport.http.listening import ListenLane
from octavo.transport.http.replay import Replays, SessionEvents
from octavo.transport.http.sessions import SessionCounts
from octavo.transport.mcp.calls import Calls
from octavo.transport.mcp.fast_path import Lane
from octavo.transport.mcp.sdk_compat import end_session, events_per_session, live_sessions
from octavo.transport.mcp.server import McpServer
from octavo.transport.mcp.streams import Listening
from octavo.transport.mcp.subscriptions import Hub
from octavo.transport.shutdown import Ending

SHUTDOWN_SECONDS = 5  # for requests that run
HURRIED_SECONDS = 0.3  # the same, where somebody at a terminal waits
RETRY_MS = 1000  # after which a handshake-era client asks again for a stream that was closed
_CREDENTIALS = struct.Struct("iII")  # process, user, group


def peer_of(descriptor: int) -> int | None:
    """The user id of whoever connected; None where this system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    with socket.socket(fileno=os.dup(descriptor)) as connected:
        _, uid, _ = _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    return int(uid)


class PeerConnection(Connection):
    """Knows who is at the other end of a unix socket: the kernel says it, not the client."""

    _uid: int | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connected = transport.get_extra_info("socket")
        self._uid = None if connected is None else peer_of(connected.fileno())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._uid is not None:
            cast("dict[str, Any]", self.scope)[PEER] = self._uid


def application(
    server: Server,
    *,
    access: Authentication,
    hosts: list[str],
    origins: list[str],
    lane: bool,
    strict_codes: bool,
    routes: Routes = no_routes,
    body_seconds: float = BODY_SECONDS,
    traced: bool = False,
) -> tuple[Front, Hub]:
    """The whole HTTP side as one ASGI application, and the hub to close before it stops.

    `routes` are what rooms serve beside the protocol; raises ValueError where they cannot be served.
    `traced`: every request is a span, so none takes the lane.
    """
    calls = Calls(server, strict_codes=strict_codes)
    hub = Hub(server)
    mcp_server = McpServer(
        calls,
        hub,
        lambda ctx: admitted_by(ctx.request).principal,
        mark_recorded,
        until=lambda ctx: admitted_by(ctx.request).until,
        counted=was_counted,
        traced=traced,
    )
    hot = Lane(calls, server_info=mcp_server.sdk.server_info_stamp, on=lane and not traced)
    # Always explicit: without settings the SDK does not check Host and Origin.
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
    inner = mcp_server.sdk.streamable_http_app(
        streamable_http_path=PATH,
        event_store=SessionEvents(),
        retry_interval=RETRY_MS,
        transport_security=security,
        max_request_body_size=server.works.limits.line,
        # Told, since the SDK's server may have been imported without its web part: see `server`.
        session_idle_timeout=DEFAULT_SESSION_IDLE_TIMEOUT,
        max_sessions=DEFAULT_MAX_SESSIONS,
    )
    manager = mcp_server.sdk.session_manager
    events_per_session(manager, Replays().of)
    sessions = SessionCounts(server, partial(live_sessions, manager), partial(end_session, manager))
    listening = ListenLane(server, hot, Listening(calls, hub), dict(mcp_server.sdk.server_info_stamp))
    front = Front(
        inner, server, hot, security, access, hub, sessions, listening,
        routes=routes, body_seconds=body_seconds, traced=traced,
    )  # fmt: skip
    return front, hub


async def serve(
    app: Front,
    hub: Hub,
    listening: socket.socket,
    ready: Callable[[str], None],
    *,
    tls: ssl.SSLContext | None = None,
    trusted_proxies: Sequence[str] = (),
    deadlines: Deadlines = Deadlines(),  # noqa: B008  a value, which nobody changes
) -> bool:
    """Until SIGTERM or Ctrl-C: whether it was that. `ready` gets the address once connections are accepted."""
    patience = app.signs.patience = Patience(deadlines)
    local = listening.family == getattr(socket, "AF_UNIX", None)
    config = uvicorn.Config(
        app,
        http=type("Connected", (PeerConnection if local else Connection,), {"patience": patience}),
        # Always explicit: by default every program of this machine could say from where it asks.
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        ssl_context_factory=None if tls is None else lambda _config, _default: tls,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    address = f"unix:{listening.getsockname()}" if local else _address(listening, "http" if tls is None else "https")
    uvicorn_server = _Uvicorn(config, app, hub, lambda: ready(address), deadlines)
    watching = [asyncio.ensure_future(watch()) for watch in (patience.watch, app.backlog.watch)]
    try:
        with suppress(asyncio.CancelledError):
            await uvicorn_server.serve(sockets=[listening])
    finally:
        for one in watching:
            one.cancel()
    return uvicorn_server.ending.interrupted


def _address(listening: socket.socket, scheme: str) -> str:
    host, port = listening.getsockname()[:2]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


class _Uvicorn(AcceptingServer):
    def __init__(
        self, config: uvicorn.Config, front: Front, hub: Hub, ready: Callable[[], None], deadlines: Deadlines
    ) -> None:
        super().__init__(config, handshake=deadlines.headers, most=deadlines.connections)
        self._front, self._hub, self._ready = front, hub, ready
        self.ending = Ending(self._end)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Not the base's way: it raises the signal once more at the end, before the house has closed its ledger."""
        yield

    def _end(self) -> None:
        # First the streams: an open one would hold up the shutdown, and its client is owed a proper end.
        self._hub.close()
        self._front.stop()
        if self.ending.interrupted:
            self.config.timeout_graceful_shutdown = HURRIED_SECONDS  # type: ignore[assignment]
        self.should_exit = True
