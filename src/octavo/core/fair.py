"""A pool with a limit, shared fairly: free places go round among all who wait, one each.

Whoever has a hundred pieces of work waiting gets no more turns than who has one. What a caller asked for is done in
that caller's name, however deep in the house it is done: `on_behalf_of` names it once, and every pool below finds it
there. Work that several wait for (one flight of the cache) waits in the name of each of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, ContextVar, copy_context
from functools import partial
from types import TracebackType
from typing import Final, ParamSpec, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from octavo.core.errors import RateLimited, SourceUnavailable

P = ParamSpec("P")
T = TypeVar("T")

WAITING: Final = 256  # pieces of work of one caller that may wait for one pool
SHORT: Final = 4  # threads for short work of all parts of the server
ITSELF: Final = ""  # the name in which the server does its own work


class Claim:
    """For whom something is done."""

    __slots__ = ("names", "waiting")

    def __init__(self, name: str) -> None:
        self.names = [name]
        self.waiting: list[_Ticket] = []

    def share(self, name: str) -> None:
        """For this one too: what waits takes whichever turn comes first."""
        if name not in self.names:
            self.names.append(name)
            for ticket in self.waiting:
                ticket.queue.also(name, ticket)


_claim: ContextVar[Claim] = ContextVar("claim", default=Claim(ITSELF))  # noqa: B039  nobody ever shares that one


def on_behalf_of(claim: Claim) -> Context:
    """The context in which to do it."""
    context = copy_context()
    context.run(_claim.set, claim)
    return context


class acting_for:
    """The same for a part of the work at hand."""

    __slots__ = ("_before", "_claim")

    def __init__(self, name: str) -> None:
        self._claim = Claim(name)

    def __enter__(self) -> None:
        self._before = _claim.get()
        _claim.set(self._claim)

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        _claim.set(self._before)  # no token: what is thrown away unfinished ends in another context


class _Ticket:
    __slots__ = ("claim", "given", "queue", "taken_by")

    def __init__(self, queue: FairQueue, claim: Claim) -> None:
        self.queue, self.claim = queue, claim
        self.given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.taken_by = ITSELF


class FairQueue:
    """`places` pieces of work at once. Whoever has one of them leaves `spare` to others, even if nobody waits: what
    lasts long cannot be everywhere then. At most `waiting` pieces of work of one caller wait; more are refused."""

    def __init__(self, places: int, what: str, *, spare: int = 0, waiting: int = WAITING) -> None:
        """`what` names the pool in a refusal."""
        if not 0 <= spare < places:
            raise ValueError("some of the places must be left for those who have one already")
        self._free, self._spare, self._most, self._what = places, spare, waiting, what
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[_Ticket]] = {}  # by caller; whose turn is next stands first

    def turn(self) -> _Turn:
        """Around the work. Waits until it is the caller's turn; raises RateLimited when too much of his waits."""
        return _Turn(self)

    async def enter(self) -> str:
        """The same for those who leave later: what to `leave` with."""
        claim = _claim.get()
        for name in claim.names:
            if self._may(name):
                self._take(name)
                return name
        if len(self._waiting.get(claim.names[0], ())) >= self._most:
            raise RateLimited(
                f"Too much of yours waits for {self._what} already; wait until some of it is done",
                retry_after=1.0,
                limit=self._what,
                allowed=self._most,
            )
        ticket = _Ticket(self, claim)
        for name in claim.names:
            self.also(name, ticket)
        claim.waiting.append(ticket)
        try:
            await ticket.given
        except asyncio.CancelledError:
            if not ticket.given.cancelled() and ticket.given.done():  # in the same moment: it goes to the next one
                self.leave(ticket.taken_by)
            raise
        finally:
            claim.waiting.remove(ticket)
            self._withdraw(ticket)
        return ticket.taken_by

    def also(self, name: str, ticket: _Ticket) -> None:
        """It waits in this name too, unless too much does already."""
        queue = self._waiting.setdefault(name, deque())
        if len(queue) < self._most:
            queue.append(ticket)

    def leave(self, who: str) -> None:
        self._free += 1
        if self._held[who] > 1:
            self._held[who] -= 1
        else:
            del self._held[who]
        while self._free and (name := next(filter(self._may, self._waiting), None)) is not None:
            queue = self._waiting.pop(name)
            ticket = queue.popleft()
            if queue:
                self._waiting[name] = queue  # behind the others
            if not ticket.given.done():  # else its caller has given up, in the turn that would have been his
                ticket.taken_by = name
                self._take(name)
                self._withdraw(ticket)
                ticket.given.set_result(None)

    def ahead(self) -> int:
        """How many turns come before that of a caller who would begin to wait now."""
        me = _claim.get().names[0]
        mine = len(self._waiting.get(me, ()))
        return mine + sum(min(len(queue), mine + 1) for name, queue in self._waiting.items() if name != me)

    def _may(self, name: str) -> bool:
        return self._free > (self._spare if name in self._held else 0)

    def _take(self, name: str) -> None:
        self._free -= 1
        self._held[name] += 1

    def _withdraw(self, ticket: _Ticket) -> None:
        """From all the queues in which it may still stand."""
        for name in ticket.claim.names:
            queue = self._waiting.get(name)
            if queue is not None:
                with contextlib.suppress(ValueError):
                    queue.remove(ticket)
                if not queue:
                    del self._waiting[name]


class _Turn:
    __slots__ = ("_queue", "_who")

    def __init__(self, queue: FairQueue) -> None:
        self._queue = queue

    async def __aenter__(self) -> None:
        self._who = await self._queue.enter()

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        self._queue.leave(self._who)


class FairThreads:
    """Threads given out in turns. A place is free again when its work has ended, not when somebody has given it up:
    a thread cannot be stopped."""

    def __init__(self, threads: int, what: str, *, spare: int = 0, further: int = 0) -> None:
        """`further` threads are for what goes to the executor itself: the server's own work, which waits for nobody."""
        self._queue = FairQueue(threads, what, spare=spare)
        self.executor = ThreadPoolExecutor(threads + further, thread_name_prefix=f"octavo-{what}")
        _pools.add(self)

    async def run(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        who = await self._queue.enter()
        try:
            begun = self.executor.submit(partial(work, *given, **named))
        except RuntimeError:  # it was shut down while this waited
            self._queue.leave(who)
            raise SourceUnavailable("What was to be asked is closed") from None
        try:
            return await asyncio.wrap_future(begun)
        finally:
            if begun.done():
                self._queue.leave(who)
            else:
                loop = asyncio.get_running_loop()
                begun.add_done_callback(lambda _: _tell(loop, self._queue, who))

    def shutdown(self) -> None:
        """Waits for what runs; what waits is cancelled."""
        self.executor.shutdown(cancel_futures=True)


def let_go() -> None:
    """At the end of the process: threads that do nothing end, and nothing new is begun."""
    for pool in [*_pools]:
        pool.executor.shutdown(wait=False, cancel_futures=True)


def _tell(loop: asyncio.AbstractEventLoop, queue: FairQueue, who: str) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended, and all who waited with it
        loop.call_soon_threadsafe(queue.leave, who)


_pools: Final[WeakSet[FairThreads]] = WeakSet()
_short: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, FairThreads]] = WeakKeyDictionary()


async def in_thread(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Short work that would hold up the loop, in the threads that the whole server shares for it."""
    loop = asyncio.get_running_loop()
    threads = _short.get(loop)
    if threads is None:
        threads = _short[loop] = FairThreads(SHORT, "threads", spare=1)
    return await threads.run(work, *given, **named)
