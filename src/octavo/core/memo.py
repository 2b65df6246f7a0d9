"""Dictionaries that cannot grow without end: three caches of bounded size.

`Memo` is for what callers choose, and is looked up on every request: what somebody uses stays. `Bounded` is for what
can be found out again: what came first goes first. `Weighted` is for what is large: what was used last stays.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from itertools import islice
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(dict[K, V]):
    """`get` what is new; where there is nothing, `again`; where there is nothing either, make it and `keep` it.

    There are two generations. When the newer one is full it becomes the older one, which is forgotten; what is found in
    the older one goes into the newer. So whoever asks for ever new things makes nobody forget what is asked for again
    before half a memo of them has passed. To look up what is there costs as much as in a dict, which it is.
    """

    __slots__ = ("_before", "_half")

    def __init__(self, most: int) -> None:
        super().__init__()
        self._half = max(1, most // 2)
        self._before: dict[K, V] = {}

    def again(self, key: K) -> V | None:
        """What was used a while ago, and is used now."""
        value = self._before.get(key)
        return None if value is None else self.keep(key, value)

    def keep(self, key: K, value: V) -> V:
        if len(self) >= self._half:
            self._before = self.copy()
            self.clear()
        self[key] = value
        return value


class Bounded(dict[K, V]):
    """A dict that `keep` holds to `most` entries.

    Of a large one several go at once, unless `at_once` says how many: to find the first key of a dict takes as long as
    there are places before it of keys that went.
    """

    __slots__ = ("_going", "_most")

    def __init__(self, most: int, *, at_once: int = 0) -> None:
        super().__init__()
        self._most, self._going = most, at_once or max(1, most // 64)

    def keep(self, key: K, value: V) -> V:
        """What is kept again counts as new."""
        if key in self:
            del self[key]
        elif len(self) >= self._most:
            for oldest in [*islice(self, self._going)]:
                del self[oldest]
        self[key] = value
        return value


class Weighted(Generic[K, V]):
    """Holds a weight of `room`, and `most` entries where that is said."""

    __slots__ = ("_most", "_room", "_values", "_weight")

    def __init__(self, room: int, most: int | None = None) -> None:
        self._room, self._most = room, most
        self._weight = 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def keep(self, key: K, value: V, weight: int = 1) -> None:
        """What is heavier than a quarter of the room is not kept: it would push out everything else."""
        if weight * 4 > self._room:
            return
        if (before := self._values.pop(key, None)) is not None:
            self._weight -= before[1]
        self._values[key] = (value, weight)
        self._weight += weight
        while self._weight > self._room or (self._most is not None and len(self._values) > self._most):
            self._weight -= self._values.popitem(last=False)[1][1]

    def clear(self) -> None:
        self._values.clear()
        self._weight = 0

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)
