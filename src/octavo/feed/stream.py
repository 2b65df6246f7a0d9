"""`GET /changes`: the change feed as server-sent events, which go on by themselves and can be gone on with by number.

The first look is a call like any other: identity, policy, quota and audit are asked as for the protocol. After that
each change is cut for whoever listens when it leaves, by the rules and sources that hold then. A listener takes what it
is told out of the journal at its own pace: a slow one holds up nobody, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from octavo.core.arguments import ChangesArguments
from octavo.core.delivery import Delivery
from octavo.core.errors import Forbidden, InvalidParams, SourceUnavailable
from octavo.core.event import numbered
from octavo.core.ports.chain import expected
from octavo.core.ports.server import Server
from octavo.core.ref import Ref
from octavo.core.routes import EVENTS, Route, RouteAnswer, RouteRequest
from octavo.core.values import EVERYTHING, FEED, Change, News, Principal
from octavo.feed.changes import Changes

PATH: Final = "/changes"
QUIET: Final = 15.0  # seconds without a change, after which a number leaves alone
AGAIN: Final = 1.0  # seconds before a store that is away is asked again
PIECE: Final = 50  # changes that are cut and leave at once
_NUMBER: Final = re.compile(r"(0|[1-9]\d{0,15})(?:-([0-9a-f]{16}))?\Z", re.ASCII)
_ASKED: Final = frozenset(("scope", "after"))


async def follow(
    changes: Callable[[], Changes], scope: Ref, after: int, *, quiet: float = QUIET
) -> AsyncGenerator[News]:
    """What is told after a number, part by part and for ever, as it is for everybody. Where nothing is told for `quiet`
    seconds there is a part without changes, whose `next` may be told; that of others may not. Raises InvalidParams for
    a number that was never given, and when the scope is not served any more.

    `changes` gives those of the works that hold; it is asked again each time."""
    async with changes().followed():
        marked = False
        while True:
            try:
                news = await changes().heard(scope, after, marked=marked)
            except SourceUnavailable:
                await asyncio.sleep(AGAIN)
                continue
            given_before(after, news)
            after = news.next
            if news.changes or news.gap or marked:
                yield news
            marked = False
            if not (news.changes or news.more):
                try:
                    async with asyncio.timeout(quiet):
                        await changes().passed(after)
                except TimeoutError:
                    marked = True


def given_before(after: int | None, news: News) -> None:
    """Raises InvalidParams where that cannot be."""
    if news.gap and after is not None and after > news.next:
        raise InvalidParams("That number was not given yet, or by another server: begin without it")


class ChangeStream:
    """Its route. `changes` as for `follow`."""

    def __init__(self, server: Server, changes: Callable[[], Changes], *, quiet: float = QUIET) -> None:
        self._server, self._changes, self._quiet = server, changes, quiet

    def routes(self) -> Iterator[Route]:
        yield Route(
            path=PATH, methods=("GET",), stands_for="changes", what=Ref(FEED), needs="agent", handle=self._stream
        )

    async def _stream(self, asked: RouteRequest) -> RouteAnswer:
        if asked.who is None or not _ASKED.issuperset(asked.query):
            raise InvalidParams("This takes scope=URI and after=NUMBER, and the header Last-Event-ID")
        line = await self._changes().line()
        last = asked.headers.get("last-event-id")
        after = _read(asked.query.get("after"), line, "after") if last is None else _read(last, line, "Last-Event-ID")
        call = self._server.works.calls.at("changes", asked.who, asked.query.get("scope"), ChangesArguments(after))
        if call.fault is None and not self._may(asked.who, call.ref):
            what = str(_feed(call.ref))
            raise Forbidden(f"This needs read on {what}", required_permission="read", resource=what)
        news = expected(await asked.ask(call), News)
        given_before(after, news)
        if after is None:
            news = News((), news.next)
        return RouteAnswer(body=self._pieces(asked.who, call.ref, news, line), media_type=EVENTS)

    async def _pieces(self, who: Principal, scope: Ref, news: News, line: str) -> AsyncGenerator[bytes, None]:
        yield b"retry: 1000\n\n" + _events(news, news.changes, line)
        with suppress(InvalidParams):  # it is not served any more
            async for part in follow(self._changes, scope, news.next, quiet=self._quiet):
                if not self._may(who, scope):
                    return
                if part.gap or not part.changes:
                    yield _events(part, (), line)
                for place in range(0, len(part.changes), PIECE):
                    told = await self._cut(who, part.changes[place : place + PIECE])
                    yield b"".join(_event(one, line) for one in told)

    def _may(self, who: Principal, scope: Ref) -> bool:
        """Whether no rule denies it, as it is asked of the same feed as a resource."""
        works = self._server.works
        return works.policy.allows(works.identity.current(who), "read", _feed(scope))

    async def _cut(self, who: Principal, changes: tuple[Change, ...]) -> Sequence[Change]:
        """What the caller may be told of them, as it is now."""
        works = self._server.works
        who = works.identity.current(who)
        found = (Delivery(works, change).told(who) for change in changes)
        told = [one for one in found if one is not None]
        if (noted := works.policy.noted(who, told)) is not None:
            await noted
        return told


def _feed(scope: Ref) -> Ref:
    """The address of `changes://` that tells the same."""
    return Ref(FEED) if scope == EVERYTHING else Ref(FEED, (scope.scheme, *scope.segments))


def _events(news: News, changes: tuple[Change, ...], line: str) -> bytes:
    """The last number has no data, so that a client remembers it and tells nobody."""
    gap = b""
    if news.gap:
        gap = b"event: gap\ndata: " + json.dumps({"next": news.next}).encode() + b"\n"
    told = b"".join(_event(one, line) for one in changes)
    following = b"" if news.more else f"id: {news.next}-{line}\n".encode() + gap + b"\n"
    return told + following


def _event(change: Change, line: str) -> bytes:
    data = json.dumps(numbered(change), ensure_ascii=False)
    return f"id: {change.seq}-{line}\nevent: change\ndata: {data}\n\n".encode("utf-8", "surrogatepass")


def _read(text: str | None, line: str, name: str) -> int | None:
    """Raises InvalidParams for what is no number of this server."""
    if text is None or not text:
        return None
    found = _NUMBER.match(text)
    if found is None:
        raise InvalidParams(f"{name} is no number of the change feed")
    if found[2] not in (None, line):
        raise InvalidParams(f"{name} is of another server: begin without it")
    return int(found[1])
