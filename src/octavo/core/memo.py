"""What is remembered of what callers choose: bounded, and what somebody uses stays.

There are two generations. When the newer one is full it becomes the older one, which is forgotten; what is found in the
older one goes into the newer. So whoever asks for ever new things makes nobody forget what is asked for again before
half a memo of them has passed. To look up what is there costs as much as in a dict, which it is.
"""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(dict[K, V]):
    """`get` what is new; where there is nothing, `again`; where there is nothing either, make it and `keep` it."""

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
