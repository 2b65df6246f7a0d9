"""Clients that ask to see less: `server/config`, and the roots of handshake-era clients."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from pydantic import ConfigDict, ValidationError

from octavo.core.errors import OctavoError
from octavo.core.ports.server import Server
from octavo.core.values import Principal
from octavo.transport.mcp import wire_names
from octavo.transport.mcp.calls import announced

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
Who = Callable[[Context], Principal]
ROOTS_SECONDS = 30.0  # for a client to tell its roots


class ConfigParams(types.RequestParams):
    """Whatever was sent; what it may be is checked by the house, in its own words."""

    model_config = ConfigDict(extra="allow")


class ClientNarrowing:
    def __init__(self, server: Server, who: Who, *, owns_process: bool) -> None:
        self._server, self._who, self._owns_process = server, who, owns_process
        self._asking: asyncio.Task[None] | None = None
        self._ask_again = False

    async def configure(self, ctx: Context, params: ConfigParams) -> dict[str, Any]:
        asked = dict(params.model_extra or {})
        left = await self._server.narrow(self._who(ctx), asked, owns_process=self._owns_process, announced=announced)
        return {**left, "resultType": "complete"} if ctx.protocol_version == wire_names.MODERN else left

    async def ask_roots(self, ctx: Context, _params: types.NotificationParams | None) -> None:
        """Not awaited: the answer comes on the way on which the notification came. Never two questions at once."""
        capabilities = ctx.session.client_capabilities
        if self._owns_process and capabilities is not None and capabilities.roots is not None:
            self._ask_again = True
            if self._asking is None or self._asking.done():
                self._asking = asyncio.get_running_loop().create_task(self._ask(ctx))

    async def _ask(self, ctx: Context) -> None:
        while self._ask_again:
            self._ask_again = False
            await self._use_roots(ctx)

    async def _use_roots(self, ctx: Context) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MCPDeprecationWarning)  # and still what editors tell
                told = await asyncio.wait_for(ctx.session.list_roots(), ROOTS_SECONDS)
            await self._server.narrow_to_roots(self._who(ctx), [str(root.uri) for root in told.roots])
        except (OctavoError, MCPError, ValidationError, TimeoutError) as error:
            logger.warning("the client's roots are not used: %s", error)
