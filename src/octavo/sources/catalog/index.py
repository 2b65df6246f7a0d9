"""Every entry of one catalog, in order, as of the last look at the store.

A file is read again only when the store gives it another version. A look is needed only when the store cannot prove
that nothing has changed since the last one.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from octavo.core.errors import NotFound
from octavo.core.model import Entry
from octavo.core.ref import Ref
from octavo.sources._shared.frontmatter import FrontMatter
from octavo.sources.catalog.card import Card, Cards
from octavo.sources.catalog.declaration import Declaration, Segments, Shape
from octavo.sources.catalog.names import folded, plain
from octavo.sources.catalog.problems import Problem
from octavo.sources.catalog.store import Store, not_found

_TURN: Final = 16  # files between two turns of the event loop


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the catalog holds. `ids` and `names` find an entry by what others call it. `files` belong to entries."""

    cards: Mapping[Ref, Card] = field(default_factory=dict[Ref, Card])
    order: Sequence[Segments] = ()
    ids: Mapping[str, list[Ref]] = field(default_factory=dict[str, list[Ref]])
    names: Mapping[tuple[str, str], list[Ref]] = field(default_factory=dict[tuple[str, str], list[Ref]])
    strays: tuple[Problem, ...] = ()
    files: Mapping[Ref, Entry] = field(default_factory=dict[Ref, Entry])
    everything: Sequence[Segments] = ()  # `order` with the files in it

    def listed(self, scope: Ref, after: Segments | None) -> Iterator[Card | Entry]:
        """As `under`, with the files behind the card that they belong to."""
        for names in _slice(self.everything, scope, after):
            ref = Ref(scope.scheme, names)
            yield self.cards.get(ref) or self.files[ref]

    def under(self, scope: Ref, after: Segments | None) -> Iterator[Card]:
        """The cards under a scope that come after a place, in order."""
        for names in _slice(self.order, scope, after):
            yield self.cards[Ref(scope.scheme, names)]

    def with_changes(self, changes: Mapping[Ref, Card | None]) -> Snapshot:
        """Another snapshot: whoever works with this one is not disturbed."""
        if all(self.cards.get(ref) is card for ref, card in changes.items()):
            return self
        cards, order, ids, names = {**self.cards}, [*self.order], {**self.ids}, {**self.names}
        for ref, card in changes.items():
            old = cards.pop(ref, None)
            if old is not None:
                order.pop(bisect_left(order, ref.segments))
                _leave(ref, old, ids, names)
            if card is not None:
                insort(order, ref.segments)
                cards[ref] = card
                _join(ref, card, ids, names)
        return Snapshot(cards, order, ids, names, self.strays, everything=order)

    def find_id(self, id: str) -> list[Ref]:
        return self.ids.get(folded(id), [])

    def find(self, kind: str, text: str) -> list[Ref]:
        """Entries that an id, a name or an address of that kind could mean; an id is meant before a name."""
        found = [ref for ref in self.find_id(text) if self.cards[ref].kind == kind]
        return found or self.names.get((kind, plain(text, (kind,))), [])


class _File(NamedTuple):
    rank: tuple[int, int]  # of several with one address the least is served
    place: Segments
    shape: Shape
    entry: Entry


