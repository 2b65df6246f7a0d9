"""Documents by what they mean, for whoever brings an embedder. Off unless one is given.

Nothing is claimed here about any model. Vectors are compared one by one in plain Python, which is fine for some
thousand documents: with more than `MOST` of them in sight, words alone decide.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
from array import array
from collections.abc import Sequence
from operator import mul
from typing import Final

from octavo.core.errors import OctavoError
from octavo.core.ports.search import Embedder
from octavo.search.index import Index
from octavo.search.visible_set import Sight

logger = logging.getLogger(__name__)

MOST: Final = 20_000  # documents whose vectors are compared for one question
NEAREST: Final = 20  # that a question gets
_ALIKE: Final = 0.8  # of the likeness of the nearest
_AT_ONCE: Final = 32
_CHARACTERS: Final = 2000  # of a document that are embedded


class Meaning:
    """The vectors of an index. Only OctavoErrors may leave the embedder; without it words alone decide."""

    def __init__(self, index: Index, embedder: Embedder) -> None:
        self._index = index
        self._embedder = embedder
        self._failing = False

    async def learn(self) -> bool:
        """Finds out what the documents mean of which it is not known yet. False where that is to be tried again."""
        try:
            while unknown := await asyncio.to_thread(self._unknown):
                vectors = [unit(one) for one in await self._embedder.embed([text for *_, text in unknown])]
                known = [(n, rev, v.tobytes()) for (n, rev, _), v in zip(unknown, vectors, strict=True)]
                await asyncio.to_thread(self._index.keep_vectors, self._embedder.name, known)
        except OctavoError as fault:
            if not self._failing:
                logger.warning("Documents could not be embedded, they are found by their words for now: %s", fault)
            self._failing = True
            return False
        self._failing = False
        return True

    async def of(self, text: str) -> array[float] | None:
        try:
            (vector,) = await self._embedder.embed([text[:_CHARACTERS]])
        except OctavoError as fault:
            logger.warning("A question could not be embedded, its words are searched: %s", fault)
            return None
        return unit(vector)

    def nearest(self, database: sqlite3.Connection, sight: Sight, wanted: array[float]) -> list[int]:
        """The documents in sight that are most like it, nearest first."""
        if sight.count > MOST:
            return []
        rows = database.execute("SELECT id, vector FROM vectors WHERE name = ?", (self._embedder.name,))
        alike: list[tuple[float, int]] = []
        for number, kept in rows:
            if sight.lengths[number]:
                alike.append((-sum(map(mul, wanted, array("f", kept))), number))
        alike.sort()
        return [number for likeness, number in alike[:NEAREST] if likeness < 0 and likeness <= _ALIKE * alike[0][0]]

    def _unknown(self) -> list[tuple[int, int, str]]:
        with self._index.reading() as database:
            rows = database.execute(
                "SELECT id, revision, title || char(10) || substr(body, 1, ?) FROM documents JOIN texts USING (id)"
                " LEFT JOIN vectors USING (id) WHERE vectors.name IS NOT ? LIMIT ?",
                (_CHARACTERS, self._embedder.name, _AT_ONCE),
            )
            return rows.fetchall()


def unit(vector: Sequence[float]) -> array[float]:
    length = math.sqrt(sum(map(mul, vector, vector))) or 1.0
    return array("f", [value / length for value in vector])
