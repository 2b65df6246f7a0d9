"""Streams of 2026-07-28 that only listen, without the SDK: there may be very many, and each lasts for days.

As the lane does it, a request is declined before anything was asked for it, or answered: what is told is what the SDK
would tell, to the byte. What such a stream holds is its subscriber, its connection and little more.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import takewhile
from typing import Any, Final, Literal

import mcp_types as types
import msgspec
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS

from octavo.core.errors import OctavoError, RateLimited
from octavo.core.ports.server import Admitted, Server
from octavo.transport.http.exchange import Receive, Send, respond
from octavo.transport.mcp import frames, wire_names
from octavo.transport.mcp.calls import accounting, incident
from octavo.transport.mcp.fast_path import Lane
from octavo.transport.mcp.streams import Listening, end_of, framed, honoured
from octavo.transport.mcp.subscriber import Note, Subscriber

QUIET: Final = 15.0  # seconds without an event, after which a stream says that it is there
LOOK: Final = 0.5  # seconds between two looks for those
METHOD: Final = "subscriptions/listen"
_PING: Final = Note("ping", {})
_PINGED: Final = b": ping\r\n\r\n"
_HEADERS: Final = [
    (b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"), (b"x-accel-buffering", b"no"),
]  # fmt: skip
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


class _Wanted(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    resource_subscriptions: list[str]
    resources_list_changed: bool | None = None
    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None


class _Params(msgspec.Struct, forbid_unknown_fields=True):
    notifications: _Wanted
    meta: msgspec.Raw = msgspec.field(name="_meta")


class _Frame(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["subscriptions/listen"]
    params: _Params


class _Said(msgspec.Struct):
    params: _SaidParams


class _SaidParams(msgspec.Struct):
    meta: msgspec.Raw = msgspec.field(name="_meta")


_decode = msgspec.json.Decoder(_Frame).decode
_envelope = msgspec.json.Decoder(_Said).decode


class ListenRequest(msgspec.Struct, frozen=True):
    """A request that is answered here."""

    id: int | str
    wanted: types.SubscriptionFilter


class ListenLane:
    def __init__(self, server: Server, lane: Lane, listening: Listening, server_info: dict[str, Any]) -> None:
        self._server, self._lane, self._listening = server, lane, listening
        self._server_info = server_info
        self._quiet: dict[Subscriber, float] = {}  # since when; what was told last is last
        self._pinging: asyncio.TimerHandle | None = None

    def take(self, body: bytes, admitted: Admitted) -> ListenRequest | None:
        """None declines, for whatever is not the plain case. The bounds of a message were looked at before."""
        try:
            frame = _decode(body)
        except (ValueError, RecursionError):
            return None
        wanted, who = frame.params.notifications, admitted.principal
        patterns = wanted.resource_subscriptions
        # A request without one becomes no call, and has a record of its own.
        if not self._lane.knows(bytes(frame.params.meta)) or not 0 < len(patterns) <= self._listening.limit(who):
            return None
        try:
            self._server.works.count(who)
        except RateLimited:
            return None
        self._lane.hits += 1
        return ListenRequest(frame.id, types.SubscriptionFilter.model_validate(msgspec.structs.asdict(wanted)))

    @staticmethod
    def envelope(body: bytes) -> bytes | None:
        """What the SDK has accepted with this request."""
        try:
            return bytes(_envelope(body).params.meta)
        except (ValueError, RecursionError):
            return None

    async def serve(self, asked: ListenRequest, receive: Receive, send: Send, admitted: Admitted) -> None:
        who = admitted.principal
        async with AsyncExitStack() as stack:
            begun = self._listening.begun(who, asked.wanted, admitted.until)
            with accounting() as account:
                try:
                    subscriber = await stack.enter_async_context(begun)
                except Exception as fault:
                    why = fault if isinstance(fault, OctavoError) else incident(fault)
                    if account.trail is None:  # it became no call, which would be its record
                        self._server.note(who.id, METHOD, "crash" if why is not fault else why.reason)
                    await self._refuse(asked, why, send)
                    return
            await self._stream(subscriber, asked, receive, send)

    async def _stream(self, subscriber: Subscriber, asked: ListenRequest, receive: Receive, send: Send) -> None:
        tag = {wire_names.SUBSCRIPTION_ID: asked.id}
        end = end_of(tag)

        async def leave(note: Note) -> None:
            if self._quiet.pop(subscriber, None) is not None:  # else the client has left
                self._quiet[subscriber] = asyncio.get_running_loop().time()
                body = _PINGED if note is _PING else framed(note, end)
                await send({"type": "http.response.body", "body": body, "more_body": True})

        told = honoured(asked.wanted, subscriber).model_dump(by_alias=True, mode="json", exclude_none=True)
        first = {"jsonrpc": "2.0", "method": _ACKNOWLEDGED, "params": {"_meta": tag, "notifications": told}}
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        async with self._heard(subscriber, receive):
            await send({"type": "http.response.body", "body": _event(first), "more_body": True})
            await subscriber.pump(leave)
            is_there = subscriber in self._quiet
        if is_there:
            meta = {**tag, wire_names.SERVER_INFO: self._server_info}
            last = {"jsonrpc": "2.0", "id": asked.id, "result": {"_meta": meta, "resultType": "complete"}}
            await send({"type": "http.response.body", "body": _event(last), "more_body": False})

    @asynccontextmanager
    async def _heard(self, subscriber: Subscriber, receive: Receive) -> AsyncGenerator[None]:
        """Until the client leaves, and pinged meanwhile."""
        self._quiet[subscriber] = asyncio.get_running_loop().time()
        self._look_later()
        gone = asyncio.ensure_future(_gone(receive))
        gone.add_done_callback(lambda _: self._left(subscriber))
        try:
            yield
        finally:
            self._quiet.pop(subscriber, None)
            gone.cancel()

    def _left(self, subscriber: Subscriber) -> None:
        self._quiet.pop(subscriber, None)
        subscriber.close()

    def _look_later(self) -> None:
        if self._pinging is None:
            self._pinging = asyncio.get_running_loop().call_later(LOOK, self._look)

    def _look(self) -> None:
        """Not all at once: they have begun one after the other."""
        self._pinging = None
        before = asyncio.get_running_loop().time() - QUIET
        silent = [one for one, since in takewhile(lambda item: item[1] <= before, self._quiet.items())]
        for subscriber in silent:
            subscriber.push(_PING)
        if self._quiet:
            self._look_later()

    async def _refuse(self, asked: ListenRequest, why: OctavoError, send: Send) -> None:
        error = self._lane.codes.encode(why, modern=True)
        await respond(send, ERROR_CODE_HTTP_STATUS.get(error.code, 200), frames.error_frame(error, asked.id))


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _event(message: dict[str, Any]) -> bytes:
    return b"event: message\r\ndata: " + json.dumps(message, separators=(",", ":")).encode() + b"\r\n\r\n"
