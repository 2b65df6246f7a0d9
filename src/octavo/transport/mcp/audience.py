"""Who listens to what, so that a change costs what those cost who hear of it.

Subscribers are found by their patterns, not asked one after the other. Those from whom the same is hidden share an
`ear`: the policy is asked once for all of them. Those who are told the same are given one note.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeAlias

from octavo.core.delivery import Delivery, Wanted
from octavo.core.event import event
from octavo.core.glob import Glob
from octavo.core.glob_index import GlobIndex
from octavo.core.ports.server import Composition
from octavo.core.ref import Ref
from octavo.core.values import Change, Entry, shown
from octavo.transport.mcp import wire_names
from octavo.transport.mcp.subscriber import Note, Subscriber, Subscription

# Of each subscriber that hears of an address, by which of its patterns.
_Hearing: TypeAlias = Mapping[Subscriber, Subscription]


class Audience:
    def __init__(self) -> None:
        self._index: GlobIndex[Subscription] = GlobIndex()
        self._numbers = itertools.count()
        self._listing: dict[Hashable, dict[Subscriber, None]] = {}  # by ear: who hears that lists have changed

    def enter(self, subscriber: Subscriber, works: Composition) -> None:
        subscriber.ear = works.hears_as(subscriber.principal)
        if "resources" in subscriber.lists:
            self._listing.setdefault(subscriber.ear, {})[subscriber] = None

    def leave(self, subscriber: Subscriber) -> None:
        alike = self._listing.get(subscriber.ear, {})
        alike.pop(subscriber, None)
        if not alike:
            self._listing.pop(subscriber.ear, None)

    def add(self, subscriber: Subscriber, text: str, glob: Glob) -> None:
        """What stands under the same text gives way, and leaves its number."""
        before = self.drop(subscriber, text, keep=True)
        number = next(self._numbers) if before is None else before.number
        wanted = subscriber.patterns[text] = Subscription(subscriber, text, glob, number)
        self._index.add(glob, wanted)

    def drop(self, subscriber: Subscriber, text: str, *, keep: bool = False) -> Subscription | None:
        """What stood under the text; None: nothing. `keep`: its place in the order stays, for another."""
        known = subscriber.patterns.get(text) if keep else subscriber.patterns.pop(text, None)
        if known is not None:
            self._index.discard(known.glob, known)
        return known

    def tell(self, delivery: Delivery) -> None:
        """Gives everybody what it is told of the change. First the news of lists, as far as there is any."""
        telling = _Telling(delivery, self._index)
        if delivery.kind != "updated":
            for ear, alike in self._listing.items():
                telling.lists(ear, alike)
        telling.updates()


class _Telling:
    """One change on its way to many."""

    def __init__(self, delivery: Delivery, index: GlobIndex[Subscription]) -> None:
        self._delivery, self._index = delivery, index
        self._hearing: dict[tuple[Ref, Ref], _Hearing] = {}
        self._told: dict[tuple[Hashable, Sequence[bool]], Change | None] = {}
        self._notes: dict[tuple[str, int, str, str], Note] = {}

    def lists(self, ear: Hashable, alike: Collection[Subscriber]) -> None:
        told = self._delivery.told(next(iter(alike)).principal, "list")
        if told is None:
            return
        self._told[ear, ()] = told  # notes are known by it
        for subscriber in alike:
            if not subscriber.closed:
                subscriber.push(self._note(wire_names.LIST_CHANGED, subscriber, told))

    def updates(self) -> None:
        if not self._index:
            return
        ends = [self._hears(ref, listed) for ref, listed in self._delivery.places()]
        for subscriber in dict.fromkeys(itertools.chain(*ends)):
            if subscriber.closed:
                continue
            key = (subscriber.ear, tuple(subscriber in end for end in ends))
            if key not in self._told:
                self._told[key] = self._delivery.told(subscriber.principal, wanted=self._wanted(subscriber))
            if (told := self._told[key]) is not None:
                subscriber.push(self._note(wire_names.UPDATED, subscriber, told))

    def _wanted(self, subscriber: Subscriber) -> Wanted:
        def wanted(ref: Ref, entry: Entry | None) -> bool:
            return subscriber in self._hears(ref, shown(ref, entry))

        return wanted

    def _hears(self, ref: Ref, listed: Ref) -> _Hearing:
        """Who asked for the address itself is told it in its words, those that it used first."""
        known = self._hearing.get((ref, listed))
        if known is None:
            found: dict[Subscriber, Subscription] = {}
            for one in self._delivery.among(self._index, ref, listed) if self._index else ():
                other = found.setdefault(one.subscriber, one)
                if other is not one and (not one.glob.exact, one.number) < (not other.glob.exact, other.number):
                    found[one.subscriber] = one
            known = self._hearing[ref, listed] = found
        return known

    def _note(self, method: str, subscriber: Subscriber, told: Change) -> Note:
        """Addresses that the subscriber asked for in its spelling, those that a pattern covers as lists give them."""
        uri, source = self._spelled(subscriber, told.ref, told.shown), ""
        if told.source is not None and told.shown_source is not None:
            source = self._spelled(subscriber, told.source, told.shown_source)
        key = (method, id(told), uri, source)
        note = self._notes.get(key)
        if note is None:
            said = event(told, uri, source)
            meta = {wire_names.EVENT: said}
            about = {"uri": said["uri"], "_meta": meta} if method == wire_names.UPDATED else {"_meta": meta}
            note = self._notes[key] = Note(method, about)
        return note

    def _spelled(self, subscriber: Subscriber, ref: Ref, listed: Ref) -> str:
        """Nothing where it is told as lists give it."""
        by = self._hears(ref, listed).get(subscriber)
        return by.text if by is not None and by.glob.exact else ""
