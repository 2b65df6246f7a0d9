"""The feed as callers read it: the call `changes`, and the addresses of `changes://`.

Reading an address makes a child call, as a tool would: the policy decides there what its caller may be told.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from octavo.core.arguments import ChangesArguments
from octavo.core.errors import InvalidParams
from octavo.core.event import numbered
from octavo.core.ports.chain import Ask, expected
from octavo.core.ports.source import Source
from octavo.core.ref import Ref
from octavo.core.values import EVERYTHING, FEED, Call, Content, Entry, News
from octavo.feed.feed import ChangeFeed
from octavo.feed.known import AS_EVER, Serving
from octavo.feed.reconcile import refusing
from octavo.feed.storing import Storing, Told

_FRAME: Final = 128  # bytes around the changes
_DIGITS: Final = 16  # of 2**53


class Changes:
    def __init__(
        self,
        feed: ChangeFeed,
        watched: Mapping[str, Source],
        storing: Storing | None = None,
        serving: Mapping[str, Serving] | None = None,
    ) -> None:
        """`watched` are the exposed sources that can be watched, by their schemes. With `storing` the journal is read,
        and not what this process remembers; `serving` says how each source is served, by its scheme."""
        self._feed, self._storing, self._serving = feed, storing, serving or {}
        self._watched = {scheme: refusing(source) for scheme, source in watched.items()}
        self._ask: Ask | None = None

    def bind(self, ask: Ask) -> None:
        self._ask = ask

    async def since(self, call: Call) -> News:
        """Part by part: `more` where there is more that nobody has looked at."""
        scope, after = call.ref.bare, call.given(ChangesArguments).after
        schemes = self._schemes(scope)
        await self._feed.followed(schemes)
        return self._below(call.ref, await self._told(after, schemes))

    async def heard(self, scope: Ref, after: int, *, marked: bool) -> News:
        """The same for whoever follows, as it is for everybody: not cut by the policy, and `next` is no one's to know
        unless it is `marked`."""
        schemes = self._schemes(scope.bare)
        told = None
        if self._storing is not None and not marked:
            told = self._storing.newest(after, self._served(schemes))
        return self._below(scope, told or await self._told(after, schemes))

    async def passed(self, number: int) -> None:
        """Returns when there is something new, while `followed`."""
        await (self._feed.passed(number) if self._storing is None else self._storing.tail.passed(number))

    @asynccontextmanager
    async def followed(self) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            if self._storing is not None:
                await stack.enter_async_context(self._storing.tail.followed())
            yield

    async def line(self) -> str:
        """A word for the line of numbers."""
        return self._feed.line if self._storing is None else await self._storing.journal.line()

    def _schemes(self, scope: Ref) -> Sequence[str]:
        if scope == EVERYTHING:
            return tuple(self._watched)
        if scope.scheme not in self._watched:
            raise InvalidParams(f"{scope.scheme}:// tells no changes: name a source of resources", uri=str(scope))
        return (scope.scheme,)

    def _below(self, place: Ref, told: Told) -> News:
        if told.changes is None:
            return News((), told.following, gap=True)
        scope, root = place.bare, place.param("root")
        everything = scope == EVERYTHING

        def is_told(ref: Ref, entry: Entry | None) -> bool:
            """It stands there, and is not refused now, though it may have been served."""
            if not everything and not (ref.within(scope) and (root is None or root == _root(ref, entry))):
                return False
            return not self._watched[ref.scheme](ref, entry)

        listed = (one for change in told.changes if (one := change.listed) is not None)
        parts = (change.part(is_told) for change in listed)
        return News(tuple(part for part in parts if part is not None), told.following, more=told.more)

    async def _told(self, after: int | None, schemes: Sequence[str]) -> Told:
        if self._storing is not None:
            return await self._storing.since(after, self._served(schemes))
        number = self._feed.number()
        found = self._feed.latest() if after is None else self._feed.since(after, schemes)
        return Told(found and [one for one in found if one.ref.scheme in schemes], number)

    def _served(self, schemes: Sequence[str]) -> Mapping[str, Serving]:
        return {scheme: self._serving.get(scheme, AS_EVER) for scheme in schemes}

    async def read(self, call: Call) -> Content:
        if self._ask is None:
            raise RuntimeError("Changes are read through a pipeline")
        ref = call.ref
        scope = Ref(ref.segments[0], ref.segments[1:]) if ref.segments else EVERYTHING
        asked = call.child("changes", scope, arguments=ChangesArguments(_number(ref)))
        news = expected(await self._ask(asked._replace(limit=call.limit, timeout=call.timeout)), News)
        entry = Entry(ref=ref, name=f"changes of {scope}", mime_type="application/json")
        return Content(entry=entry, body=_written(news, call.max_bytes))


def _root(ref: Ref, entry: Entry | None) -> str:
    """In which of several it lies. An address says so where it has to, and else its target: only the first needs
    neither."""
    target = None if entry is None else entry.target
    return ref.param("root") or (None if target is None else target.param("root")) or "1"


def _number(ref: Ref) -> int | None:
    after = ref.param("after")
    known = after is None or (after.isascii() and after.isdigit() and len(after) <= _DIGITS)
    if not known or any(name != "after" for name, _ in ref.params):
        raise InvalidParams(f"{FEED}:// takes one parameter, after=NUMBER", uri=str(ref))
    return None if after is None else int(after)


def _written(news: News, max_bytes: int) -> str:
    """As many changes as fit, the oldest ones; always the first: an answer without any would never end."""
    events: list[str] = []
    left, following, more = max_bytes - _FRAME, news.next, news.more
    for k, change in enumerate(news.changes):
        written = json.dumps(numbered(change), ensure_ascii=False)
        left -= len(written.encode("utf-8", "surrogatepass")) + 2
        if events and left < 0:
            following, more = news.changes[k - 1].seq, True
            break
        events.append(written)
    flags = {"next": following} | {name: True for name, set_ in (("more", more), ("gap", news.gap)) if set_}
    return f'{{"changes": [{", ".join(events)}], {json.dumps(flags)[1:]}'
