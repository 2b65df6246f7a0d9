"""The policy for listings: pages of what a caller may see, over one source or all of them.

Pages are filled up from what is visible, and a cursor is given only if something visible follows, so that
neither tells anything of what is not. Source cursors are opaque: where a page of a source holds more than
still fits, a smaller one is asked that ends at the right place. One exception: when the caller's time is
up the page ends where it is, since the time has told as much.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from types import CoroutineType, NoneType
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from octavo.core.arguments import PLAIN, ListArguments
from octavo.core.clock import Clock
from octavo.core.cursor import INVALID, joined, parts_of
from octavo.core.definitions import most_entries
from octavo.core.errors import InvalidParams, OctavoError, SourceUnavailable, Timeout
from octavo.core.memo import Bounded
from octavo.core.ports.chain import Next, Reply, page_of, settled
from octavo.core.ref import Ref
from octavo.core.values import EVERYTHING, Call, EncoderMemo, Entry, Page, Principal
from octavo.pipeline.policy.filters import MetadataKeys, Narrowed, Test, narrowed
from octavo.pipeline.policy.hiding.absent import HidingPolicy, look_beside
from octavo.pipeline.redact.marks import hides

VERDICTS = 64  # kept with one page; a page in the cache is seen by many principals
SHARE = 0.8  # of the time of a listing over several sources, for one of them
TURN = 16  # pages of sources that are looked at before others have their turn
STARTS = 4096  # places in listings that are remembered
_FOREIGN: Final = "The cursor does not belong to this listing; list again from the start"

Sight: TypeAlias = Literal["all", "some", "none"]
_Visible: TypeAlias = Callable[[Page[Entry]], tuple[Entry, ...]]


class Shows(HidingPolicy, Protocol):
    epoch: str

    @property
    def phase(self) -> Hashable: ...
    def canonical(self, ref: Ref) -> Ref: ...
    def shows(self, principal: Principal, entry: Entry) -> bool: ...
    def unquoted(self, principal: Principal, entry: Entry) -> Entry: ...
    def sight(self, principal: Principal, scope: Ref) -> Sight: ...
    def filters(self, scheme: str) -> Collection[str]: ...


class _Batch(NamedTuple):
    page: Page[Entry]
    shown: tuple[Entry, ...]
    cut: bool  # more of the source is visible than was asked to fit


class _Start(Struct, frozen=True, eq=False):
    """Where one page of one caller's listing begins: the scopes that it may see anything of, and the place there.

    There is one for each such page, so it is itself the key under which what was made of it is kept.
    """

    parts: tuple[tuple[Ref, Sight], ...]
    at: int
    inner: str | None


class FilteredLists:
    """For one policy, as long as it holds."""

    def __init__(self, exposed: Sequence[str], *, page: int, clock: Clock) -> None:
        self._everywhere = tuple(map(Ref, exposed))
        self._page = page
        self._now = clock.monotonic
        self._starts: Bounded[Hashable, _Start] = Bounded(STARTS)

    def page(self, call: Call, call_next: Next, policy: Shows) -> Reply:
        """One page, at once where it is known. Raises InvalidParams for a cursor that is not of this listing,
        and what the source of a scope raises."""
        most = most_entries(call.ref, self._page)
        limit = call.limit if call.limit < most else most
        if limit < 1:
            raise InvalidParams("A page holds at least one entry")
        place = (call.principal, call.ref, call.cursor, limit, policy.phase)
        start = self._starts.get(place) or self._start(call, place, policy)
        asked = None if call.arguments is PLAIN else call.given(ListArguments)
        if asked is not None and asked.depth and any(sight != "all" for _, sight in start.parts):
            until = self._now() + call.timeout
            call_next = partial(self._with_folders, call_next, policy, until, asked.depth)
        first: Reply = None
        if start.at < len(start.parts) and (asked is None or not asked.filter):
            first = call_next(call.at(start.parts[start.at][0], start.inner, limit, _share(call, start.parts)))
            if type(first) is not CoroutineType and (known := page_of(first).memo.get(start)) is not None:
                return known
        return self._made(call, call_next, policy, start, limit, first)

    async def _made(
        self, call: Call, call_next: Next, policy: Shows, start: _Start, limit: int, asked_first: Reply
    ) -> Page[Entry]:
        """`asked_first` is what the first source that is asked answers, where it was asked already."""
        asked_for = call.given(ListArguments).filter
        if not start.parts and call.ref != EVERYTHING and policy.decide(call.principal, "list", call.ref).hidden:
            await look_beside(policy, call, call_next)
        keys = MetadataKeys()
        narrow = [_narrowed(asked_for, scope, call.principal, policy, keys) for scope, _ in start.parts]
        gathered = _Gathered(call, call_next, policy, start, limit, narrow)
        await gathered.gather(asked_first, self._now)
        if asked_for and gathered.is_empty and call.cursor is None:
            keys.refuse_unknown(asked_for, {name for scope, _ in start.parts for name in policy.filters(scope.scheme)})
        made = gathered.page()
        first = gathered.alone
        # While a page of a source is in the cache nothing in that source has changed, so what was made of it and
        # of the pages behind it holds as well; not so if several sources took part.
        if first is not None and not asked_for and len(first.memo) < VERDICTS:
            first.memo[start] = made
        return made

    async def _with_folders(self, call_next: Next, policy: Shows, until: float, depth: int, asked: Call) -> Page[Entry]:
        """A page of a listing to a depth, in which a folder is stood for by something that the caller may see, if
        there is anything. All else is as the source gave it, so that a smaller page ends where it would."""
        page = page_of(await settled(call_next(asked)))
        most = len(asked.ref.segments) + depth
        items: list[Entry] = []
        for entry in page.items:
            names = policy.canonical(entry.ref).segments
            if len(names) > most and not policy.shows(asked.principal, entry):
                folder = asked._replace(ref=asked.ref._replace(segments=names[:most]), arguments=PLAIN)
                entry = await self._first_seen(folder, call_next, policy, until) or entry
            items.append(entry)
        shown = tuple(items)
        return page if shown == page.items else Page(shown, page.cursor, page.unavailable)

    async def _first_seen(self, folder: Call, call_next: Next, policy: Shows, until: float) -> Entry | None:
        if policy.sight(folder.principal, folder.ref) == "none":
            return None
        cursor: str | None = None
        while True:
            page = page_of(await settled(call_next(folder.at(folder.ref, cursor, self._page))))
            for entry in page.items:
                if policy.shows(folder.principal, entry):
                    return entry
            cursor = page.cursor
            if cursor is None:
                return None
            if self._now() > until:
                raise Timeout("There is too much here to look through in time: list a folder below", uri=folder.uri)

    def _start(self, call: Call, place: Hashable, policy: Shows) -> _Start:
        """The same for the same rules, so it is found out once."""
        scopes = self._everywhere if call.ref == EVERYTHING else (call.ref,)
        sights = ((scope, policy.sight(call.principal, scope)) for scope in scopes)
        parts = tuple(part for part in sights if part[1] != "none")
        return self._starts.keep(place, _Start(parts, *_position(call.cursor, parts)))


class _Gathered:
    """One page of a listing as it fills, out of the pages of one source after the other."""

    def __init__(
        self, call: Call, call_next: Next, policy: Shows, start: _Start, limit: int, narrow: Sequence[Narrowed]
    ) -> None:
        self._call, self._call_next, self._policy = call, call_next, policy
        self._parts, self._narrow, self._limit = start.parts, narrow, limit
        self._at, self._inner = start.at, start.inner
        self._only = start.at  # the one scope that was asked
        self._first: Page[Entry] | None = None
        self._kept: tuple[Entry, ...] = ()
        self._memo = EncoderMemo()
        self._down: list[str] = []
        self._following: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing, and nothing that could not be looked at."""
        return not (self._kept or self._following is not None or self._down)

    @property
    def alone(self) -> Page[Entry] | None:
        """The first page of the one source that took part."""
        return self._first if self._only >= 0 else None

    def page(self) -> Page[Entry]:
        kept, memo = self._kept, self._memo
        told = tuple(self._policy.unquoted(self._call.principal, entry) for entry in kept)
        if any(entry is not whole for entry, whole in zip(told, kept, strict=True)):
            kept, memo = told, EncoderMemo()
        return Page(kept, self._following, tuple(self._down), memo)

    async def gather(self, asked_first: Reply, now: Callable[[], float]) -> None:
        """`asked_first` is what the first source that is asked answers, where it was asked already."""
        until, looked = now() + self._call.timeout, 0
        while self._at < len(self._parts) and self._following is None:
            if now() > until:
                self._end()
                self._first = None
                return
            if self._at != self._only:
                self._only = -1
            looked += 1
            if looked % TURN == 0:  # pages that are in the cache never wait
                await asyncio.sleep(0)
            answer, asked_first = asked_first, None
            try:
                batch = await self._batch(answer)
            except OctavoError as fault:
                self._leave_out(fault)
            else:
                self._take(batch)

    @property
    def _room(self) -> int:
        return self._limit - len(self._kept)

    async def _batch(self, answer: Reply) -> _Batch:
        """The next page of the source whose turn it is."""
        sight, (scope, wanted) = self._parts[self._at][1], self._narrow[self._at]
        asked = self._call.at(scope, self._inner, self._limit, _share(self._call, self._parts))
        page = page_of(await settled(self._call_next(asked) if answer is None else answer))
        self._first = self._first or page
        visible = _visible(self._call.principal, self._policy, sight, wanted)
        batch = await _fit(page, asked, self._room, self._call_next, visible)
        if batch.page.cursor is not None and batch.page.cursor == self._inner:
            raise _endless(scope)
        return batch

    def _leave_out(self, fault: OctavoError) -> None:
        """A source that is down is named where others are listed with it, and raises its fault where it is alone."""
        filtered = bool(self._call.given(ListArguments).filter)
        if self._call.ref != EVERYTHING or (isinstance(fault, InvalidParams) and (self._inner is not None or filtered)):
            raise fault
        self._only = -1
        if not self._room:  # the next page will tell that it is down
            self._end()
            return
        self._down.append(self._narrow[self._at].scope.scheme)
        self._at, self._inner = self._at + 1, None

    def _take(self, batch: _Batch) -> None:
        room = self._room
        if not room and batch.shown:
            self._end()
            return
        if batch.shown:
            # The memo of the only page carries its encoded bytes from one answer to the next.
            alone = not self._kept and batch.shown is batch.page.items
            self._memo = batch.page.memo if alone else EncoderMemo()
            self._kept += batch.shown
        self._inner = batch.page.cursor
        if self._inner is None:
            self._at += 1
            return
        all_seen = self._parts[self._at][1] == "all" and self._narrow[self._at].wanted is None
        if room and not self._room and (batch.cut or all_seen):
            self._end()

    def _end(self) -> None:
        """The next page goes on here."""
        self._following = joined(self._narrow[self._at].scope.scheme, self._inner)


