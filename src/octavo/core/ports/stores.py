"""The interfaces of stored state: key-value, journal, bus and lease.

A *store* has all four and is the truth: what it said is stored is stored. What is *shared* has no journal and no
transactions, and may be emptied at any moment: whoever reads it goes on without.

What holds for every port, checked clause by clause by `octavo.testing.StoreSuite`:

1. Only OctavoErrors leave. A store that cannot be reached, does not answer in time or answers what cannot be used is
   SourceUnavailable; keys, values and numbers outside the bounds are InvalidParams.
2. No call waits for ever: each has a limit, whatever the service behind it does.
3. A change that ended with an error may have been made, unless the error is InvalidParams: its answer was lost, not
   the change. Whoever tries it again makes it twice, or looks first.
4. Safe under concurrent calls, in one process and in several on one state, and under cancellation: a call that is
   cancelled is made or not made, never half.
5. Secrets in the address of a service never show in repr, errors or logs.
6. State of a newer layout is refused with a sentence and left as it is.

Keys and names are text of 1 to 2,048 bytes of UTF-8 without NUL. Ends are measured by the wall clock of the store,
which is one for all that use it: a clock that is set forward ends things early.

Not ports are the audit ledger and the index of the search: they stay files of this machine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, Protocol, TypeAlias

from octavo.core.sizes import MIB

LONGEST_KEY: Final = 2_048  # bytes
LARGEST_VALUE: Final = 16 * MIB
LARGEST_HINT: Final = 2_048
LARGEST_COUNT: Final = 2**53 - 1  # that every store counts exactly
LONGEST_LIFE: Final = 10 * 366 * 86_400.0  # seconds until an end
MOST: Final = 10_000  # records or pairs of one answer
LOST: Final = "store/lost"  # a key: when this store was begun in the place of one that was lost, in seconds since 1970
STORE_FILE: Final = "store.db"  # of a store that is one file of the state folder


class Pair(NamedTuple):
    key: str
    value: bytes


class Counted(NamedTuple):
    """What a window holds, and the seconds until it ends."""

    total: int
    remaining: float


class KeyValue(Protocol):
    """Small values by name. What has ended is as absent as what was never set, whether or not it was cleared away."""

    async def get(self, key: str) -> bytes | None: ...

    async def set(self, key: str, value: bytes, *, expires: float | None = None) -> None:
        """Sets it, whatever was there, with an end `expires` seconds from now or none: an earlier end is gone."""
        ...

    async def compare_and_set(
        self, key: str, expected: bytes | None, value: bytes | None, *, expires: float | None = None
    ) -> bool:
        """Sets it, or with None deletes it, if and only if it is what was expected, where None is absent. Of several
        that expect the same and set something else, one succeeds."""
        ...

    async def increment(self, key: str, by: int = 1, *, window: float) -> Counted:
        """Adds to a whole number. The first of a window begins it, at zero; `window` seconds later it is absent, and
        the next begins another. Later calls never move the end. `get` gives the number as decimal digits.

        Raises Conflict for a value that is no such number, and where the sum would be beyond LARGEST_COUNT."""
        ...

    async def delete(self, key: str) -> bool:
        """Whether it was there."""
        ...

    async def scan(self, prefix: str, *, after: str = "", limit: int = 1_000) -> Sequence[Pair]:
        """What begins with the prefix, in byte order, behind the key `after`: the key of the last pair goes on. What
        is there all the time is given exactly once, whatever else comes and goes between two calls. Fewer than
        `limit` pairs are the last ones."""
        ...


class Record(NamedTuple):
    number: int
    body: bytes


class Span(NamedTuple):
    """Every record with a number above `after` is kept, and none has a number above `last`. A reader who goes on from
    a number below `after` has missed something, or comes from another journal: a new one begins with the time at which
    it was made."""

    after: int
    last: int


class Journal(Protocol):
    """One line of records for the whole store, in the order of their numbers.

    A number is a time in microseconds, strictly greater than every one given before, by whatever process, also when
    the clock was set back. From one to the next it is an uneven step, also within one call: numbers do not tell how
    many records lie between two of them. So they may run a little ahead of the clock where many are given at once. It
    is given inside the transaction that stores the record, under one lock that is held
    until the commit: whoever sees number n sees every smaller one that there will ever be. So a reader that goes on
    from the last number it saw misses nothing.
    """

    async def append(self, *bodies: bytes) -> Sequence[int]:
        """Their numbers, in order. All are stored, or none."""
        ...

    async def read(self, after: int, *, limit: int = 1_000) -> Sequence[Record]:
        """Those with numbers above `after`, the smallest first. Any whole number may be asked for."""
        ...

    async def mark(self) -> int:
        """A number as `append` would give it, for no record: not below any that can be read now, and below any that
        is to come. It tells the time, and nothing about records that its reader may not know of."""
        ...

    async def trim(self, *, keep: int, upto: int = 0) -> int:
        """Drops the oldest until at most `keep` are left and none has a number of `upto` or below; how many."""
        ...

    async def span(self) -> Span: ...


class Hint(NamedTuple):
    """`body` is empty where the store itself says: look again, hints may have been lost."""

    topic: str
    body: bytes


class Bus(Protocol):
    """Wakes those who would else look again later. A hint may be lost, may come twice and may come before what it is
    about can be seen: whoever listens looks, and looks now and then without one."""

    async def publish(self, topic: str, body: bytes = b"") -> None:
        """Tells whoever listens, in whatever process. At most LARGEST_HINT bytes."""
        ...

    def listen(self, *topics: str) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        """Hints of these topics, from when the block is entered. A listener that does not read holds nobody up: it
        loses its oldest hints. The iterator goes on when the service was away, and then gives an empty hint of each
        topic."""
        ...


class Held(NamedTuple):
    """A lease that was acquired. `fence` is greater than that of every earlier holder of the name, so that whatever
    remembers the greatest it has seen can refuse those who lost theirs without noticing."""

    name: str
    fence: int


class Lease(Protocol):
    """One holder of a name at a time. Who holds it is known by the fencing number alone: the same process that asks
    twice is refused."""

    async def acquire(self, name: str, *, ttl: float) -> Held | None:
        """None while somebody holds it. It ends `ttl` seconds from now, unless it is renewed."""
        ...

    async def renew(self, held: Held, *, ttl: float) -> bool:
        """From now on `ttl` seconds. False when it had ended or was released: it is never taken up again."""
        ...

    async def release(self, held: Held) -> None:
        """Nothing happens to a lease that somebody else holds by now."""
        ...

    async def holds(self, held: Held) -> bool:
        """Inside a transaction it stays so until the commit: what else the transaction stores is stored by the
        holder, or not at all."""
        ...


class Transaction(Protocol):
    """What it stores is seen by its own calls at once, and by others all together, when the block ends."""

    @property
    def keys(self) -> KeyValue: ...
    @property
    def journal(self) -> Journal: ...
    @property
    def leases(self) -> Lease: ...


class Shared(Protocol):
    """May be emptied at any moment. An async context manager: opened once, closed once."""

    @property
    def keys(self) -> KeyValue: ...
    @property
    def bus(self) -> Bus: ...
    @property
    def leases(self) -> Lease:
        """Of a shared store two may hold one, when it was emptied: that must cost work and nothing else. Fencing
        numbers grow all the same."""
        ...


class Store(Shared, Protocol):
    """The truth."""

    @property
    def journal(self) -> Journal: ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Whatever is done through what the block is given is stored together when it ends, or not at all when it is
        left by an error or cancelled. Transactions and single changes of a store happen as if one after the other,
        so nothing that was read inside can have changed before the commit. So keep it short: others wait, and it is
        given up with SourceUnavailable after a limit. It is used by one task, and not within another."""
        ...


