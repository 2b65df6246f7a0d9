"""Fold 6: replies that still hold, and one flight for all who ask the same at once.

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
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, Protocol

from octavo.core.clock import Clock
from octavo.core.errors import Timeout
from octavo.core.model import Call, Change, Content, Page
from octavo.core.ports import Next, Reply
from octavo.core.ref import Ref

_OVERHEAD = 512  # bytes that an entry costs beside its body
_ENTRY_WEIGHT = 700  # bytes of one listed entry, with its encoded form


class StampsFor(Protocol):
    def stamp(self, ref: Ref, op: str) -> object | None: ...


class _Kept(NamedTuple):
    value: Reply
    stamp: object
    until: float
    weight: int


class Cache:
    def __init__(
        self,
        stamps: StampsFor,
        *,
        max_bytes: int,
        ttl: Mapping[str, float],
        redaction: str,
        clock: Clock,
    ) -> None:
        self._stamp = stamps.stamp
        self._ttl, self._redaction = ttl, redaction
        self._now: Callable[[], float] = clock.monotonic
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._lists: dict[str, set[Hashable]] = {}  # keys of pages, by scheme
        self._room = self._free = max_bytes
        self._flights: dict[Hashable, _Flight] = {}

    @property
    def used(self) -> int:
        """Bytes that the kept replies weigh."""
        return self._room - self._free

    async def __call__(self, call: Call, call_next: Next) -> Reply:
        op, ref = call.op, call.ref
        if op == "read":
            key: Hashable = (ref, self._redaction)
        elif op == "list":
            key = (ref, call.cursor, call.limit, self._redaction)
        else:
            # Tools and prompts bring their own time limits; everything else has the caller's.
            timeout = None if op in ("invoke", "render") else call.timeout
            return await _Flight(call_next(call)).join(timeout, call)
        kept = self._kept.get(key)
        if kept is not None:
            if kept.until > self._now() and kept.stamp == self._stamp(ref, op):
                self._kept.move_to_end(key)
                call.trail.cache = "hit"
                return kept.value
            self._drop(key)
        call.trail.cache = "miss"
        flight_key = (key, call.max_bytes)
        flight = self._flights.get(flight_key)
        if flight is None:
            flight = self._flights[flight_key] = _Flight(self._fetch(key, call, call_next))
            flight.on_landing(lambda: self._flights.pop(flight_key, None))
        return await flight.join(call.timeout, call)

    def forget(self, change: Change) -> None:
        """The change feed says that a resource is not what it was."""
        self._drop((change.ref, self._redaction))
        for key in self._lists.pop(change.ref.scheme, ()):
            self._drop(key)

    async def _fetch(self, key: Hashable, call: Call, call_next: Next) -> Reply:
        ttl = self._ttl.get(call.ref.scheme, 0.0)
        # Before the fetch: if the content changes meanwhile, the stamp no longer fits and the next hit fails.
        stamp = self._stamp(call.ref, call.op) if ttl > 0 else None
        value = await call_next(call)
        if stamp is not None:
            self._keep(key, call, _Kept(value, stamp, self._now() + ttl, _weight(value)))
        return value

    def _keep(self, key: Hashable, call: Call, kept: _Kept) -> None:
        self._drop(key)
        if kept.weight > self._room // 4:
            return  # one giant must not push out everything else
        self._kept[key] = kept
        self._free -= kept.weight
        if call.op == "list":
            self._lists.setdefault(call.ref.scheme, set()).add(key)
        while self._free < 0:
            oldest = next(iter(self._kept))
            self._drop(oldest)

    def _drop(self, key: Hashable) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._free += kept.weight
            if isinstance(kept.value, Page):
                for keys in self._lists.values():
                    keys.discard(key)


def _weight(value: Reply) -> int:
    """Encoded forms are kept beside the value, so a body counts twice."""
    if isinstance(value, Content):
        return 2 * value.size + _OVERHEAD
    if isinstance(value, Page):
        return _ENTRY_WEIGHT * len(value.items) + _OVERHEAD  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    return _OVERHEAD


class _Flight:
    """One piece of work that any number of callers wait for. Ends early when the last one leaves."""

    def __init__(self, work: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Reply] = self._loop.create_task(work)
        self._waiting: set[asyncio.Future[Reply]] = set()
        self._task.add_done_callback(self._land)
        self._landed: Callable[[], object] | None = None

    def on_landing(self, callback: Callable[[], object]) -> None:
        self._landed = callback

    async def join(self, timeout: float | None, call: Call) -> Reply:
        waiter: asyncio.Future[Reply] = self._loop.create_future()
        self._waiting.add(waiter)
        timer = None if timeout is None else self._loop.call_later(timeout, _expire, waiter, call, timeout)
        try:
            return await waiter
        finally:
            if timer is not None:
                timer.cancel()
            self._waiting.discard(waiter)
            if not self._waiting:
                self._task.cancel()

    def _land(self, task: asyncio.Task[Reply]) -> None:
        if self._landed is not None:
            self._landed()
        fault = None if task.cancelled() else task.exception()
        for waiter in self._waiting:
            if waiter.done():
                continue
            if task.cancelled():
                waiter.cancel()
            elif fault is not None:
                waiter.set_exception(fault)
            else:
                waiter.set_result(task.result())


def _expire(waiter: asyncio.Future[Reply], call: Call, timeout: float) -> None:
    if not waiter.done():
        waiter.set_exception(Timeout(f"No answer within {timeout:g} seconds", uri=call.uri))
