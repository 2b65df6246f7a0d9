"""Events that a handshake-era HTTP client can ask for again after its stream broke.

The SDK shares one store among all sessions and names streams by request id, so two sessions would see
each other's events. Here every session has a store of its own, bounded, and event ids cannot be guessed.
"""

from __future__ import annotations

import secrets
from collections import deque
from typing import Any

from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp_types import JSONRPCMessage

KEPT = 256  # events of one session
BYTES = 4 << 20  # and what they may weigh, roughly


class SessionEvents(EventStore):
    def __init__(self) -> None:
        self._kept: deque[tuple[EventId, StreamId, JSONRPCMessage | None]] = deque()
        self._sizes: deque[int] = deque()

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        event_id = secrets.token_urlsafe(16)
        self._kept.append((event_id, stream_id, message))
        self._sizes.append(0 if message is None else _size(message.model_dump()))
        while len(self._kept) > KEPT or (sum(self._sizes) > BYTES and len(self._kept) > 1):
            self._kept.popleft()
            self._sizes.popleft()
        return event_id

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        events = list(self._kept)
        at = next((i for i, (event_id, _, _) in enumerate(events) if event_id == last_event_id), None)
        if at is None:
            return None
        stream = events[at][1]
        for event_id, stream_id, message in events[at + 1 :]:
            if stream_id == stream and message is not None:
                await send_callback(EventMessage(message, event_id))
        return stream


def _size(value: Any) -> int:
    size = 0
    waiting: list[Any] = [value]
    while waiting:
        match waiting.pop():
            case dict() as members:
                waiting += [*members.keys(), *members.values()]
            case list() as items:
                waiting += items
            case str() as text:
                size += len(text)
            case _:
                size += 8
    return size
