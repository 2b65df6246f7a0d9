"""One listener: what it wants to hear, and what waits for it.

Its backlog is bounded. A subscriber that does not read cannot hold anybody up: past the bound the stream is ended
(modern), or the backlog is replaced by one list_changed, after which the client reads anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any

from msgspec import Struct, field

from octavo.core.glob import Glob
from octavo.core.values import EncoderMemo, Principal
from octavo.transport.mcp import wire_names
from octavo.transport.mcp.definitions import DEFINED

BACKLOG = 1024  # events that wait for one subscriber
CHANGED = "/list_changed"
_OTHER_LISTS = frozenset(f"notifications/{kind}{CHANGED}" for kind in DEFINED)


class Note(Struct, frozen=True):
    """One notification: method and params. All who are told the same are given the same one, which is encoded once."""

    method: str
    params: Mapping[str, Any]
    memo: EncoderMemo = field(default_factory=EncoderMemo)


class Subscription(Struct, frozen=True, eq=False):
    """One pattern that one subscriber listens to, in the words in which it asked for it."""

    subscriber: Subscriber
    text: str
    glob: Glob
    number: int  # smaller than that of any later one


class Subscriber:
    """The backlog of one stream or connection, and what it wants to hear."""

    def __init__(self, principal: Principal, *, ends_on_overflow: bool) -> None:
        self.principal = principal
        self.patterns: dict[str, Subscription] = {}
        self.lists: set[str] = set()  # kinds whose list_changed it wants: tools, prompts, resources; told when it joins
        self.shown: dict[str, bytes] = {}  # digests of the lists of tools and prompts, as it was last told of them
        self.ear: Hashable = None  # the same for those who are told the same
        self.log_level: str | None = None
        self.closed = False
        self._ends_on_overflow = ends_on_overflow
        self._backlog: list[Note] = []  # mostly empty, and there are very many: an empty deque has 700 bytes
        self._lists_waiting: set[str] = set()  # methods of the list_changed among them
        self._waits: asyncio.Future[None] | None = None  # `pump`, for a note

    def push(self, note: Note) -> None:
        if self.closed:
            return
        if note.method.endswith(CHANGED) and note.method in self._lists_waiting:
            return  # one list_changed tells as much as ten
        if len(self._backlog) >= BACKLOG:
            if self._ends_on_overflow:
                self.close()
                return
            others = [waiting for waiting in self._backlog if waiting.method in _OTHER_LISTS]
            self._backlog = others
            self._lists_waiting = {waiting.method for waiting in others}
            note = Note(wire_names.LIST_CHANGED, {})
        self._backlog.append(note)
        if note.method.endswith(CHANGED):
            self._lists_waiting.add(note.method)
        self._wake()

    def close(self) -> None:
        """Ends `pump` after what already waits."""
        self.closed = True
        self._wake()

    async def pump(self, send: Callable[[Note], Awaitable[None]]) -> None:
        """Sends note after note until the subscriber is closed."""
        while True:
            while self._backlog:
                note = self._backlog.pop(0)
                self._lists_waiting.discard(note.method)
                await send(note)
            if self.closed:
                return
            self._waits = asyncio.get_running_loop().create_future()
            try:
                await self._waits
            finally:
                self._waits = None

    def _wake(self) -> None:
        if self._waits is not None and not self._waits.done():
            self._waits.set_result(None)