class Index:
    def __init__(self, declaration: Declaration, store: Store, cards: Cards) -> None:
        self._declaration, self._store, self._cards = declaration, store, cards
        self._looking = asyncio.Lock()
        self._known: dict[Segments, Card] = {}  # by place, also of files that nobody listed yet
        self._stamp: object | None = None
        self._has_versions = False
        self.snapshot = Snapshot()

    def locate(self, place: Segments) -> tuple[Ref, Shape, str] | None:
        """The address of a file, and the version that its name tells; None for a file that has none."""
        for shape in self._declaration.shapes:
            fit = shape.fits(place)
            if fit is not None:
                values, version = fit
                return Ref(self._declaration.scheme, shape.address.fill(values)), shape, version
        return None

    @property
    def has_files(self) -> bool:
        """Whether files can belong to entries."""
        return bool(self._declaration.manifest)

    def concerned(self, place: Segments) -> Ref | None:
        """The entry that a file is, or belongs to; None for an old version, and for a file of none."""
        located = self.locate(place)
        if located is None and self._declaration.manifest:
            around = (self.locate((*place[:n], self._declaration.manifest)) for n in range(1, len(place)))
            located = next((one for one in around if one is not None), None)
        return None if located is None or located[2] else located[0]

    def places(self, ref: Ref, version: str = "") -> Iterator[tuple[Shape, Segments]]:
        if ref.scheme == self._declaration.scheme and not ref.absolute:
            for shape in self._declaration.shapes:
                for place in shape.places(ref.segments, version):
                    yield shape, place

    async def card(self, ref: Ref, version: str = "") -> Card:
        """Of one address, as it is now. Raises NotFound."""
        for shape, place in self.places(ref.bare, version):
            try:
                known = await self._store.stat(place, ref)
            except NotFound:
                continue
            if self._leads_out(known):
                break
            return await self._made(ref, place, shape, known)
        raise not_found(ref)

    async def matter(self, ref: Ref) -> tuple[FrontMatter, Ref | None]:
        """The whole front matter of one address as it is now, and where it led if it is a link. Raises NotFound."""
        for shape, place in self.places(ref):
            try:
                head = await self._store.head(place, ref, shape, None)
            except NotFound:
                continue
            if self._leads_out(head.entry):
                break
            return self._cards.matter(shape, head.text or "", whole=head.whole), self._public(head.entry).target
        raise not_found(ref)

    def of_content(self, ref: Ref, place: Segments, shape: Shape, known: Entry, body: str | bytes) -> Card:
        """The card that belongs to a content, so that the two tell of the same moment. Raises NotFound."""
        if self._leads_out(known):
            raise not_found(ref)
        card = self._known.get(place)
        if card is None or not self._is_of(card, ref, known):
            text = body if isinstance(body, str) else None
            fault = "" if text is not None else "is no text that can be read; save it as UTF-8"
            card = self._keep(self._cards.card(ref, place, shape, self._public(known), text, whole=True, fault=fault))
        return card

    def of_part(self, card: Card, known: Entry) -> Entry:
        """The entry of a part of a file, and where that was if it was a link. Raises NotFound."""
        if self._leads_out(known):
            raise not_found(card.ref)
        return replace(card.entry, target=self._public(known).target)

    async def look(self) -> Snapshot:
        """The whole catalog, as it was at some moment since this was called."""
        if self._is_current():
            return self.snapshot
        async with self._looking:
            if not self._is_current():
                stamp = self._store.stamp((), "list")
                changed = self._store.changed_since(self._stamp) if stamp is not None else None
                again = None if changed is None else await self._looked_again(changed)
                self.snapshot = again or await self._looked()
                self._stamp = stamp
        return self.snapshot

    def _is_current(self) -> bool:
        return self._stamp is not None and self._store.stamp((), "list") == self._stamp

    async def _looked_again(self, places: Sequence[Segments]) -> Snapshot | None:
        """Only at what has changed. None where that is not enough: when one file can change what others are."""
        changes: dict[Ref, Card | None] = {}
        if self._declaration.manifest:
            return None
        for place in places:
            located = self.locate(place)
            if located is None and not _looks_like(self._declaration, place):
                continue
            if located is None or located[2] or len(located[1].suffixes) > 1:
                return None
            ref, shape, _ = located
            try:
                known = await self._store.stat(place, ref)
                changes[ref] = None if self._leads_out(known) else await self._made(ref, place, shape, known)
            except NotFound:
                changes[ref] = None
            if self._has_versions or (changes[ref] is None and ref not in self.snapshot.cards):
                return None
        return self.snapshot.with_changes(changes)

    async def _looked(self) -> Snapshot:
        strays: list[Problem] = []
        versions: list[tuple[Ref, Segments]] = []
        files: dict[Ref, list[_File]] = {}
        loose: list[tuple[Segments, Entry]] = []
        async for entry in self._store.entries():
            place = self._store.within(entry.ref)
            located = None if place is None else self.locate(place)
            if place is None or located is None:
                loose += [] if place is None else [(place, entry)]
            elif located[2]:
                versions.append((located[0], place))
            elif self._leads_out(entry):
                strays.append(self._stray(place, "is not served: it is a link that leads out of the catalog"))
            else:
                ref, shape, _ = located
                rank = (self._declaration.shapes.index(shape), shape.rank(place))
                files.setdefault(ref, []).append(_File(rank, place, shape, entry))
        cards: dict[Ref, Card] = {}
        for number, (ref, found) in enumerate(files.items(), 1):
            served, *others = sorted(found, key=lambda file: file.rank)
            for file in others:
                if file.place[-1] == self._declaration.manifest:
                    loose.append((file.place, file.entry))  # the definition stands beside it
                else:
                    strays.append(self._stray(file.place, "is not served: another file has its address"))
            if served.place[-1] == self._declaration.manifest and served.entry.target is None:
                loose.append((served.place, served.entry))
            if number % _TURN == 0:
                await asyncio.sleep(0)  # others wait as well
            try:
                cards[ref] = await self._made(ref, served.place, served.shape, served.entry)
            except NotFound:
                continue  # gone since it was listed
        strays += [
            self._stray(place, "is a version of what is not there") for ref, place in versions if ref not in cards
        ]
        owned = self._owned(loose, cards.values(), strays)
        self._known = {card.place: card for card in cards.values()}
        self._has_versions = bool(versions)
        known = self.snapshot
        if cards == known.cards and tuple(strays) == known.strays and owned == known.files:
            return known
        return _snapshot(cards, tuple(strays), owned)

    def _owned(
        self, loose: Sequence[tuple[Segments, Entry]], cards: Iterable[Card], strays: list[Problem]
    ) -> dict[Ref, Entry]:
        """The files that belong to entries. What belongs to none is a stray, if it looks like an entry."""
        manifest = self._declaration.manifest
        folders = {card.folder_of_files(manifest): card for card in cards if not card.entry.target} if manifest else {}
        found: dict[Ref, Entry] = {}
        for place, entry in loose:
            above = (folders[place[:n]] for n in range(1, len(place)) if place[:n] in folders)
            card = next(above, None)
            if card is None:
                if _looks_like(self._declaration, place):
                    strays.append(self._misplaced(place))
            elif entry.target is not None:
                strays.append(self._stray(place, "is not served: links are no files of an entry"))
            else:
                ref = card.ref.child(*place[len(card.folder_of_files(manifest)) :])
                found[ref] = card.file_entry(entry, ref, manifest)
        return found

    async def _made(self, ref: Ref, place: Segments, shape: Shape, known: Entry) -> Card:
        card = self._known.get(place)
        if card is not None and self._is_of(card, ref, known):
            return card
        head = await self._store.head(place, ref, shape, known.size)
        if self._leads_out(head.entry):
            raise not_found(ref)
        entry = self._public(head.entry)
        card = self._cards.card(ref, place, shape, entry, head.text, whole=head.whole, fault=head.fault)
        return self._keep(card)

    def _is_of(self, card: Card, ref: Ref, known: Entry) -> bool:
        target = None if known.target is None else self._target(known)
        return card.entry.version == known.version and card.ref == ref and card.entry.target == target

    def _keep(self, card: Card) -> Card:
        self._known[card.place] = card
        return card

    def _leads_out(self, known: Entry) -> bool:
        """A link into another folder would be a second way to what rules may guard under its own address."""
        return known.target is not None and self._target(known) is None

    def _target(self, known: Entry) -> Ref | None:
        place = self._store.within(known.target)
        located = None if place is None else self.locate(place)
        return None if located is None else located[0]

    def _public(self, known: Entry) -> Entry:
        return known if known.target is None else replace(known, target=self._target(known))

    def _stray(self, place: Segments, message: str) -> Problem:
        return Problem(self._cards.file(place), 1, message)

    def _misplaced(self, place: Segments) -> Problem:
        usual = " or ".join(shape.file.text + shape.suffixes[0] for shape in self._declaration.shapes)
        return Problem(self._cards.file(place), 1, f"is not served: it does not stand at {usual}", serious=False)


