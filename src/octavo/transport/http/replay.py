"""Events that a handshake-era HTTP client can ask for again after its stream broke.

The SDK shares one store among all sessions and names streams by request id, so two sessions would see
each other's events. Here every session has a store of its own, bounded, and event ids cannot be guessed. All sessions
of one principal together keep a bounded number of bytes too: a hundred of them would else take all the memory.
"""

from __future__ import annotations

import secrets
from collections import deque
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakSet, WeakValueDictionary

from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp_types import JSONRPCMessage

from octavo.core.sizes import MIB

KEPT = 256  # events of one session
BYTES = 4 * MIB  # and what they may weigh, roughly
OF_ONE = 16 * MIB  # the same for all sessions of one principal: its oldest go first


class Replays:
    """Stores for the sessions of all principals, each of which has a share of the memory."""

    def __init__(self) -> None:
        self._rooms: WeakValueDictionary[str, _Room] = WeakValueDictionary()

    def of(self, who: str) -> SessionEvents:
        room = self._rooms.get(who)
        if room is None:
            room = self._rooms[who] = _Room()
        return SessionEvents(room)


class _Room:
    """What the sessions of one principal keep together."""

    def __init__(self) -> None:
        self.sessions: WeakSet[SessionEvents] = WeakSet()
        self.numbers = count()

    def bound(self) -> None:
        keeping = [one for one in self.sessions if one.weight]
        while sum(one.weight for one in keeping) > OF_ONE:
            # What is larger than all of it is not kept at all.
            min(keeping, key=lambda one: one.oldest).drop()
            keeping = [one for one in keeping if one.weight]


class _ReplayEvent(NamedTuple):
    id: EventId
    stream: StreamId
    message: JSONRPCMessage | None
    size: int
    number: int  # grows from event to event, over all sessions of a principal


class SessionEvents(EventStore):
    def __init__(self, room: _Room | None = None) -> None:
        self._room = room or _Room()
        self._room.sessions.add(self)
        self._kept: deque[_ReplayEvent] = deque()
        self.weight = 0

    @property
    def oldest(self) -> int:
        return self._kept[0].number

    def drop(self) -> None:
        """The oldest."""
        self.weight -= self._kept.popleft().size

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        event_id = secrets.token_urlsafe(16)
        size = 0 if message is None else _size(message.model_dump())
        self._kept.append(_ReplayEvent(event_id, stream_id, message, size, next(self._room.numbers)))
        self.weight += size
        while len(self._kept) > KEPT or (self.weight > BYTES and len(self._kept) > 1):
            self.drop()
        self._room.bound()
        return event_id

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        events = list(self._kept)
        at = next((i for i, event in enumerate(events) if event.id == last_event_id), None)
        if at is None:
            return None
        stream = events[at].stream
        for event in events[at + 1 :]:
            if event.stream == stream and event.message is not None:
                await send_callback(EventMessage(event.message, event.id))
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
