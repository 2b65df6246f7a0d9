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

# Of each subscriber that hears of an address, by which of its patterns: those that are the address itself, each in its
# words, in the order in which they were asked for; else one that covers it.
_Hearing: TypeAlias = Mapping[Subscriber, Sequence[Subscription]]


class Audience:
    def __init__(self) -> None:
        self._index: GlobIndex[Subscription] = GlobIndex()
        self._numbers = itertools.count()
        self._listing: dict[Hashable, dict[Subscriber, None]] = {}  # by ear: who hears that lists have changed

    def enter(self, subscriber: Subscriber, composition: Composition) -> None:
        subscriber.ear = composition.hears_as(subscriber.principal)
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
                uri, source = self._spellings(subscriber, told)[0]
                subscriber.push(self._note(wire_names.LIST_CHANGED, told, uri, source))

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
                for uri, source in self._spellings(subscriber, told):
                    subscriber.push(self._note(wire_names.UPDATED, told, uri, source))

    def _wanted(self, subscriber: Subscriber) -> Wanted:
        def wanted(ref: Ref, entry: Entry | None) -> bool:
            return subscriber in self._hears(ref, shown(ref, entry))

        return wanted

    def _hears(self, ref: Ref, listed: Ref) -> _Hearing:
        known = self._hearing.get((ref, listed))
        if known is None:
            exact: dict[Subscriber, list[Subscription]] = {}
            covering: dict[Subscriber, Sequence[Subscription]] = {}
            for one in dict.fromkeys(self._delivery.among(self._index, ref, listed)) if self._index else ():
                if one.glob.exact:
                    exact.setdefault(one.subscriber, []).append(one)
                else:
                    covering.setdefault(one.subscriber, (one,))
            for several in exact.values():
                several.sort(key=lambda one: one.number)
            known = self._hearing[ref, listed] = {**covering, **exact}
        return known

    def _spellings(self, subscriber: Subscriber, told: Change) -> Sequence[tuple[str, str]]:
        """The addresses of a change, of one that was renamed with the one that it had. What the subscriber asked for
        is in its spelling, in each that it used; empty is what is told as lists give it."""
        source = ""
        if told.source is not None and told.shown_source is not None:
            source = self._spelled(subscriber, told.source, told.shown_source)[0]
        return [(uri, source) for uri in self._spelled(subscriber, told.ref, told.shown)]

    def _note(self, method: str, told: Change, uri: str, source: str) -> Note:
        key = (method, id(told), uri, source)
        note = self._notes.get(key)
        if note is None:
            said = event(told, uri, source)
            meta = {wire_names.EVENT: said}
            about = {"uri": said["uri"], "_meta": meta} if method == wire_names.UPDATED else {"_meta": meta}
            note = self._notes[key] = Note(method, about)
        return note

    def _spelled(self, subscriber: Subscriber, ref: Ref, listed: Ref) -> Sequence[str]:
        return [one.text for one in self._hears(ref, listed).get(subscriber, ()) if one.glob.exact] or [""]
