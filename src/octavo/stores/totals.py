"""What a store keeps, counted and told by one digest: whatever it is kept in, the same is told by the same."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Final

import msgspec

from octavo.core.ports.stores import Moves, Portion

_ENCODED: Final = msgspec.msgpack.Encoder().encode


class Totals(msgspec.Struct, frozen=True):
    pairs: int
    records: int
    fences: int
    digest: str


class Counting:
    """Of the portions that are read through it."""

    def __init__(self) -> None:
        self._pairs = self._records = self._fences = 0
        self._digest = hashlib.sha256()

    def add(self, portion: Portion) -> None:
        """Portions of another size are the same contents."""
        self._pairs += len(portion.pairs)
        self._records += len(portion.records)
        self._fences += len(portion.fences)
        for rows in (portion.pairs, portion.records, portion.fences):
            self._take(rows)
        self._take(() if portion.span is None else (portion.span,))

    async def through(self, portions: AsyncIterator[Portion]) -> AsyncGenerator[Portion]:
        async for portion in portions:
            self.add(portion)
            yield portion

    def told(self) -> Totals:
        return Totals(self._pairs, self._records, self._fences, self._digest.hexdigest())

    def _take(self, rows: Sequence[object]) -> None:
        for row in rows:
            self._digest.update(_ENCODED(row))


async def totals(store: Moves) -> Totals:
    counting = Counting()
    async with store.dump() as portions:
        async for _ in counting.through(portions):
            pass
    return counting.told()
