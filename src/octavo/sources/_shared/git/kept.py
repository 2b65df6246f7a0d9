"""What was made of an object is kept by the object's id: it can never be out of date."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """The last ones that were asked for, up to a weight of `room` together. For several threads."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._weight = 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """What is heavier than a quarter of the room is not kept: it would push out everything else."""
        if weight * 4 > self._room:
            return
        with self._lock:
            if key in self._values:
                return
            self._values[key] = (value, weight)
            self._weight += weight
            while self._weight > self._room:
                self._weight -= self._values.popitem(last=False)[1][1]
