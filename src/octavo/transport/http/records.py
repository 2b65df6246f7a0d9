"""Holds HTTP answers back until their audit record is stored.

The beginning of an answer is held back until there is something of it, so that its status can still be 503. On a
stream that has begun the news is its last event: no answer is cut off in the middle.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec

from octavo.core.errors import OctavoError, Unrecorded
from octavo.core.ports.audit import Ledger
from octavo.transport.http.exchange import Message, Scope, Send, respond
from octavo.transport.mcp import frames
from octavo.transport.mcp.codes import INTERNAL

KEPT = "octavo.kept"  # in the scope of a request that changed something: whether its outcome is stored
BODY = "octavo.body"  # in the scope: the message that is answered
HOLD = 0.25  # seconds that the beginning of a stream waits for its first message
_STREAM = b"text/event-stream"
DATA = b"data: {"  # what an event that tells something has


class RecordedSend:
    """`send` of one exchange."""

    def __init__(self, ledger: Ledger, scope: Scope, send: Send) -> None:
        self._ledger, self._scope, self._send = ledger, scope, send
        self._answers = scope["method"] == "POST"
        self._held: list[Message] = []
        self._beginning: asyncio.Task[None] | None = None
        self._turn: asyncio.Lock | None = None  # of a stream that answers: its beginning may leave by itself
        self._streams = self._begun = self._over = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._streams = any(name == b"content-type" and _STREAM in value for name, value in message["headers"])
            if self._answers:
                self._held.append(message)
                if self._streams:
                    self._turn = asyncio.Lock()
                    asyncio.get_running_loop().call_later(HOLD, self._let_begin)
                return
        if self._turn is None:
            await self._pass(message)
            return
        async with self._turn:
            if not self._begun and DATA not in message.get("body", b"") and message.get("more_body"):
                self._held.append(message)
            else:
                await self._pass(message)

    async def _pass(self, message: Message) -> None:
        if self._over:
            return
        if self._streams or not self._begun:  # else it is the rest of what was let out
            try:
                self._ledger.flush()
            except OctavoError as fault:
                kept = self._scope.get(KEPT)
                if not kept:
                    self._over = True
                    await self._refuse(fault if kept is None else Unrecorded(begun=True))
                    return
        await self._begin()
        self._begun = True
        await self._send(message)

    async def _begin(self) -> None:
        held, self._held = self._held, []
        for message in held:
            self._begun = True
            await self._send(message)

    def _let_begin(self) -> None:
        if self._held and not self._over:
            self._beginning = asyncio.ensure_future(self._begins())

    async def _begins(self) -> None:
        assert self._turn is not None
        async with self._turn:
            if not self._over:
                await self._begin()

    async def _refuse(self, fault: OctavoError) -> None:
        if not self._begun:
            await refuse(self._scope, self._send, fault)
            return
        event = b"event: message\r\ndata: " + _frame(self._scope, fault) + b"\r\n\r\n" if self._answers else b""
        await self._send({"type": "http.response.body", "body": event})


async def refuse(scope: Scope, send: Send, fault: OctavoError) -> None:
    await respond(send, 503, _frame(scope, fault))


def _frame(scope: Scope, fault: OctavoError) -> bytes:
    return frames.error_frame(INTERNAL.encode(fault, modern=True), _request_id(scope))


def _request_id(scope: Scope) -> Any:
    try:
        return msgspec.Raw(json.dumps(json.loads(scope.get(BODY, b"null"))["id"]).encode())
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
