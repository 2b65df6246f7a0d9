"""Fold 5: what depends on the caller: how much, and how long.

Limits can only be lowered by a call, never raised above the operator's ceiling.
"""

from __future__ import annotations

from collections.abc import Awaitable
from types import CoroutineType

from octavo.core.errors import TooLarge
from octavo.core.model import Call, Content
from octavo.core.ports import Next, Reply


class Mask:
    def __init__(self, *, max_bytes: int, timeout: float, page: int) -> None:
        self._max_bytes, self._timeout, self._page = max_bytes, timeout, page

    def __call__(self, call: Call, call_next: Next) -> Reply:
        if call.max_bytes > self._max_bytes or call.timeout > self._timeout or call.limit > self._page:
            call = call._replace(
                max_bytes=min(call.max_bytes, self._max_bytes),
                timeout=min(call.timeout, self._timeout),
                limit=min(call.limit, self._page),
            )
        reply = call_next(call)
        if type(reply) is CoroutineType:
            return _later(call, reply)
        return _bounded(call, reply) if type(reply) is Content else reply


async def _later(call: Call, reply: Awaitable[Reply]) -> Reply:
    return _bounded(call, await reply)


def _bounded(call: Call, reply: Reply) -> Reply:
    if isinstance(reply, Content):
        size = reply.size
        if size > call.max_bytes:
            # The source refuses on the raw size; redaction and another caller's higher limit come later.
            raise TooLarge(
                f"The resource has {size} bytes, the limit is {call.max_bytes}: read a part of it",
                uri=call.uri,
                size=size,
                limit=call.max_bytes,
            )
        call.trail.size = size
    return reply
