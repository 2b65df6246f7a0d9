"""One ordered change feed out of the watches of all sources.

A change gets its number here, in the order in which the feed hears of it; listeners are called on the event loop
in that order and must not block. Numbers are microseconds of the clock, each greater than the one before: those of
an earlier process are smaller, and a number that was given out tells the time and nothing about changes that its
reader may not know of. A source whose watch ends or fails is watched again after a pause, and said.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress

from msgspec.structs import replace

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import NotFound, OctavoError
from octavo.core.foreign import passed_on
from octavo.core.ports.feed import Listener
from octavo.core.ports.source import Ready, Source, Watches
from octavo.core.ref import Ref
from octavo.core.values import Change
from octavo.feed.known import AS_EVER, Serving
from octavo.feed.storing import Storing

logger = logging.getLogger(__name__)

RECENT = 10_000  # changes kept for `since`
SAID_AGAIN = 720  # tries later, which is an hour
PATIENCE = 5.0  # seconds for a watch to end; one that does not is left alone
PAUSE = 5.0  # seconds before a broken watch is tried again
OVERLAP = (
    3.0  # seconds in which an old watch can tell what was changed before the new one began: more than a look takes
)
LONGEST = 25.0  # seconds for a new watch to begin; until then the old one tells


class _Watch:
    """How far back one source's changes are all told: from the time at which its watch began."""

    def __init__(self, source: Watches, whole: Source) -> None:
        """`whole` is the same source, with all that it can do."""
        self.source, self.whole = source, whole
        self.task: asyncio.Task[None] | None = None
        self.began: int | None = None
        self.begun = asyncio.Event()
        self.leaves = False  # another tells of the same scheme, or will

    def begin(self, number: int) -> None:
        self.began = number
        self.begun.set()

    def end(self) -> None:
        self.began = None
        self.begun.clear()


class _Handover:
    """Of a scheme that has several watches for a while: what one of them has told, the others need not."""

    def __init__(self) -> None:
        self.open = 0  # watches that leave
        self._told: dict[tuple[object, ...], _Watch] = {}

    def is_news(self, change: Change, watch: _Watch) -> bool:
        what = (change.kind, change.ref, change.source, None if change.new is None else change.new.version)
        return self._told.setdefault(what, watch) is watch


