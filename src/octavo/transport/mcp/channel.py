"""The client that waits for a call: progress for everybody, the raw protocol for plugins that may."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning

from octavo.transport.mcp import wire_names

if TYPE_CHECKING:
    from octavo.core.approval import ApprovalQuestion, Verdict
    from octavo.core.forms import Answer, Form

_SEVERITY = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def _as_it_is(value: Any) -> Any:
    return value


class Wire:
    """What a plugin marked `protocol: true` gets besides the ordinary context."""

    def __init__(
        self, context: ServerRequestContext[Any, Any], params: Any, changed: Callable[[str], None], level: str | None
    ) -> None:
        self.context = context
        self.params = params  # the request's validated params model
        self.list_changed = changed
        self._level = level
        self.shown: Callable[[Any], Any] = _as_it_is  # redaction puts itself here: what the client may see of a value

    @property
    def modern(self) -> bool:
        return self.context.protocol_version == wire_names.MODERN

    async def log(self, level: types.LoggingLevel, data: Any, logger: str | None = None) -> None:
        """A log message to the client, if it wants messages of this level."""
        if self._level is not None and _SEVERITY.index(level) < _SEVERITY.index(self._level):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)  # logging is deprecated, and still asked for
            sent = self.context.session.send_log_message(
                level, self.shown(data), logger, related_request_id=self.context.request_id
            )
        await sent


class McpChannel:
    def __init__(
        self, context: ServerRequestContext[Any, Any], params: Any, changed: Callable[[str], None], level: str | None
    ) -> None:
        self._context, self._params = context, params
        self._latest: float | None = None
        self.lasts = False  # the client knows tasks, and the tool may become one
        self.wire = Wire(context, params, changed, level)

    @property
    def locales(self) -> Sequence[str]:
        """That of the request itself, then those of its HTTP header."""
        from octavo.core.languages import accepted, is_tag

        meta: Any = (self._context.params or {}).get("_meta")
        said = meta.get(wire_names.LOCALE) if isinstance(meta, dict) else None
        header = "" if self._context.request is None else self._context.request.headers.get("accept-language", "")
        return [*([said] if isinstance(said, str) and is_tag(said) else []), *accepted(header)]

    async def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        """Goes out only if the client gave a token; the protocol wants values that increase."""
        if self._latest is not None and value <= self._latest:
            return
        self._latest = value
        await self._context.session.report_progress(value, total, message)

    async def approve(self, question: ApprovalQuestion) -> Verdict | None:
        from octavo.transport.mcp import approval

        return await approval.approve(self._context, self._params, question)

    @property
    def asks(self) -> bool:
        from octavo.transport.mcp import forms

        return forms.shows_forms(self._context)

    @property
    def waits(self) -> bool:
        return False

    async def ask(self, form: Form) -> Answer | None:
        from octavo.transport.mcp import forms

        return await forms.ask(self._context, self._params, form)
