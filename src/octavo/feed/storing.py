"""Between the feed, which tells at once, and the journal, which is read by number: what was told is stored, and each
source is compared when its watch has begun.

Whoever is told of a change as it happens does not wait for the store. Whoever asks by number waits until all that was
told before is stored, so that he misses nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import islice, takewhile
from typing import Final

from octavo.core.errors import OctavoError, SourceUnavailable
from octavo.core.ports.source import Source
from octavo.core.values import Change
from octavo.feed.journal import PAGE, ChangeJournal
from octavo.feed.reconcile import MOST, reconcile

logger = logging.getLogger(__name__)

RECENT: Final = 10_000  # changes of this process of which the latest are shown
WAITING: Final = 100_000  # changes that wait for a store that is away; after more of them everything is compared anew
PAUSE: Final = 5.0  # seconds before what failed is tried again
PATIENCE: Final = 5.0  # seconds for which who asks waits for a comparison, and the end of the server for the store


class Storing:
    """`most` entries of a source are compared unasked; None: all of them."""

    def __init__(
        self,
        journal: ChangeJournal,
        *,
        most: int | None = MOST,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.journal = journal
        self._most, self._sleep = most, sleep
        self._waiting: deque[tuple[Change, Mapping[str, str]]] = deque()
        self._numbers: deque[int] = deque(maxlen=RECENT)
        self._begun: int | None = None  # where the journal stood when this process began to store
        self._worker: asyncio.Task[None] | None = None
        self._added = self._done = 0  # changes of this process
        self._progress = asyncio.Event()  # another one for each step
        self._news = asyncio.Event()
        self._lost = False  # some were not even kept
        self._watched: dict[str, _Watched] = {}
        self._one = asyncio.Lock()

    def add(self, change: Change, served: Mapping[str, str]) -> None:
        """`served` by scheme, as for `compare`."""
        if len(self._waiting) >= WAITING:
            self._lost = True
            return
        self._waiting.append((change, served))
        self._added += 1
        self._news.set()
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._store())

    def compare(self, source: Source, served: str) -> None:
        """Its watch has begun, or lost something. `served` as for `reconcile`."""
        self.forget(source.scheme)
        self._watched[source.scheme] = one = _Watched(source, served)
        one.task = asyncio.get_running_loop().create_task(self._compare(one))

    def forget_all(self) -> None:
        """What is watched now is not what is meant by the sources."""
        for scheme in [*self._watched]:
            self.forget(scheme)

    def forget(self, scheme: str) -> None:
        """It is not watched now: nobody could tell what changes."""
        one = self._watched.pop(scheme, None)
        if one is not None and one.task is not None:
            one.task.cancel()

    async def since(self, number: int | None, served: Mapping[str, str]) -> tuple[list[Change] | None, int]:
        """Everything of these sources after a number, or the latest without one; and the number to go on with. No
        changes, but None, where some may be missing. Raises SourceUnavailable while the store is away.

        What a comparison finds later than it is waited for gets a number that is greater: it is told next time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._are_stored()
                for scheme in served:
                    await self._is_found(number, scheme)
        following = await self.journal.mark()
        for scheme, how in served.items():
            if number is not None and not await self._covers(number, scheme, how):
                return None, following
        if number is None:
            first = self._numbers[0] - 1 if len(self._numbers) == RECENT else await self._start()
            latest = await self.journal.since(first, served) or []
        else:
            after = await self.journal.since(number, served)
            if after is None:
                return None, following
            latest = after
        return [one for one in latest if one.seq <= following], following

    async def close(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._are_stored()
        tasks = [one.task for one in self._watched.values()] + [self._worker]
        there = [task for task in tasks if task is not None]
        for task in there:
            task.cancel()
        await asyncio.gather(*there, return_exceptions=True)

    async def _start(self) -> int:
        if self._begun is None:
            self._begun = await self.journal.mark()
        return self._begun

    async def _are_stored(self) -> None:
        """Those that there are by now."""
        wanted = self._added
        while self._done < wanted:
            await self._progress.wait()

    async def _is_found(self, number: int | None, scheme: str) -> None:
        """What changed before its watch began, where somebody asks from before that."""
        one = self._watched.get(scheme)
        if one is None or one.task is None:
            return
        await one.begun.wait()
        if number is not None and (one.number is None or number < one.number):
            await asyncio.wait((one.task,))

    async def _covers(self, number: int, scheme: str, served: str) -> bool:
        one = self._watched.get(scheme)
        watched = one is not None and one.served == served and one.number is not None and one.number <= number
        return watched or await self.journal.covers(number, scheme, served)

    async def _store(self) -> None:
        failed = False
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                some, served = self._next()
                try:
                    await self._start()
                    self._numbers.extend(await self.journal.record(some, served))
                except SourceUnavailable as error:
                    if not failed:
                        logger.warning("Changes cannot be stored now, and wait: %s", error)
                    failed = True
                    await self._sleep(PAUSE)
                    continue
                except Exception:  # what cannot be stored as it is must not hold up all others
                    logger.exception("Changes could not be stored: their sources are compared")
                    self._lost = True
                failed = False
                for _ in some:
                    self._waiting.popleft()
                self._done += len(some)
                if self._lost and not self._waiting:
                    self._lost = False
                    for one in [*self._watched.values()]:
                        self.compare(one.source, one.served)
                self._progress.set()
                self._progress = asyncio.Event()

    def _next(self) -> tuple[list[Change], Mapping[str, str]]:
        """Those that were told under one configuration."""
        served = self._waiting[0][1]
        alike = takewhile(lambda one: one[1] is served, islice(self._waiting, PAGE))
        return [change for change, _ in alike], served

    async def _compare(self, one: _Watched) -> None:
        failed, scheme = False, one.source.scheme
        while True:
            try:
                if one.number is None:
                    one.number = await self.journal.mark()
                    one.begun.set()
                async with self._one:  # one source after the other: others ask meanwhile
                    if not await self._reconciled(one):
                        logger.warning(
                            "What changed in %s:// while nobody watched is not looked for: it has more than %d "
                            "entries (feed.catch_up: true)",
                            scheme,
                            self._most or 0,
                        )
                    await self.journal.forget_unserved()
                return
            except OctavoError as error:
                if not failed:
                    logger.warning("What changed in %s:// cannot be looked for now: %s", scheme, error)
            except Exception:  # of a source that breaks its contract
                if not failed:
                    logger.exception("What changed in %s:// cannot be looked for", scheme)
            failed = True
            one.begun.set()
            await self._sleep(PAUSE)

    async def _reconciled(self, one: _Watched) -> bool:
        return await reconcile(self.journal, one.source, served=one.served, watched=one.number, most=self._most)


class _Watched:
    """A source while it is watched: everything after `number` is told by this process."""

    def __init__(self, source: Source, served: str) -> None:
        self.source, self.served = source, served
        self.task: asyncio.Task[None] | None = None
        self.number: int | None = None
        self.begun = asyncio.Event()  # or it cannot be told now
