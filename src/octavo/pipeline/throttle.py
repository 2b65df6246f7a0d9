"""Fold 8, next to the source: concurrency, time limit, retries and circuit breaker, for each scheme.

It runs only behind the cache, in the task of a single flight, so it may wait. What a source lets slip that
is no OctavoError ends here: the caller learns that the source is unavailable, the log learns why.

Tools and prompts (`invoke`, `render`) pass: they have time limits of their own, and a tool that calls a
tool would otherwise wait for a place that it holds itself. So do `watch`, which lasts, and a listing over
all sources, which is no single source's.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, NoReturn

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import OctavoError, RateLimited, SourceUnavailable, Timeout
from octavo.core.fair import FairQueue
from octavo.core.foreign import passed_on, sound
from octavo.core.operations import CHANGING, REPEATS
from octavo.core.ports.chain import Next, Reply, settled
from octavo.core.values import FEED, Call

logger = logging.getLogger(__name__)

GUARDED = REPEATS | CHANGING
MAX_GATES = 256
MOST_WAITING = 10_000  # calls of one caller, for one source
# A caller may ask for a very short deadline. Missing one below this many seconds is no sign of an outage,
# or any caller could open the breaker for all.
TELLING_TIMEOUT = 1.0


class SourceLimits(NamedTuple):
    concurrency: int = 32
    attempts: int = 3  # the first one included
    backoff: float = 0.1  # seconds before the second attempt; doubles, with jitter
    max_backoff: float = 2.0
    failures: int = 5  # in a row, until the breaker opens
    cooldown: float = 10.0  # seconds until one call may try again
    rate: float | None = None  # calls a second that reach the source; None: as many as come


DEFAULT = SourceLimits()


class _Fault(Exception):
    """A source let slip what is no outage. `told` is for the caller; waiting will not help."""

    def __init__(self, told: SourceUnavailable) -> None:
        self.told = told


class _Gate:
    """What is known of one source: who is inside, and whether it answers."""

    def __init__(self, limits: SourceLimits) -> None:
        self.limits = limits
        # Where there are many places some are left to others: who holds one may wait in turn for what a source shares,
        # and would keep out whoever finds that free. Few places are not divided: a caller alone is to have them all.
        self.slots = FairQueue(limits.concurrency, "source", spare=limits.concurrency // 8, waiting=MOST_WAITING)
        self.pace = FairQueue(1, "source")  # in which one waits for the next moment at which the source may be asked
        self.users = 0
        self.failures = 0
        self.closed_until = 0.0  # while the breaker is open
        self.probing = False
        self.next = 0.0  # when the source may be asked again, where it has a pace


class Throttle:
    """`sources` overrides `limits` per scheme. `sleep` and `jitter` (0 to 1) are there for tests."""

    def __init__(
        self,
        *,
        limits: SourceLimits = DEFAULT,
        sources: Mapping[str, SourceLimits] = MappingProxyType({}),
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,  # noqa: S311  spreads retries, guards nothing
    ) -> None:
        self._limits, self._sources = limits, sources
        self._now = (clock or SystemClock()).monotonic
        self._sleep, self._jitter = sleep, jitter
        self._gates: dict[str, _Gate] = {}

    async def __call__(self, call: Call, call_next: Next) -> Reply:
        """Raises RateLimited, SourceUnavailable and Timeout besides what the source raises."""
        scheme = call.ref.scheme
        if call.op not in GUARDED or scheme in ("*", FEED):
            return await settled(call_next(call))
        gate = self._gate(scheme)
        gate.users += 1
        try:
            return await self._with_retries(gate, call, call_next)
        finally:
            gate.users -= 1

    def open_sources(self) -> tuple[str, ...]:
        """Schemes whose breaker is open now, for health and metrics."""
        now = self._now()
        return tuple(scheme for scheme, gate in self._gates.items() if gate.closed_until > now)

    def _gate(self, scheme: str) -> _Gate:
        gate = self._gates.get(scheme)
        if gate is None:
            if len(self._gates) >= MAX_GATES:  # made-up schemes must not fill the memory
                for known in [k for k, g in self._gates.items() if not (g.users or g.failures)]:
                    del self._gates[known]
            gate = self._gates[scheme] = _Gate(self._sources.get(scheme, self._limits))
        return gate

    async def _with_retries(self, gate: _Gate, call: Call, call_next: Next) -> Reply:
        limits, attempt = gate.limits, 1
        while True:
            if limits.rate is not None:
                await self._take_turn(gate, limits.rate, call)
            probe = self._admit(gate, call.ref.scheme)
            try:
                return await self._attempt(gate, call, call_next)
            except _Fault as fault:
                raise fault.told from None
            except SourceUnavailable as error:
                pause = self._pause(limits, attempt, error.retry_after)
                given_up = attempt >= limits.attempts or gate.failures >= limits.failures or not error.telling
                if given_up or pause is None or call.op not in REPEATS:
                    raise
            finally:
                if probe:
                    gate.probing = False
            attempt += 1
            await self._sleep(pause)

    async def _take_turn(self, gate: _Gate, rate: float, call: Call) -> None:
        """Waits for the pace of the source. Raises RateLimited at once where the turn would come too late."""
        wait = max(gate.next - self._now(), 0.0) + gate.pace.ahead() / rate
        if wait > call.timeout:
            scheme = call.ref.scheme
            raise RateLimited(retry_after=wait - call.timeout, limit="source", allowed=rate, source=scheme)
        async with gate.pace.turn():
            now = self._now()
            turn = max(gate.next, now)
            gate.next = turn + 1.0 / rate
            if turn > now:
                await self._sleep(turn - now)

    def _pause(self, limits: SourceLimits, attempt: int, wanted: float | None) -> float | None:
        """Seconds before the next attempt; None when the source asks for longer than we are ready to wait."""
        longest = min(limits.max_backoff, limits.backoff * 2.0 ** (attempt - 1))
        pause = longest * (0.5 + 0.5 * self._jitter())
        if wanted is None:
            return pause
        return max(pause, wanted) if wanted <= limits.max_backoff else None

    def _admit(self, gate: _Gate, scheme: str) -> bool:
        """Whether this call is the one that tries a source whose breaker opened. Raises while it is open."""
        if gate.failures < gate.limits.failures:
            return False
        wait = gate.closed_until - self._now()
        if wait > 0 or gate.probing:
            raise SourceUnavailable(
                f"Source unavailable: {scheme}", source=scheme, retry_after=max(wait, 0.0) or gate.limits.cooldown
            )
        gate.probing = True
        return True

    async def _attempt(self, gate: _Gate, call: Call, call_next: Next) -> Reply:
        scheme = call.ref.scheme
        inside = False
        scope = asyncio.timeout(call.timeout)
        try:
            async with scope, gate.slots.turn():
                inside = True
                # Nobody walks away from a change that has begun: it would be told as failed, and happen.
                changing = call.op in CHANGING
                scope.reschedule(None if changing else asyncio.get_running_loop().time() + call.timeout)
                reply = await settled(call_next(call))
        except OctavoError as error:
            if isinstance(error, (SourceUnavailable, Timeout)) and error.telling:
                if call.op not in CHANGING:  # no space, or no journal: it can still be read
                    self._failed(gate, scheme)
            elif inside:
                gate.failures = 0  # it answered
            raise
        except BaseException as error:  # the door of a source: nothing foreign passes
            if passed_on(error):
                raise
            error = sound(error)
            if isinstance(error, TimeoutError) and scope.expired():
                if inside and call.timeout >= TELLING_TIMEOUT:
                    self._failed(gate, scheme)
                raise Timeout(f"No answer within {call.timeout:g} s", source=scheme) from None
            self._foreign(gate, call, error)
        gate.failures = 0
        return reply

    def _foreign(self, gate: _Gate, call: Call, error: BaseException) -> NoReturn:
        """A broken connection is an outage. Anything else is a fault in the source's code, which one bad
        document can bring out at will: it must not open the breaker for all."""
        scheme, incident = call.ref.scheme, os.urandom(4).hex()
        logger.error("Incident %s: source %s failed in %s of %s", incident, scheme, call.op, call.ref, exc_info=error)
        told = SourceUnavailable(f"Source unavailable: {scheme}", source=scheme, incident=incident)
        if not isinstance(error, OSError):
            raise _Fault(told) from None
        self._failed(gate, scheme)
        raise told from None

    def _failed(self, gate: _Gate, scheme: str) -> None:
        gate.failures += 1
        if gate.failures >= gate.limits.failures:
            if gate.failures == gate.limits.failures:
                logger.warning("Source %s does not answer; it is left alone for %g s", scheme, gate.limits.cooldown)
            gate.closed_until = self._now() + gate.limits.cooldown
