"""One watcher a source, shared by everybody who watches: hints in, looked-at changes out."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count, islice
from typing import Final

from msgspec.structs import replace

from octavo.core.clock import Clock
from octavo.core.errors import SourceUnavailable
from octavo.core.ref import Ref
from octavo.core.values import Change, ChangeKind
from octavo.sources._shared.fs.notify import Batch, FileHints
from octavo.sources._shared.places import Where
from octavo.sources.file.diff_events import ToldChange
from octavo.sources.file.roots import Forest
from octavo.sources.file.snapshot import FileSnapshot

log = logging.getLogger(__name__)
names_log = logging.getLogger(f"{__name__}.names")  # whoever is open for one question says nothing of names

QUIET_SECONDS: Final = 0.005  # a burst is over when nothing came for this long,
BURST_SECONDS: Final = 0.020  # and is told in parts when it does not end
POLL_SECONDS: Final = 2.0  # between two looks at everything, where hints are incomplete
ROOTS_SECONDS: Final = 1.0  # between two looks whether the paths of the roots still lead to them
_RETRY_SECONDS: Final = 1.0
_NEWS_SECONDS: Final = 1.0  # that somebody waits for what has just changed
_ON_LOOP_SECONDS: Final = 0.020  # of the first look; the rest of a large tree is for a thread
RECALLED: Final = 4096  # bursts that are remembered by their addresses,
_RECALLED_CHANGES: Final = 20_000  # if they are no more than this, all together
_TAKES: Final = 4  # of hints, to have all that there were at a time
REPLACED_SECONDS: Final = 0.1  # in which a file that is gone may be there again: git makes files anew to change them
BUFFER: Final = 4096  # changes that wait for one consumer; above it only the net change of each file


_ANOTHER: Final = "Another folder stands in the place of a root: it is served from now on"
_NAMELESS: Final = (
    "Not served for their names: %d. They have a backslash, an invisible character or bytes that are no UTF-8, or "
    "differ from one beside them in their Unicode form alone. Rename them; octavo check says which they are"
)
_TO_BE_READ: Final = "The second wall (Landlock) keeps this process from writing to it: for that, restart needed"
_NONE: Final = (
    "The folder of a root is gone, and none is there that this process may read: nothing is served of it until one is. "
    "If one is there, the second wall (Landlock) keeps this process from it: restart needed"
)


class FileWatcher:
    """Idle until somebody watches, then at work until the source closes."""

    def __init__(
        self,
        forest: Forest,
        pool: ThreadPoolExecutor,
        clock: Clock,
        make_hints: Callable[[], FileHints],
    ) -> None:
        self._forest = forest
        self._pool = pool
        self._clock = clock
        self._make_hints = make_hints
        self._hints: FileHints | None = None
        self._snapshot: FileSnapshot | None = None
        self._started: asyncio.Future[None] | None = None
        self._stopped = threading.Event()
        self._consumers: set[_Consumer] = set()
        self._batch = Batch()
        self._burst: float | None = None  # when it began
        self._timer: asyncio.TimerHandle | None = None
        self._poll_timer: asyncio.TimerHandle | None = None
        self._roots_timer: asyncio.TimerHandle | None = None
        self._reopening = False
        self._busy = False
        self._warned = False
        self._birth = os.urandom(8)  # epochs of an earlier watcher say nothing about this one's
        self._changes = 0
        self._recent: deque[Sequence[Ref]] = deque()  # the last is that of the latest epoch
        self._recalled = 0  # addresses in it
        self._begun = self._ended = 0  # reconciliations
        self._asked = 0
        self._answer: tuple[bytes, int] | None = None
        self._waiting: list[asyncio.Future[None]] = []  # for the end of a reconciliation

    async def watch(self, where: Where) -> AsyncIterator[Change]:
        """Changes from the first await on; of a tree too large for one glance, from the end of the first look on."""
        consumer = _Consumer(where)
        self._consumers.add(consumer)
        try:
            await self.armed()
            while not self._stopped.is_set():
                for change in await consumer.take(self._stopped.is_set):
                    yield change
        finally:
            self._consumers.discard(consumer)

    async def armed(self) -> None:
        """Returns when the first look is done. Raises SourceUnavailable when the directories cannot be watched."""
        started = self._started or self._start()
        try:
            await asyncio.shield(started)
        except OSError:
            raise SourceUnavailable("The directories cannot be watched now", retry_after=1.0) from None

    async def settled(self, patience: float) -> FileSnapshot | None:
        """What is served, with what the kernel has reported by now, unless changes come without end. None when the
        first look is not done after so many seconds."""
        loop = asyncio.get_running_loop()
        started = self._started or self._start()
        await asyncio.wait((started,), timeout=patience)
        if not started.done():
            return None
        await self.armed()
        end = loop.time() + min(patience, _NEWS_SECONDS)
        while self._is_complete() and self.epoch() is None and (left := end - loop.time()) > 0:
            self._hinted()
            if self._stopped.is_set():
                break
            if self._busy or self._batch:
                self._waiting.append(loop.create_future())
                await asyncio.wait(self._waiting[-1:], timeout=left)
        return self._snapshot

    def epoch(self, moment: int = 0) -> tuple[bytes, int] | None:
        """Changes with every told change; None while one may be untold. Asks the kernel once a `moment`."""
        if moment and moment == self._asked:
            return self._answer
        self._asked, self._answer = moment, self._epoch()
        return self._answer

    def _epoch(self) -> tuple[bytes, int] | None:
        if self._started is None or not self._started.done() or self._hints is None or not self._is_complete():
            return None
        if self._busy or self._batch or self._hints.pending() or not all(one.is_there for one in self._forest.trees):
            return None
        return self._birth, self._changes

    async def caught_up(self) -> tuple[bytes, int] | None:
        """An epoch with everything in it that the kernel had reported when this was called, also while changes come
        without end: a burst is told in parts for it. None when only a look at everything can tell."""
        now, snapshot = self._epoch(), self._snapshot
        if now is not None or snapshot is None or self._started is None or not self._started.done():
            return now
        if not self._is_complete() or not any(self._hinted() for _ in range(_TAKES)):
            return None
        last = self._begun + bool(self._batch)
        while self._ended < last and not self._stopped.is_set() and not self._batch.everything:
            self._flush()
            self._waiting.append(asyncio.get_running_loop().create_future())
            await asyncio.wait(self._waiting[-1:])
        is_sure = self._is_complete() and not (self._stopped.is_set() or self._batch.everything or snapshot.is_behind)
        return (self._birth, self._changes) if is_sure else None

    def changed_since(self, epoch: object) -> Sequence[Ref] | None:
        """What was told since an epoch; None if that is too long ago, or too much."""
        if not isinstance(epoch, tuple) or epoch[0] != self._birth:
            return None
        bursts = self._changes - int(epoch[1])
        if not 0 <= bursts <= len(self._recent):
            return None
        found: dict[Ref, None] = {}
        for refs in islice(self._recent, len(self._recent) - bursts, None):
            found.update(dict.fromkeys(refs))
        return [*found]

    def stop(self) -> None:
        self._stopped.set()
        for timer in (self._timer, self._poll_timer, self._roots_timer):
            if timer is not None:
                timer.cancel()
        if self._hints is not None:
            self._hints.stop()
        for consumer in self._consumers:
            consumer.put(())
        self._wake()

    def close(self) -> None:
        """After the last thread has ended: none may use a descriptor that is somebody else's by then."""
        if self._hints is not None:
            self._hints.close()

    def _start(self) -> asyncio.Future[None]:
        """The first look. Its beginning is not awaited, so that a small tree is known before anything can happen."""
        loop = asyncio.get_running_loop()
        started = self._started = loop.create_future()  # before anything fails: then there is none any more
        self._hints = self._make_hints()
        self._snapshot = FileSnapshot(self._forest, self._hints, self._clock.wall, self._stopped.is_set)
        steps = self._snapshot.fill()
        end = loop.time() + _ON_LOOP_SECONDS
        try:
            for _ in steps:
                if loop.time() > end:
                    rest = loop.run_in_executor(self._pool, _finish, steps)
                    rest.add_done_callback(
                        lambda done: self._begin(started, None if done.cancelled() else done.exception())
                    )
                    return started
            self._begin(started, None)
        except OSError as error:
            self._begin(started, error)
        return started

    def _begin(self, started: asyncio.Future[None], error: BaseException | None) -> None:
        hints = self._hints
        if hints is None or self._stopped.is_set():
            started.set_result(None)
        elif error is not None:
            hints.close()
            self._hints = self._snapshot = self._started = None  # the next one who watches tries again
            started.set_exception(error)
            started.exception()  # whoever waited for it may have gone
        else:
            started.set_result(None)
            if nameless := sum(sum(tree.nameless.values()) for tree in self._forest.trees):
                names_log.warning(_NAMELESS, nameless)
            hints.listen(self._hinted)
            self._hinted()
            self._poll_if_needed(0.0)
            self.look_at_roots()

    def _is_complete(self) -> bool:
        return self._hints is not None and self._hints.instant and not (self._snapshot and self._snapshot.unfollowed)

    def _hinted(self) -> bool:
        """Whether it has taken everything that there was."""
        if self._hints is None or self._stopped.is_set():
            return False
        is_all = self._hints.take(self._batch)
        if self._batch.folders:  # a folder itself was moved or deleted: it may be a root
            self.look_at_roots()
        if self._batch:
            now = asyncio.get_running_loop().time()
            if self._burst is None:
                self._burst = now
            self._flush_at(min(now + QUIET_SECONDS, self._burst + BURST_SECONDS))
        return is_all

    def look_at_roots(self) -> None:
        """Now, and then from time to time. Another folder in the place of one is opened, and what is different told."""
        if self._reopening or self._stopped.is_set():
            return  # whoever is at it comes back here
        if self._roots_timer is not None:
            self._roots_timer.cancel()
        self._reopening = True
        loop = asyncio.get_running_loop()
        loop.run_in_executor(self._pool, self._reopen).add_done_callback(self._reopened)

    def _reopen(self) -> list[bool]:
        return [tree.is_there for tree in self._forest.trees if tree.reopen()]

    def _reopened(self, work: asyncio.Future[list[bool]]) -> None:
        self._reopening = False
        if self._stopped.is_set() or work.cancelled():
            return
        found = [] if work.exception() is not None else work.result()
        for is_there in found:
            log.warning(_ANOTHER if is_there else _NONE)
        if any(found) and any(tree.is_walled for tree in self._forest.trees):
            log.warning(_TO_BE_READ)
        if any(found):
            self._batch.everything = True
            self._flush()
        self._roots_timer = asyncio.get_running_loop().call_later(ROOTS_SECONDS, self.look_at_roots)

    def _flush_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(when, self._flush)

    def _flush(self) -> None:
        if self._busy or self._stopped.is_set() or self._snapshot is None:
            return  # whoever is busy comes back here
        if self._timer is not None:
            self._timer.cancel()
        batch, self._batch, self._burst, self._busy = self._batch, Batch(), None, True
        self._begun += 1
        loop = asyncio.get_running_loop()
        begun = loop.time()
        work = loop.run_in_executor(self._pool, self._snapshot.reconcile, batch)
        work.add_done_callback(lambda done: self._reconciled(done, loop.time() - begun))

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            waiter.set_result(None)

    def _reconciled(self, work: asyncio.Future[list[ToldChange]], seconds: float) -> None:
        self._busy, self._ended = False, self._begun
        self._wake()
        if self._stopped.is_set() or work.cancelled():
            return
        loop = asyncio.get_running_loop()
        error = work.exception()
        if error is not None:
            log.warning("The watch will look at everything again: %s", type(error).__name__)
            self._batch.everything = True
            self._flush_at(loop.time() + _RETRY_SECONDS)
            return
        told = work.result()
        if told:
            self._changes += 1
            self._recall([ref for one in told for ref in (one.change.ref, one.change.source) if ref is not None])
            for consumer in self._consumers:
                consumer.put(told)
        self._poll_if_needed(seconds)
        if self._batch:
            self._flush_at(loop.time() + QUIET_SECONDS)

    def _recall(self, refs: Sequence[Ref]) -> None:
        self._recent.append(refs)
        self._recalled += len(refs)
        while len(self._recent) > RECALLED or self._recalled > _RECALLED_CHANGES:
            self._recalled -= len(self._recent.popleft())

    def _poll_if_needed(self, seconds: float) -> None:
        """A poll never takes more than a small part of the time, however large the tree."""
        if self._is_complete():
            return
        if not self._warned:
            self._warned = True
            log.warning("Not every directory can be followed: changes are found by looking from time to time")
        if self._poll_timer is not None:
            self._poll_timer.cancel()
        wait = max(POLL_SECONDS, 20 * seconds)
        self._poll_timer = asyncio.get_running_loop().call_later(wait, self._poll)

    def _poll(self) -> None:
        self._batch.everything = True
        self._flush()


