"""Fold 1: one audit record for each call, whatever becomes of the call.

    {"time":"2025-11-15T09:46:40.123Z","id":"5f3a9c1e-17","parent":"5f3a9c1e-16","who":"agent-brand",
     "op":"read","uri":"sop://brand/guide","outcome":"ok","rule":"policy[2]","cache":"hit","size":2048,"us":45}

Records hold no content and no arguments. `time` is when the call began, `us` how long it took; `parent`,
`rule` and `cache` are left out where there is nothing to say. `outcome` is "ok", the `reason` of an
OctavoError, "crash" for anything else, or "cancelled". `incident` names the entry in the server's log
that tells a cause; for a crash it is the record's own id.

What changes something has a record before it begins as well, stored before anything is done, as a child of the call:

    {"time":…,"id":"5f3a9c1e-19","parent":"5f3a9c1e-18","who":…,"op":"write","uri":…,"outcome":"intent"}

The record of the outcome names it: `"intent":"5f3a9c1e-19"`.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from types import CoroutineType
from typing import NamedTuple

from octavo.core.clock import Clock, SystemClock, iso
from octavo.core.errors import InternalError, OctavoError, RateLimited, Unrecorded
from octavo.core.memo import Memo
from octavo.core.ports.audit import Ledger
from octavo.core.ports.chain import Next, Reply
from octavo.core.ref import Ref
from octavo.core.values import Call

logger = logging.getLogger(__name__)

MAX_TEXT = 512  # characters of an address or any other text in a record
MAX_MEMO = 4096
UNKNOWN = "unknown"  # who asks, where nobody could be told apart
MALFORMED = "malformed"  # what was asked, where it could not be told
INTENT = "intent"  # the outcome of what has not begun yet


class AnnouncedChange(NamedTuple):
    """What was announced beside calls, and the record that its outcome will have."""

    intent: int
    number: int


class Audit:
    """Appends to the ledger, and flushes it for what changes something alone.

    The transport must call `ledger.flush()` before the bytes of any answer leave the process: that is what
    makes a record certain, and what lets a batch of answers share one write. The fold itself never waits
    and needs no current task.

    `scrub` is applied to addresses, and to the names of methods that clients make up, before they are
    written: either can carry a credential.
    """

    def __init__(
        self, ledger: Ledger, *, clock: Clock | None = None, scrub: Callable[[str], str] | None = None
    ) -> None:
        clock = clock or SystemClock()
        self._append, self._crowd = ledger.append, ledger.crowd
        self._store, self._settle = ledger.intend, ledger.settle
        self._wall, self._monotonic = clock.wall, clock.monotonic
        self._scrub = scrub
        self.nonce = os.urandom(4).hex()  # makes ids unique among the processes that share a directory
        self._ids = itertools.count(1)
        self._middles: Memo[tuple[str, str, Ref, str, str, str], bytes] = Memo(MAX_MEMO)
        self._method = lru_cache(MAX_MEMO)(self._address)
        self._since = self._until = 0.0
        self._opening = b""

    def __call__(self, call: Call, call_next: Next) -> Reply:
        call.trail.id = next(self._ids)
        wall = self._wall()
        call.trail.begun = self._monotonic()
        try:
            reply = call_next(call)
        except BaseException as error:
            self._failed(call, wall, error)
            raise
        if type(reply) is CoroutineType:
            return self._later(call, wall, reply)
        self._record(call, wall, "ok")
        return reply

    async def _later(self, call: Call, wall: float, reply: Awaitable[Reply]) -> Reply:
        try:
            given = await reply
        except BaseException as error:  # CancelledError and GeneratorExit pass here too
            self._failed(call, wall, error)
            raise
        self._record(call, wall, "ok")
        return given

    def _failed(self, call: Call, wall: float, error: BaseException) -> None:
        """Records it. Raises InternalError for what is no error of ours: its cause is for the log alone."""
        if isinstance(error, OctavoError):
            crowded = error.reason == RateLimited.reason
            self._record(call, wall, error.reason, str(error.data.get("incident", "")), crowded)
        elif not isinstance(error, Exception):
            self._record(call, wall, "cancelled")
        else:
            incident = f"{self.nonce}-{call.trail.id}"
            logger.error("Incident %s: %s of %s failed", incident, call.op, self._spelled(call), exc_info=error)
            self._record(call, wall, "crash", incident)
            tool = {"toolName": call.ref.name} if call.op == "invoke" else {}
            raise InternalError("Internal error", incident=incident, **tool) from None

    def _record(self, call: Call, wall: float, outcome: str, incident: str = "", crowded: bool = False) -> None:
        """`crowded`: there may be very many of its kind."""
        trail = call.trail
        # Calls repeat, so what most records have in common is put together once.
        key = (call.principal.id, call.op, trail.ref or call.ref, outcome, trail.rule, trail.cache)
        middle = self._middles.get(key) or self._middles.again(key) or self._middle(key)
        if call.fault is not None or call.parent is not None or incident or trail.changed:
            middle = self._rare(call, middle, outcome, incident)
        if not self._since <= wall < self._until:
            self._tick(wall)
        microseconds = int((self._monotonic() - trail.begun) * 1e6)
        record = b'%b%d"%b,"size":%d,"us":%d}' % (self._opening, trail.id, middle, trail.size, microseconds)
        if trail.changed:
            trail.kept = self._settle(record, now=call.parent is None)
        elif crowded:
            self._crowd(record, call.principal.id, call.op, outcome)
        else:
            self._append(record)

    def intend(self, call: Call) -> None:
        """To be called before anything is changed. Raises Unrecorded, and then nothing may be changed."""
        trail = call.trail
        number = next(self._ids)
        facts = _facts(call.principal.id, call.op, self._address(str(trail.ref or call.ref)), INTENT, trail.rule, "")
        self._tick(self._wall())
        self._store(b'%b%d","parent":"%b-%d"%b}' % (self._opening, number, self.nonce.encode(), trail.id, facts))
        trail.intent = number
        above: Call | None = call
        while above is not None:
            above.trail.changed = True
            above = above.parent

    def begin(self, who: str, what: str, **fields: str | int) -> AnnouncedChange:
        """The same for what is no call. Its outcome is noted with what this gives."""
        begun = AnnouncedChange(next(self._ids), next(self._ids))
        self._store(self._noted(begun.intent, who, what, INTENT, {"parent": self._name(begun.number), **fields}))
        return begun

    def go_on_from(self, before: Audit) -> None:
        """Calls that began under `before` have children here: so both count together."""
        self.nonce, self._ids = before.nonce, before._ids
        self._since = self._until = 0.0  # so that the next record names it

    def note(
        self, who: str, what: str, outcome: str, *, begun: AnnouncedChange | None = None, **fields: str | int
    ) -> str:
        """A record for what never becomes a call: ping, initialize, a malformed or unauthenticated request.

        Returns its id. Fields are facts about the request (uri, method, reason, era), never its content. Raises
        Unrecorded for the outcome of what has `begun`, where it cannot be stored.
        """
        if begun is None:
            number = next(self._ids)
            record = self._noted(number, who, what, outcome, fields)
            if who == UNKNOWN or what == MALFORMED or outcome == RateLimited.reason:
                self._crowd(record, who, what, outcome)
            else:
                self._append(record)
            return self._name(number)
        record = self._noted(begun.number, who, what, outcome, {**fields, "intent": self._name(begun.intent)})
        if not self._settle(record, now=True):
            raise Unrecorded(begun=True)
        return self._name(begun.number)

    def note_now(self, who: str, what: str, outcome: str, **fields: str | int) -> None:
        """A record that is stored when this returns. Raises Unrecorded, and then there is none."""
        self._store(self._noted(next(self._ids), who, what, outcome, fields))

    def _noted(self, number: int, who: str, what: str, outcome: str, fields: Mapping[str, str | int]) -> bytes:
        more = "".join(f",{_word(k)}:{v if isinstance(v, int) else self._address(v)}" for k, v in fields.items())
        self._tick(self._wall())
        text = f',"who":{_word(who)},"op":{self._method(what)},"outcome":{_word(outcome)}{more}'
        return b'%b%d"%b}' % (self._opening, number, text.encode())

    def _name(self, number: int) -> str:
        return f"{self.nonce}-{number}"

    def _tick(self, wall: float) -> None:
        """What the records of one millisecond begin with."""
        millisecond = int(wall * 1000)
        self._since, self._until = millisecond / 1000, (millisecond + 1) / 1000
        self._opening = f'{{"time":"{iso(self._since)}","id":"{self.nonce}-'.encode()

    def _middle(self, key: tuple[str, str, Ref, str, str, str]) -> bytes:
        who, op, ref, outcome, rule, cache = key
        return self._middles.keep(key, _facts(who, op, self._address(str(ref)), outcome, rule, cache))

    def _rare(self, call: Call, middle: bytes, outcome: str, incident: str) -> bytes:
        if call.fault is not None:  # the text is no address: show it as it came
            trail = call.trail
            middle = _facts(call.principal.id, call.op, self._address(call.uri), outcome, trail.rule, trail.cache)
        above = 0 if call.parent is None else call.parent.trail.id
        up = f',"parent":"{self.nonce}-{above}"' if above else ""
        cause = f',"incident":{_word(incident)}' if incident else ""
        intent = f',"intent":"{self._name(call.trail.intent)}"' if call.trail.intent else ""
        return b"%b%b%b%b" % (up.encode(), middle, cause.encode(), intent.encode())

    def _spelled(self, call: Call) -> str:
        return self._address(str(call.ref) if call.fault is None else call.uri)

    def _address(self, text: str) -> str:
        return _word(self._scrub(text) if self._scrub is not None else text)


def _facts(who: str, op: str, uri: str, outcome: str, rule: str, cache: str) -> bytes:
    rule = f',"rule":{_word(rule)}' if rule else ""
    cache = f',"cache":{_word(cache)}' if cache else ""
    return f',"who":{_word(who)},"op":"{op}","uri":{uri},"outcome":{_word(outcome)}{rule}{cache}'.encode()


def _word(text: str) -> str:
    """As a JSON string of bounded length. What could fool a reader of the log is escaped."""
    if len(text) > MAX_TEXT:
        text = text[:MAX_TEXT] + "…"
    return json.dumps(text, ensure_ascii=not text.isprintable())
