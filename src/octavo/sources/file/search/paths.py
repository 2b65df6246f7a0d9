"""Many paths as one text: a search is one pass of RE2, not one step of Python a path."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import accumulate

from octavo.sources.file.root import Names
from octavo.text.patterns import Pattern

_FEW_CHANGES = 1024


def key_of(names: Names) -> bytes:
    return "\0".join(names).encode()


def names_of(key: bytes) -> Names:
    return tuple(key.decode().split("\0")) if key else ()


class Paths:
    """Sorted keys, one a line; never changed. Costs the length of the path and five bytes each."""

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        ordered = sorted(keys)
        self._lines = b"".join(key + b"\n" for key in ordered)
        self._begins = array("I", accumulate((len(key) + 1 for key in ordered), initial=0))

    def __len__(self) -> int:
        return len(self._begins) - 1

    def __getitem__(self, number: int) -> bytes:
        return self._lines[self._begins[number] : self._begins[number + 1] - 1]

    def keys(self) -> list[bytes]:
        return self._lines.split(b"\n")[:-1]

    def place(self, key: bytes) -> int:
        """Where the key stands, or would."""
        return bisect_left(range(len(self)), key, key=self.__getitem__)

    def find(self, key: bytes) -> int | None:
        number = self.place(key)
        return number if number < len(self) and self[number] == key else None

    def within(
        self, scope: bytes, begin: bytes, pattern: Pattern | None, numbers: Iterable[int] | None = None
    ) -> Iterator[int]:
        """The numbers of the keys at the scope or below it, not before `begin`, that match."""
        low = self.place(max(scope, begin))
        high = self.place(scope + b"\1") if scope else len(self)
        if numbers is not None:
            return (n for n in numbers if low <= n < high and (pattern is None or pattern.search(self[n])))
        return iter(range(low, high)) if pattern is None else self._matching(pattern, low, high)

    def _matching(self, pattern: Pattern, low: int, high: int) -> Iterator[int]:
        """The numbers of the keys between two numbers in which the pattern is found."""
        at, end = self._begins[low], self._begins[high]
        while at < end and (match := pattern.search(self._lines, at, end)):
            number = bisect_right(self._begins, match.start()) - 1
            if number >= high:
                return
            yield number
            at = self._begins[number + 1]


class Catalog:
    """Paths with what has come and gone since; never changed either, so that a search needs no lock."""

    def __init__(self, base: Paths, come: frozenset[bytes] = frozenset(), gone: frozenset[int] = frozenset()) -> None:
        self.base = base
        self.gone = gone
        self._come = come
        self._recent = Paths(come)

    def __len__(self) -> int:
        return len(self.base) - len(self.gone) + len(self._come)

    def updated(self, come: Iterable[bytes], gone: Iterable[bytes]) -> Catalog:
        now_come, now_gone = set(self._come), set(self.gone)
        for key in gone:
            number = self.base.find(key)
            now_come.discard(key)
            if number is not None:
                now_gone.add(number)
        for key in come:
            number = self.base.find(key)
            if number is None:
                now_come.add(key)
            else:
                now_gone.discard(number)
        return Catalog(self.base, frozenset(now_come), frozenset(now_gone))

    def merged(self) -> Catalog:
        """Itself while few paths have come and gone; else with a new base."""
        if len(self._come) + len(self.gone) <= _FEW_CHANGES + len(self.base) // 16:
            return self
        gone = self.gone
        kept = [key for number, key in enumerate(self.base.keys()) if number not in gone]
        return Catalog(Paths([*kept, *self._come]))

    def keys(
        self, scope: bytes, begin: bytes, pattern: Pattern | None = None, numbers: Iterable[int] | None = None
    ) -> Iterator[bytes]:
        """As `Paths.within`, in order. `numbers`, in order, are those of the base to consider; what has come since
        is always considered."""
        found = self.base.within(scope, begin, pattern, numbers)
        kept = (number for number in found if number not in self.gone) if self.gone else found
        keys = map(self.base.__getitem__, kept)
        if not self._come:
            return keys
        return merge(keys, map(self._recent.__getitem__, self._recent.within(scope, begin, pattern)))
