"""Every entry of one catalog, in order, as of the last look at the store.

A file is read again only when the store gives it another version. Where the store can tell what has changed since the
last look, nothing else is looked at, however fast changes follow each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from octavo.core.clock import Clock
from octavo.core.errors import Conflict, NotFound
from octavo.core.ref import Ref
from octavo.core.values import Entry
from octavo.sources.catalog.declaration import Declaration, Segments, Shape, ending_of
from octavo.sources.catalog.first_look import FirstLook
from octavo.sources.catalog.problems import FileProblem
from octavo.sources.catalog.record import Card, Cards
from octavo.sources.catalog.snapshot import CatalogSnapshot
from octavo.sources.catalog.store import CatalogLook, CatalogStore, not_found
from octavo.text.frontmatter import FrontMatter

_TURN: Final = 16  # files between two turns of the event loop
_NAMES_A_TURN: Final = 512  # as well, where only their names are looked at
_FEW: Final = 100  # changed files that are looked at one by one, also in a catalog of fewer


class _File(NamedTuple):
    rank: tuple[int, tuple[int, bool]]  # of several with one address the least is served
    place: Segments
    shape: Shape
    entry: Entry


class _Found(Struct):
    """What files turned out to be."""

    cards: dict[Ref, Card] = field(default_factory=dict[Ref, Card])
    files: dict[Ref, Entry] = field(default_factory=dict[Ref, Entry])
    strays: dict[Segments, FileProblem] = field(default_factory=dict[Segments, FileProblem])
    versions: dict[Ref, set[Segments]] = field(default_factory=dict[Ref, set[Segments]])
    rivals: dict[Ref, set[Segments]] = field(default_factory=dict[Ref, set[Segments]])


class CatalogIndex:
    def __init__(self, declaration: Declaration, store: CatalogStore, cards: Cards, clock: Clock) -> None:
        self._declaration, self._store, self._cards = declaration, store, cards
        self._looking = asyncio.Lock()
        self.first = FirstLook(declaration.scheme, self._look, clock)
        self._known: dict[Segments, Card] = {}  # by place, also of files that nobody listed yet
        self._strays: dict[Segments, FileProblem] = {}
        self._versions: dict[Ref, set[Segments]] = {}  # old ones, that files beside an entry are by their names
        self._rivals: dict[Ref, set[Segments]] = {}  # files whose address another one has
        self._stamp: object | None = None  # whatever changed later is looked at next time
        self._seen = 0  # the latest moment that the snapshot is as fresh as
        self.snapshot = CatalogSnapshot()

    def locate(self, place: Segments) -> tuple[Ref, Shape, str] | None:
        """The address of a file, and the version that its name tells; None for a file that has none."""
        found = self._declaration.located(place)
        return None if found is None else (Ref(self._declaration.scheme, found[0]), found[1], found[2])

    @property
    def has_files(self) -> bool:
        """Whether files can belong to entries."""
        return bool(self._declaration.manifest)

    def concerned(self, place: Segments) -> Ref | None:
        """The entry that a file is, or belongs to; None for an old version, and for a file of none."""
        located = self._belongs(place)
        return None if located is None or located[2] else located[0]

    def _belongs(self, place: Segments) -> tuple[Ref, Shape, str] | None:
        """Where a file is located, or what makes an entry of the folder that it stands in."""
        located = self.locate(place)
        if located is None and self._declaration.manifest:
            owner = self._declaration.owner(place)
            located = None if owner is None else self.locate((*owner, self._declaration.manifest))
        return located

    def places(self, ref: Ref, version: str = "") -> Iterator[tuple[Shape, Segments]]:
        """Where the file of an address can stand. A file has one address: what rules say of it cannot be passed by."""
        if ref.scheme != self._declaration.scheme or ref.absolute:
            return
        for shape in self._declaration.shapes:
            for place in shape.places(ref.segments, version):
                located = self.locate(place) if self._store.holds(place) else None
                if located is not None and located[1] is shape and located[0] == ref:
                    yield shape, place
        card = None if version else self.snapshot.cards.get(ref)
        if card is not None and card.place[-1][-len(ending_of(card.place[-1])) :] != ending_of(card.place[-1]):
            located = self.locate(card.place)  # `.MD`: no place that follows from the address
            if located is not None and located[0] == ref:
                yield located[1], card.place

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
        for _, place in self.places(ref):
            try:
                head = await self._store.head(place, ref, None)
            except NotFound:
                continue
            if self._leads_out(head.entry):
                break
            found = self._cards.matter(place, head.text or "", whole=head.whole)
            return found.matter, self._public(head.entry).target
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

    def is_of(self, stamp: object | None) -> bool:
        """Whether nothing has changed since the last look, if the store has this stamp now."""
        return stamp is not None and stamp == self._stamp

    async def look(self, moment: CatalogLook | None = None) -> CatalogSnapshot:
        """The whole catalog, as it was when this was called or later; as of a moment, if there is one already."""
        moment = moment or CatalogLook()
        await self.first.over(moment.left)
        return await self._look(moment)

    async def _look(self, moment: CatalogLook | None = None) -> CatalogSnapshot:
        moment = moment or CatalogLook()
        async with self._looking:
            if self._seen < moment.number:
                stamp = await moment.stamp(self._store)
                if stamp is None or stamp != self._stamp:
                    changed = None if stamp is None else self._store.changed_since(self._stamp)
                    again = None if changed is None else await self._looked_again(changed)
                    self.snapshot = again or await self._looked()
                    self._stamp = self._stamp if stamp is None else stamp
                self._seen = moment.number
        return self.snapshot

    async def _looked_again(self, changed: Sequence[Segments]) -> CatalogSnapshot | None:
        """At what has changed, and at what that can have changed: other files of the same entry. None if that is more
        than a look at everything."""
        places = [place for place in changed if self._belongs(place) or _looks_like(self._declaration, place)]
        if not places:
            return self.snapshot
        if len(places) > max(_FEW, len(self.snapshot.order)):
            return None
        refs = {located[0] for place in places if (located := self._belongs(place)) is not None}
        folders = self._folders(refs)
        near = self._near(refs, {place for place in places if not _is_in(folders, place)})
        found = await self._there(near, folders)
        now = await self._sorted_out(found)
        for place in near - found.keys():
            self._known.pop(place, None)
        if len(self._known) > 2 * len(self.snapshot.cards) + _FEW:  # old versions that were asked for
            self._known = {card.place: card for card in self.snapshot.cards.values()}
        others = {p: stray for p, stray in self._strays.items() if p not in near and not _is_in(folders, p)}
        self._strays = {**others, **now.strays}
        self._versions = _but(self._versions, refs) | now.versions
        self._rivals = _but(self._rivals, refs) | now.rivals
        files: dict[Ref, Entry | None] = {
            one.ref: None for ref in refs for one in self.snapshot.listed(ref, None) if isinstance(one, Entry)
        }
        cards = {ref: now.cards.get(ref) for ref in refs}
        return self.snapshot.with_changes(cards, files | now.files, _in_order(self._strays))

    def _near(self, refs: Iterable[Ref], places: set[Segments]) -> set[Segments]:
        """These files, and the others of the same entries."""
        near = set(places)
        for ref in refs:
            near.update(self._versions.get(ref, ()), self._rivals.get(ref, ()))
            if (card := self.snapshot.cards.get(ref)) is not None:
                near.add(card.place)
        return near

    def _folders(self, refs: Iterable[Ref]) -> set[Segments]:
        """In which everything belongs to one of these entries."""
        manifest = self._declaration.manifest
        return {place[:-1] for ref in refs for _, place in self.places(ref) if place[-1] == manifest}

    async def _there(self, places: Iterable[Segments], folders: Iterable[Segments]) -> dict[Segments, Entry]:
        """What the store has of these, and in these."""
        found: dict[Segments, Entry] = {}
        for number, place in enumerate(places, 1):
            located = self.locate(place)
            with suppress(NotFound, Conflict):  # Conflict: one of two that only differ in Unicode form, listed neither
                found[place] = await self._store.stat(
                    place, Ref(self._declaration.scheme) if located is None else located[0]
                )
            if number % _TURN == 0:
                await asyncio.sleep(0)
        for folder in folders:
            with suppress(NotFound):
                found |= await self._listed(folder)
        return found

    async def _listed(self, folder: Segments = ()) -> dict[Segments, Entry]:
        found: dict[Segments, Entry] = {}
        async for entry in self._store.entries(folder):
            self.first.listed()
            if (place := self._store.within(entry.ref)) is not None:
                found[place] = entry
        return found

    async def _looked(self) -> CatalogSnapshot:
        found = await self._sorted_out(await self._listed())
        self._known = {card.place: card for card in found.cards.values()}
        self._strays, self._versions, self._rivals = found.strays, found.versions, found.rivals
        known, strays = self.snapshot, _in_order(found.strays)
        if found.cards == known.cards and strays == known.strays and found.files == known.files:
            return known
        return CatalogSnapshot.of(found.cards, strays, found.files)

    async def _sorted_out(self, entries: Mapping[Segments, Entry]) -> _Found:
        """All files that can have the same address, or belong to the same entry, are sorted out together."""
        found = _Found()
        files: dict[Ref, list[_File]] = {}
        loose: list[tuple[Segments, Entry]] = []
        for number, (place, entry) in enumerate(entries.items(), 1):
            if number % _NAMES_A_TURN == 0:
                await asyncio.sleep(0)  # others wait as well
            located = self.locate(place)
            if located is None:
                loose.append((place, entry))
            elif located[2]:
                found.versions.setdefault(located[0], set()).add(place)
            elif self._leads_out(entry):
                found.strays[place] = self._stray(place, "is not served: it is a link that leads out of the catalog")
            else:
                ref, shape, _ = located
                rank = (self._declaration.shapes.index(shape), shape.rank(place))
                files.setdefault(ref, []).append(_File(rank, place, shape, entry))
        self.first.found(len(files))
        for number, (ref, there) in enumerate(files.items(), 1):
            served, *others = sorted(there, key=lambda file: file.rank)
            for file in others:
                found.rivals.setdefault(ref, set()).add(file.place)
                if file.place[-1] == self._declaration.manifest:
                    loose.append((file.place, file.entry))  # the definition stands beside it
                else:
                    found.strays[file.place] = self._stray(file.place, "is not served: another file has its address")
            if served.place[-1] == self._declaration.manifest and served.entry.target is None:
                loose.append((served.place, served.entry))
            if not self.first.is_over:
                await self.first.step(number - 1)
            elif number % _TURN == 0:
                await asyncio.sleep(0)
            try:
                found.cards[ref] = await self._made(ref, served.place, served.shape, served.entry)
            except NotFound:
                continue  # gone since it was listed
        for ref, places in found.versions.items():
            if ref not in found.cards:
                found.strays |= {place: self._stray(place, "is a version of what is not there") for place in places}
        found.files = self._owned(loose, found.cards.values(), found.strays)
        return found

    def _owned(
        self, loose: Sequence[tuple[Segments, Entry]], cards: Iterable[Card], strays: dict[Segments, FileProblem]
    ) -> dict[Ref, Entry]:
        """The files that belong to entries. What belongs to none is a stray, if it looks like an entry."""
        manifest = self._declaration.manifest
        folders = {card.folder_of_files(manifest): card for card in cards if not card.entry.target} if manifest else {}
        found: dict[Ref, Entry] = {}
        for place, entry in loose:
            owner = self._declaration.owner(place)
            card = None if owner is None else folders.get(owner)
            if card is None:
                if _looks_like(self._declaration, place):
                    strays[place] = self._misplaced(place)
            elif entry.target is not None:
                strays[place] = self._stray(place, "is not served: links are no files of an entry")
            else:
                ref = card.ref.child(*place[len(card.folder_of_files(manifest)) :])
                found[ref] = card.file_entry(entry, ref, manifest)
        return found

    async def _made(self, ref: Ref, place: Segments, shape: Shape, known: Entry) -> Card:
        card = self._known.get(place)
        if card is not None and self._is_of(card, ref, known):
            return card
        head = await self._store.head(place, ref, known.size)
        if self._leads_out(head.entry):
            raise not_found(ref)
        entry = self._public(head.entry)
        card = self._cards.card(ref, place, shape, entry, head.text, whole=head.whole, fault=head.fault)
        return self._keep(card)

    def _is_of(self, card: Card, ref: Ref, known: Entry) -> bool:
        target = None if known.target is None else self._target(known)
        same = card.entry.version == known.version and card.entry.modified == known.modified
        return same and card.ref == ref and card.entry.target == target

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

    def _stray(self, place: Segments, message: str) -> FileProblem:
        return FileProblem(self._cards.file(place), 1, message, serious=False)

    def _misplaced(self, place: Segments) -> FileProblem:
        usual = " or ".join(dict.fromkeys(shape.pattern for shape in self._declaration.shapes if shape.offered))
        return FileProblem(self._cards.file(place), 1, f"is not served: it does not stand at {usual}", serious=False)


def _looks_like(declaration: Declaration, place: Segments) -> bool:
    return any(shape.resembles(place) for shape in declaration.shapes)


def _is_in(folders: set[Segments], place: Segments) -> bool:
    return any(place[:n] in folders for n in range(1, len(place)))


def _in_order(strays: Mapping[Segments, FileProblem]) -> tuple[FileProblem, ...]:
    return tuple(strays[place] for place in sorted(strays))


def _but(known: Mapping[Ref, set[Segments]], refs: Collection[Ref]) -> dict[Ref, set[Segments]]:
    return {ref: there for ref, there in known.items() if ref not in refs}
