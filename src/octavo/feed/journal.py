"""The changes of all sources in the journal of a store, for readers who go on by number: after a reload, after a
restart, from another process on the same state.

A change is stored once, whoever of several processes sees it first: the transaction that stores it also stores what is
known of its address from then on, and what another process has stored already is left out. Nothing is ever left out of
what one process sees by itself: a source may tell of an address twice without another version. So a change is repeated
at most, and never lost: one that was not stored because the process was killed leaves what is known as it was.

What is known of everything that is there rests beside the journal, so that what changed while nobody watched can be
found (`reconcile`). Entries rest redacted, with their metadata and targets: what the policy has to know of a thing that
is gone.

`served` names how a source is served: its folders, what it hides. Several processes on one state may serve other things
under one scheme, and a source may be served otherwise after a restart: what is stored under one name is never told
under another.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from octavo.core.ports.stores import KeyValue, Opens, Record
from octavo.core.ref import Ref
from octavo.core.values import Change, ChangeKind, Entry

logger = logging.getLogger(__name__)

PAGE: Final = 1_000  # records that are read, or changes that are stored, at once
TRIMMED: Final = 1_000  # changes until what is too old or too much is dropped
_KNOWN: Final = "feed/known/"
_BEGUN: Final = "feed/begun/"
_CHANGE: Final = "change"


class _Kind(msgspec.Struct, frozen=True):
    """Of a record: the journal is for others too."""

    type: str


class _Kept(msgspec.Struct, frozen=True, tag=_CHANGE):
    change: Change
    served: str = ""


class _Known(msgspec.Struct, frozen=True):
    """What was last told of an address: by whom, or by a comparison, and its version; None is gone."""

    by: str
    version: str | None
    ref: Ref
    entry: Entry | None


class Begun(msgspec.Struct, frozen=True):
    """The numbers of the first comparison of a source, and of the latest."""

    first: int
    latest: int


class Seen(NamedTuple):
    """What was known of an address when it was looked at."""

    version: str
    value: bytes  # its digest: what is known by now is the same or something else


class Difference(NamedTuple):
    """Between what is known of an address and what is there. `entry` is what is there."""

    key: str
    known: Seen | None
    ref: Ref | None
    entry: Entry | None


_ENCODER: Final = msgspec.json.Encoder()
_KIND: Final = msgspec.json.Decoder(_Kind)
_KEPT: Final = msgspec.json.Decoder(_Kept)
_KNOWING: Final = msgspec.json.Decoder(_Known)
_BEGINNING: Final = msgspec.json.Decoder(Begun)
_FORGOTTEN: Final = 30 * 86_400.0  # seconds beyond the age of changes, after which a source nobody serves is forgotten
_AS_EVER: Final[Mapping[str, str]] = {}


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
    ) -> None:
        self.redact = redact
        self._store, self._keep, self._age = store, keep, age
        self._me = os.urandom(8).hex()
        self._untrimmed = TRIMMED  # the first that is stored trims what an earlier process left

    async def record(self, changes: Sequence[Change], served: Mapping[str, str] = _AS_EVER) -> Sequence[int]:
        """In this order, all of them or, when this raises, perhaps none: those that a source told together are read
        together. At most PAGE at once. The numbers of those that no other process had stored. `served` by scheme."""
        store, redacted = await self._store(), [*map(self.redact, changes)]
        async with store.transaction() as within:
            news = [
                _written(change, how)
                for change in redacted
                if await self._is_news(within.keys, change, how := served.get(change.ref.scheme, ""))
            ]
            numbers = await within.journal.append(*news) if news else ()
        self._untrimmed += len(news)
        if self._untrimmed >= TRIMMED:
            await self.trim()
        return numbers

    async def since(self, number: int, served: Mapping[str, str] = _AS_EVER) -> list[Change] | None:
        """Everything after `number` of sources that are served so, oldest first; None if that is further back than is
        kept, was never reached, or if there is one among them that cannot be read."""
        journal = (await self._store()).journal
        if not 0 <= number <= (await journal.span()).last:
            return None
        found: list[Change] = []
        last = number
        while True:
            records = await journal.read(last, limit=PAGE)
            try:
                found += _read(records, served)
            except ValueError:  # damaged, or of a version that writes otherwise
                logger.warning("A change in the journal cannot be read: whoever asks for what was then is told a gap")
                return None
            if len(records) < PAGE:
                break
            last = records[-1].number
        # Looked at last: what was dropped meanwhile may be missing from what was read.
        return None if number < (await journal.span()).after else found

    async def mark(self) -> int:
        """The number with which a reader of everything so far goes on. It tells the time, and nothing of changes."""
        return await (await self._store()).journal.mark()

    async def trim(self) -> None:
        """The age goes by the clock of the store, which gave the numbers."""
        journal = (await self._store()).journal
        await journal.trim(keep=self._keep, upto=max(0, await journal.mark() - int(self._age * 1_000_000)))
        self._untrimmed = 0

    # -- what is known

    async def begun(self, scheme: str, served: str = "") -> int | None:
        """The number from which on every change of a source is here, once it is compared; None before it was ever
        compared. What changed while nobody watched is among them once it is compared again."""
        value = await (await self._store()).keys.get(_place(_BEGUN, scheme, served))
        return None if value is None else _BEGINNING.decode(value).first

    async def covers(self, number: int, scheme: str, served: str = "") -> bool:
        begun = await self.begun(scheme, served)
        return begun is not None and begun <= number

    async def begin(self, scheme: str, number: int, served: str = "") -> None:
        """It is compared. Where it was before, the number of the first time holds."""
        keys, place = (await self._store()).keys, _place(_BEGUN, scheme, served)
        while True:
            value = await keys.get(place)
            begun = Begun(number, number) if value is None else Begun(_BEGINNING.decode(value).first, number)
            if await keys.compare_and_set(place, value, _ENCODER.encode(begun)):
                return

    async def give_up(self, scheme: str, served: str = "") -> None:
        """It is not compared any more."""
        await (await self._store()).keys.delete(_place(_BEGUN, scheme, served))

    async def forget_unserved(self) -> None:
        """Of sources that nobody has served so for long nothing is known any more."""
        keys, oldest = (await self._store()).keys, await self.mark() - int((self._age + _FORGOTTEN) * 1_000_000)
        for place, value in await keys.scan(_BEGUN, limit=PAGE):
            if _BEGINNING.decode(value).latest < oldest and await keys.compare_and_set(place, value, None):
                below = _KNOWN + place.removeprefix(_BEGUN) + "/"
                while pairs := await keys.scan(below, limit=PAGE):
                    for key, _ in pairs:
                        await keys.delete(key)

    async def known(self, scheme: str, served: str = "") -> dict[str, Seen]:
        """What there is of a source, as far as it was told, by the keys of its entries."""
        keys, prefix = (await self._store()).keys, _place(_KNOWN, scheme, served) + "/"
        found: dict[str, Seen] = {}
        after = ""
        while True:
            pairs = await keys.scan(prefix, after=after, limit=PAGE)
            for key, value in pairs:
                version = _KNOWING.decode(value).version
                if version is not None:
                    found[key] = Seen(version, _digest(value))
            if len(pairs) < PAGE:
                return found
            after = pairs[-1].key

    async def settle(self, differences: Sequence[Difference], *, at: float, told: bool, served: str = "") -> None:
        """What is there is known from now on, and `told` as a change. What somebody has told of an address meanwhile
        is newer than the difference."""
        store = await self._store()
        async with store.transaction() as within:
            news = [change for one in differences if (change := await self._settled(within.keys, one, at)) is not None]
            if told and news:
                await within.journal.append(*(_written(change, served) for change in news))
        self._untrimmed += len(news) if told else 0

    async def _settled(self, keys: KeyValue, one: Difference, at: float) -> Change | None:
        value = await keys.get(one.key)
        known = None if value is None else _KNOWING.decode(value)
        before = None if known is None or known.version is None else known
        if (None if before is None or value is None else _digest(value)) != (one.known and one.known.value):
            return None
        ref = one.ref or (None if before is None else before.ref)
        if ref is None:
            return None
        old = None if before is None else before.entry
        kind: ChangeKind = "deleted" if one.entry is None else "created" if before is None else "updated"
        change = self.redact(Change(kind=kind, ref=ref, at=at, old=old, new=one.entry))
        await self._know(keys, one.key, "", ref, change.new)
        return change

    async def _know(self, keys: KeyValue, key: str, by: str, ref: Ref, entry: Entry | None) -> None:
        """That something is gone is known only for as long as somebody may still tell it."""
        value = _Known(by, None if entry is None else entry.version, ref, _resting(entry))
        await keys.set(key, _ENCODER.encode(value), expires=self._age if entry is None else None)

    async def _is_news(self, keys: KeyValue, change: Change, served: str) -> bool:
        """Whether no other process has stored it. From then on it is what is known."""
        facts = [*_facts(change, served)]
        if all([await self._is_told(keys, key, entry) for key, _, entry in facts]):
            return False
        for key, ref, entry in facts:
            await self._know(keys, key, self._me, ref, entry)
        return True

    async def _is_told(self, keys: KeyValue, key: str, entry: Entry | None) -> bool:
        value = await keys.get(key)
        if value is None or (entry is not None and not entry.version):  # without versions nobody can say
            return False
        known = _KNOWING.decode(value)
        return known.by != self._me and known.version == (None if entry is None else entry.version)


def _facts(change: Change, served: str) -> Iterator[tuple[str, Ref, Entry | None]]:
    """The addresses that it is about, and what is there after it."""
    if change.kind == "deleted":
        yield key_of(change.ref, change.old, served), change.ref, None
        return
    if change.source is not None:
        yield key_of(change.source, change.old, served), change.source, None
    elif change.old is not None and change.new is not None and change.old.ref not in (change.new.ref, *change.unmoved):
        yield key_of(change.ref, change.old, served), change.ref, None  # the address means what another root has there
    entry = change.new or Entry(ref=change.ref, name=change.ref.name)
    yield key_of(change.ref, entry, served), change.ref, entry


def _place(what: str, scheme: str, served: str) -> str:
    return f"{what}{scheme}/{served}"


def key_of(ref: Ref, entry: Entry | None, served: str = "") -> str:
    """By a digest: addresses may be longer than keys. As lists give it, or two roots would share an address."""
    shown = ref if entry is None else entry.ref
    digest = hashlib.blake2b(repr(tuple(shown)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{_place(_KNOWN, ref.scheme, served)}/{digest}"


def _digest(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=16).digest()


def _written(change: Change, served: str) -> bytes:
    return _ENCODER.encode(_Kept(replace(change, old=_resting(change.old), new=_resting(change.new)), served))


def _resting(entry: Entry | None) -> Entry | None:
    if entry is None:
        return None
    texts = {name: _plain(getattr(entry, name)) for name in ("name", "title", "description")}
    return replace(entry, **texts, metadata=_plain(entry.metadata), annotations=_plain(entry.annotations))


def _plain(value: Any) -> Any:
    """As JSON, in which every value still reads as the word that the rules of the policy compare."""
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in cast("Iterable[Any]", value)]
    exact = isinstance(value, bool) or (isinstance(value, int) and value.bit_length() < 64)
    if value is None or exact or (isinstance(value, float) and isfinite(value)):
        return value
    return str(value).encode("utf-8", "replace").decode("utf-8")


def _read(records: Iterable[Record], served: Mapping[str, str]) -> list[Change]:
    """Those that are changes. Raises ValueError for what cannot be read: of that nobody knows what it was."""
    kept = [
        (record.number, _KEPT.decode(record.body)) for record in records if _KIND.decode(record.body).type == _CHANGE
    ]
    return [
        replace(one.change, seq=number) for number, one in kept if one.served == served.get(one.change.ref.scheme, "")
    ]
