"""`?version=1.1.0`: a file that is named so, the current one, or what the store remembers of it: what said so itself
before what was there in a state of that name, such as a tag.

An old version is decided by the rules of its address. If the file stood elsewhere then, that address counts as well:
the entry's `target` says so, and whoever may not read it there must not learn that there was one: a version that is
unknown is refused in words that do not depend on it. Where it stood outside the catalog, nothing is told of it. An
entry that is gone has no versions, and a link has none either: the rules of what it leads to decide who may know them.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from msgspec.structs import replace

from octavo.core.errors import InvalidParams, NotFound
from octavo.core.memo import Bounded
from octavo.core.ref import Ref
from octavo.core.values import Content, Entry
from octavo.sources.catalog.declaration import Segments, Shape
from octavo.sources.catalog.index import CatalogIndex
from octavo.sources.catalog.names import words
from octavo.sources.catalog.record import Card, Cards
from octavo.sources.catalog.store import CatalogStore, FileHead

MAX_STATES: Final = 200  # contents that are looked at for one version
MAX_BESIDE: Final = 5_000  # files beside it that are looked at for their names
_SHOWN: Final = 20  # versions that an error names
_REMEMBERED: Final = 10_000
# What an error may repeat of a file: nothing that could be a secret.
_PRINTABLE: Final = re.compile(r"v?[0-9]{1,6}(\.[0-9]{1,6}){0,3}([-+][0-9A-Za-z.-]{1,12})?\Z")


class Then(NamedTuple):
    """A content of the past that is, or was, one of the catalog's files."""

    known: Entry  # at its address in the store
    place: Segments
    shape: Shape
    target: Ref | None  # its address then, if it was another one


class CatalogVersions:
    def __init__(self, index: CatalogIndex, store: CatalogStore, cards: Cards) -> None:
        self._index, self._store, self._cards = index, store, cards
        self._said: Bounded[str, str] = Bounded(
            _REMEMBERED
        )  # by the store's version of a content: what its front matter says

    async def find(self, ref: Ref, version: str) -> Card | Then:
        """The card of a file as it is now, or what is remembered of one. Raises NotFound where there is no entry,
        InvalidParams where it has no such version."""
        current = await self._index.card(ref.bare)
        if current.entry.target is not None:
            raise _unknown(ref, [])
        known = current.words("version")
        if version:
            try:
                return await self._index.card(ref, version)
            except (NotFound, InvalidParams):  # InvalidParams: a version that can stand in no name
                pass
            if known == [version]:
                return current
        for then in await self._past(current, ref):
            said = await self._version(then, ref)
            if version and said == version:
                return then
            if said and then.target is None and said not in known:
                known.append(said)
        pinned = await self._store.pinned(current.place, ref, version) if version else None
        if pinned is not None and (found := self._then(pinned, ref)) is not None:
            return found
        raise _unknown(ref, [*known, *await self._named(current, ref)])

    async def entry(self, then: Then, ref: Ref) -> Entry:
        head, known = await self._head(then, ref), replace(then.known, target=then.target)
        return self._cards.card(ref, then.place, then.shape, known, head.text, whole=head.whole, fault=head.fault).entry

    async def read(self, then: Then, ref: Ref, max_bytes: int) -> Content:
        content = await self._store.read_at(then.known.ref, ref, max_bytes)
        return Content(entry=await self.entry(then, ref), body=content.body, etag=content.etag)

    async def _past(self, current: Card, ref: Ref) -> list[Then]:
        states: list[Then] = []
        for known in await self._store.past(current.place, ref, MAX_STATES):
            then = self._then(known, ref)
            if then is None:
                break
            states.append(then)
        return states

    def _then(self, known: Entry, ref: Ref) -> Then | None:
        """None for what stood outside the catalog."""
        place = self._store.within(known.ref.bare)
        located = None if place is None else self._index.locate(place)
        if place is None or located is None:
            return None
        address, shape, _ = located
        return Then(known, place, shape, None if address == ref.bare else address)

    async def _named(self, current: Card, ref: Ref) -> list[str]:
        """The versions that names of files beside the current one tell, the last first."""
        found: list[str] = []
        seen = 0
        async for entry in self._store.entries(current.place[:-1]):
            place, seen = self._store.within(entry.ref), seen + 1
            located = None if place is None else self._index.locate(place)
            if located is not None and located[0] == ref.bare and located[2]:
                found.append(located[2])
            if seen == MAX_BESIDE:
                break
        return found[::-1]

    async def _version(self, then: Then, ref: Ref) -> str:
        said = self._said.get(then.known.version)
        if said is None:
            head = await self._head(then, ref)
            matter = self._cards.matter(then.place, head.text or "", whole=head.whole).matter
            said = next(iter(words(matter.data.get("version"))), "")
            self._said.keep(then.known.version, said)
        return said

    async def _head(self, then: Then, ref: Ref) -> FileHead:
        return await self._store.head_at(then.known.ref, ref, then.known.size)


def _unknown(ref: Ref, known: list[str]) -> InvalidParams:
    shown = [one for one in known if _PRINTABLE.match(one)]
    more = " and others" if len(shown) > _SHOWN else ""
    absent, told = f"{ref.bare} has no such version", ", ".join(shown[:_SHOWN]) or "none"
    return InvalidParams(f"{absent}; it tells {told}{more}", discreet=absent, uri=str(ref))
