"""Keeps the index in step with the sources.

Changes are hints: what a document is now is read when its turn comes, so of many changes of one document only the
last costs anything. At the start, after a gap in the feed and when the index was lost, everything is compared by
version, and only what differs is read. That is done in small parts with rests between them, and without the rests
while somebody waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError, SourceUnavailable, TooLarge
from octavo.core.ref import Ref
from octavo.core.values import Change, Entry
from octavo.search.document import Document
from octavo.search.index import Index
from octavo.search.vectors import Meaning

logger = logging.getLogger(__name__)

PAUSE: Final = 0.05  # seconds in which changes are gathered
ENOUGH: Final = 500  # documents: whoever asks while there are more to come is answered from these
RETRY: Final = 5.0  # seconds before what failed is tried again
_AT_ONCE: Final = 8  # reads
_BATCH: Final = 100  # documents that are compared before those that differ are read
_BATCH_CHARACTERS: Final = 1_000_000

Entries = Callable[[str], AsyncIterator[Entry]]
Read = Callable[[Ref, Entry | None], Awaitable[Document | None]]
_GONE: Final = (NotFound, Forbidden, InvalidParams)


class Upkeep:
    """`entries` lists all of one source, `read` gives the text that may be shown of one document, None where there is
    none to search; it is told what a listing said of it, if one did. The first of the `schemes` are looked at first.
    `redaction` names the rules by which texts were redacted, `configuration` what else decides which documents there
    are and what they say: the index is marked with it once it was compared with all of them. After a part of a
    comparison it rests `rest` times as long as that took. `hear` is a listener of the feed; `run` works
    until it is cancelled."""

    def __init__(
        self,
        index: Index,
        schemes: Sequence[str],
        *,
        entries: Entries,
        read: Read,
        redaction: str = "",
        configuration: str = "",
        meaning: Meaning | None = None,
        pause: float = PAUSE,
        retry: float = RETRY,
        rest: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        self._index = index
        self._schemes = tuple(schemes)
        self._entries = entries
        self._read = read
        self._redaction = redaction
        self._configuration = configuration
        self._meaning = meaning
        self._pause, self._retry, self._rest = pause, retry, rest
        self._now = (clock or SystemClock()).monotonic
        self._changed: dict[Ref, Entry | None] = {}
        self._failing: set[Ref] = set()
        self._unlisted: set[str] = set(schemes)  # what must be compared with the index
        self._never = dict.fromkeys(schemes)  # of what nothing can be said yet
        self._awaited = 0
        self._news = asyncio.Event()
        self._in_step = asyncio.Event()
        self._compared = asyncio.Event()
        self._enough = asyncio.Event()
        self._written_so_far = 0
        self._heard = 0  # changes so far
        self._found = 0  # of them, those that can be found
        self._unfinished = False  # some of them must be looked at once more
        self._caught_up = asyncio.Event()  # set, and another in its place, when more can be found
        self.looked = 0  # documents so far, each time that all are compared
        self.limited = False  # there are more documents than the index may hold

    def hear(self, change: Change) -> None:
        for ref in (change.source, change.ref):
            if ref is not None and ref.scheme in self._schemes:
                self._changed[ref] = None
                self._heard += 1
                self._wake()

    def compare(self, schemes: Iterable[str] | None = None) -> None:
        """Look at everything again, or at all of some sources."""
        self._unlisted |= set(self._schemes if schemes is None else schemes)
        self._wake()

    @property
    def is_compared(self) -> bool:
        """Whether everything was looked at once."""
        return self._compared.is_set()

    @property
    def unlisted(self) -> tuple[str, ...]:
        """Sources that were tried, and could never be listed."""
        return tuple(self._never) if self.is_compared else ()

    async def compared(self) -> None:
        await self._hurried(self._compared)

    async def answerable(self) -> None:
        """Returns once everything was looked at, or enough for an answer from what is there."""
        await self._hurried(self._enough)

    async def caught_up(self) -> None:
        """Returns once all that was heard so far can be found, whatever is heard meanwhile."""
        wanted = self._heard
        while self._found < wanted:
            await self._hurried(self._caught_up)

    async def in_step(self) -> None:
        """The same, and nothing is left to be compared."""
        await self._hurried(self._in_step)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()

        def lost() -> None:
            loop.call_soon_threadsafe(self.compare)

        self._index.when_lost = lost
        while True:
            self._news.clear()
            failed = await self._turn()
            if self._news.is_set():
                continue
            if not failed:
                self._in_step.set()
            try:
                async with asyncio.timeout(self._retry if failed else None):
                    await self._news.wait()
                    await asyncio.sleep(self._pause)
            except TimeoutError:
                pass

    async def _turn(self) -> bool:
        """Whether something failed and is to be tried again."""
        strangers = await asyncio.to_thread(self._index.schemes) - set(self._schemes)
        if strangers:  # of sources that are no longer served
            await self._written([], lambda: self._index.remove_all(strangers))
        for scheme in [one for one in self._schemes if one in self._unlisted]:
            self._unlisted.discard(scheme)
            try:
                await self._compare(scheme)
                self._never.pop(scheme, None)
            except OctavoError as fault:
                busy = isinstance(fault, SourceUnavailable) and not fault.telling
                level = logging.INFO if busy else logging.WARNING
                logger.log(level, "%s:// could not be listed for the search index: %s", scheme, fault)
                self._unlisted.add(scheme)
        if not self._unlisted:
            await self._written([], lambda: self._index.mark(self._configuration))
        self._compared.set()
        self._enough.set()
        await self._catch_up()
        learned = self._meaning is None or await self._meaning.learn()
        return not learned or bool(self._changed or self._unlisted)

    async def _catch_up(self) -> None:
        changed, self._changed = self._changed, {}
        heard, self._unfinished = self._heard, False
        await self._update(changed)
        if not self._unfinished:
            self._found = heard
            self._caught_up.set()
            self._caught_up = asyncio.Event()

    async def _compare(self, scheme: str) -> None:
        held = dict(await asyncio.to_thread(self._index.versions, scheme))
        room = self._index.most - await asyncio.to_thread(self._index.count)
        different: dict[Ref, Entry | None] = {}
        begun = self._now()
        async for entry in self._entries(scheme):
            self.looked += 1
            version = held.pop(entry.ref, None)
            if version is None:
                if room <= 0:
                    self._say_limited()
                    if not held:
                        break
                    continue
                room -= 1
            if not version or version != entry.version:
                different[entry.ref] = entry
            if self._changed:
                await self._catch_up()
            if len(different) >= _BATCH:
                await self._update(different)
                different = {}
                await self._relax(self._now() - begun)
                begun = self._now()
        await self._remove(held)
        await self._update(different)

    def _say_limited(self) -> None:
        if not self.limited:
            logger.warning("Only %d documents are indexed: there are more (search.documents).", self._index.most)
        self.limited = True

    async def _relax(self, seconds: float) -> None:
        if not self._awaited:
            await asyncio.sleep(self._rest * seconds)

    async def _update(self, refs: dict[Ref, Entry | None]) -> None:
        ready: list[Document] = []
        gone: list[Ref] = []
        waiting = iter(refs.items())
        while few := list(islice(waiting, _AT_ONCE)):
            for ref, document in await asyncio.gather(*(self._document(ref, entry) for ref, entry in few)):
                if isinstance(document, Document):
                    self._failing.discard(ref)
                    ready.append(document)
                elif document is None:
                    gone.append(ref)
            if len(ready) >= self._index.together or sum(len(one.text) for one in ready) >= _BATCH_CHARACTERS:
                await self._put(ready)
                ready = []
        await self._put(ready)
        await self._remove(gone)
        if gone:
            await self._look_below(gone)

    async def _look_below(self, gone: Sequence[Ref]) -> None:
        """What is gone may have been a folder, or a document that had others below it: only reading those tells."""
        try:
            below = await asyncio.to_thread(self._index.held_below, gone)
        except OctavoError:  # then everything is compared
            return
        for ref in below:
            self._changed.setdefault(ref, None)
        if below:
            self._unfinished = True
            self._wake()

    async def _document(self, ref: Ref, entry: Entry | None) -> tuple[Ref, Document | OctavoError | None]:
        try:
            return ref, await self._read(ref, entry)
        except _GONE:
            return ref, None
        except TooLarge:
            logger.info("%s is too large to be searched: it is found by its name alone.", ref)
            return ref, None if entry is None else replace(Document.of(entry, ""), partial=True)
        except OctavoError as fault:
            if ref not in self._failing:
                logger.warning("%s could not be read for the search index, which tries again: %s", ref, fault)
            self._failing.add(ref)
            self._changed.setdefault(ref, entry)
            return ref, fault

    async def _put(self, documents: Sequence[Document]) -> None:
        if documents:
            self._written_so_far += len(documents)
            refs = [one.ref for one in documents]
            await self._written(refs, lambda: self._index.put(documents, redaction=self._redaction))
            if self._written_so_far >= ENOUGH:
                self._enough.set()

    async def _remove(self, refs: Iterable[Ref]) -> None:
        refs = list(refs)
        if refs:
            await self._written(refs, lambda: self._index.remove(refs))

    async def _written(self, refs: Sequence[Ref], write: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(write)
        except OctavoError as fault:
            logger.warning("%d documents could not be written to the search index: %s", len(refs), fault)
            for ref in refs:
                self._changed.setdefault(ref, None)
            self._unfinished = True

    async def _hurried(self, event: asyncio.Event) -> None:
        self._awaited += 1
        try:
            await event.wait()
        finally:
            self._awaited -= 1

    def _wake(self) -> None:
        self._in_step.clear()
        self._news.set()
