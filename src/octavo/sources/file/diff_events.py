"""From what is known of places, before and after, to changes of what a listing shows.

With one root that is the same; with several, one file can change the address of another. A file that is gone from one
address and new at another, with the same inode, size and time, was renamed. Over a file that was there, it is told as
that one's update and its own deletion: so every address has one history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from octavo.core.ref import Ref
from octavo.core.values import Change, ChangeKind, Entry
from octavo.sources._shared.places import Place
from octavo.sources.file.entries import FileFacts
from octavo.sources.file.etags import Etags
from octavo.sources.file.roots import Forest

_MAKING_ROOM: Final = {"deleted": 0, "renamed": 1}  # comes before what may stand in the place


class ToldChange(NamedTuple):
    root: int
    change: Change


class _Seen(NamedTuple):
    """A file at an address."""

    place: Place
    facts: FileFacts
    entry: Entry

    @property
    def file(self) -> tuple[object, ...] | None:
        """The same wherever the file is, while nobody writes it; None for a link."""
        facts = self.facts
        if facts.own != self.place.names:
            return None
        return self.place.root, facts.device, facts.inode, facts.size, facts.modified


class _Difference(NamedTuple):
    ref: Ref
    was: _Seen | None
    now: _Seen | None
    unmoved: tuple[Ref, ...] = ()

    @property
    def root(self) -> int:
        seen = self.now or self.was
        return 0 if seen is None else seen.place.root


def tell(
    forest: Forest,
    before: Mapping[Place, FileFacts | None],
    known: Callable[[Place], FileFacts | None],
    etags: Etags,
    at: float,
) -> list[ToldChange]:
    """`before` has the places that changed, with what they were; `known` says what they are."""
    found = [*_differences(forest, before, known, etags)]
    origins = _origins(found)
    moved = {origin.ref for origin in origins.values()}
    told = [ToldChange(one.root, _change(one, origins.get(one.ref), at)) for one in found if one.ref not in moved]
    told.sort(key=lambda one: _MAKING_ROOM.get(one.change.kind, 2))
    return told


def _differences(
    forest: Forest, before: Mapping[Place, FileFacts | None], known: Callable[[Place], FileFacts | None], etags: Etags
) -> Iterator[_Difference]:
    for names in sorted({place.names for place in before}):
        places = [Place(names, k) for k in range(len(forest.trees))]
        old = _listed(forest, [(place, before[place] if place in before else known(place)) for place in places])
        new = _listed(forest, [(place, known(place)) for place in places])
        unmoved = _unmoved(old, new) if len(places) > 1 else ()
        for ref in sorted(old.keys() | new.keys()):
            was, now = old.get(ref), new.get(ref)
            if was != now:
                yield _Difference(
                    ref,
                    was and was._replace(entry=replace(was.entry, etag=etags.remembered(was.facts))),
                    now and now._replace(entry=replace(now.entry, etag=etags.of(now.place, now.facts))),
                    unmoved,
                )


def _unmoved(old: Mapping[Ref, _Seen], new: Mapping[Ref, _Seen]) -> tuple[Ref, ...]:
    """The addresses that say in which root something is, and did before, and there it has stayed as it was."""
    before = {seen.entry.ref: seen.facts for seen in old.values() if seen.entry.ref.absolute}
    return tuple(seen.entry.ref for seen in new.values() if before.get(seen.entry.ref) == seen.facts)


def _origins(found: Iterable[_Difference]) -> dict[Ref, _Difference]:
    """Of every address to which a file was moved, the one that it left."""
    left = {one.was.file: one for one in found if one.was is not None and one.now is None}
    origins: dict[Ref, _Difference] = {}
    for one in found:
        if one.was is None and one.now is not None and one.now.file is not None:
            origin = left.get(one.now.file)
            if origin is not None and _may_be_one(origin.was, one.now):
                origins[one.ref] = left.pop(one.now.file)
    return origins


def _may_be_one(was: _Seen | None, now: _Seen) -> bool:
    """An inode is given away again at once: where the contents are known, they must be the same."""
    return was is not None and (not was.entry.etag or not now.entry.etag or was.entry.etag == now.entry.etag)


def _change(one: _Difference, origin: _Difference | None, at: float) -> Change:
    was, now = one.was if origin is None else origin.was, one.now
    kind: ChangeKind = "updated" if was and now else "created" if now else "deleted"
    return Change(
        kind=kind if origin is None else "renamed",
        ref=one.ref,
        source=None if origin is None else origin.ref,
        at=at,
        old=was and was.entry,
        new=now and now.entry,
        unmoved=one.unmoved,
    )


def _listed(forest: Forest, places: Iterable[tuple[Place, FileFacts | None]]) -> dict[Ref, _Seen]:
    listed: dict[Ref, _Seen] = {}
    for place, facts in places:
        if facts is not None:
            shadowed = bool(listed)
            entry = forest.listed(place, facts, shadowed=shadowed)
            listed[forest.address(place, shadowed=shadowed)] = _Seen(place, facts, entry)
    return listed
