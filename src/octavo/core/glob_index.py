"""Which of very many patterns match an address, without a look at each of them.

An exact pattern is found by its address. Any other is found by its scheme, its fixed beginning, and the texts with
which the first name that is not fixed must begin and end (behind `**`: the last name). So ten thousand patterns cost
what those cost that could match, also where they share a folder. Equal patterns are looked at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from octavo.core.glob import ANY_DEPTH, Glob, Part
from octavo.core.ref import Ref

T = TypeVar("T")

# Which name a pattern says something of, behind its fixed beginning.
_NONE, _NEXT, _LAST = 0, 1, 2

_Shape: TypeAlias = tuple[tuple[Part, ...], bool, bool]  # what makes patterns of one scheme equal
_Address: TypeAlias = tuple[str, tuple[str, ...], bool]


class _Way(NamedTuple):
    """How far a pattern is fixed: names at its beginning, and characters of one name."""

    names: int
    which: int
    head: int
    tail: int


class _Place(NamedTuple):
    scheme: str
    names: tuple[str, ...]
    which: int
    head: str
    tail: str

    @property
    def way(self) -> _Way:
        return _Way(len(self.names), self.which, len(self.head), len(self.tail))


class GlobIndex(Generic[T]):
    """Values by patterns; one value may stand under several. A pattern that matches nothing is not kept."""

    def __init__(self) -> None:
        self._exact: dict[_Address, dict[T, None]] = {}
        self._places: dict[_Place, dict[_Shape, tuple[Glob, dict[T, None]]]] = {}
        self._ways: dict[str, Counter[_Way]] = {}  # places by scheme and way

    def __bool__(self) -> bool:
        return bool(self._exact or self._places)

    def add(self, glob: Glob, value: T) -> None:
        if glob.asks:
            return
        if glob.exact:
            self._exact.setdefault(_address(glob.literal), {})[value] = None
            return
        place = _place(glob)
        alike = self._places.get(place)
        if alike is None:
            alike = self._places[place] = {}
            self._ways.setdefault(place.scheme, Counter())[place.way] += 1
        alike.setdefault(_shape(glob), (glob, {}))[1][value] = None

    def discard(self, glob: Glob, value: T) -> None:
        """Without effect where it is not there."""
        if glob.exact:
            address = _address(glob.literal)
            if (at := self._exact.get(address)) is not None:
                at.pop(value, None)
                if not at:
                    del self._exact[address]
            return
        place, shape = _place(glob), _shape(glob)
        alike = self._places.get(place, {})
        if shape not in alike:
            return
        values = alike[shape][1]
        values.pop(value, None)
        if not values:
            del alike[shape]
        if not alike:
            del self._places[place]
            ways = self._ways[place.scheme]
            ways[place.way] -= 1
            if not ways[place.way]:
                del ways[place.way]
            if not ways:
                del self._ways[place.scheme]

    def exactly(self, ref: Ref) -> Iterator[T]:
        """The values whose exact pattern matches the address."""
        yield from self._exact.get(_address(ref), ())
        if ref.absolute and not ref.segments:  # `file://` means `file:///` too
            yield from self._exact.get((ref.scheme, (), False), ())

    def matching(self, refs: Iterable[Ref]) -> Iterator[T]:
        """The values under patterns that match one of the addresses; one that stands under several may come again."""
        for ref in dict.fromkeys(refs):
            yield from self.exactly(ref)
            for glob, values in self._near(ref):
                if glob.matches(ref):
                    yield from values

    def _near(self, ref: Ref) -> Iterator[tuple[Glob, dict[T, None]]]:
        names = ref.segments
        for scheme in (ref.scheme, "*"):
            for fixed, which, head, tail in self._ways.get(scheme, ()):
                if which == _NONE:
                    if fixed > len(names):
                        continue
                    place = _Place(scheme, names[:fixed], which, "", "")
                else:
                    if fixed >= len(names):
                        continue
                    name = names[fixed] if which == _NEXT else names[-1]
                    place = _Place(scheme, names[:fixed], which, name[:head], name[len(name) - tail :] if tail else "")
                yield from self._places.get(place, {}).values()


def _address(ref: Ref) -> _Address:
    return ref.scheme, ref.segments, ref.absolute


def _shape(glob: Glob) -> _Shape:
    return glob.parts, glob.subtree, glob.absolute


def _place(glob: Glob) -> _Place:
    names = glob.literal.segments
    rest = glob.parts[len(names) :]
    if rest and rest[0] != ANY_DEPTH:
        return _Place(glob.scheme, names, _NEXT, rest[0][0], rest[0][-1])
    if rest and rest[-1] != ANY_DEPTH and not glob.subtree:
        return _Place(glob.scheme, names, _LAST, rest[-1][0], rest[-1][-1] if len(rest[-1]) > 1 else "")
    return _Place(glob.scheme, names, _NONE, "", "")