def _narrowed(
    asked: Mapping[str, Any] | None, scope: Ref, principal: Principal, policy: Shows, keys: MetadataKeys
) -> Narrowed:
    """What is hidden fits no filter. A source judges its own on what is there, so what it found is looked at again."""
    if not asked and not scope.params:
        return Narrowed(scope, None)
    known = policy.filters(scope.scheme)
    scope, wanted = narrowed(asked, scope, known)
    noted = None if wanted is None else keys.noting(wanted)
    theirs = [key for key, _ in scope.params if key in known]

    def fits(whole: Entry) -> bool:
        entry = policy.unquoted(principal, whole)
        if entry is not whole and any(key not in entry.metadata for key in theirs):
            return False  # it may have been found by what is not told of it
        return not hides(entry, theirs) and (noted is None or noted(entry))

    return Narrowed(scope, fits if theirs or noted is not None else None)


def _share(call: Call, parts: Sequence[object]) -> float:
    """Seconds that one source may take. Where there are others, one that does not answer leaves time for them."""
    return call.timeout if len(parts) == 1 else SHARE * call.timeout


async def _fit(page: Page[Entry], asked: Call, room: int, call_next: Next, visible: _Visible) -> _Batch:
    """One page of a source, as much of it as there is room for. With no room: whether there is anything."""
    shown = visible(page)
    cut = False
    while 0 < room < len(shown):
        # Entries and cursor have to come from one reply: the source may change between two.
        cut = True
        last = page.items.index(shown[room - 1])
        if asked.limit <= last + 1:  # it gives more than it is asked for, and would for ever
            raise _endless(asked.ref)
        asked = asked._replace(limit=last + 1)
        page = page_of(await settled(call_next(asked)))
        shown = visible(page)
    return _Batch(page, shown, cut)


def _visible(principal: Principal, policy: Shows, sight: Sight, wanted: Test | None) -> _Visible:
    """Gives a page's own tuple where all of it is visible. That verdict is kept with the page."""
    key = (policy.epoch, policy.phase, principal)

    def visible(page: Page[Entry]) -> tuple[Entry, ...]:
        items = page.items
        if sight != "all" and not page.memo.get(key):
            shown = tuple(entry for entry in items if policy.shows(principal, entry))
            if len(shown) < len(items):
                items = shown
            elif len(page.memo) < VERDICTS:
                page.memo[key] = True
        return items if wanted is None else tuple(entry for entry in items if wanted(entry))

    return visible


def _endless(scope: Ref) -> SourceUnavailable:
    return SourceUnavailable(f"Source unavailable: {scope.scheme}", telling=False, source=scope.scheme)


def _position(cursor: str | None, parts: Sequence[tuple[Ref, Sight]]) -> tuple[int, str | None]:
    if cursor is None:
        return 0, None
    scheme, inner = parts_of(cursor, str, (str, NoneType), refusal=_FOREIGN)
    for at, (scope, _) in enumerate(parts):
        if scope.scheme == scheme:
            return at, inner
    raise InvalidParams(_FOREIGN, reason=INVALID)
