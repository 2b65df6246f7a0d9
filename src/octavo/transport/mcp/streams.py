"""The streams on which notifications leave, and the notes on them: each is made once, whoever hears of it.

There are connections of the handshake era and modern listen streams. A note is encoded once where a stream is made of
bytes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from octavo.core.arguments import WatchArguments
from octavo.core.errors import OctavoError, RateLimited
from octavo.core.glob import Glob
from octavo.core.values import Principal
from octavo.transport.http.leases import at
from octavo.transport.mcp import wire_names
from octavo.transport.mcp.calls import Calls
from octavo.transport.mcp.sdk_compat import connection_of, on_disconnect, send_plain, send_plain_below, writer_below
from octavo.transport.mcp.subscriber import Note, Subscriber
from octavo.transport.mcp.subscriptions import Hub

if TYPE_CHECKING:
    from octavo.transport.mcp.task_events import Followed


def plain(note: Note) -> dict[str, Any] | None:
    """Its params, as JSON knows them."""
    if "plain" not in note.memo:
        made = notification(note).model_dump(by_alias=True, mode="json", exclude_none=True)
        note.memo["plain"] = made.get("params")
    params: dict[str, Any] | None = note.memo["plain"]
    return params


def tagged(note: Note, tag: Mapping[str, Any]) -> dict[str, Any]:
    """The same with what says to which stream it belongs, which comes last."""
    params = dict(plain(note) or {})
    meta = params.pop("_meta", {})
    return {**params, "_meta": {**meta, **tag}}


def end_of(tag: Mapping[str, Any]) -> bytes:
    """What `framed` has at its end on one stream."""
    return _compact(tag)[1:-1] + b"}}}\r\n\r\n"


def framed(note: Note, end: bytes) -> bytes:
    """The same as one event of a stream. What stands before the end is encoded once for all streams."""
    beginning: bytes | None = note.memo.get("frame")
    if beginning is None:
        whole = _compact({"jsonrpc": "2.0", "method": note.method, "params": tagged(note, {"": 0})})
        beginning = note.memo["frame"] = b"event: message\r\ndata: " + whole.removesuffix(_TAG)
    return beginning + end


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


_TAG = b'"":0}}}'


def notification(note: Note) -> types.ServerNotification:
    meta = note.params.get("_meta")
    match note.method:
        case wire_names.UPDATED:
            updated = types.ResourceUpdatedNotificationParams(uri=note.params["uri"], _meta=meta)
            return types.ResourceUpdatedNotification(params=updated)
        case wire_names.TASKS:
            from octavo.transport.mcp.task_events import news

            return news(note.params)
        case "notifications/tools/list_changed":
            return types.ToolListChangedNotification(params=types.NotificationParams(_meta=meta))
        case "notifications/prompts/list_changed":
            return types.PromptListChangedNotification(params=types.NotificationParams(_meta=meta))
        case _:
            return types.ResourceListChangedNotification(params=types.NotificationParams(_meta=meta))


Context = ServerRequestContext[Any, Any]
Who = Callable[[Context], Principal]
Until = Callable[[Context], float | None]  # when the credential of a request ends


class Sessions:
    """Handshake-era connections. Each is one subscriber from `notifications/initialized` to its end."""

    def __init__(self, calls: Calls, hub: Hub, who: Who) -> None:
        self._calls, self._hub, self._who = calls, hub, who
        # By the identity of the connection, which is kept with it, so that the number cannot be used again.
        self._open: dict[int, tuple[object, Subscriber]] = {}

    async def opened(self, ctx: Context, _params: types.NotificationParams | None) -> None:
        self._subscriber(ctx)

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> dict[str, Any]:
        subscriber, who = self._subscriber(ctx), self._who(ctx)
        await self._hub.want(subscriber, params.uri, lambda: _allowed(self._calls, who, params.uri))
        return {}

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> dict[str, Any]:
        self._hub.forget(self._subscriber(ctx), params.uri)
        return {}

    def set_level(self, ctx: Context, level: str) -> None:
        self._subscriber(ctx).log_level = level

    def level(self, ctx: Context) -> str | None:
        """The least severe log message that this connection wants; None where it never said."""
        known = self._open.get(id(connection_of(ctx)))
        return known[1].log_level if known is not None else None

    def _subscriber(self, ctx: Context) -> Subscriber:
        connection = connection_of(ctx)
        key = id(connection)
        known = self._open.get(key)
        if known is not None:
            return known[1]
        subscriber = Subscriber(self._who(ctx), ends_on_overflow=False)
        subscriber.lists |= {"tools", "prompts", "resources"}  # unsolicited in this era
        self._open[key] = connection, subscriber
        self._hub.join(subscriber)

        async def send(note: Note) -> None:
            await send_plain(ctx, note.method, plain(note))

        pump = asyncio.get_running_loop().create_task(subscriber.pump(send))

        async def close() -> None:
            self._hub.leave(subscriber)
            self._open.pop(key, None)
            pump.cancel()

        on_disconnect(ctx, close)
        return subscriber


class Listening:
    """What one `subscriptions/listen` hears, on whatever stream it leaves."""

    def __init__(self, calls: Calls, hub: Hub) -> None:
        self._calls, self._hub = calls, hub

    def limit(self, who: Principal) -> int:
        return self._calls.works.subscriptions(who)

    @asynccontextmanager
    async def begun(
        self, who: Principal, asked: types.SubscriptionFilter, until: float | None
    ) -> AsyncGenerator[Subscriber]:
        """Joined before the acknowledgement leaves, so that nothing that happens meanwhile is lost. Raises RateLimited
        for more than there may be; what may not be watched is left out."""
        subscriber = Subscriber(who, ends_on_overflow=True)
        wanted = {"tools": asked.tools_list_changed, "prompts": asked.prompts_list_changed,
                  "resources": asked.resources_list_changed}  # fmt: skip
        subscriber.lists |= {kind for kind, yes in wanted.items() if yes}
        patterns = list(dict.fromkeys(asked.resource_subscriptions or ()))
        if len(patterns) > (limit := self.limit(who)):
            raise RateLimited("Subscription limit reached", retry_after=60.0, limit=limit)
        self._hub.join(subscriber, capped=True)
        ending = at(until, subscriber.close)
        try:
            for pattern in patterns:
                await self._want(subscriber, pattern)
            yield subscriber
        finally:
            self._hub.leave(subscriber)
            if ending is not None:
                ending.cancel()

    async def _want(self, subscriber: Subscriber, pattern: str) -> None:
        """What may not be watched is left out of the acknowledgement."""
        try:
            await self._hub.want(subscriber, pattern, lambda: _allowed(self._calls, subscriber.principal, pattern))
        except RateLimited:
            raise
        except OctavoError:
            return


class ListenStreams:
    """`subscriptions/listen`: the acknowledgement first, then events until either side ends it."""

    def __init__(self, calls: Calls, hub: Hub, who: Who, until: Until) -> None:
        self._calls, self._who, self._until = calls, who, until
        self._listening = Listening(calls, hub)

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        asked = params.notifications
        tag: dict[str, Any] = {wire_names.SUBSCRIPTION_ID: ctx.request_id}
        write, end = writer_below(ctx), end_of(tag)

        async def send(note: Note) -> None:
            if write is None:
                await send_plain_below(ctx, note.method, tagged(note, tag))
            else:
                await write(framed(note, end))

        async with self._listening.begun(self._who(ctx), asked, self._until(ctx)) as subscriber:
            followed: Followed | None = None
            try:
                if wanted := (asked.model_extra or {}).get("taskIds"):
                    followed = await self._follow(ctx, subscriber, wanted)
                await _acknowledge(ctx, honoured(asked, subscriber, followed), tag)
                await subscriber.pump(send)
            finally:
                if followed is not None:
                    followed.leave()
        return types.SubscriptionsListenResult(_meta=tag)

    async def _follow(self, ctx: Context, subscriber: Subscriber, wanted: Any) -> Followed | None:
        if not self._calls.works.tools.long:
            return None
        from octavo.transport.mcp.task_events import follow

        return await follow(self._calls, ctx, subscriber, wanted)


def honoured(
    asked: types.SubscriptionFilter, subscriber: Subscriber, followed: Followed | None = None
) -> types.SubscriptionFilter:
    """What of it is told."""
    return types.SubscriptionFilter(
        tools_list_changed=asked.tools_list_changed or None,
        prompts_list_changed=asked.prompts_list_changed or None,
        resources_list_changed=asked.resources_list_changed or None,
        resource_subscriptions=list(subscriber.patterns) or None,
        **({} if followed is None else followed.honoured),
    )


async def _acknowledge(ctx: Context, honoured: types.SubscriptionFilter, tag: dict[str, Any]) -> None:
    await ctx.session.send_notification(
        types.SubscriptionsAcknowledgedNotification(
            params=types.SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=tag)
        ),
        related_request_id=ctx.request_id,
    )


async def _allowed(calls: Calls, who: Principal, pattern: str) -> Glob:
    """What the pattern covers. Raises what the pipeline raises for somebody who may not watch it."""
    call = calls.build.watch(who, pattern)
    await calls.ask(call)
    glob = call.given(WatchArguments).glob
    if call.ref.absolute:
        return calls.works.policy.usual(glob)
    named = call.trail.ref
    return glob if named is None else glob.moved(named)
