"""Caches answers of tools, for as long as everything that they were made of is unchanged.

Nothing is believed: before an answer is given again, each child call that led to it is made again, with the rights of
whoever asks now, and must give the same. So a caller never gets what he may no longer read, and the audit
tells what stands behind the answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import OctavoError
from octavo.core.memo import Bounded
from octavo.core.ports.chain import Ask, Reply
from octavo.core.sizes import KIB
from octavo.core.tools import Text, ToolResult
from octavo.core.values import Call, Content, Entry, Page, Principal, Trail

MOST: Final = 500  # answers
MOST_OF_ONE: Final = 100  # of one caller: more push out his own
MAX_BYTES: Final = 256 * KIB  # of one answer
MAX_CHILDREN: Final = 100

_Key: TypeAlias = tuple[str, Principal, str]
Run: TypeAlias = Callable[[Ask], Awaitable[Any]]


class _CachedResult(Struct, frozen=True):
    result: ToolResult
    children: tuple[tuple[Call, object], ...]
    until: float


class Results:
    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._kept: Bounded[_Key, _CachedResult] = Bounded(MOST)

    async def answer(self, call: Call, seconds: float, ask: Ask, run: Run) -> Any:
        """What `run` gives, or what it gave not more than `seconds` ago from the same things."""
        key = (call.ref.path, call.principal, json.dumps(dict(call.values), sort_keys=True, ensure_ascii=False))
        kept = self._kept.pop(key, None)
        if kept is not None and kept.until > self._clock.monotonic() and await _same(kept, call, ask):
            self._kept.keep(key, kept)
            call.trail.cache = "hit"
            return kept.result
        call.trail.cache = "miss"
        witness = _AnswerWitness(ask)
        result = await run(witness.ask)
        if witness.good and isinstance(result, ToolResult) and not result.is_error and _size(result) <= MAX_BYTES:
            mine = [one for one in self._kept if one[1] == call.principal]
            if len(mine) >= MOST_OF_ONE:
                del self._kept[mine[0]]
            self._kept.keep(key, _CachedResult(result, tuple(witness.seen), self._clock.monotonic() + seconds))
        return result


class _AnswerWitness:
    """Sees what a tool asks, one thing after the other or several at once. An answer is good to keep if all of it was
    answered with versions."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._asked = 0
        self.seen: list[tuple[Call, object]] = []

    @property
    def good(self) -> bool:
        return self._asked == len(self.seen) <= MAX_CHILDREN

    async def ask(self, call: Call) -> Reply:
        self._asked += 1
        reply = await self._ask(call)
        version = _version(reply) if call.op in ("read", "stat", "list") else None
        if version is not None:
            self.seen.append((call._replace(parent=None), version))
        return reply


async def _same(kept: _CachedResult, call: Call, ask: Ask) -> bool:
    for child, version in kept.children:
        try:
            reply = await ask(child._replace(parent=call, trail=Trail(), moment=call.moment))
        except OctavoError:
            return False  # the tool shall say what it makes of that
        if _version(reply) != version:
            return False
    return True


def _version(reply: Reply) -> object | None:
    """What tells two replies apart; None where nothing does. The content itself too: a version is that of the source,
    and masks and redaction can change what a caller sees of it, by the hour."""
    if isinstance(reply, Content):
        body = reply.body.encode("utf-8", "surrogatepass") if isinstance(reply.body, str) else reply.body
        return (reply.entry, reply.etag, hashlib.blake2b(body).digest()) if reply.entry.version else None
    if isinstance(reply, Entry):
        return reply if reply.version else None
    if isinstance(reply, Page):
        page = cast("Page[Entry]", reply)
        versioned = all(entry.version for entry in page.items) and not page.unavailable
        return (page.items, page.cursor) if versioned else None
    return None


def _size(result: ToolResult) -> int:
    sizes = (len(block.text) if isinstance(block, Text) else 64 * KIB for block in result.content)
    return sum(sizes) + (0 if result.structured is None else len(json.dumps(result.structured, default=str)))
