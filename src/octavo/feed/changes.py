"""The feed as callers read it: the call `changes`, and the addresses of `changes://`.

Reading an address makes a child call, as a tool would: the policy decides there what its caller may be told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from octavo.core.arguments import ChangesArguments
from octavo.core.errors import InvalidParams
from octavo.core.event import numbered
from octavo.core.ports.chain import Ask, expected
from octavo.core.ref import Ref
from octavo.core.values import EVERYTHING, FEED, Call, Change, Content, Entry, News
from octavo.feed.feed import ChangeFeed
from octavo.feed.storing import Storing

_FRAME: Final = 128  # bytes around the changes
_DIGITS: Final = 16  # of 2**53


class Changes:
    def __init__(
        self,
        feed: ChangeFeed,
        watched: Sequence[str],
        storing: Storing | None = None,
        served: Mapping[str, str] | None = None,
    ) -> None:
        """`watched` are the schemes of the exposed sources that can be watched. With `storing` the journal is read, and
        not what this process remembers; `served` names how each source is served, by its scheme."""
        self._feed, self._storing, self._served = feed, storing, served or {}
        self._watched = tuple(watched)
        self._ask: Ask | None = None

    def bind(self, ask: Ask) -> None:
        self._ask = ask

    async def since(self, call: Call) -> News:
        scope, after = call.ref.bare, call.given(ChangesArguments).after
        everything = scope == EVERYTHING
        if not everything and scope.scheme not in self._watched:
            raise InvalidParams(f"{scope.scheme}:// tells no changes: name a source of resources", uri=call.uri)
        schemes = self._watched if everything else (scope.scheme,)
        await self._feed.followed(schemes)
        if self._storing is not None:
            stored, number = await self._storing.since(after, {one: self._served.get(one, "") for one in schemes})
            found = None if stored is None else [one for one in stored if one.ref.scheme in schemes]
        else:
            number = self._feed.number()
            found = self._kept(after, schemes)
        if found is None:
            return News((), number, gap=True)
        root = call.ref.param("root")

        def is_below(ref: Ref, entry: Entry | None) -> bool:
            return everything or (ref.within(scope) and (root is None or root == _root(ref, entry)))

        listed = (one for change in found if (one := change.listed) is not None)
        parts = (change.part(is_below) for change in listed)
        return News(tuple(part for part in parts if part is not None), number)

    def _kept(self, after: int | None, schemes: Sequence[str]) -> list[Change] | None:
        return self._feed.latest() if after is None else self._feed.since(after, schemes)

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
