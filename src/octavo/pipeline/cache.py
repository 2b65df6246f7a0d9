"""Fold 6: keeps replies while they hold, and lets all who ask the same at once wait for one read.

The key is `mcp:resource:{namespace}:{path}` with query and redaction version, kept as a tuple while it
lives in the process. Neither the principal nor the policy is part of it, because the policy stands
before the cache and the masks outside it. A hit is served only if the source's stamp says that it still
holds; a source without stamps is bounded by its TTL and by the change feed.

A hit never suspends. A miss suspends on one thing only, a future that its flight fulfils: throttle,
retries and the source run in the flight's task, and the caller's deadline ends the waiting, not the
flight, as long as somebody else still waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeAlias, cast

from octavo.core.arguments import PLAIN, ListArguments
from octavo.core.clock import Clock
from octavo.core.errors import OctavoError, SourceUnavailable, Timeout
from octavo.core.fair import Claim, acting_for, on_behalf_of
from octavo.core.operations import CHANGING, FOREIGN
from octavo.core.ports.chain import Next, Reply, settled
from octavo.core.ref import Ref, spelled_otherwise
from octavo.core.values import FEED, Call, Change, Content, Entry, Page

_GRACE = 0.5  # seconds for a source to end when its time is over
_OVERHEAD = 512  # bytes that a reply costs beside its bodies
_ENTRY_WEIGHT = 700  # bytes of one listed entry, with its encoded form

_Key: TypeAlias = tuple[Any, ...]  # begins with the Ref


class StampsFor(Protocol):
    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None: ...


class _CachedReply:
    """`used` since it was last passed over: who is gets a second chance before it is dropped for room."""

    __slots__ = ("group", "stamp", "until", "used", "value", "weight")

    def __init__(self, value: Reply, stamp: object, until: float, weight: int, group: Ref) -> None:
        self.value, self.stamp, self.until, self.weight, self.group = value, stamp, until, weight, group
        self.used = False


class Cache:
    def __init__(
        self,
        stamps: StampsFor,
        *,
        max_bytes: int,
        ttl: Mapping[str, float],
        redaction: str,
        clock: Clock,
        flight_time: float = 0.0,
    ) -> None:
        """`ttl` is by scheme. A flight may take `flight_time` seconds even if who began it wants to wait less."""
        self._stamp = stamps.stamp
        self._ttl, self._redaction = ttl, redaction
        self._now: Callable[[], float] = clock.monotonic
        self._flight_time = flight_time
        self._kept: dict[_Key, _CachedReply] = {}  # the oldest first
        self._groups: dict[Ref, set[_Key]] = {}  # what a change can make invalid at once
        self._room = self._free = max_bytes
        self._flights: dict[_Key, _Flight] = {}

    @property
    def used(self) -> int:
        """Bytes that the kept replies weigh."""
        return self._room - self._free

    def __call__(self, call: Call, call_next: Next) -> Reply:
        op, ref = call.op, call.ref
        if op == "read":
            key: _Key = (ref, self._redaction)
        elif op == "list":
            key = (ref, call.cursor, call.limit, _depth(call), self._redaction)
        elif op in FOREIGN:
            # They bring their own time limits. The SDK cancels its tasks again and again until they have ended: what a
            # tool tidies up then needs a task of its own, while one whose client has no channel does without.
            return _unshared(call, call_next) if call.channel is None else _alone(call, call_next, None)
        else:
            # A change that has begun ends when it ends: told as failed, it would happen nevertheless.
            return _alone(call, call_next, None if op in CHANGING else call.timeout)
        uri = call.uri
        if (not uri.isascii() or "%" in uri) and spelled_otherwise(uri):  # it may mean another thing than its address
            return _alone(call, call_next, call.timeout)
        kept = self._kept.get(key)
        if kept is not None:
            if kept.until > self._now() and kept.stamp == self._stamp(ref, op, call.moment):
                kept.used = True
                call.trail.cache = "hit"
                return kept.value
            self._drop(key)
        call.trail.cache = "miss"
        return self._miss(key, call, call_next)

    async def _miss(self, key: _Key, call: Call, call_next: Next) -> Reply:
        op, ref = call.op, call.ref
        if ref.scheme == FEED:  # what it tells depends on who asks: nobody may join
            call.trail.cache = ""
            return await _alone(call, call_next, call.timeout)
        flight = self._flights.get((*key, call.max_bytes))
        # Before the fetch: if the content changes meanwhile, the stamp no longer fits. Then nobody joins the
        # flight any more, and the next hit fails.
        stamp = self._stamp(ref, op)
        if flight is None or flight.stamp != stamp:
            flight = self._begin(key, call, call_next, stamp)
        return await flight.join(call.timeout, call)

    def forget(self, change: Change) -> None:
        """The change feed says that a resource is not what it was: nor are the folders above it, and lists."""
        for ref in (change.ref,) if change.source is None else (change.ref, change.source):
            self._forget(ref.bare)

    def _forget(self, ref: Ref) -> None:
        for key, flight in list(self._flights.items()):
            if flight.concerns(ref):
                flight.stale = True
                del self._flights[key]
        for depth in range(len(ref.segments) + 1):
            for key in tuple(self._groups.get(ref._replace(segments=ref.segments[:depth]), ())):
                self._drop(key)

    def _begin(self, key: _Key, call: Call, call_next: Next, stamp: object | None) -> _Flight:
        place = (*key, call.max_bytes)

        def leave() -> None:
            if self._flights.get(place) is flight:
                del self._flights[place]

        longest = call if call.timeout >= self._flight_time else call._replace(timeout=self._flight_time)
        flight = self._flights[place] = _Flight(call, stamp, leave, longest.timeout + _GRACE)
        return flight.start(self._fetch(flight, key, longest, call_next))

    async def _fetch(self, flight: _Flight, key: _Key, call: Call, call_next: Next) -> Reply:
        value = await settled(call_next(call))
        ttl = self._ttl.get(call.ref.scheme, 0.0)
        if ttl > 0 and flight.stamp is not None and not flight.stale:
            group = Ref(call.ref.scheme) if call.op == "list" else call.ref.bare
            self._keep(key, _CachedReply(value, flight.stamp, self._now() + ttl, _weight(value), group))
        return value

    def _keep(self, key: _Key, kept: _CachedReply) -> None:
        self._drop(key)
        if kept.weight > self._room // 4:
            return  # one giant must not push out everything else
        self._kept[key] = kept
        self._free -= kept.weight
        self._groups.setdefault(kept.group, set()).add(key)
        while self._free < 0:
            oldest = next(iter(self._kept))
            passed = self._kept[oldest]
            if passed.used:
                passed.used = False
                self._kept[oldest] = self._kept.pop(oldest)
            else:
                self._drop(oldest)

    def _drop(self, key: _Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._free += kept.weight
            group = self._groups[kept.group]
            group.discard(key)
            if not group:
                del self._groups[kept.group]


async def _unshared(call: Call, call_next: Next) -> Reply:
    """In the task of the only one who waits."""
    try:
        with acting_for(call.principal.id):
            return await settled(call_next(call))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _unavailable(call.ref) from None


async def _alone(call: Call, call_next: Next, timeout: float | None) -> Reply:
    return await _Flight(call, None).start(settled(call_next(call))).join(timeout, call)


def _depth(call: Call) -> int | None:
    return None if call.arguments is PLAIN else call.given(ListArguments).depth


def _weight(value: Reply) -> int:
    """Encoded forms are kept beside the value: base64 of bytes is a third longer than they are."""
    if isinstance(value, Content):
        return 5 * value.size // 2 + _entry_weight(value.entry)
    if isinstance(value, Page):
        return sum(map(_entry_weight, cast("Page[Entry]", value).items), _OVERHEAD)
    return _OVERHEAD


def _entry_weight(entry: Entry) -> int:
    said = len(entry.description or "") + (len(repr(entry.metadata)) if entry.metadata else 0)
    return _ENTRY_WEIGHT + 2 * said


class _Flight:
    """One piece of work that any number of callers wait for. Ends early when the last one leaves."""

    def __init__(
        self, call: Call, stamp: object | None, leave: Callable[[], None] | None = None, lasts: float = 0.0
    ) -> None:
        """`leave` is called once nobody may join any more. Within `lasts` seconds it ends by itself: whoever has waited
        in vain does not end it sooner, so that the throttle sees that the source did not answer."""
        self._op, self._ref = call.op, call.ref
        self._claim = Claim(call.principal.id)
        self.stamp = stamp
        self.stale = False  # what is fetched is good for who waits, and for nobody later
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + lasts if lasts else 0.0
        self._waiting: set[asyncio.Future[Reply]] = set()

    def start(self, work: Coroutine[Any, Any, Reply]) -> _Flight:
        self._task = self._loop.create_task(work, context=on_behalf_of(self._claim))
        self._task.add_done_callback(self._land)
        return self

    def concerns(self, changed: Ref) -> bool:
        if self._op == "list":
            return changed.scheme == self._ref.scheme
        return changed.within(self._ref.bare)

    async def join(self, timeout: float | None, call: Call) -> Reply:
        waiter: asyncio.Future[Reply] = self._loop.create_future()
        self._waiting.add(waiter)
        self._claim.share(call.principal.id)
        timer = None if timeout is None else self._loop.call_later(timeout, _expire, waiter, call, timeout)
        expired = False
        try:
            return await waiter
        finally:
            if timer is not None:
                timer.cancel()
            if waiter.done() and not waiter.cancelled():
                # seen, also by who was cancelled in the same moment
                expired = isinstance(waiter.exception(), Timeout)
            self._waiting.discard(waiter)
            if not self._waiting and not self._task.done():
                # Whoever comes now must not join: a cancelled task may still take its time.
                if self._leave is not None:
                    self._leave()
                if expired and self._until:
                    self._loop.call_at(self._until, self._task.cancel)
                else:
                    self._task.cancel()

    def _land(self, task: asyncio.Task[Reply]) -> None:
        if self._leave is not None:
            self._leave()
        if task.cancelled():
            fault: BaseException | None = _unavailable(self._ref)  # not by us while somebody waits
        else:
            fault = task.exception()
        for waiter in self._waiting:
            if waiter.done():
                continue
            if fault is None:
                waiter.set_result(task.result())
            else:
                waiter.set_exception(_twin(fault))


def _unavailable(ref: Ref) -> SourceUnavailable:
    """For work that cancelled itself: nobody asked for that."""
    return SourceUnavailable(f"Source unavailable: {ref.scheme}", source=ref.scheme)


def _twin(fault: BaseException) -> BaseException:
    """One for each waiter: an error that several tasks raise collects the traces of all."""
    if not isinstance(fault, OctavoError):
        return fault
    twin = type(fault).__new__(type(fault), *fault.args)
    twin.__dict__.update(fault.__dict__)
    return twin


def _expire(waiter: asyncio.Future[Reply], call: Call, timeout: float) -> None:
    if not waiter.done():
        waiter.set_exception(Timeout(f"No answer within {timeout:g} seconds", uri=call.uri))
