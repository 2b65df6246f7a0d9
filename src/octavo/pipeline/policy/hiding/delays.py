"""Answers calls that found nothing at fixed times, so that how long they took tells nothing.

Work cannot be made the same for what is hidden and for what is not there; the moment at which the answer leaves can.
Only callers from whom a rule hides something wait, and only for a no or for nothing: whatever is given is given at
once. Of calls that are parts of another only that one waits. It waits in its caller's own place of the quota, so that
nobody can have more that waits than may be under way anyhow; and who cancels it need not wait.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence

from octavo.core.clock import SystemClock, passing
from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError
from octavo.core.memo import Bounded
from octavo.core.ports.chain import Reply, settled
from octavo.core.search_results import Findings
from octavo.core.values import VERBS, Call, Page, Principal
from octavo.pipeline.policy.rules import Rule

FIRST = 0.008  # seconds: more than a look at files or memory takes on a busy machine, less than a person notices
LAST = 1.024  # between two ticks, however long something takes
GRAIN = 0.00125  # seconds by which a timer may end late
KNOWN = 10_000  # callers of whom it is kept whether a rule hides something from them
NO = (NotFound, Forbidden, InvalidParams)  # also for a tool or a prompt that is not known


async def sleep_exactly(seconds: float) -> None:
    """Timers of an event loop end with a whole millisecond since they were set, and so tell when that was: the last one
    is spent in turns of the loop."""
    until = passing() + seconds
    if seconds > GRAIN:
        await asyncio.sleep(seconds - GRAIN)
    while passing() < until:
        await asyncio.sleep(0)


class Ticks:
    """`now` is the clock of the audit fold; it and `sleep` are there for tests."""

    def __init__(
        self,
        rules: Sequence[Rule],
        *,
        now: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[object]] = sleep_exactly,
    ) -> None:
        self._rules = tuple(rule for rule in rules if rule.hide)
        self._now, self._sleep = now or SystemClock().monotonic, sleep
        self._known: Bounded[Principal, bool] = Bounded(KNOWN)

    def hides(self, principal: Principal) -> bool:
        """Whether a rule hides anything from this caller."""
        known = self._known.get(principal)
        if known is None:
            hidden = any(rule.concerns(principal, verb) for rule in self._rules for verb in VERBS)
            known = self._known.keep(principal, hidden)
        return known

    def due(self, call: Call) -> bool:
        """To be asked of a call that found nothing: whether it has to wait. If it is a part of another, that has to."""
        if not self.hides(call.principal):
            return False
        root = call
        while root.parent is not None:
            root = root.parent
        root.trail.missed = True
        return root is call

    async def evenly(self, call: Call, reply: Reply) -> Reply:
        """The reply, or what the rest of the chain raises instead: at the next tick if it is a no or nothing."""
        try:
            given = await settled(reply)
        except NO:
            if self.due(call):
                await self.wait(call)
            raise
        if found_nothing(call, given) and self.due(call):
            await self.wait(call)
        return given

    async def refuse(self, call: Call, no: OctavoError) -> Reply:
        await self.wait(call)
        raise no

    async def wait(self, call: Call) -> None:
        """Until the next tick since the call came."""
        begun = call.trail.begun
        taken = max(0.0, self._now() - begun) if begun else 0.0
        await self._sleep(tick(taken) - taken)


def tick(taken: float) -> float:
    """The first one after so many seconds. Each is twice as late as the one before, so that there are few of them to
    tell apart; beyond the last they come in even steps."""
    step = FIRST
    while step < min(taken, LAST):
        step *= 2
    return step * max(1, math.ceil(taken / step))


def found_nothing(call: Call, reply: Reply) -> bool:
    """Whether the reply is nothing, or a part of what it was made of was."""
    if call.trail.missed:
        return True
    if isinstance(reply, Page | Findings):
        return not reply.items
    return call.op in ("complete", "folders") and not reply
