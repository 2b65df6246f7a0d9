"""Between the feed, which tells at once, and the journal, which is read by number: what was told is stored, and each
source is compared when its watch has begun.

Whoever is told of a change as it happens does not wait for the store. Whoever asks by number waits until all that was
told before is stored, so that he misses nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple

from octavo.core.errors import OctavoError, SourceUnavailable
from octavo.core.ports.source import Source
from octavo.core.ports.stores import Bus
from octavo.core.values import Change
from octavo.feed.journal import PAGE, TIDIED, TOGETHER, ChangeJournal
from octavo.feed.known import Serving
from octavo.feed.reconcile import MOST, reconcile
from octavo.feed.tail import Tail

logger = logging.getLogger(__name__)

RECENT: Final = 10_000  # changes of this process of which the latest are shown
WAITING: Final = 100_000  # changes that wait for a store that is away; after more of them everything is compared anew
PAUSE: Final = 5.0  # seconds before what failed is tried again
PATIENCE: Final = 5.0  # seconds for which who asks waits for a comparison, and the end of the server for the store
LEAST: Final = 100  # changes that are tried together however often that fails

_Served = Mapping[str, str]


class Told(NamedTuple):
    """No changes, but None, where some may be missing. `following` is the number to go on with."""

    changes: Sequence[Change] | None
    following: int
    more: bool = False


class _Turn:
    """What is told in one turn of the loop: by one source, mostly, and together."""

    def __init__(self, served: _Served) -> None:
        self.served = served
        self.changes: list[Change] = []
        self.ended = False


class Storing:
    """`most` entries of a source are compared unasked; None: all of them."""

    def __init__(
        self,
        journal: ChangeJournal,
        *,
        most: int | None = MOST,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        bus: Callable[[], Awaitable[Bus | None]] | None = None,
    ) -> None:
        """`bus` wakes other processes on the state."""
        self.journal = journal
        self.tail = Tail(journal) if bus is None else Tail(journal, bus)
        journal.stored = self.tail.stored
        self._most, self._sleep = most, sleep
        self._waiting: deque[_Turn] = deque()
        self._numbers: deque[int] = deque(maxlen=RECENT)
        self._begun: int | None = None  # where the journal stood when this process began to store
        self._worker: asyncio.Task[None] | None = None
        self._added = self._done = 0  # changes of this process
        self._progress = asyncio.Event()  # another one for each step
        self._news = asyncio.Event()
        self._lost = False  # some were not even kept
        self._away = False  # the store
        self._watched: dict[str, _Watched] = {}
        self._one = asyncio.Lock()

    def add(self, change: Change, served: _Served) -> None:
        """`served` names the history of each source, by its scheme."""
        if self._added - self._done >= WAITING:
            self._lost = True
            return
        last = self._waiting[-1] if self._waiting else None
        if last is None or last.ended or last.served is not served or len(last.changes) == TOGETHER:
            last = _Turn(served)
            self._waiting.append(last)
            asyncio.get_running_loop().call_soon(self._end, last)
        last.changes.append(change)
        self._added += 1
        self._work()

    def compare(self, source: Source, serving: Serving) -> None:
        """Its watch has begun, or lost something."""
        self.forget(source.scheme)
        self._watched[source.scheme] = one = _Watched(source, serving)
        one.task = asyncio.get_running_loop().create_task(self._compare(one))
        self._work()

    def forget_all(self) -> None:
        """What is watched now is not what is meant by the sources."""
        for scheme in [*self._watched]:
            self.forget(scheme)

    def forget(self, scheme: str) -> None:
        """It is not watched now: nobody could tell what changes."""
        one = self._watched.pop(scheme, None)
        if one is not None and one.task is not None:
            one.task.cancel()

    async def since(self, number: int | None, serving: Mapping[str, Serving]) -> Told:
        """What these sources tell after a number, or the latest without one. Raises SourceUnavailable while the store
        is away.

        What a comparison finds later than it is waited for gets a number that is greater: it is told next time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._are_stored()
                for scheme in serving:
                    await self._is_found(number, scheme)
        await self.journal.tidy()
        following, served = await self.journal.mark(), _histories(serving)
        if number is None:
            first = self._numbers[0] - 1 if len(self._numbers) == RECENT else await self._start()
            latest = await self.journal.latest(first, served, most=RECENT)
            return Told([one for one in latest if one.seq <= following], following)
        for scheme, how in serving.items():
            if not await self._covers(number, scheme, how):
                return Told(None, following)
        part = await self.journal.since(number, served)
        if part is None:
            return Told(None, following)
        if part.more and part.last < following:
            return Told(part.changes, part.last, more=True)
        return Told([one for one in part.changes if one.seq <= following], following)

    def newest(self, number: int, serving: Mapping[str, Serving]) -> Told | None:
        """The same without a look at the store, for whoever follows: `following` is no one's to know. None where that
        is not possible."""
        if not all(self._watches(number, scheme, how) for scheme, how in serving.items()):
            return None
        found = self.tail.since(number, _histories(serving))
        return None if found is None else Told(*found)

    async def close(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._are_stored()
        await self.tail.close()
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
        """Those that there are by now; or the store is away, which whoever asks it is told."""
        wanted = self._added
        while self._done < wanted and not self._away:
            await self._progress.wait()

    async def _is_found(self, number: int | None, scheme: str) -> None:
        """What changed before its watch began, where somebody asks from before that. And all that is there, the first
        time: until it is known, no number outlives this process."""
        one = self._watched.get(scheme)
        if one is None or one.task is None:
            return
        await one.begun.wait()
        if one.number is not None and (one.is_new or (number is not None and number < one.number)):
            await asyncio.wait((one.task,))

    async def _covers(self, number: int, scheme: str, serving: Serving) -> bool:
        return self._watches(number, scheme, serving) or await self.journal.covers(number, scheme, serving)

    def _watches(self, number: int, scheme: str, serving: Serving) -> bool:
        one = self._watched.get(scheme)
        return one is not None and one.serving == serving and one.number is not None and one.number <= number

    # -- storing

    def _work(self) -> None:
        self._news.set()
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._store())

    def _end(self, turn: _Turn) -> None:
        turn.ended = True
        self._news.set()

    async def _store(self) -> None:
        failures, turns, due = 0, count(1), TIDIED
        turn = next(turns)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(due):
                    await self._news.wait()
            self._news.clear()
            while self._waiting and self._waiting[0].ended:
                some = self._next(failures)
                served = self._waiting[0].served
                try:
                    await self._start()
                    stored = await self.journal.record(some, served, turn=turn, again=failures > 0)
                    done = stored.done
                    self._numbers.extend(stored.numbers)
                except SourceUnavailable as error:
                    if not failures:
                        logger.warning("Changes cannot be stored now, and wait: %s", error)
                    failures += 1
                    self._away = True
                    self._step()
                    await self._sleep(PAUSE)
                    continue
                except Exception:  # what cannot be stored as it is must not hold up all others
                    logger.exception("Changes could not be stored: their sources are compared")
                    self._lost, done = True, len(some)
                failures, turn, self._away = 0, next(turns), False
                self._drop(done)
                if self._lost and not self._waiting:
                    self._lost = False
                    for one in [*self._watched.values()]:
                        self.compare(one.source, one.serving)
                self._step()
            due = await self._tidied()

    def _step(self) -> None:
        self._progress.set()
        self._progress = asyncio.Event()

    def _next(self, failures: int) -> list[Change]:
        """Those that were told together are stored together. Where that is too much for the store, it fails again and
        again while there is one, and then they are stored in parts."""
        first, some = self._waiting[0], list[Change]()
        for turn in self._waiting:
            if not turn.ended or turn.served is not first.served or (some and len(some) + len(turn.changes) > PAGE):
                break
            some += turn.changes
        most = max(LEAST, TOGETHER >> max(0, failures - 2))
        return some[:most]

    def _drop(self, number: int) -> None:
        self._done += number
        while number:
            turn = self._waiting[0]
            taken = min(number, len(turn.changes))
            del turn.changes[:taken]
            number -= taken
            if not turn.changes:
                self._waiting.popleft()

    async def _tidied(self) -> float:
        """What waits in the journal is stored when it is due, and what is too old is dropped. The seconds until the
        next time."""
        try:
            late = await self.journal.late()
            await self.journal.tidy()
        except OctavoError as error:  # said where a change is to be stored
            logger.debug("The journal cannot be tidied now: %s", error)
            return PAUSE
        return TIDIED if late is None else max(0.0, late)

    # -- comparing

    async def _compare(self, one: _Watched) -> None:
        failed, scheme = False, one.source.scheme
        while True:
            try:
                if one.number is None:
                    one.is_new = await self.journal.begun(scheme, one.serving.history) is None
                    one.number = await self.journal.mark()
                    one.begun.set()
                async with self._one:  # one source after the other: others ask meanwhile
                    first = await reconcile(
                        self.journal, one.source, serving=one.serving, watched=one.number, most=self._most
                    )
                    await self.journal.forget_unserved()
                if first is None:
                    logger.warning(
                        "What changed in %s:// while nobody watched is not looked for: it has more than %d entries "
                        "(feed.catch_up: true)",
                        scheme,
                        self._most or 0,
                    )
                else:
                    one.number = min(first, one.number)
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


class _Watched:
    """A source while it is watched: everything after `number` is told by this process, or has been found by it."""

    def __init__(self, source: Source, serving: Serving) -> None:
        self.source, self.serving = source, serving
        self.task: asyncio.Task[None] | None = None
        self.number: int | None = None
        self.is_new = False
        self.begun = asyncio.Event()  # or it cannot be told now


def _histories(serving: Mapping[str, Serving]) -> _Served:
    return {scheme: one.history for scheme, one in serving.items()}
