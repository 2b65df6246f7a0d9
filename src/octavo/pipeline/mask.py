"""Fold 5: limits and field masks that depend on the caller.

Limits can only be lowered by a call, never raised above the operator's ceiling.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from types import CoroutineType
from typing import Any, TypeGuard

from msgspec.structs import replace

from octavo.core.arguments import SearchArguments
from octavo.core.definitions import most_entries
from octavo.core.errors import InvalidParams, TooLarge
from octavo.core.fair import acting_for, in_thread
from octavo.core.ports.chain import Next, Reply
from octavo.core.query import TextQuery
from octavo.core.tools import PromptResult, ToolResult
from octavo.core.values import Call, Content, Edited, Entry, News, Page, Principal
from octavo.pipeline.redact.redactor import Redactor


class Mask:
    def __init__(
        self,
        *,
        max_bytes: int,
        timeout: float,
        page: int,
        hidden_from: Callable[[Principal], Redactor | None] | None = None,
        filters: Callable[[str], Collection[str]] = lambda _: (),
    ) -> None:
        """`hidden_from` gives what a caller may not see of what others may; None where that is so for nobody.
        `filters` are the parameters by which the source of a scheme narrows what it tells."""
        self._max_bytes, self._timeout, self._page = max_bytes, timeout, page
        self._hidden_from, self._filters = hidden_from, filters

    def __call__(self, call: Call, call_next: Next) -> Reply:
        if call.max_bytes > self._max_bytes or call.timeout > self._timeout or call.limit > self._page:
            call = call._replace(
                max_bytes=min(call.max_bytes, self._max_bytes),
                timeout=min(call.timeout, self._timeout),
                limit=min(call.limit, most_entries(call.ref, self._page)),
            )
        if self._hidden_from is not None and (redactor := self._hidden_from(call.principal)) is not None:
            self._refuse_guesses(call, redactor)
            return _veiled(call, call_next(call), redactor)
        reply = call_next(call)
        if type(reply) is Content:
            return _bounded(call, reply)
        return _later(call, reply) if type(reply) is CoroutineType else reply

    def _refuse_guesses(self, call: Call, redactor: Redactor) -> None:
        """What is found and judged in texts as others see them would tell a right guess from a wrong one."""
        if isinstance(call.arguments, SearchArguments) and isinstance(call.arguments.query, TextQuery):
            raise _refusal(call, "search by rank: search with kind: content or names, or list")
        known = self._filters(call.ref.scheme) if call.ref.params else ()
        values = [value for key, value in call.ref.params if key in known]
        if values and call.op in ("read", "stat"):
            raise _refusal(call, f"read a collection with filters: list {call.uri} instead")
        if any(redactor.text(value) is not value for value in values):
            raise _refusal(call, "filter by such data: leave it out of the filter")


def _refusal(call: Call, what: str) -> InvalidParams:
    who = "Callers from whom personal data is hidden (redact.principals)"
    return InvalidParams(f"{who} cannot {what}", reason="hidden_data", uri=call.uri)


async def _veiled(call: Call, reply: Reply, redactor: Redactor) -> Reply:
    """What others may see lies in the cache, and what this caller may see beside it: each is made once."""
    if type(reply) is CoroutineType:
        reply = await reply
    if isinstance(reply, Content):
        known: Content | None = reply.memo.get(redactor)
        if known is None:
            with acting_for(call.principal.id):
                known = await in_thread(redactor.content, reply)
            reply.memo[redactor] = known
        return _bounded(call, known)
    if _is_page(reply):
        return redactor.page(reply)
    if isinstance(reply, Entry):
        return redactor.entry(reply)
    if isinstance(reply, News):
        return redactor.news(reply)
    if isinstance(reply, ToolResult):
        return redactor.result(reply)
    if isinstance(reply, PromptResult):
        return redactor.prompt(reply)
    if isinstance(reply, Edited):
        return replace(reply, report=redactor.text(reply.report))
    return redactor.offers(reply) if call.op == "complete" and isinstance(reply, Iterable) else reply


def _is_page(value: object) -> TypeGuard[Page[Any]]:
    return isinstance(value, Page)


async def _later(call: Call, reply: Awaitable[Reply]) -> Reply:
    return _bounded(call, await reply)


def _bounded(call: Call, reply: Reply) -> Reply:
    """A composed content is bounded by the policy, which leaves out of it what would only tell how much is hidden."""
    if isinstance(reply, Content) and not reply.composed:
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