class Row(NamedTuple):
    """A pair as it stands in the store. Its end is in microseconds since 1970, by the clock of the store: also one that
    has passed, and was not cleared away yet."""

    key: str
    value: bytes
    ends: int | None


class Portion(NamedTuple):
    """A part of what a store keeps. The span of the journal stands in one of them."""

    pairs: Sequence[Row] = ()
    records: Sequence[Record] = ()
    fences: Sequence[Held] = ()  # the greatest of each name, whether or not anybody holds it
    span: Span | None = None


class Moves(Protocol):
    """A store that can be copied whole, into one of another kind."""

    def dump(self) -> AbstractAsyncContextManager[AsyncIterator[Portion]]:
        """All that is kept, as it stands at one moment, whatever is changed meanwhile: pairs in byte order, records by
        their numbers, fences by their names. A portion has at most MOST rows, and LARGEST_VALUE bytes or one value.
        Nobody waits for whoever reads it."""
        ...

    async def load(self, portions: AsyncIterator[Portion]) -> None:
        """All of it in one transaction. Ends stay what they are, nobody holds a lease, and the next numbers and fences
        are greater than all that were loaded.

        Raises Conflict, and changes nothing, where pairs or records are kept already."""
        ...


# Opens the store, if it is not open yet: a server that keeps nothing never waits for it. Raises SourceUnavailable.
Opens: TypeAlias = Callable[[], Awaitable[Store]]
