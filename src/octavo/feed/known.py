"""What was last told of every address, beside the journal: so that several processes tell a change once, and what
changed while nobody watched can be found.

Processes that see the same are not equally quick, and one may see as two changes what is one for another. So what was
told lately of an address is known as well, by whom and of which version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from octavo.core.memo import Memo
from octavo.core.ports.stores import KeyValue
from octavo.core.ref import Ref
from octavo.core.values import Change, ChangeKind, Entry
from octavo.feed.records import resting

KNOWN: Final = "feed/known/"
LATELY: Final = 10.0  # seconds: more than one process needs to see what another has seen
KEPT: Final = 8  # of what was told lately
UNTOLD: Final = "-"
_SEEN: Final = 4_096  # addresses
_TICK: Final = 1e-6  # seconds


class Serving(NamedTuple):
    """How a source is served. Under another `history` it is another source, of which nothing is known: it has other
    folders, or spells addresses otherwise. `reach` is another digest where it refuses other names."""

    history: str = ""
    reach: str = ""


AS_EVER: Final = Serving()

# What a change is beside what is known: told by another process, news, or behind what another has told since.
Standing: TypeAlias = Literal["told", "news", "behind"]
# Whether by its name alone a source does not serve what it may have served before.
Refuses: TypeAlias = Callable[[Ref, Entry | None], bool]


class _Told(msgspec.Struct, frozen=True, array_like=True):
    by: str  # which process; "" for a comparison that told it, UNTOLD for one that only found it
    version: str | None  # None: it was gone
    at: float


class _Known(msgspec.Struct, frozen=True):
    told: tuple[_Told, ...]  # the latest is the last
    ref: Ref
    entry: Entry | None

    @property
    def last(self) -> _Told:
        return self.told[-1]


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
_DECODER: Final = msgspec.json.Decoder(_Known)


class Fact(NamedTuple):
    """An address that a change is about, what is there after it, and what was known of it before."""

    key: str
    ref: Ref
    entry: Entry | None
    known: _Known | None


class Knowing:
    """`me` is this process. What is gone is known for `age` seconds: for as long as somebody may still tell it."""

    def __init__(self, me: str, *, age: float, wall: Callable[[], float]) -> None:
        self._me, self._age, self._wall = me, age, wall
        self._at = 0.0  # of what was told last
        self._seen: Memo[str, float] = Memo(_SEEN)  # of what another has told: when, of the latest that was seen here

    async def facts(self, keys: KeyValue, change: Change, served: str) -> list[Fact]:
        return [Fact(key, ref, entry, await _known(keys, key)) for key, ref, entry in _facts(change, served)]

    def parted(
        self, change: Change, facts: Sequence[Fact], *, last: bool
    ) -> list[tuple[Change, Sequence[Fact], Standing]]:
        """How it stands, or each half of it where they stand otherwise: of a thing that was moved another process may
        have told that it is gone, and not yet where it is. `last`: what another has told before the latest does not
        count."""
        stands = [self._standing(fact, last=last) for fact in facts]
        if len({*stands}) == 1:
            return [(change, facts, stands[0])]
        gone = replace(change, kind="deleted", ref=facts[0].ref, source=None, new=None)
        came = replace(change, kind="created", source=None, old=None)
        return [(half, (fact,), stand) for half, fact, stand in zip((gone, came), facts, stands, strict=True)]

    async def learn(self, keys: KeyValue, facts: Iterable[Fact]) -> None:
        for fact in facts:
            await self._know(keys, fact, self._me)

    async def settle(
        self,
        keys: KeyValue,
        one: Difference,
        at: float,
        refuses: Refuses,
        redact: Callable[[Change], Change],
        *,
        told: bool,
    ) -> Change | None:
        """What is there is known from then on, and `told` or only found. None where something else is known by now, or
        where what is gone only has a name that is not served now."""
        value = await keys.get(one.key)
        known = None if value is None else _DECODER.decode(value)
        before = None if known is None or known.last.version is None else known
        if (None if before is None or value is None else _digest(value)) != (one.known and one.known.value):
            return None
        if before is not None and one.entry is None and refuses(before.ref, before.entry):
            return None
        ref = one.ref or (None if before is None else before.ref)
        if ref is None:
            return None
        old = None if before is None else before.entry
        kind: ChangeKind = "deleted" if one.entry is None else "created" if before is None else "updated"
        change = redact(Change(kind=kind, ref=ref, at=at, old=old, new=one.entry))
        await self._know(keys, Fact(one.key, ref, change.new, known), "" if told else UNTOLD)
        return change

    def _standing(self, fact: Fact, *, last: bool) -> Standing:
        known, version = fact.known, None if fact.entry is None else fact.entry.version
        if known is None or version == "":  # without versions nobody can say
            return "news"
        if known.last.version == version:
            if known.last.by in (self._me, UNTOLD):  # what came about while it was listed for the first time is news
                return "news"
            self._seen.keep(fact.key, known.last.at)
            return "told"
        newest = max(self._wall() - LATELY, self._seen.get(fact.key) or self._seen.again(fact.key) or 0.0)
        for one in () if last else reversed(known.told):
            if one.by == self._me or one.at <= newest:
                break
            if one.version == version:
                self._seen.keep(fact.key, one.at)
                return "behind"
        return "news"

    async def _know(self, keys: KeyValue, fact: Fact, by: str) -> None:
        entry = fact.entry
        now = self._at = max(self._wall(), self._at + _TICK)  # so that of two the later one is known
        before = () if fact.known is None else fact.known.told[1 - KEPT :]
        told = _Told(by, None if entry is None else entry.version, now)
        known = _Known((*(one for one in before if one.at > now - LATELY), told), fact.ref, resting(entry))
        await keys.set(fact.key, _ENCODER.encode(known), expires=self._age if entry is None else None)


async def _known(keys: KeyValue, key: str) -> _Known | None:
    value = await keys.get(key)
    return None if value is None else _DECODER.decode(value)


def seen(value: bytes) -> Seen | None:
    """None for what is gone."""
    version = _DECODER.decode(value).last.version
    return None if version is None else Seen(version, _digest(value))


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


def place(what: str, scheme: str, served: str) -> str:
    return f"{what}{scheme}/{served}"


def key_of(ref: Ref, entry: Entry | None, served: str = "") -> str:
    """By a digest: addresses may be longer than keys. As lists give it, or two roots would share an address."""
    shown = ref if entry is None else entry.ref
    digest = hashlib.blake2b(repr(tuple(shown)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{place(KNOWN, ref.scheme, served)}/{digest}"


def _digest(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=16).digest()