def _finish(steps: Iterator[None]) -> None:
    for _ in steps:
        pass


class _Consumer:
    """A file that is gone is told as deleted only if it stays away for a moment, and what comes behind it waits for
    that. Reads, lists and stamps wait for nothing: they tell what is there."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._numbers = count()
        self._waiting: dict[int, Change] = {}
        self._gone: dict[Ref, tuple[int, float]] = {}  # which of these tells a deletion, and until when it waits
        self._bound = BUFFER
        self._wake = asyncio.Event()

    def put(self, told: Sequence[ToldChange]) -> None:
        names, roots = self._where
        inside = [
            change.part(lambda ref, _: ref.segments[: len(names)] == names) for root, change in told if root in roots
        ]
        for change in inside:
            if change is not None:
                self._add(change)
        if len(self._waiting) > self._bound:
            self._only_net()
        if self._waiting or not told:
            self._wake.set()

    async def take(self, stopped: Callable[[], bool]) -> list[Change]:
        """What there is to tell, as soon as there is something; all that is left when it has stopped."""
        while True:
            now = asyncio.get_running_loop().time()
            first, until = next((gone for gone in self._gone.values() if gone[1] > now), (None, None))
            ready = [number for number in self._waiting if first is None or number < first or stopped()]
            taken = [self._waiting.pop(number) for number in ready]
            self._gone = {ref: gone for ref, gone in self._gone.items() if gone[0] in self._waiting}
            if taken or stopped():
                self._bound = BUFFER
                return taken
            self._wake.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), None if until is None else until - now)

    def _add(self, change: Change) -> None:
        number = next(self._numbers)
        if change.kind == "created" and (gone := self._gone.pop(change.ref, None)) is not None:
            change = replace(change, kind="updated", old=self._waiting.pop(gone[0]).old)
        elif change.kind == "deleted":
            self._gone.pop(change.ref, None)  # so that they stay in order
            self._gone[change.ref] = number, asyncio.get_running_loop().time() + REPLACED_SECONDS
        self._waiting[number] = change

    def _only_net(self) -> None:
        waiting, until = net([*self._waiting.values()]), {ref: when for ref, (_, when) in self._gone.items()}
        self._waiting = {next(self._numbers): change for change in waiting}
        deleted = ((change.ref, number) for number, change in self._waiting.items() if change.kind == "deleted")
        self._gone = {ref: (number, until[ref]) for ref, number in deleted if ref in until}
        self._bound = max(BUFFER, 2 * len(waiting))


def net(changes: Sequence[Change]) -> list[Change]:
    """One change a resource, from what it was before the first to what it is after the last. What was renamed is
    deleted there and created here."""
    kept: dict[Ref, Change] = {}
    for half in (half for change in changes for half in _halves(change)):
        earlier = kept.pop(half.ref, None)
        old, new = half.old if earlier is None else earlier.old, half.new
        if old is None and new is None:
            continue
        kind: ChangeKind = "updated" if old and new else "created" if new else "deleted"
        unmoved = half.unmoved if earlier is None else ()
        kept[half.ref] = Change(kind=kind, ref=half.ref, at=half.at, old=old, new=new, unmoved=unmoved)
    return list(kept.values())


def _halves(change: Change) -> list[Change]:
    halves = (change.part(lambda ref, _: ref == change.source), change.part(lambda ref, _: ref == change.ref))
    return [half for half in halves if half is not None]
