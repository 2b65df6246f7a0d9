"""Changes of the store, told as changes of the catalog with what the metadata were before."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import islice, takewhile
from typing import Final

from msgspec.structs import replace

from octavo.core.clock import Clock
from octavo.core.errors import NotFound, OctavoError, SourceUnavailable
from octavo.core.ref import Ref
from octavo.core.sizes import MIB
from octavo.core.values import Change, ChangeKind, Entry
from octavo.sources._shared.audience import SourceWatchers
from octavo.sources.catalog.index import CatalogIndex
from octavo.sources.catalog.store import CatalogStore

MAX_BYTES: Final = MIB  # of a file that is looked into for its etag
TOGETHER: Final = 1000  # changes of the store that are looked at before any of them is told


class Follower:
    """One for all who watch a catalog: at work while somebody does.

    It remembers what it told last of every entry. What is said of a change is always the difference to that, and what
    a file is when it is looked at: changes that follow each other closely become one.
    """

    def __init__(self, index: CatalogIndex, store: CatalogStore, clock: Clock) -> None:
        self._index, self._store, self._clock = index, store, clock
        self._told: dict[Ref, Entry] = {}
        self._order: list[Ref] = []  # of what was told, so that what stands below an entry is found at once
        self._audience = SourceWatchers(self._follow)

    def watch(self, scope: Ref) -> AsyncIterator[Change]:
        return self._audience.watch(scope)

    async def armed(self) -> None:
        await self._audience.begun()
        await self._store.armed()

    async def _follow(self, begun: asyncio.Event) -> None:
        changes = self._store.watch()
        ahead = asyncio.ensure_future(anext(changes))  # from here on nothing is missed
        try:
            await asyncio.sleep(0)
            await self._store.armed()
            page = await self._index.look()
            self._told = {**{ref: card.entry for ref, card in page.cards.items()}, **page.files}
            self._order = sorted(self._told)
            begun.set()
            while True:
                gathered = [await ahead]
                ahead = asyncio.ensure_future(anext(changes))
                while len(gathered) < TOGETHER and await _is_here(ahead):
                    gathered.append(ahead.result())
                    ahead = asyncio.ensure_future(anext(changes))
                await self._tell(gathered)
        except OctavoError as error:
            self._audience.dismiss(error)
        except StopAsyncIteration:
            self._audience.dismiss(_ended())
        finally:
            begun.set()  # also when it failed: whoever waits hears it from the watch itself
            ahead.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration, OctavoError):
                await ahead
            close: Callable[[], Awaitable[None]] | None = getattr(changes, "aclose", None)
            if close is not None:
                await close()

    async def _tell(self, gathered: Sequence[Change]) -> None:
        """All of it in one go, when all of it was looked at: a commit of many files is one event for whoever only wants
        to know that lists have changed."""
        for one in [one for change in gathered for one in await self._looked_at(change)]:
            self._audience.tell(one)

    async def _looked_at(self, change: Change) -> list[Change]:
        """What was renamed is looked at where it was and where it is: one end may be no file of the catalog."""
        gone = [] if change.source is None else await self._differences(change.source)
        came = [await self._with_etag(one, change) for one in await self._differences(change.ref)]
        if len(gone) == len(came) == 1 and gone[0].kind == "deleted" and came[0].kind == "created":
            return [replace(came[0], kind="renamed", source=gone[0].ref, old=gone[0].old)]
        return [*gone, *came]

    async def _differences(self, at: Ref) -> list[Change]:
        """Between what was told last and what is, of the entries that a file of the store concerns."""
        place = self._store.within(at)
        ref = None if place is None else self._index.concerned(place)
        if ref is None:  # no file of the catalog, or an old version
            return []
        now: dict[Ref, Entry | None] = {}
        if self._index.has_files:
            page = await self._index.look()
            begin = bisect_left(self._order, ref)
            now = dict.fromkeys(takewhile(lambda told: told.within(ref), islice(self._order, begin, None)))
            now |= {one.ref: one if isinstance(one, Entry) else one.entry for one in page.listed(ref, None)}
        else:
            try:
                now[ref] = (await self._index.card(ref)).entry
            except NotFound:
                now[ref] = None
        found = (self._difference(one, now[one]) for one in sorted(now))
        return [change for change in found if change is not None]

    async def _with_etag(self, told: Change, of: Change) -> Change:
        """If all that is told of an update is the same, with the etags of its contents: else nobody could tell that it
        is another. What the store does not know of them is looked at."""
        place = self._store.within(of.ref)
        if told.kind != "updated" or told.new is None or told.changes or place is None:
            return told
        new = _known(told.new, of.new)
        told = replace(told, old=told.old and _known(told.old, of.old), new=new)
        if told.changes:
            return told
        with suppress(OctavoError):
            content = await self._store.read(place, told.ref, MAX_BYTES)
            if content.entry.version == new.version:
                return replace(told, new=replace(new, etag=content.etag))
        return told

    def _difference(self, ref: Ref, new: Entry | None) -> Change | None:
        old = self._told.get(ref)
        if old == new:
            return None
        if new is None:
            del self._told[ref], self._order[bisect_left(self._order, ref)]
        else:
            if old is None:
                insort(self._order, ref)
            self._told[ref] = new
        kind: ChangeKind = "updated" if old and new else "created" if new else "deleted"
        return Change(kind=kind, ref=ref, at=self._clock.wall(), old=old, new=new)


async def _is_here(change: asyncio.Future[Change]) -> bool:
    """Whether the store has told another change already. What ends its watch is for whoever waits for the next one."""
    await asyncio.sleep(0)
    return change.done() and not change.cancelled() and change.exception() is None


def _known(entry: Entry, in_store: Entry | None) -> Entry:
    """With the etag of the same content."""
    same = in_store is not None and entry.version == in_store.version
    return replace(entry, etag=in_store.etag) if in_store is not None and same else entry


def _ended() -> OctavoError:
    return SourceUnavailable("The watch of the store has ended")
