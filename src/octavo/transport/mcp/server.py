"""The SDK's low-level server over our pipeline: one handler a method, both eras.

The SDK owns the protocol. A handler makes a Call, asks the pipeline and shapes the reply; middleware
only maps errors, keeps the account of requests that never became a call, and seals request state.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
import msgspec
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types.methods import is_input_required
from pydantic import ValidationError

from octavo.core.errors import (
    ALL,
    ApprovalRequired,
    InputRequired,
    InvalidParams,
    OctavoError,
    ProtocolError,
    RateLimited,
)
from octavo.core.ports.chain import expected, page_of, several
from octavo.core.tools import PromptResult, ToolResult, is_unknown_tool, unknown_tool
from octavo.core.values import LONGEST_QUESTION, Content, Principal, Template
from octavo.core.version import VERSION
from octavo.transport.mcp import eras, wire_names
from octavo.transport.mcp.calls import CALLING, Account, Calls, accounting, incident
from octavo.transport.mcp.channel import McpChannel
from octavo.transport.mcp.codes import WireError
from octavo.transport.mcp.narrowing import ClientNarrowing, ConfigParams
from octavo.transport.mcp.sdk_errors import ToldError, explained, wrong_params
from octavo.transport.mcp.sdk_lazy import promised, unbuilt
from octavo.transport.mcp.skills import DirectoryParams, SkillParams, SkillsExtension
from octavo.transport.mcp.streams import ListenStreams, Sessions, Until
from octavo.transport.mcp.subscriptions import Hub

# What the SDK's server serves HTTP with: stdio does without. Its constants are stand-ins, so none is left to a default.
_WEB = (
    "starlette.applications",
    "starlette.middleware",
    "starlette.middleware.authentication",
    "starlette.routing",
    "mcp.server.auth.middleware.auth_context",
    "mcp.server.auth.middleware.bearer_auth",
    "mcp.server.auth.provider",
    "mcp.server.auth.routes",
    "mcp.server.auth.settings",
    "mcp.server.streamable_http",
    "mcp.server.streamable_http_manager",
    "mcp.server.transport_security",
)
with unbuilt(), promised(*_WEB):
    from mcp.server.lowlevel.server import NotificationOptions, Server

if TYPE_CHECKING:
    from octavo.transport.mcp.tasks import TasksExtension

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
P = TypeVar("P")

INSTRUCTIONS = (
    "Use this server to find and read the organisation's knowledge: list the resources, read them by URI, and "
    "subscribe to the ones you depend on (patterns such as file://docs/* cover a folder). What you see is what you "
    "may use.\n"
    "To find something, call the tool search with the question or its rarest nouns, in the language of the documents.\n"
    "For an exact text give kind: content, for a file name kind: names; then read what was found by its URI."
)
# Lists depend on who asks, so no copy of one may serve somebody else.
_LISTS = CacheHint(ttl_ms=60_000, scope="private")
_FRESH = CacheHint(ttl_ms=0, scope="private")

_METHODS = sorted((*CALLING, "resources/unsubscribe", "subscriptions/listen", "logging/setLevel", "server/discover"))

_REASONS = frozenset(kind.reason for kind in ALL)

Who = Callable[[Context], Principal]
# Told of each request once it has its audit record, whether it ended with a result, and of one that changed something
# whether its outcome is stored already (None: it changed nothing).
Recorded = Callable[[Context, bool, bool | None], None]


class _Sdk(Server[dict[str, Any]]):
    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        # Over HTTP the SDK would tell handshake-era clients that lists never change.
        changes = notification_options or NotificationOptions(True, True, True)
        return super().create_initialization_options(changes, experimental_capabilities, extensions)


class McpServer:
    """Everything one process serves over MCP, whatever the transport."""

    def __init__(
        self,
        calls: Calls,
        hub: Hub,
        who: Who,
        recorded: Recorded,
        *,
        until: Until = lambda _ctx: None,
        counted: Callable[[Context], bool] = lambda _ctx: False,
        owns_process: bool = False,
        traced: bool = False,
    ) -> None:
        """`counted`: whether its transport has counted a request. `owns_process`: the client is the only one, so
        that it may narrow what the process serves. `traced`: every request is a span."""
        self.calls, self.hub, self._who, self._recorded = calls, hub, who, recorded
        self._counted = counted
        self._server = calls.server
        self._narrowing = ClientNarrowing(calls.server, who, owns_process=owns_process)
        self._sessions = Sessions(calls, hub, who)
        self._listens = ListenStreams(calls, hub, who, until)
        self._skills = SkillsExtension(calls, who)
        self._tasks: TasksExtension | None = None
        self.sdk = self._build()
        if traced:
            from octavo.transport.mcp.traces import OpenTelemetryMiddleware  # here: it is rarely wanted

            self.sdk.middleware.insert(0, OpenTelemetryMiddleware())
        self._announce()
        self._server.on_swap(self._announce)

    def _build(self) -> Server[dict[str, Any]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)  # logging is deprecated, and still asked for
            sdk = _Sdk(
                "octavo",
                version=VERSION,
                title="Octavo",
                instructions=INSTRUCTIONS,
                cache_hints={
                    "server/discover": _LISTS,
                    "tools/list": _LISTS,
                    "prompts/list": _LISTS,
                    "resources/templates/list": _LISTS,
                    "resources/list": _FRESH,
                    "resources/read": _FRESH,
                },
                get_tool_input_schema=self._header_schema,
                on_list_resources=self._guard(self._list_resources),
                on_list_resource_templates=self._guard(self._list_templates),
                on_read_resource=self._guard(self._read),
                on_subscribe_resource=self._guard(self._sessions.subscribe),
                on_unsubscribe_resource=self._guard(self._sessions.unsubscribe),
                on_subscriptions_listen=self._guard(self._listens.listen),
                on_list_tools=self._guard(self._list_tools),
                on_call_tool=self._guard(self._call_tool),
                on_list_prompts=self._guard(self._list_prompts),
                on_get_prompt=self._guard(self._get_prompt),
                on_completion=self._guard(self._complete),
                on_set_logging_level=self._guard(self._set_level),
            )
        sdk.add_request_handler("server/config", ConfigParams, self._guard(self._narrowing.configure))
        skills = self._skills
        sdk.add_request_handler("skills/list", types.PaginatedRequestParams, self._guard(skills.list))
        sdk.add_request_handler("skills/get", SkillParams, self._guard(skills.get))
        sdk.add_request_handler("resources/directory/read", DirectoryParams, self._guard(skills.read_directory))
        sdk.add_notification_handler("notifications/initialized", types.NotificationParams, self._opened)
        sdk.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._narrowing.ask_roots
        )
        # Not OpenTelemetryMiddleware: it costs 57 us a request even where nobody traces.
        sdk.middleware[:] = [self._account, self._seal_state, self._legacy_extensions]
        return sdk

    def _announce(self) -> None:
        lasting: dict[str, dict[str, Any]] = {}
        if self._server.works.tools.long:
            self._serve_tasks()
            lasting[wire_names.TASKS_EXTENSION] = {}
        meta = {wire_names.META_EXTENSION: {"keys": list(wire_names.SERVED)}}
        self.sdk.extensions = {**meta, **self._skills.announced, **lasting}

    def _serve_tasks(self) -> None:
        if self._tasks is None:
            from octavo.transport.mcp.tasks import TaskParams, TasksExtension, UpdateParams

            tasks = self._tasks = TasksExtension(self.calls, self._who)
            self.sdk.add_request_handler("tasks/get", TaskParams, self._guard(tasks.get))
            self.sdk.add_request_handler("tasks/update", UpdateParams, self._guard(tasks.update))
            self.sdk.add_request_handler("tasks/cancel", TaskParams, self._guard(tasks.cancel))

    # -- middleware

    async def _seal_state(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """The SDK seals and opens what a client carries between the rounds of one request. Loaded for those alone."""
        if ctx.params is not None and ctx.params.get("requestState") is not None:
            return await self._boundary(ctx, call_next)
        result = await call_next(ctx)
        if not is_input_required(result):
            return result

        async def given(_: Context) -> HandlerResult:
            return result

        return await self._boundary(ctx, given)

    @cached_property
    def _boundary(self) -> ServerMiddleware[Any]:
        from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

        security = RequestStateSecurity(
            keys=[self._server.key("request-state")],
            ttl=LONGEST_QUESTION,
            bind_principal=lambda ctx: self._who(ctx).id,
        )
        return RequestStateBoundary(security, default_audience="octavo")

    async def _account(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Outermost: no internals in an error, one audit record for every request, and each counted once: what becomes
        a call by the pipeline, all else here."""
        if ctx.request_id is None:
            return await call_next(ctx) if self._is_within_rate(ctx) else None
        outcome = "cancelled"
        with accounting() as account:
            try:
                if ctx.method not in CALLING:
                    self._count(ctx)
                result = await self._answered(ctx, call_next, account)
                outcome = "ok"
                return result
            except MCPError as refused:
                outcome = _outcome(refused)
                raise explained(refused, ctx.method, ctx.params, _METHODS) from None
            except ValidationError as found:
                outcome = "invalid_params"
                raise wrong_params(ctx.method, ctx.params, found) from None
            except Exception as fault:
                outcome = "crash"
                raise _mcp(self._incident(fault)) from None
            finally:
                self._recorded(ctx, outcome == "ok", account.kept)
                if account.trail is None:
                    self._note(ctx, outcome, account.begun)

    async def _answered(self, ctx: Context, call_next: CallNext, account: Account) -> HandlerResult:
        """What was to become a call and did not, as with wrong params, is counted when that is known."""
        try:
            result = await call_next(ctx)
        except Exception:
            if ctx.method in CALLING and account.trail is None:
                self._count(ctx)
            raise
        if ctx.method in CALLING and account.trail is None:
            self._count(ctx)
        return result

    def _count(self, ctx: Context) -> None:
        if not self._counted(ctx):
            try:
                self._server.works.count(self._who(ctx))
            except RateLimited as error:
                raise _mcp(self.calls.codes.encode(error, modern=_modern(ctx))) from None

    def _is_within_rate(self, ctx: Context) -> bool:
        """Of a notification, which nobody answers: beyond the rate it is as if it had not come."""
        try:
            self._count(ctx)
        except MCPError:
            self._note(ctx, RateLimited.reason)
            return False
        return True

    def _note(self, ctx: Context, outcome: str, begun: object = None) -> None:
        """What is refused for its number is counted by its method. Those that a client makes up are counted as one:
        summaries tell only so many apart, and others have floods as well."""
        what = ctx.method
        if outcome == RateLimited.reason and not (
            self.sdk.get_request_handler(what) or self.sdk.get_notification_handler(what)
        ):
            what = "request"
        self._server.note(self._who(ctx).id, what, outcome, begun=begun)

    async def _legacy_extensions(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method == "initialize" and isinstance(result, dict):
            # The handshake-era sieve strips what is newer than its schema.
            known = {name: told for name, told in self.sdk.extensions.items() if name != wire_names.TASKS_EXTENSION}
            result["capabilities"]["extensions"] = known
        return result

    def _guard(self, handler: Callable[[Context, P], Awaitable[Any]]) -> Callable[[Context, P], Awaitable[Any]]:
        """Our errors become the protocol's; anything else is an incident, not a params error."""

        async def guarded(ctx: Context, params: P) -> Any:
            try:
                return await handler(ctx, params)
            except OctavoError as error:
                raise _mcp(self.calls.codes.encode(error, modern=_modern(ctx))) from None
            except MCPError:
                raise
            except Exception as fault:
                raise _mcp(self._incident(fault)) from None

        return guarded

    def _incident(self, fault: Exception) -> WireError:
        return self.calls.codes.encode(incident(fault), modern=True)

    def _plain(self, shape: dict[str, Any]) -> dict[str, Any]:
        """The shape as the lane would encode it: a plugin's NaN, set or date is the same on both ways.

        Raises InternalError for what is no JSON.
        """
        try:
            plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(shape))
        except Exception as fault:  # foreign values: whatever is wrong with them is an incident
            raise incident(fault) from None
        return plain

    # -- handlers

    async def _opened(self, ctx: Context, params: types.NotificationParams | None) -> None:
        await self._sessions.opened(ctx, params)
        await self._narrowing.ask_roots(ctx, params)

    async def _list_resources(self, ctx: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        wanted = _filter(ctx)
        call = self.calls.list_resources(self._who(ctx), params.cursor if params else None, wanted)
        page = self._plain(self.calls.page(call, page_of(await self.calls.ask(call))))
        return _complete(eras.untitled(page, "resources", ctx.protocol_version), _FRESH)

    async def _list_templates(self, ctx: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        call = self.calls.build.templates(self._who(ctx), params.cursor if params else None)
        offered = self._plain(self.calls.templates(several(await self.calls.ask(call), Template)))
        return _complete(eras.untitled(offered, "resourceTemplates", ctx.protocol_version), _LISTS)

    async def _read(self, ctx: Context, params: types.ReadResourceRequestParams) -> dict[str, Any]:
        call = self.calls.build.read(self._who(ctx), params.uri, self._channel(ctx, params))
        return _complete(self._plain(self.calls.contents(call, expected(await self.calls.ask(call), Content))), _FRESH)

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        call = self.calls.list_tools(self._who(ctx), params.cursor if params else None)
        page = self._plain(self.calls.page(call, page_of(await self.calls.ask(call))))
        return _complete(eras.tools(page, ctx.protocol_version), _LISTS)

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        arguments, channel = params.arguments or {}, self._channel(ctx, params)
        info = self._server.works.tools.tool(params.name)
        if info is None or info.task == "never" or self._tasks is None:
            call = self.calls.build.invoke(self._who(ctx), params.name, arguments, channel)
        else:
            call = self._tasks.call(ctx, info, arguments, channel)
        try:
            result = await self.calls.ask(call)
            if not isinstance(result, ToolResult):
                return _created(result) if channel.lasts else result
            shape = self._plain(self.calls.tool_result(params.name, result))
        except ProtocolError:
            raise
        except OctavoError as error:
            if isinstance(error, ApprovalRequired) and error.question is not None:
                from octavo.transport.mcp.approval import input_required

                return input_required(error.question)
            if isinstance(error, InputRequired) and error.form is not None:
                from octavo.transport.mcp import forms

                return forms.input_required(error)
            if self._server.works.tools.tool(params.name) is None or is_unknown_tool(error, params.name):
                raise unknown_tool(params.name[:80]) from None
            wire = self.calls.codes.encode(error, modern=_modern(ctx))
            shape = self.calls.tool_error(params.name, wire)
        return _complete(eras.tool_result(shape, ctx.protocol_version))

    async def _list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        call = self.calls.list_prompts(self._who(ctx), params.cursor if params else None)
        page = self._plain(self.calls.page(call, page_of(await self.calls.ask(call))))
        return _complete(eras.untitled(page, "prompts", ctx.protocol_version), _LISTS)

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        call = self.calls.build.render(self._who(ctx), params.name, params.arguments or {}, self._channel(ctx, params))
        result = await self.calls.ask(call)
        if isinstance(result, PromptResult):
            shape = self._plain(self.calls.prompt_result(result))
            return _complete(eras.prompt_result(shape, ctx.protocol_version))
        return result

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> dict[str, Any]:
        given = dict(params.context.arguments or {}) if params.context else {}
        argument, prefix = params.argument.name, params.argument.value
        if isinstance(params.ref, types.PromptReference):
            call = self.calls.build.complete_prompt(self._who(ctx), params.ref.name, argument, prefix, given)
        else:
            call = self.calls.build.complete_template(self._who(ctx), params.ref.uri, argument, prefix, given)
        values = list(several(await self.calls.ask(call), str))
        found: dict[str, Any] = {"values": values[:100], "hasMore": len(values) > 100}
        if len(values) <= 100:  # of more nobody counts all
            found["total"] = len(values)
        return _complete({"completion": found})

    async def _set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        self._sessions.set_level(ctx, params.level)
        return types.EmptyResult()

    def _channel(self, ctx: Context, params: Any) -> McpChannel:
        return McpChannel(ctx, params, self.hub.list_changed, self._sessions.level(ctx))

    def _header_schema(self, name: str) -> dict[str, Any] | None:
        schema = self._server.works.tools.header_schema(name)
        return None if schema is None else dict(schema)


def _modern(ctx: Context) -> bool:
    return ctx.protocol_version == wire_names.MODERN


def _outcome(refused: MCPError) -> str:
    """The reason where it is an error of ours; the SDK's own have a code alone."""
    data = refused.error.data
    reason = data.get("reason") if isinstance(data, dict) else None
    return reason if isinstance(reason, str) and reason in _REASONS else f"error {refused.error.code}"


def _mcp(error: WireError) -> MCPError:
    return ToldError(error.code, error.message, error.data)


def _complete(result: dict[str, Any], hint: CacheHint | None = None) -> dict[str, Any]:
    """The members that the modern era wants; the handshake-era sieve drops them."""
    result["resultType"] = "complete"
    if hint is not None:
        result.setdefault("ttlMs", hint.ttl_ms)
        result.setdefault("cacheScope", hint.scope)
    return result


def _created(reply: Any) -> Any:
    from octavo.core.tasks import Task
    from octavo.transport.mcp.tasks import created

    return created(reply) if isinstance(reply, Task) else reply


def _filter(ctx: Context) -> dict[str, Any] | None:
    params = ctx.params or {}
    meta = params.get("_meta")
    wanted = params.get("filter") or (meta.get(wire_names.FILTER) if isinstance(meta, dict) else None)
    if wanted is None:
        return None
    if not isinstance(wanted, dict):
        raise InvalidParams("A filter is an object of names and values")
    return wanted
