"""Subscriptions: passes changes from the feed to the clients that asked for them.

One subscriber is one listen stream (modern) or one connection (handshake era). The policy is asked when
somebody subscribes and again for every event, so a rule that changes takes effect at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from octavo.core.delivery import Delivery
from octavo.core.errors import OctavoError, RateLimited
from octavo.core.glob import Glob
from octavo.core.ports.server import Server
from octavo.core.values import Change, Principal
from octavo.transport.mcp.audience import Audience
from octavo.transport.mcp.definitions import DEFINED, Definitions
from octavo.transport.mcp.subscriber import Note, Subscriber

BURST = 0.1  # seconds in which changes of tools, or of prompts, are told as one


class Hub:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._subscribers: set[Subscriber] = set()
        self._audience = Audience()
        self._composition = server.works  # those by whose rules the audience is sorted
        self._streams: Counter[str] = Counter()  # subscribers by principal
        self._count: Counter[str] = Counter()  # patterns by principal, with those that are being asked about
        self._closed = False
        self._definitions = Definitions(server)
        self._burst: asyncio.TimerHandle | None = None  # something was defined anew, which is told when it is over
        self._leave_feed = server.feed.subscribe(self._deliver)
        server.on_swap(self._reloaded)
        server.on_list_changed(self._changed)

    @property
    def subscribers(self) -> int:
        return len(self._subscribers)

    def join(self, subscriber: Subscriber, *, capped: bool = False) -> None:
        """Raises RateLimited, if `capped`, when the principal has all the streams it may have."""
        if capped:
            self._check(subscriber.principal, self._streams[subscriber.principal.id])
        self._streams[subscriber.principal.id] += 1
        self._subscribers.add(subscriber)
        self._audience.enter(subscriber, self._server.works)
        for kind in subscriber.lists.intersection(DEFINED):
            subscriber.shown[kind] = self._definitions.digest(kind, subscriber.principal)
        if self._closed:
            subscriber.close()

    def leave(self, subscriber: Subscriber) -> None:
        if subscriber in self._subscribers:
            self._subscribers.discard(subscriber)
            self._audience.leave(subscriber)
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
            if pattern in subscriber.patterns or subscriber not in self._subscribers:
                _less(self._count, who)  # asked for twice at once, or left meanwhile
            if subscriber in self._subscribers:
                self._audience.add(subscriber, pattern, glob)
        except BaseException:
            _less(self._count, who)
            raise

    def _check(self, who: Principal, count: int) -> None:
        limit = self._server.works.subscriptions(who)
        if count >= limit:
            raise RateLimited("Subscription limit reached", retry_after=60.0, limit=limit)

    def forget(self, subscriber: Subscriber, pattern: str) -> bool:
        if self._audience.drop(subscriber, pattern) is None:
            return False
        _less(self._count, subscriber.principal.id)
        self._server.note(subscriber.principal.id, f"watch {pattern}", "end")
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
                subscriber.principal = self._server.works.identity.current(subscriber.principal)
            except OctavoError:
                subscriber.close()
        self._sort()
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
        if not self._subscribers:
            return
        if self._composition is not self._server.works:  # a change between two steps of a reload
            self._sort()
        self._audience.tell(Delivery(self._composition, change))

    def _sort(self) -> None:
        """Anew, by the rules that hold now and for whom the subscribers are now."""
        self._composition = self._server.works
        for subscriber in self._subscribers:
            self._audience.leave(subscriber)
            self._audience.enter(subscriber, self._composition)


def _less(count: Counter[str], who: str) -> None:
    count[who] -= 1
    if count[who] <= 0:
        del count[who]
