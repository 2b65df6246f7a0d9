"""The third fold: how often and how much at once, per principal.

A call is counted before the policy sees it, so a refusal costs the caller as much as a success. What a
tool or a prompt asks on the caller's behalf is free: the call that started it was counted.
"""

from __future__ import annotations

from collections.abc import Awaitable
from types import CoroutineType

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import RateLimited
from octavo.core.model import Call
from octavo.core.ports import Next, Reply


class _Account:
    """`due` is when the bucket would be full again, in seconds of the monotonic clock: one number says how
    many tokens are left at any later moment."""

    __slots__ = ("due", "in_flight")

    def __init__(self) -> None:
        self.due = 0.0
        self.in_flight = 0


class Quota:
    """Raises RateLimited with `retry_after`, and data that names the limit that was met.

    `rate` (calls a second) and `burst` hold for principals with a key; `in_flight` holds for everyone.
    `rate=None` lifts the first limit. `burst` is how many calls may come at once after a rest, by default
    twice the rate. At most `principals` accounts are kept: idle ones that are owed nothing are forgotten first.
    """

    def __init__(
        self,
        *,
        rate: float | None = 50.0,
        burst: float | None = None,
        in_flight: int = 64,
        principals: int = 10_000,
        clock: Clock | None = None,
    ) -> None:
        if rate is not None and rate <= 0:
            raise ValueError("rate must be positive; None lifts the limit")
        self._interval = 0.0 if rate is None else 1.0 / rate
        self._rate = rate
        burst = max(1.0, 2.0 * (rate or 0.0) if burst is None else burst)
        self._room = (burst - 1.0) * self._interval + 1e-9  # how far ahead of now `due` may lie
        self._in_flight, self._principals = in_flight, principals
        self._now = (clock or SystemClock()).monotonic
        self._accounts: dict[str, _Account] = {}

    def __call__(self, call: Call, call_next: Next) -> Reply:
        if call.parent is not None:
            return call_next(call)
        principal = call.principal
        account = self._accounts.get(principal.id)
        if account is None:
            account = self._open(principal.id)
        if account.in_flight >= self._in_flight:
            raise RateLimited(retry_after=1.0, limit="in_flight", allowed=self._in_flight)
        if principal.key and self._interval:
            now = self._now()
            due = account.due
            if due <= now:
                account.due = now + self._interval
            elif due - now <= self._room:
                account.due = due + self._interval
            else:
                raise RateLimited(retry_after=due - now - self._room, limit="rate", allowed=self._rate)
        account.in_flight += 1
        try:
            reply = call_next(call)
            if type(reply) is CoroutineType:
                account.in_flight += 1  # until then
                return _later(account, reply)
            return reply
        finally:
            account.in_flight -= 1

    def _open(self, principal: str) -> _Account:
        if len(self._accounts) >= self._principals:
            # Those whose bucket filled up first lose nothing. A tenth at once, so that the sorting is rare.
            idle = [(account.due, known) for known, account in self._accounts.items() if not account.in_flight]
            for _, known in sorted(idle)[: max(1, self._principals // 10)]:
                del self._accounts[known]
        account = self._accounts[principal] = _Account()
        return account


async def _later(account: _Account, reply: Awaitable[Reply]) -> Reply:
    try:
        return await reply
    finally:
        account.in_flight -= 1