def _looks_like(declaration: Declaration, place: Segments) -> bool:
    return any(shape.resembles(place) for shape in declaration.shapes)


def _slice(order: Sequence[Segments], scope: Ref, after: Segments | None) -> Iterator[Segments]:
    prefix = scope.segments
    at = bisect_left(order, prefix)
    if after is not None:
        at = max(at, bisect_right(order, after))
    for number in range(at, len(order)):
        if order[number][: len(prefix)] != prefix:
            return
        yield order[number]


def _snapshot(cards: dict[Ref, Card], strays: tuple[Problem, ...], files: dict[Ref, Entry]) -> Snapshot:
    ids: dict[str, list[Ref]] = {}
    names: dict[tuple[str, str], list[Ref]] = {}
    for ref, card in cards.items():
        own_ids, own_names = _called(card)
        for id in own_ids:
            ids.setdefault(id, []).append(ref)
        for name in own_names:
            names.setdefault(name, []).append(ref)
    order = sorted(ref.segments for ref in cards)
    everything = sorted((*order, *(ref.segments for ref in files))) if files else order
    return Snapshot(cards, order, ids, names, strays, files, everything)


def _join(ref: Ref, card: Card, ids: dict[str, list[Ref]], names: dict[tuple[str, str], list[Ref]]) -> None:
    """The lists are never changed: other snapshots share them."""
    own_ids, own_names = _called(card)
    for id in own_ids:
        ids[id] = [*ids.get(id, ()), ref]
    for name in own_names:
        names[name] = [*names.get(name, ()), ref]


def _leave(ref: Ref, card: Card, ids: dict[str, list[Ref]], names: dict[tuple[str, str], list[Ref]]) -> None:
    own_ids, own_names = _called(card)
    for id in own_ids:
        ids[id] = [other for other in ids[id] if other != ref]
    for name in own_names:
        names[name] = [other for other in names[name] if other != ref]


def _called(card: Card) -> tuple[list[str], set[tuple[str, str]]]:
    """What others can call an entry: its id, and its names among those of its kind."""
    names = {plain(card.ref.path), plain(card.ref.name)}
    if not card.id:
        return [], {(card.kind, name) for name in names}
    return [folded(card.id)], {(card.kind, name) for name in (*names, plain(card.id, (card.kind,)))}
