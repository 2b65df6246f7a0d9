"""Fold 3: limits for each principal: how often, how much, and how much at once.

A call is counted before the policy sees it, so a refusal costs the caller as much as a success. What a
tool or a prompt asks on the caller's behalf is free: the call that started it was counted. Requests that become no
call (a ping, a handshake, a notification, what is malformed) are counted beside it, by `count`.

Only work that waits for something takes a place. Under overload the places that are left are shared out: nobody
may hold more of them than are free, so whoever has most under way waits first and a newcomer last. What finds no place
waits for one, and those who wait are served in turns: one of each caller's, whoever has how many. Refused is what has
waited for too long, or finds more of its caller's waiting already than there is room left to wait in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from types import CoroutineType, MappingProxyType
from typing import NamedTuple

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import RateLimited
from octavo.core.ports.chain import Next, Reply
from octavo.core.ref import Ref
from octavo.core.tools import Audio, Embedded, Image, PromptResult, Text, ToolResult
from octavo.core.values import Call, Content, Principal

WAITING = 4096  # calls of everybody that may wait for a place
PATIENCE = 10.0  # seconds for which one may wait
WINDOW = 1.0  # seconds' worth of bytes that may be given at once after a rest


class PrincipalLimits(NamedTuple):
    """What one principal may have. `burst` is how many calls may come at once after a rest."""

    rate: float | None  # calls a second; None lifts the limit
    burst: float
    in_flight: int
    bytes: float | None = None  # of content a second
    keyless: bool = False  # whether the rate holds for principals without a key too


class _Account:
    """`due` is when the bucket would be full again, in seconds of the monotonic clock: one number says how
    many tokens are left at any later moment. `owed` is the same for bytes. `waiting` are the calls that have no place
    yet, each with what tells it that it has one."""

    __slots__ = ("allowed", "due", "in_flight", "interval", "keyless", "most", "owed", "roles", "room", "waiting")

    def __init__(self, allowed: PrincipalLimits, roles: frozenset[str]) -> None:
        self.due = self.owed = 0.0
        self.in_flight = 0
        self.waiting: deque[asyncio.Future[None]] = deque()
        self.allow(allowed, roles)

    def allow(self, allowed: PrincipalLimits, roles: frozenset[str]) -> None:
        self.allowed, self.roles = allowed, roles
        self.interval = 0.0 if allowed.rate is None else 1.0 / allowed.rate
        self.room = (max(1.0, allowed.burst) - 1.0) * self.interval + 1e-9  # how far ahead of now `due` may lie
        self.most, self.keyless = allowed.in_flight, allowed.keyless


class Quota:
    """Raises RateLimited with `retry_after`, and data that names the limit that was met.

    `rate` (calls a second) and `burst` hold for principals with a key; `in_flight` holds for everyone.
    `rate=None` lifts the first limit. `burst` is by default twice the rate. `total` are the places for everybody's
    work. `waiting` calls of everybody may wait for one, `patience` seconds at most. `allowance` gives what holds for
    one principal instead, `tools` the quota of each single tool.
    At most `principals` accounts are kept: idle ones that are owed nothing are forgotten first.
    """

    def __init__(
        self,
        *,
        rate: float | None = 50.0,
        burst: float | None = None,
        in_flight: int = 64,
        bytes: float | None = None,
        keyless: bool = False,
        total: int | None = None,
        waiting: int = WAITING,
        patience: float = PATIENCE,
        allowance: Callable[[Principal], PrincipalLimits | None] | None = None,
        tools: Mapping[Ref, Quota] = MappingProxyType({}),
        principals: int = 10_000,
        clock: Clock | None = None,
        said: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`said` stands in the data of every refusal."""
        if rate is not None and rate <= 0:
            raise ValueError("rate must be positive; None lifts the limit")
        burst = 2.0 * (rate or 0.0) if burst is None else burst
        self._usual = PrincipalLimits(rate, burst, in_flight, bytes, keyless)
        self._allowance, self._tools = allowance, tools
        self._metered = bytes is not None or allowance is not None
        self._free = 1 << 30 if total is None else total
        self._room, self._patience = waiting, patience  # how many more may wait, and for how long
        self._crowd: dict[_Account, None] = {}  # those of whom something waits; whose turn is next stands first
        self._principals, self._said = principals, said
        self._now = (clock or SystemClock()).monotonic
        self._accounts: dict[str, _Account] = {}

    def __call__(self, call: Call, call_next: Next) -> Reply:
        if call.parent is not None:
            return call_next(call)
        principal = call.principal
        account = self._accounts.get(principal.id)
        if account is None or (self._allowance is not None and account.roles is not principal.roles):
            account = self._open(principal, account)
        if account.interval and (principal.key or account.keyless):
            self._spend(account)
        if self._tools and call.op == "invoke" and (tool := self._tools.get(call.ref)) is not None:
            # Its place first: what waits for that holds up nothing else.
            return tool(call, partial(self._placed, account, call_next))
        return self._placed(account, call_next, call)

    def _placed(self, account: _Account, call_next: Next, call: Call) -> Reply:
        if account.waiting or account.in_flight >= account.most or account.in_flight >= self._free:
            return self._in_turn(account, call_next, call)
        reply = self._meter(account, call_next, call) if self._metered else call_next(call)
        if type(reply) is CoroutineType:
            account.in_flight += 1
            self._free -= 1
            return self._later(account, reply)
        return reply

    def count(self, principal: Principal) -> None:
        """One request that becomes no call. It takes no place: whoever has none left may still cancel something."""
        account = self._accounts.get(principal.id)
        if account is None or (self._allowance is not None and account.roles is not principal.roles):
            account = self._open(principal, account)
        if account.interval and (principal.key or account.keyless):
            self._spend(account)

    def _spend(self, account: _Account) -> None:
        now = self._now()
        due = account.due
        if due <= now:
            account.due = now + account.interval
        elif due - now <= account.room:
            account.due = due + account.interval
        else:
            wait = due - now - account.room
            raise RateLimited(retry_after=wait, limit="rate", allowed=account.allowed.rate, **self._said)

    @property
    def in_flight(self) -> int:
        """Calls that are being worked on."""
        return sum(account.in_flight for account in self._accounts.values())

    @property
    def waiting(self) -> int:
        """Calls that wait for a place."""
        return sum(len(account.waiting) for account in self._crowd)

    def places(self, principal: Principal) -> int:
        """How many calls of this one may be worked on at once."""
        allowed = self._allowance(principal) if self._allowance is not None else None
        return (allowed or self._usual).in_flight

    async def _later(self, account: _Account, reply: Awaitable[Reply]) -> Reply:
        try:
            return await reply
        finally:
            self._leave(account)

    def _leave(self, account: _Account) -> None:
        account.in_flight -= 1
        self._free += 1
        if self._crowd:
            self._call_up()

    # -- where there is no place

    async def _in_turn(self, account: _Account, call_next: Next, call: Call) -> Reply:
        if len(account.waiting) >= self._room:
            raise self._crowded(account, "Too many of your requests wait already: try again when some are answered")
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        late = loop.call_later(self._patience, self._late, account, turn)
        account.waiting.append(turn)
        self._room -= 1
        self._crowd.setdefault(account)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:  # in the same moment
                self._leave(account)
            else:
                self._give_up(account, turn)
            raise
        finally:
            late.cancel()
        try:
            reply = self._meter(account, call_next, call) if self._metered else call_next(call)
            return await reply if type(reply) is CoroutineType else reply
        finally:
            self._leave(account)

    def _late(self, account: _Account, turn: asyncio.Future[None]) -> None:
        if not turn.done():
            turn.set_exception(self._crowded(account, "No place became free in time: try again"))

    def _give_up(self, account: _Account, turn: asyncio.Future[None]) -> None:
        with suppress(ValueError):  # it was passed over since
            account.waiting.remove(turn)
            self._room += 1
        if not account.waiting:
            self._crowd.pop(account, None)

    def _call_up(self) -> None:
        """Gives the places that are free to those who wait: one call of each, round and round."""
        passed = 0
        while self._free > 0 and passed < len(self._crowd):
            account = next(iter(self._crowd))
            del self._crowd[account]
            if account.in_flight >= account.most or account.in_flight >= self._free:
                passed += 1
            else:
                passed = 0
                turn = account.waiting.popleft()
                self._room += 1
                if not turn.done():  # else its caller has given up
                    account.in_flight += 1
                    self._free -= 1
                    turn.set_result(None)
            if account.waiting:
                self._crowd[account] = None  # behind the others

    def _crowded(self, account: _Account, message: str) -> RateLimited:
        if account.in_flight >= account.most:
            return RateLimited(message, retry_after=1.0, limit="in_flight", allowed=account.most, **self._said)
        return RateLimited(message, retry_after=1.0, limit="total", **self._said)

    def _open(self, principal: Principal, known: _Account | None) -> _Account:
        allowed = (self._allowance(principal) if self._allowance is not None else None) or self._usual
        if known is not None:  # the same one, with other roles
            known.allow(allowed, principal.roles)
            return known
        if len(self._accounts) >= self._principals:
            # Those whose bucket filled up first lose nothing. A tenth at once, so that the sorting is rare.
            idle = [
                (max(account.due, account.owed), name)
                for name, account in self._accounts.items()
                if not account.in_flight and not account.waiting
            ]
            for _, name in sorted(idle)[: max(1, self._principals // 10)]:
                del self._accounts[name]
        account = self._accounts[principal.id] = _Account(allowed, principal.roles)
        return account

    # -- where bytes are limited too

    def _meter(self, account: _Account, call_next: Next, call: Call) -> Reply:
        rate = account.allowed.bytes
        if rate is not None and (wait := account.owed - self._now() - WINDOW) > 0:
            raise RateLimited(retry_after=wait, limit="bytes", allowed=rate, **self._said)
        reply = call_next(call)
        if rate is None:
            return reply
        if type(reply) is CoroutineType:
            return self._charged_later(account, rate, reply)
        self._charge(account, rate, reply)
        return reply

    async def _charged_later(self, account: _Account, rate: float, reply: Awaitable[Reply]) -> Reply:
        given = await reply
        self._charge(account, rate, given)
        return given

    def _charge(self, account: _Account, rate: float, reply: Reply) -> None:
        if size := _size(reply):
            account.owed = max(account.owed, self._now()) + size / rate


def _size(reply: Reply) -> int:
    """Bytes of content that a reply gives out; lists and news are small."""
    if isinstance(reply, Content):
        return reply.size
    if isinstance(reply, ToolResult):
        return sum(map(_block, reply.content))
    if isinstance(reply, PromptResult):
        return sum(_block(said.content) for said in reply.messages)
    return len(getattr(reply, "outcome", b""))  # of a task


def _block(block: object) -> int:
    match block:
        case Text(text=text):
            return len(text.encode("utf-8", "surrogatepass"))
        case Image(data=data) | Audio(data=data):
            return len(data)
        case Embedded(content=content):
            return content.size
        case _:
            return 0
