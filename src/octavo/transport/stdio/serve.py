"""Serving one house over stdio until the client or the operator ends it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from mcp.server.context import ServerRequestContext

from octavo.core.errors import OctavoError
from octavo.core.ports.server import Server
from octavo.core.values import Principal
from octavo.transport.mcp.calls import Calls
from octavo.transport.mcp.fast_path import Lane
from octavo.transport.mcp.server import McpServer, Recorded
from octavo.transport.mcp.subscriptions import Hub
from octavo.transport.shutdown import Ending
from octavo.transport.stdio import streams

Context = ServerRequestContext[Any, Any]


async def serve(server: Server, who: Principal, *, lane: bool, strict_codes: bool, traced: bool = False) -> bool:
    """Until the client closes its end, or a signal comes: whether that was Ctrl-C.

    `traced`: every request is a span, so none takes the lane."""
    connection = StdioConnection(server, who, lane=lane and not traced, strict_codes=strict_codes, traced=traced)
    ending = Ending(connection.stop)
    await connection.serve(*streams.claim())
    return ending.interrupted


class StdioConnection:
    """One client at two descriptors."""

    def __init__(self, server: Server, who: Principal, *, lane: bool, strict_codes: bool, traced: bool = False) -> None:
        calls = Calls(server, strict_codes=strict_codes)
        caller = _Caller(server, who)
        recorded = streams.Recorded()
        self.hub = Hub(server)

        self._server = McpServer(
            calls, self.hub, lambda _ctx: caller(), _adding_to(recorded), owns_process=True, traced=traced
        )
        self.lane = Lane(calls, server_info=self._server.sdk.server_info_stamp, on=lane, end=b"\n")
        self.pipes = streams.Pipes(server, self.lane, caller, recorded, self.stop)
        self._stopping: asyncio.Task[None] | None = None

    async def serve(self, stdin: int, stdout: int) -> None:
        """Until the client closes its end and is answered, or `stop`."""
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


def _adding_to(recorded: streams.Recorded) -> Recorded:
    def has_its_record(ctx: Context, _succeeded: bool, kept: bool | None) -> None:
        if ctx.request_id is not None:
            recorded.add(ctx.request_id, kept)

    return has_its_record


class _Caller:
    """Whoever started the process, with the roles that the current configuration gives."""

    def __init__(self, server: Server, who: Principal) -> None:
        self._server, self._who = server, who
        server.on_swap(self._refresh)

    def __call__(self) -> Principal:
        return self._who

    def _refresh(self) -> None:
        with suppress(OctavoError):  # no longer known: the identity step refuses the old one
            self._who = self._server.works.identity.launched(self._who.id)
