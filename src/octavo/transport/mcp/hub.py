"""Subscriptions: from the change feed to whoever asked, and only to them.

One subscriber is one listen stream (modern) or one connection (handshake era). The policy is asked when
somebody subscribes and again for every event, so a rule that changes takes effect at once. A subscriber
that does not read cannot hold anybody up: its backlog is bounded, and past it the stream is ended
(modern) or the backlog is replaced by one list_changed, after which the client reads anew.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from octavo.core.errors import RateLimited
from octavo.core.glob import Glob
from octavo.core.house import House
from octavo.core.model import Change, Principal
from octavo.core.ref import Ref
from octavo.transport.mcp import keys, shapes

BACKLOG = 1024  # events that wait for one subscriber


class Note(NamedTuple):
    """One notification: method and params."""

    method: str
    params: Mapping[str, Any]


class Subscriber:
    """The backlog of one stream or connection, and what it wants to hear."""

    def __init__(self, principal: Principal, *, ends_on_overflow: bool) -> None:
        self.principal = principal
        self.patterns: dict[str, Glob] = {}
        self.lists: set[str] = set()  # kinds whose list_changed it wants: tools, prompts, resources
        self.log_level: str | None = None
        self.closed = False
        self._ends_on_overflow = ends_on_overflow
        self._backlog: deque[Note] = deque()
        self._wake = asyncio.Event()

    def push(self, note: Note) -> None:
        if self.closed:
            return
        if note.method != keys.UPDATED and any(waiting.method == note.method for waiting in self._backlog):
            return  # one list_changed tells as much as ten
        if len(self._backlog) >= BACKLOG:
            if self._ends_on_overflow:
                self.close()
                return
            self._backlog.clear()
            note = Note(keys.LIST_CHANGED, {})
        self._backlog.append(note)
        self._wake.set()

    def close(self) -> None:
        """Ends `pump` after what already waits."""
        self.closed = True
        self._wake.set()

    async def pump(self, send: Callable[[Note], Awaitable[None]]) -> None:
        """Sends note after note until the subscriber is closed."""
        while True:
            while self._backlog:
                await send(self._backlog.popleft())
            if self.closed:
                return
            self._wake.clear()
            await self._wake.wait()


class Hub:
    def __init__(self, house: House) -> None:
        self._house = house
        self._subscribers: set[Subscriber] = set()
        self._count: Counter[str] = Counter()  # patterns by principal
        self._leave_feed = house.feed.subscribe(self._deliver)
        house.on_swap(self._reloaded)

    def join(self, subscriber: Subscriber) -> None:
        self._subscribers.add(subscriber)

    def leave(self, subscriber: Subscriber) -> None:
        if subscriber in self._subscribers:
            self._subscribers.discard(subscriber)
            for pattern in list(subscriber.patterns):
                self.forget(subscriber, pattern)

    def want(self, subscriber: Subscriber, pattern: str, glob: Glob) -> None:
        """Raises RateLimited when the principal has all the subscriptions it may have."""
        if pattern in subscriber.patterns:
            return
        who = subscriber.principal.id
        limit = self._house.works.limits.subscriptions
        if self._count[who] >= limit:
            raise RateLimited("Subscription limit reached", retry_after=60.0, limit=limit)
        self._count[who] += 1
        subscriber.patterns[pattern] = glob

    def forget(self, subscriber: Subscriber, pattern: str) -> bool:
        if subscriber.patterns.pop(pattern, None) is None:
            return False
        self._count[subscriber.principal.id] -= 1
        self._house.note(subscriber.principal.id, f"watch {pattern}", "end")
        return True

    def list_changed(self, kind: str) -> None:
        """Tools, prompts or resources are not what they were, for everybody."""
        for subscriber in self._subscribers:
            if kind in subscriber.lists:
                subscriber.push(Note(f"notifications/{kind}/list_changed", {}))

    def close(self) -> None:
        """Lets every stream end gracefully; an open one would hold up the shutdown."""
        self._leave_feed()
        for subscriber in list(self._subscribers):
            subscriber.close()

    def _reloaded(self) -> None:
        for kind in ("tools", "prompts", "resources"):
            self.list_changed(kind)

    def _deliver(self, change: Change) -> None:
        for subscriber in self._subscribers:
            self._deliver_to(subscriber, change)

    def _deliver_to(self, subscriber: Subscriber, change: Change) -> None:
        works = self._house.works
        spellings = (change.ref, works.spelled(change.ref))
        uri = next((found for p, g in subscriber.patterns.items() if (found := _spelling(p, g, spellings))), None)
        listens = "resources" in subscriber.lists and change.kind != "updated"
        if uri is None and not listens:
            return
        policy = works.policy
        known = change.new or change.old
        target = known.target if known is not None else None
        for ref in (change.ref, target):
            if ref is not None and not policy.allows(subscriber.principal, "watch", ref):
                return
        if listens and policy.allows(subscriber.principal, "list", change.ref):
            meta = {keys.EVENT: shapes.event(change, uri or str(change.ref))}
            subscriber.push(Note(keys.LIST_CHANGED, {"_meta": meta}))
        if uri is not None:
            subscriber.push(Note(keys.UPDATED, {"uri": uri, "_meta": {keys.EVENT: shapes.event(change, uri)}}))


def _spelling(pattern: str, glob: Glob, spellings: tuple[Ref, Ref]) -> str | None:
    """The address in the form in which the client speaks of it, if the pattern covers it."""
    for ref in spellings:
        if glob.matches(ref):
            return pattern if glob.exact else str(ref)
    return None
