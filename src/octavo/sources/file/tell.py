"""From what is known of places, before and after, to changes of what a listing shows.

With one root that is the same; with several, one file can change the address of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from octavo.core.model import Change, ChangeKind, Entry
from octavo.core.ref import Ref
from octavo.sources.file.entries import Facts
from octavo.sources.file.forest import Forest, Place


class Told(NamedTuple):
    root: int
    change: Change


def tell(
    forest: Forest, before: Mapping[Place, Facts | None], known: Callable[[Place], Facts | None], at: float
) -> list[Told]:
    """`before` has the places that changed, with what they were; `known` says what they are."""
    told: list[Told] = []
    for names in sorted({place.names for place in before}):
        places = [Place(names, k) for k in range(len(forest.trees))]
        old = _listed(forest, [(place, before[place] if place in before else known(place)) for place in places])
        new = _listed(forest, [(place, known(place)) for place in places])
        for ref in old.keys() | new.keys():
            was, now = old.get(ref), new.get(ref)
            if was == now:
                continue
            kind: ChangeKind = "updated" if was and now else "created" if now else "deleted"
            root, _ = now or was or (0, None)
            change = Change(kind=kind, ref=ref, at=at, old=was and was[1], new=now and now[1])
            told.append(Told(root, change))
    told.sort(key=lambda one: one.change.kind != "deleted")  # a move: first away, then there
    return told


def _listed(forest: Forest, places: Iterable[tuple[Place, Facts | None]]) -> dict[Ref, tuple[int, Entry]]:
    listed: dict[Ref, tuple[int, Entry]] = {}
    for place, facts in places:
        if facts is not None:
            shadowed = bool(listed)
            entry = forest.listed(place, facts, shadowed=shadowed)
            listed[forest.address(place, shadowed=shadowed)] = (place.root, entry)
    return listed
