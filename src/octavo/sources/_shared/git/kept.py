"""Caches what was made of a git object, by its id: it can never be out of date."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import TypeVar

from octavo.core.memo import Weighted

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ObjectCache(Weighted[K, V]):
    """The last ones that were asked for, up to a weight of `room` together. For several threads."""

    __slots__ = ("_lock",)

    def __init__(self, room: int) -> None:
        super().__init__(room)
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            return super().get(key)

    def put(self, key: K, value: V, weight: int = 1) -> None:
        with self._lock:
            if key not in self:
                self.keep(key, value, weight)
