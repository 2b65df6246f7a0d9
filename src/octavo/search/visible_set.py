"""Which documents one viewer's search is about, found out once and kept in step.

All that a search counts, it counts over these: an answer is the same as if there were no other documents.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from array import array
from collections.abc import Generator, Hashable
from contextlib import contextmanager
from typing import Final

from octavo.core.arguments import Allowed
from octavo.core.memo import Bounded
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.search.document import facet
from octavo.search.index import below, ref_of
from octavo.search.tokens import normal

SIGHTS: Final = 64  # kept; each takes two bytes a document
_LONGEST: Final = 65_535
_NO_TEXT: Final = 1  # what a document is given that has no word


class Sight:
    """The documents that may be seen and are asked about."""

    def __init__(self, query: TextQuery) -> None:
        self._within, self._where = query.within, query.where
        self._birth, self._revision, self._removals = b"", -1, 0
        self.lengths = array("H")  # by the number of the document; 0 where it is none of these
        self.count = 0
        self.texts = 0  # of them, those that have a text; all where none has: a picture is found by its name alone
        self.average = 1.0  # length of these

    def refresh(self, database: sqlite3.Connection, allowed: Allowed) -> None:
        """Looks at what has changed. `allowed` is not kept: it holds on to the rules that it asks, and these to their
        whole configuration, which may end before the sight is forgotten."""
        birth, revision, removals = database.execute("SELECT birth, revision, removals FROM state").fetchone()
        if birth != self._birth:
            self._birth, self._revision, self.lengths = birth, -1, array("H")
        if revision == self._revision:
            return
        (highest,) = database.execute("SELECT coalesce(max(id), 0) FROM documents").fetchone()
        if removals != self._removals or self._revision < 0:
            kept, self.lengths = self.lengths, array("H", bytes(2 * (highest + 1)))
            for (number,) in database.execute("SELECT id FROM documents") if kept else ():
                self.lengths[number] = kept[number] if number < len(kept) else 0
        self.lengths.extend(array("H", bytes(2 * max(0, highest + 1 - len(self.lengths)))))
        self._look(database, allowed)
        self.count = len(self.lengths) - self.lengths.count(0)
        without = self.lengths.count(_NO_TEXT)
        self.texts = (self.count - without) or self.count
        self.average = max(1.0, (sum(self.lengths) - without * _NO_TEXT) / max(1, self.texts))
        self._revision, self._removals = revision, removals

    def has_text(self, number: int) -> bool:
        return self.lengths[number] > _NO_TEXT

    def length(self, number: int) -> float:
        """Of its text; where it has none, that of any: to have nothing to say is not to be brief."""
        return self.lengths[number] if self.has_text(number) else self.average

    def _look(self, database: sqlite3.Connection, allowed: Allowed) -> None:
        if self._revision >= 0:
            for (number,) in database.execute("SELECT id FROM documents WHERE revision > ?", (self._revision,)):
                self.lengths[number] = 0
        wanted = [_having(database, key, values) for key, values in self._where]
        for scope in self._within or (None,):
            for number, length, *address in _documents(database, scope, self._revision):
                ref = ref_of(*address)
                if scope is not None and not ref.within(scope):
                    continue
                if all(number in numbers for numbers in wanted) and _sees(database, allowed, ref, number):
                    self.lengths[number] = min(length + 1, _LONGEST)


class Sights:
    """Those of the latest viewers."""

    def __init__(self) -> None:
        self._kept: Bounded[Hashable, Sight] = Bounded(SIGHTS)  # the latest last: one that is used is taken out
        self._changing = threading.Lock()
        self._forgotten = 0  # how often something was

    @contextmanager
    def of(self, query: TextQuery, viewer: Hashable | None) -> Generator[Sight]:
        """For one search. Nobody else has it meanwhile: two that are about the same each find out for themselves."""
        if viewer is None:
            yield Sight(query)
            return
        key = (viewer, query.within, query.where)
        with self._changing:
            sight, forgotten = self._kept.pop(key, None) or Sight(query), self._forgotten
        yield sight
        with self._changing:
            if forgotten == self._forgotten:  # else it may be what holds no longer
                self._kept.keep(key, sight)

    def forget(self, viewer: Hashable | None) -> None:
        """What was said to this viewer holds no longer."""
        with self._changing:
            self._forgotten += 1
            for key in [key for key in self._kept if isinstance(key, tuple) and key[0] == viewer]:
                del self._kept[key]


def _sees(database: sqlite3.Connection, allowed: Allowed, ref: Ref, number: int) -> bool:
    said = allowed(ref)
    if isinstance(said, bool):
        return said
    (metadata,) = database.execute("SELECT metadata FROM texts WHERE id = ?", (number,)).fetchone()
    return said(json.loads(metadata))


def _documents(database: sqlite3.Connection, scope: Ref | None, after: int) -> sqlite3.Cursor:
    if scope is None:
        return database.execute("SELECT id, length, scheme, path, odd FROM documents WHERE revision > ?", (after,))
    return database.execute(
        "SELECT id, length, scheme, path, odd FROM documents"
        " WHERE revision > ? AND scheme = ? AND (? = '' OR path = ? OR (path > ? AND path < ?))",
        (after, *below(scope)),
    )


def _having(database: sqlite3.Connection, key: str, values: tuple[str, ...]) -> set[int]:
    rows = database.execute(
        "SELECT id FROM facets WHERE key = ? AND value IN (SELECT value FROM json_each(?))",
        (normal(key), json.dumps([*map(facet, values)])),
    )
    return {number for (number,) in rows}
