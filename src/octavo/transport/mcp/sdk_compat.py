"""The places where the SDK's private attributes are used. Pinned to `mcp` 2.3.x and tested."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.context import ServerRequestContext

if TYPE_CHECKING:  # on stdio there is none of it
    from mcp.server.streamable_http import EventStore
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


def connection_of(ctx: ServerRequestContext[Any, Any]) -> object:
    """What stays the same for all requests of one handshake-era connection."""
    return ctx.session._connection  # pyright: ignore[reportPrivateUsage]


def on_disconnect(ctx: ServerRequestContext[Any, Any], callback: Callable[[], Awaitable[None]]) -> None:
    ctx.session._connection.exit_stack.push_async_callback(callback)  # pyright: ignore[reportPrivateUsage]


async def send_plain(ctx: ServerRequestContext[Any, Any], method: str, params: Mapping[str, Any] | None) -> None:
    """A notification of the whole connection, made already: the SDK would make and check it for each receiver."""
    await ctx.session._connection.outbound.notify(method, params)  # pyright: ignore[reportPrivateUsage]


async def send_plain_below(ctx: ServerRequestContext[Any, Any], method: str, params: Mapping[str, Any] | None) -> None:
    """The same on the stream of one request."""
    await ctx.session._request_outbound.notify(method, params)  # pyright: ignore[reportPrivateUsage]


def writer_below(ctx: ServerRequestContext[Any, Any]) -> Callable[[bytes], Awaitable[None]] | None:
    """Writes bytes on the stream of one request, where it is made of bytes: over HTTP in the modern era."""
    sink = getattr(ctx.session._request_outbound, "sink", None)  # pyright: ignore[reportPrivateUsage]
    if sink is None:
        return None

    async def write(frame: bytes) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # the client has left
            await sink.send(frame)

    return write


def events_per_session(manager: StreamableHTTPSessionManager, make: Callable[[str], EventStore]) -> None:
    """Gives each handshake-era session an event store of its own, made for whoever opened it.

    The SDK hands one store to all sessions and names streams by request id, so the events of one session
    could be replayed into another.
    """
    admit = manager._admit_session  # pyright: ignore[reportPrivateUsage]

    def admit_with_own_events(requestor: Any) -> Any:
        transport = admit(requestor)
        if transport is not None:
            transport._event_store = make("" if requestor is None else requestor["client_id"])  # pyright: ignore[reportPrivateUsage]
        return transport

    manager._admit_session = admit_with_own_events  # type: ignore[method-assign]  # pyright: ignore[reportPrivateUsage]


def live_sessions(manager: StreamableHTTPSessionManager) -> Container[str]:
    return manager._server_instances  # pyright: ignore[reportPrivateUsage]


async def end_session(manager: StreamableHTTPSessionManager, session: str) -> None:
    """As if its time were over: from now on there is no such session."""
    transport = manager._server_instances.get(session)  # pyright: ignore[reportPrivateUsage]
    if transport is not None:
        await manager._discard_session(session, transport)  # pyright: ignore[reportPrivateUsage]
