"""All that a tool may touch: no file system, no environment, no principal but its caller's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from octavo.core.errors import Forbidden, OctavoError
from octavo.core.model import NOTHING, Call, Content, Entry, Op, Page, Principal
from octavo.core.ports import Ask, Channel
from octavo.core.ref import Ref
from octavo.core.surface import PromptResult

_NOWHERE = Ref("invalid")  # stands for an address that could not be parsed; the call carries the fault


class NoWire(Forbidden, AttributeError):
    """`ctx.wire` is not there: `hasattr(ctx, "wire")` tells the same without an exception."""


class ToolContext:
    """What a tool or a prompt of a plugin asks with. Every question is a child call of its caller's
    call and walks the whole pipeline, so it can reach no more than the caller."""

    __slots__ = ("_ask", "_protocol", "call")

    def __init__(self, call: Call, ask: Ask, *, protocol: bool = False) -> None:
        self.call = call
        self._ask = ask
        self._protocol = protocol

    @property
    def principal(self) -> Principal:
        return self.call.principal

    async def read(self, uri: str) -> Content:
        """Raises what a read by the caller itself would: NotFound, Forbidden, TooLarge and so on."""
        content: Content = await self._ask(self._child("read", uri))
        return content

    async def list(self, uri: str, *, cursor: str | None = None, limit: int = 100) -> Page[Entry]:
        """One page of what the caller may see under `uri`."""
        page: Page[Entry] = await self._ask(self._child("list", uri)._replace(cursor=cursor, limit=limit))
        return page

    async def render(self, name: str, arguments: Mapping[str, Any] = NOTHING) -> PromptResult:
        """The messages of a prompt. Raises InvalidParams for an unknown one or for wrong arguments."""
        ref = Ref.of("prompt", (name,))
        result: PromptResult = await self._ask(self.call.child("render", ref, arguments=arguments))
        return result

    async def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        """Tells the waiting client how far the work is; silent where nobody waits for that."""
        channel: Channel | None = self.call.channel
        if channel is not None:
            await channel.progress(value, total, message)

    @property
    def wire(self) -> Any:
        """Raw protocol features. Raises NoWire unless the operator wrote `protocol: true` for the plugin."""
        if not self._protocol:
            raise NoWire("This plugin may not use the raw protocol; `protocol: true` in its configuration allows it")
        channel: Channel | None = self.call.channel
        if channel is None:
            raise NoWire("No client waits for this call, so there is no wire")
        return channel.wire

    def _child(self, op: Op, uri: str) -> Call:
        try:
            return self.call.child(op, Ref.parse(uri), uri=uri)
        except OctavoError as fault:  # the pipeline raises it, so that it is counted and recorded
            return self.call.child(op, _NOWHERE, uri=uri)._replace(fault=fault)
