"""What a catalog holds at one moment, in order, and found by what others call it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct, field

from octavo.core.ref import Ref
from octavo.core.values import Entry
from octavo.sources.catalog.declaration import Segments
from octavo.sources.catalog.names import folded, plain
from octavo.sources.catalog.problems import FileProblem
from octavo.sources.catalog.record import Card

Key = TypeVar("Key")
Value = TypeVar("Value")


class CatalogSnapshot(Struct, frozen=True):
    """`ids` and `names` find an entry by what others call it. `files` belong to entries."""

    cards: Mapping[Ref, Card] = field(default_factory=dict[Ref, Card])
    order: Sequence[Segments] = field(default_factory=list[Segments])
    ids: Mapping[str, list[Ref]] = field(default_factory=dict[str, list[Ref]])
    names: Mapping[tuple[str, str], list[Ref]] = field(default_factory=dict[tuple[str, str], list[Ref]])
    strays: tuple[FileProblem, ...] = ()
    files: Mapping[Ref, Entry] = field(default_factory=dict[Ref, Entry])
    everything: Sequence[Segments] = field(default_factory=list[Segments])  # `order` with the files in it

    @staticmethod
    def of(cards: dict[Ref, Card], strays: tuple[FileProblem, ...], files: dict[Ref, Entry]) -> CatalogSnapshot:
        ids: dict[str, list[Ref]] = {}
        names: dict[tuple[str, str], list[Ref]] = {}
        refs = sorted(cards)
        order = [ref.segments for ref in refs]
        for ref in refs:
            own_ids, own_names = _called(cards[ref])
            for id in own_ids:
                ids.setdefault(id, []).append(ref)
            for name in own_names:
                names.setdefault(name, []).append(ref)
        everything = sorted((*order, *(ref.segments for ref in files))) if files else order
        return CatalogSnapshot(cards, order, ids, names, strays, files, everything)

    def listed(self, scope: Ref, after: Segments | None) -> Iterator[Card | Entry]:
        """As `under`, with the files behind the card that they belong to."""
        for names in _slice(self.everything, scope, after):
            ref = Ref(scope.scheme, names)
            yield self.cards.get(ref) or self.files[ref]

    def under(self, scope: Ref, after: Segments | None) -> Iterator[Card]:
        """The cards under a scope that come after a place, in order."""
        for names in _slice(self.order, scope, after):
            yield self.cards[Ref(scope.scheme, names)]

    def with_changes(
        self, cards: Mapping[Ref, Card | None], files: Mapping[Ref, Entry | None], strays: tuple[FileProblem, ...]
    ) -> CatalogSnapshot:
        """Another snapshot, if anything differs: whoever works with this one is not disturbed."""
        cards = {ref: card for ref, card in cards.items() if self.cards.get(ref) != card}
        files = {ref: file for ref, file in files.items() if self.files.get(ref) != file}
        if not cards and not files:
            return self if strays == self.strays else self._with(strays)
        gone = [ref.segments for ref, card in cards.items() if card is None]
        came = [ref.segments for ref, card in cards.items() if card is not None and ref not in self.cards]
        order = _reordered(self.order, gone, came)
        gone += [ref.segments for ref, file in files.items() if file is None]
        came += [ref.segments for ref, file in files.items() if file is not None and ref not in self.files]
        kept = _updated(self.files, files)
        everything = _reordered(self.everything, gone, came) if kept or self.files else order
        ids, names = _called_otherwise(self, cards)
        return CatalogSnapshot(_updated(self.cards, cards), order, ids, names, strays, kept, everything)

    def _with(self, strays: tuple[FileProblem, ...]) -> CatalogSnapshot:
        return CatalogSnapshot(self.cards, self.order, self.ids, self.names, strays, self.files, self.everything)

    def find_id(self, id: str) -> list[Ref]:
        return self.ids.get(folded(id), [])

    def find(self, kind: str, text: str) -> list[Ref]:
        """Entries that an id, a name or an address of that kind could mean; an id is meant before a name."""
        found = [ref for ref in self.find_id(text) if self.cards[ref].kind == kind]
        return found or self.names.get((kind, plain(text, (kind,))), [])


def _slice(order: Sequence[Segments], scope: Ref, after: Segments | None) -> Iterator[Segments]:
    prefix = scope.segments
    at = bisect_left(order, prefix)
    if after is not None:
        at = max(at, bisect_right(order, after))
    for number in range(at, len(order)):
        if order[number][: len(prefix)] != prefix:
            return
        yield order[number]


def _reordered(order: Sequence[Segments], gone: Iterable[Segments], came: Iterable[Segments]) -> Sequence[Segments]:
    made = [*order]
    for names in gone:
        del made[bisect_left(made, names)]
    for names in came:
        insort(made, names)
    return made


def _updated(known: Mapping[Ref, Value], changes: Mapping[Ref, Value | None]) -> Mapping[Ref, Value]:
    if not changes:
        return known
    made = {**known}
    for ref, value in changes.items():
        if value is None:
            del made[ref]
        else:
            made[ref] = value
    return made


def _called_otherwise(
    known: CatalogSnapshot, changes: Mapping[Ref, Card | None]
) -> tuple[Mapping[str, list[Ref]], Mapping[tuple[str, str], list[Ref]]]:
    """A change of the text alone, the most frequent one, leaves them as they are."""
    renamed = [
        (ref, before, after)
        for ref, card in changes.items()
        if (before := _called(known.cards.get(ref))) != (after := _called(card))
    ]
    if not renamed:
        return known.ids, known.names
    ids, names = {**known.ids}, {**known.names}
    for ref, (old_ids, old_names), (new_ids, new_names) in renamed:
        for id in old_ids ^ new_ids:
            _put(ids, id, ref, there=id in new_ids)
        for name in old_names ^ new_names:
            _put(names, name, ref, there=name in new_names)
    return ids, names


def _put(found: dict[Key, list[Ref]], key: Key, ref: Ref, *, there: bool) -> None:
    """The lists are never changed: other snapshots share them."""
    refs = sorted((*found.get(key, ()), ref)) if there else [other for other in found[key] if other != ref]
    if refs:
        found[key] = refs
    else:
        del found[key]


def _called(card: Card | None) -> tuple[set[str], set[tuple[str, str]]]:
    """What others can call an entry: its id, and its names among those of its kind."""
    if card is None:
        return set(), set()
    names = {plain(card.ref.path), plain(card.ref.name)}
    if not card.id:
        return set(), {(card.kind, name) for name in names}
    return {folded(card.id)}, {(card.kind, name) for name in (*names, plain(card.id, (card.kind,)))}