class ChangeFeed:
    """`recent` is how many changes `since` can give. `sleep` is there for tests."""

    def __init__(
        self,
        *,
        recent: int = RECENT,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._listeners: dict[int, Listener] = {}
        self._next_listener = 0
        self._wall = (clock or SystemClock()).wall
        self._number = 0
        self.line = os.urandom(8).hex()  # of numbers that are given here
        self._dropped = self.number()  # of the latest change that is not kept any more
        self._most = recent
        self._recent: deque[Change] = deque()
        self._untold: deque[Change] = deque()
        self._telling = False
        self._watches: dict[str, _Watch] = {}
        self._handovers: dict[str, _Handover] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._sleep = sleep
        self._storing: Storing | None = None
        self._serving: Mapping[str, Serving] = {}
        self._histories: Mapping[str, str] = {}
        self._wanted = asyncio.Event()  # what the watches tell
        self._wanted.set()

    def number(self) -> int:
        """Not less than that of any change so far, and less than that of any to come."""
        self._number = max(self._number, int(self._wall() * 1_000_000))
        return self._number

    def publish(self, change: Change) -> Change:
        self._number = max(self._number + 1, self.number())
        change = replace(change, seq=self._number)
        if len(self._recent) == self._most:
            self._dropped = self._recent.popleft().seq
        self._recent.append(change)
        if self._storing is not None:
            self._storing.add(change, self._histories)
        self._untold.append(change)
        if not self._telling:  # a listener may publish: then the others first hear of the change at hand
            self._telling = True
            try:
                while self._untold:
                    self._tell(self._untold.popleft())
            finally:
                self._telling = False
        return change

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        number = self._next_listener = self._next_listener + 1
        self._listeners[number] = listener

        def leave() -> None:
            self._listeners.pop(number, None)

        return leave

    def since(self, number: int, schemes: Iterable[str] = ()) -> list[Change] | None:
        """Everything after `number`, oldest first; None if that is further back than is kept, or not of this feed,
        or if one of these sources was not watched all the time since."""
        if not self._dropped <= number <= self.number():
            return None
        for scheme in schemes:
            watch = self._watches.get(scheme)
            if watch is None or watch.began is None or watch.began > number:
                return None
        return [change for change in self._recent if change.seq > number]

    async def passed(self, number: int) -> None:
        """Returns when there is a change with a greater number."""
        while not self._recent or self._recent[-1].seq <= number:
            told = asyncio.Event()
            leave = self.subscribe(lambda _, told=told: told.set())  # type: ignore[misc]
            try:
                await told.wait()
            finally:
                leave()

    def latest(self) -> list[Change]:
        """All that is kept, oldest first."""
        return [*self._recent]

    def store_in(self, storing: Storing | None, serving: Mapping[str, Serving]) -> None:
        """From now on changes are stored as well, or not any more. `serving` says by scheme how each source is served;
        what is served otherwise than before is compared when it is watched anew."""
        if storing is not self._storing and self._storing is not None:
            self._storing.forget_all()
        begins = storing is not self._storing and storing is not None
        self._storing, self._serving = storing, serving
        self._histories = {scheme: one.history for scheme, one in serving.items()}
        if begins:
            for watch in self._watches.values():
                if watch.began is not None:
                    self._compare(watch)

    def hold(self, seconds: float) -> None:
        """No watch begins before `begin`, somebody's wish for what is followed, or so many seconds. The first look at
        many files takes its time, and whoever has asked for nothing yet has nothing that could change."""
        self._wanted.clear()
        asyncio.get_running_loop().call_later(seconds, self.begin)

    def begin(self) -> None:
        self._wanted.set()

    async def follow(self, sources: Iterable[Source]) -> None:
        """From now on watches these, as far as they can be watched, and no others.

        The watch of a source that is followed already goes on. Of what is no longer served nothing is kept.
        """
        before, self._watches = self._watches, {}
        for source in sources:
            if not isinstance(source, Watches):
                continue
            known = before.get(source.scheme)
            if known is not None and known.source is source:
                self._watches[source.scheme] = before.pop(source.scheme)
                continue
            watch = self._watches[source.scheme] = _Watch(source, source)
            watch.task = asyncio.get_running_loop().create_task(self._follow(source, source.scheme, watch))
        # A change is of the source that it happens in: what is moved stays in one.
        self._recent = deque(one for one in self._recent if one.ref.scheme not in before)
        if self._storing is not None:
            for scheme in before:
                self._storing.forget(scheme)
        await _ended(watch for scheme, watch in before.items() if scheme not in self._watches)
        for scheme in before.keys() & self._watches.keys():
            handing = self._hand_over(scheme, before[scheme], self._watches[scheme])
            task = asyncio.get_running_loop().create_task(handing)
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def handed_over(self) -> None:
        """Returns when no watch is needed any more of a source that is not followed any more."""
        if self._leaving:
            await asyncio.wait(set(self._leaving))

    async def followed(self, schemes: Iterable[str]) -> None:
        """Returns when every change of these sources from then on gets a number here."""
        for scheme in schemes:
            watch = self._watches.get(scheme)
            if watch is not None:  # it may have gone with a reload
                self.begin()
                await watch.begun.wait()

    async def _hand_over(self, scheme: str, old: _Watch, new: _Watch) -> None:
        """What changed before the new watch began only the old one can tell, and it may tell it later. So both are at
        work for a while, and what both see is told once."""
        handover = self._handovers.setdefault(scheme, _Handover())
        handover.open += 1
        old.leaves = True
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST):
                    await new.begun.wait()
            await self._sleep(OVERLAP)
        finally:
            handover.open -= 1
            if not handover.open:
                self._handovers.pop(scheme, None)
            await _ended((old,))

    async def close(self) -> None:
        leaving = set(self._leaving)
        for task in leaving:
            task.cancel()
        if leaving:
            await asyncio.wait(leaving, timeout=PATIENCE)
        await _ended(self._watches.values())
        if self._storing is not None:
            await self._storing.close()

    def _compare(self, watch: _Watch) -> None:
        if self._storing is not None and self._watches.get(watch.whole.scheme) is watch:
            self._storing.compare(watch.whole, self._serving.get(watch.whole.scheme, AS_EVER))

    def _tell(self, change: Change) -> None:
        for number, listener in list(self._listeners.items()):
            if number not in self._listeners:
                continue  # it left while the others were told
            try:
                listener(change)
            except Exception:  # one listener's fault must not silence the others
                logger.exception("A listener of the change feed failed")

    async def _follow(self, source: Watches, scheme: str, watch: _Watch) -> None:
        tries = 0
        await self._wanted.wait()
        while True:
            tries += 1
            # Runs when the watch waits for its first change.
            beginning = asyncio.get_running_loop().create_task(self._begin(source, watch))
            try:
                async for change in source.watch(Ref(scheme)):
                    tries = 0
                    handover = self._handovers.get(scheme)
                    if watch.leaves and not await self._holds(scheme, change):
                        continue
                    if handover is None or handover.is_news(change, watch):
                        self.publish(change)
                if watch.leaves:
                    return
                _say(scheme, "ended", tries)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                _say(scheme, "cancelled itself", tries)
            except OctavoError as error:  # its cause is told where it came from
                _say(scheme, f"failed: {error}", tries)
            except BaseException as error:  # a watch must survive whatever its source throws
                if passed_on(error):
                    raise
                _say(scheme, "failed", tries, error)
            finally:
                beginning.cancel()
                watch.end()
                if self._storing is not None and self._watches.get(scheme) is watch:
                    self._storing.forget(scheme)
            await self._sleep(PAUSE)

    async def _holds(self, scheme: str, change: Change) -> bool:
        """Whether what an old watch tells is so of what is served now, which may be something else."""
        now = self._watches.get(scheme)
        if now is None:
            return False
        try:
            await now.whole.stat(change.ref)
        except NotFound:
            return change.new is None
        except OctavoError:
            return False
        return change.new is not None

    async def _begin(self, source: Watches, watch: _Watch) -> None:
        if isinstance(source, Ready):
            with suppress(OctavoError):  # the watch itself fails with it, and tells
                await source.armed()
                self._compare(watch)
                watch.begin(self.number())
        else:
            self._compare(watch)
            watch.begin(self.number())


def _say(scheme: str, what: str, tries: int, error: BaseException | None = None) -> None:
    """The first time in a row, and then rarely: it is tried for ever."""
    if tries <= 1 or tries % SAID_AGAIN == 0:
        logger.warning("The watch of %s:// %s; watching again in %g s", scheme, what, PAUSE, exc_info=error)


async def _ended(watches: Iterable[_Watch]) -> None:
    tasks = [watch.task for watch in watches if watch.task is not None]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=PATIENCE)
