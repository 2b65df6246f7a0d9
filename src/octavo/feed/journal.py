"""The changes of all sources in the journal of a store, for readers who go on by number: after a reload, after a
restart, from another process on the same state.

A change is stored once, whoever of several processes sees it first: the transaction that stores it also stores what is
known of its address from then on, and what another process has stored already is left out. Nothing is ever left out of
what one process sees by itself: a source may tell of an address twice without another version. So a change is repeated
at most, and never lost: one that was not stored because the process was killed leaves what is known as it was.

Who is slower than another process sees what that has told, and something newer since then. That waits for a moment: if
nothing newer is seen here as well, it is news after all.

`served` names what a source serves, and how it spells addresses. Several processes on one state may serve other things
under one scheme, and a source may be another after a restart: what is stored under one name is never told under
another. What a source only refuses by name is cut out where it is told.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from octavo.core.clock import Clock, SystemClock
from octavo.core.ports.stores import MOST, Opens, Record
from octavo.core.values import Change
from octavo.feed.known import AS_EVER, KNOWN, Difference, Fact, Knowing, Refuses, Seen, Serving, place, seen
from octavo.feed.records import kept, written

logger = logging.getLogger(__name__)

PAGE: Final = 1_000  # records that are read at once
TOGETHER: Final = MOST  # changes of one transaction
TRIMMED: Final = 1_000  # changes, or
TIDIED: Final = 600.0  # seconds, until what is too old or too much is dropped
WAITS: Final = 2.0  # seconds for which what is behind another process waits for something newer
_LINE: Final = "feed/line"
_BEGUN: Final = "feed/begun/"
_STORED: Final = "feed/stored/"
_FORGOTTEN: Final = 30 * 86_400.0  # seconds beyond the age of changes, after which a source nobody serves is forgotten
_UNNAMED: Final[Mapping[str, str]] = {}  # by scheme: what is not named


class Begun(msgspec.Struct, frozen=True):
    """From the number `first` on every change of a source is there, up to its latest comparison; and what it reached
    then. What changed while nobody watched is there once it is compared again."""

    first: int
    latest: int
    reach: str = ""


class Stored(NamedTuple):
    """How many of the changes were dealt with, and the numbers of those that no other process had stored, as far as
    they are known."""

    done: int
    numbers: Sequence[int]


class Part(NamedTuple):
    """`last` is the number of the last record that was looked at; `more`: there are others behind it."""

    changes: Sequence[Change]
    last: int
    more: bool


class _Late(msgspec.Struct, frozen=True, eq=False):
    """A change that is behind what another process has told."""

    change: Change
    served: str
    due: float


_ENCODER: Final = msgspec.json.Encoder()
_BEGINNING: Final = msgspec.json.Decoder(Begun)


class ChangeJournal:
    """`store` opens the store, if it is not open yet. At most `keep` changes are kept, and none for longer than `age`
    seconds. `redact` is asked for each change before it rests."""

    def __init__(
        self,
        store: Opens,
        *,
        keep: int = 100_000,
        age: float = 7 * 86_400.0,
        redact: Callable[[Change], Change] = lambda change: change,
        clock: Clock | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self.redact = redact
        self.stored: Callable[[], None] = _nothing  # is called when there is something new
        self._store, self._keep, self._age = store, keep, age
        self._monotonic = clock.monotonic
        self._me = os.urandom(8).hex()
        self._knowing = Knowing(self._me, age=age, wall=clock.wall)
        self._untrimmed = TRIMMED  # the first that is stored trims what an earlier process left
        self._tidied: float | None = None
        self._late: dict[str, _Late] = {}  # by the keys of their addresses
        self._marking: asyncio.Future[int] | None = None  # the one that is under way
        self._next_mark: asyncio.Future[int] | None = None

    # -- storing

    async def record(
        self,
        changes: Sequence[Change],
        served: Mapping[str, str] = _UNNAMED,
        *,
        turn: int | None = None,
        again: bool = False,
    ) -> Stored:
        """In this order, all of them or, when this raises, perhaps none: those that a source told together are read
        together. At most TOGETHER at once. `served` by scheme.

        `turn` is another for each time that has succeeded: what is tried `again` after an error is not stored twice."""
        told = [(self.redact(change), served.get(change.ref.scheme, "")) for change in changes]
        stored = await self._record(told, turn=turn, again=again)
        self._untrimmed += len(stored.numbers)
        return stored

    async def late(self) -> float | None:
        """Stores what was behind, and stayed it. The seconds until there may be more of it; None: there is nothing."""
        now = self._monotonic()
        due = [one for one in dict.fromkeys(self._late.values()) if one.due <= now]
        if due:
            await self._record([(one.change, one.served) for one in due], last=True)
            self._late = {key: one for key, one in self._late.items() if one not in due}
        return min((one.due - now for one in self._late.values()), default=None)

    async def _record(
        self, changes: Sequence[tuple[Change, str]], *, turn: int | None = None, again: bool = False, last: bool = False
    ) -> Stored:
        store, mine, news = await self._store(), f"{_STORED}{self._me}", list[bytes]()
        late = dict(self._late)
        async with store.transaction() as within:
            if again:
                before, _, count = (await within.keys.get(mine) or b"0 0").partition(b" ")
                if int(before) == turn:  # the answer was lost, and not what it was about
                    return Stored(int(count), ())
            if turn is not None:
                await within.keys.set(mine, b"%d %d" % (turn, len(changes)), expires=self._age)
            for change, served in changes:
                known = await self._knowing.facts(within.keys, change, served)
                for part, facts, standing in self._knowing.parted(change, known, last=last):
                    if not last:
                        self._wait(late, facts, _Late(part, served, self._monotonic() + WAITS), standing == "behind")
                    if standing == "news":
                        await self._knowing.learn(within.keys, facts)
                        news.append(written(part, served))
            numbers = await within.journal.append(*news) if news else ()
        if not last:
            self._late = late
        if numbers:
            self.stored()
        return Stored(len(changes), numbers)

    @staticmethod
    def _wait(late: dict[str, _Late], facts: Sequence[Fact], one: _Late, waits: bool) -> None:
        """What was seen here of an address is the latest of it."""
        before = {late.get(fact.key) for fact in facts}
        for key in [key for key, other in late.items() if other in before]:
            del late[key]
        if waits:
            late.update(dict.fromkeys((fact.key for fact in facts), one))

    # -- reading

    async def since(self, number: int, served: Mapping[str, str] = _UNNAMED, *, most: int = PAGE) -> Part | None:
        """What comes after `number` of sources that are served so, oldest first, about `most` of it; None if that is
        further back than is kept, was never reached, or if there is one among them that cannot be read."""
        journal = (await self._store()).journal
        if not 0 <= number <= (await journal.span()).last:
            return None
        found: list[Change] = []
        last, more = number, True
        while more and len(found) < most:
            records = await journal.read(last, limit=PAGE)
            for record in records:
                if (one := kept(record)) is None:
                    logger.warning("A change in the journal cannot be read: who asks for what was then is told a gap")
                    return None
                if (change := one.told(served)) is not None:
                    found.append(change)
            more, last = len(records) == PAGE, records[-1].number if records else last
        # Looked at last: what was dropped meanwhile may be missing from what was read.
        return None if number < (await journal.span()).after else Part(found, last, more)

    async def latest(self, number: int, served: Mapping[str, str], *, most: int) -> Sequence[Change]:
        """The last `most` of them, oldest first, as far as they are kept and can be read."""
        found: deque[Change] = deque(maxlen=most)
        last = max(number, (await (await self._store()).journal.span()).after)
        while records := await self.records(last):
            there = (one for record in records if (one := kept(record)) is not None)
            found.extend(change for one in there if (change := one.told(served)) is not None)
            last = records[-1].number
        return [*found]

    async def last(self) -> int:
        """No record that can be read now has a greater number."""
        return (await (await self._store()).journal.span()).last

    async def records(self, after: int) -> Sequence[Record]:
        """A PAGE of them, as they rest."""
        return await (await self._store()).journal.read(after, limit=PAGE)

    async def mark(self) -> int:
        """The number with which a reader of everything so far goes on. It tells the time, and nothing of changes. Those
        who ask while one is being made share the next: each is stored."""
        if self._next_mark is None:
            self._next_mark = asyncio.ensure_future(self._mark(self._marking))
        return await asyncio.shield(self._next_mark)

    async def _mark(self, before: asyncio.Future[int] | None) -> int:
        if before is not None:
            await asyncio.wait((before,))
        self._marking, self._next_mark = self._next_mark, None
        return await (await self._store()).journal.mark()

    async def line(self) -> str:
        """A word for the line of numbers: another store, or one that was made anew, has another."""
        keys, word = (await self._store()).keys, os.urandom(8).hex().encode()
        while (known := await keys.get(_LINE)) is None:
            await keys.compare_and_set(_LINE, None, word)
        return known.decode("ascii", "replace")

    # -- what is kept

    async def tidy(self) -> None:
        """Drops what is too old or too much, if enough has come or enough time has passed."""
        now = self._monotonic()
        if self._untrimmed >= TRIMMED or self._tidied is None or now - self._tidied >= min(TIDIED, self._age / 10):
            await self.trim()

    async def trim(self) -> None:
        """The age goes by the clock of the store, which gave the numbers."""
        journal = (await self._store()).journal
        await journal.trim(keep=self._keep, upto=max(0, await journal.mark() - int(self._age * 1_000_000)))
        self._untrimmed, self._tidied = 0, self._monotonic()

    # -- what is known

    async def begun(self, scheme: str, served: str = "") -> Begun | None:
        """None before it was ever compared."""
        value = await (await self._store()).keys.get(place(_BEGUN, scheme, served))
        return None if value is None else _BEGINNING.decode(value)

    async def covers(self, number: int, scheme: str, serving: Serving = AS_EVER) -> bool:
        """Whether everything after the number will be there when it is compared again."""
        begun = await self.begun(scheme, serving.history)
        return begun is not None and begun.reach == serving.reach and begun.first <= number

    async def begin(self, scheme: str, number: int, serving: Serving = AS_EVER, *, surely: bool = True) -> int:
        """It is compared. Where it was before the number of then holds; unless what was found may have been there all
        the time and was not reached."""
        keys, at = (await self._store()).keys, place(_BEGUN, scheme, serving.history)
        while True:
            value = await keys.get(at)
            before = None if value is None else _BEGINNING.decode(value)
            holds = before is not None and (surely or before.reach == serving.reach)
            first = before.first if before is not None and holds else number
            if await keys.compare_and_set(at, value, _ENCODER.encode(Begun(first, number, serving.reach))):
                return first

    async def give_up(self, scheme: str, served: str = "") -> None:
        """It is not compared any more."""
        await (await self._store()).keys.delete(place(_BEGUN, scheme, served))

    async def forget_unserved(self) -> None:
        """Of sources that nobody has served so for long nothing is known any more."""
        keys, oldest = (await self._store()).keys, await self.mark() - int((self._age + _FORGOTTEN) * 1_000_000)
        for at, value in await keys.scan(_BEGUN, limit=PAGE):
            if _BEGINNING.decode(value).latest < oldest and await keys.compare_and_set(at, value, None):
                below = KNOWN + at.removeprefix(_BEGUN) + "/"
                while pairs := await keys.scan(below, limit=PAGE):
                    for key, _ in pairs:
                        await keys.delete(key)

    async def known(self, scheme: str, served: str = "") -> AsyncIterator[tuple[str, Seen]]:
        """What there is of a source, as far as it was told, by the keys of its entries."""
        keys, prefix = (await self._store()).keys, place(KNOWN, scheme, served) + "/"
        after = ""
        while True:
            pairs = await keys.scan(prefix, after=after, limit=PAGE)
            for key, value in pairs:
                if (known := seen(value)) is not None:
                    yield key, known
            if len(pairs) < PAGE:
                return
            after = pairs[-1].key

    async def settle(
        self, differences: Sequence[Difference], *, at: float, told: bool, served: str = "", refuses: Refuses
    ) -> None:
        """What is there is known from now on, and `told` as a change. What somebody has told of an address meanwhile
        is newer than the difference, and what the source `refuses` by its name is not gone."""
        store, knowing = await self._store(), self._knowing
        async with store.transaction() as within:
            found = [await knowing.settle(within.keys, one, at, refuses, self.redact, told=told) for one in differences]
            news = [written(change, served) for change in found if change is not None]
            if told and news:
                await within.journal.append(*news)
        if told and news:
            self._untrimmed += len(news)
            self.stored()


def _nothing() -> None:
    """Nobody is told."""
