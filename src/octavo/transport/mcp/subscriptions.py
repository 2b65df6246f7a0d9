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

from octavo.core.delivery import Delivery
from octavo.core.errors import OctavoError, RateLimited
from octavo.core.event import event
from octavo.core.glob import Glob
from octavo.core.ports.server import Server
from octavo.core.ref import Ref
from octavo.core.values import Change, Entry, Principal, shown
from octavo.transport.mcp import wire_names
from octavo.transport.mcp.definitions import DEFINED, Definitions

BACKLOG = 1024  # events that wait for one subscriber
BURST = 0.1  # seconds in which changes of tools, or of prompts, are told as one
_CHANGED = "/list_changed"
_OTHER_LISTS = frozenset(f"notifications/{kind}{_CHANGED}" for kind in DEFINED)


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
        self.shown: dict[str, bytes] = {}  # digests of the lists of tools and prompts, as it was last told of them
        self.log_level: str | None = None
        self.closed = False
        self._ends_on_overflow = ends_on_overflow
        self._backlog: deque[Note] = deque()
        self._wake = asyncio.Event()

    def push(self, note: Note) -> None:
        if self.closed:
            return
        if note.method.endswith(_CHANGED) and any(waiting.method == note.method for waiting in self._backlog):
            return  # one list_changed tells as much as ten
        if len(self._backlog) >= BACKLOG:
            if self._ends_on_overflow:
                self.close()
                return
            others = [waiting for waiting in self._backlog if waiting.method in _OTHER_LISTS]
            self._backlog = deque(others)
            note = Note(wire_names.LIST_CHANGED, {})
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
    def __init__(self, house: Server) -> None:
        self._house = house
        self._subscribers: set[Subscriber] = set()
        self._streams: Counter[str] = Counter()  # subscribers by principal
        self._count: Counter[str] = Counter()  # patterns by principal, with those that are being asked about
        self._closed = False
        self._definitions = Definitions(house)
        self._burst: asyncio.TimerHandle | None = None  # something was defined anew, which is told when it is over
        self._leave_feed = house.feed.subscribe(self._deliver)
        house.on_swap(self._reloaded)
        house.on_list_changed(self._changed)

    @property
    def subscribers(self) -> int:
        return len(self._subscribers)

    def join(self, subscriber: Subscriber, *, capped: bool = False) -> None:
        """Raises RateLimited, if `capped`, when the principal has all the streams it may have."""
        if capped:
            self._check(subscriber.principal, self._streams[subscriber.principal.id])
        self._streams[subscriber.principal.id] += 1
        self._subscribers.add(subscriber)
        for kind in subscriber.lists.intersection(DEFINED):
            subscriber.shown[kind] = self._definitions.digest(kind, subscriber.principal)
        if self._closed:
            subscriber.close()

    def leave(self, subscriber: Subscriber) -> None:
        if subscriber in self._subscribers:
            self._subscribers.discard(subscriber)
            _less(self._streams, subscriber.principal.id)
            for pattern in list(subscriber.patterns):
                self.forget(subscriber, pattern)

    async def want(self, subscriber: Subscriber, pattern: str, ask: Callable[[], Awaitable[Glob]]) -> None:
        """`ask` asks the policy. Raises what it raises, and RateLimited when the principal has all it may have."""
        if pattern in subscriber.patterns:
            return
        who = subscriber.principal.id
        self._check(subscriber.principal, self._count[who])
        self._count[who] += 1
        try:
            glob = await ask()
            if pattern in subscriber.patterns:
                _less(self._count, who)  # asked for twice at once
            subscriber.patterns[pattern] = glob
        except BaseException:
            _less(self._count, who)
            raise

    def _check(self, who: Principal, count: int) -> None:
        limit = self._house.works.subscriptions(who)
        if count >= limit:
            raise RateLimited("Subscription limit reached", retry_after=60.0, limit=limit)

    def forget(self, subscriber: Subscriber, pattern: str) -> bool:
        if subscriber.patterns.pop(pattern, None) is None:
            return False
        _less(self._count, subscriber.principal.id)
        self._house.note(subscriber.principal.id, f"watch {pattern}", "end")
        return True

    def list_changed(self, kind: str) -> None:
        """Tools, prompts or resources are not what they were, for everybody."""
        for subscriber in self._subscribers:
            self._tell(subscriber, kind)

    def close(self) -> None:
        """Lets every stream end gracefully; an open one would hold up the shutdown."""
        self._closed = True
        self._leave_feed()
        if self._burst is not None:
            self._burst.cancel()
        for subscriber in list(self._subscribers):
            subscriber.close()

    def _reloaded(self) -> None:
        for subscriber in list(self._subscribers):
            try:
                # As the new configuration knows it, not as it was when it once subscribed.
                subscriber.principal = self._house.works.identity.current(subscriber.principal)
            except OctavoError:
                subscriber.close()
        self.list_changed("resources")
        self._defined_anew()

    def _changed(self, kind: str) -> None:
        if kind in DEFINED:
            self._defined_anew()
        else:
            self.list_changed(kind)

    def _defined_anew(self) -> None:
        """Told when the burst is over, and only to those who see something else than before."""
        self._definitions.forget()
        if self._burst is None and not self._closed:
            self._burst = asyncio.get_running_loop().call_later(BURST, self._tell_definitions)

    def _tell_definitions(self) -> None:
        self._burst = None
        for subscriber in list(self._subscribers):
            for kind, before in subscriber.shown.items():
                now = subscriber.shown[kind] = self._definitions.digest(kind, subscriber.principal)
                if now != before:
                    self._tell(subscriber, kind)

    @staticmethod
    def _tell(subscriber: Subscriber, kind: str) -> None:
        if kind in subscriber.lists:
            subscriber.push(Note(f"notifications/{kind}/list_changed", {}))

    def _deliver(self, change: Change) -> None:
        if self._subscribers:
            delivery = Delivery(self._house.works, change)
            for subscriber in self._subscribers:
                self._deliver_to(subscriber, delivery)

    def _deliver_to(self, subscriber: Subscriber, delivery: Delivery) -> None:
        who = subscriber.principal
        listens = "resources" in subscriber.lists and delivery.kind != "updated"
        told = delivery.told(who, "list") if listens else None
        if told is not None:
            subscriber.push(
                Note(wire_names.LIST_CHANGED, {"_meta": {wire_names.EVENT: _event(subscriber, delivery, told)}})
            )
        told = delivery.told(who, wanted=lambda ref, entry: _covers(subscriber, delivery, ref, entry))
        if told is not None:
            said = _event(subscriber, delivery, told)
            subscriber.push(Note(wire_names.UPDATED, {"uri": said["uri"], "_meta": {wire_names.EVENT: said}}))


def _event(subscriber: Subscriber, delivery: Delivery, change: Change) -> dict[str, Any]:
    """An address that the subscriber asked for is told in its spelling, what a pattern covers as lists give it."""
    uri = _spelled(subscriber, delivery, change.ref, change.shown)
    if change.source is None or change.shown_source is None:
        return event(change, uri)
    return event(change, uri, _spelled(subscriber, delivery, change.source, change.shown_source))


def _covers(subscriber: Subscriber, delivery: Delivery, ref: Ref, entry: Entry | None) -> bool:
    return bool(subscriber.patterns) and bool(delivery.covering(subscriber.patterns, ref, shown(ref, entry)))


def _spelled(subscriber: Subscriber, delivery: Delivery, ref: Ref, listed: Ref) -> str:
    """Nothing where no pattern covers the address."""
    covering = delivery.covering(subscriber.patterns, ref, listed)
    asked_for = next((pattern for pattern, glob in covering.items() if glob.exact), "")
    return asked_for or (str(listed) if covering else "")


def _less(count: Counter[str], who: str) -> None:
    count[who] -= 1
    if count[who] <= 0:
        del count[who]
