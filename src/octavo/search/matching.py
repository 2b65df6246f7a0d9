"""Which documents a word may stand in, as far as they may be seen."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from octavo.search import tokens as t
from octavo.search.counting import rarity
from octavo.search.query_parse import BEGINNING, SearchWay, Unit
from octavo.search.visible_set import Sight

MOST: Final = 2000  # documents that one way of finding a word gives, the newest of them
_FIELDS: Final = ((t.TITLE, 3.0), (t.TAGS, 2.0), (t.HEADINGS, 1.5))
NAMED: Final = 0.5  # what it is worth to be called so, beside having the word
_ENOUGH: Final = 0.6  # of its pairs of syllables make a word that is spelled otherwise
_BATCH: Final = 512


class Matches(Struct):
    """The documents of one unit: how good the way is by which each was found, and in how prominent a field."""

    unit: Unit
    weight: dict[int, float] = field(default_factory=dict[int, float])
    confirmed: set[int] = field(default_factory=set[int])  # by the index alone: the word is there
    prominence: dict[int, float] = field(default_factory=dict[int, float])
    ways: list[SearchWay] = field(default_factory=list[SearchWay])  # that were followed
    complete: bool = True  # no document was left out
    rarity: float = 0.0
    named: frozenset[int] = frozenset()  # documents that have it in the title or in a name
    named_rarity: float = 0.0  # of a name with it

    def counts(self, number: int) -> float:
        """What it tells of a document to have the word: a word that is everywhere tells something in a title."""
        return max(self.rarity, NAMED * self.named_rarity) if number in self.named else self.rarity

    @property
    def most(self) -> float:
        return max(self.rarity, NAMED * self.named_rarity)

    def scores(self) -> Iterator[tuple[int, float]]:
        """What is known without a look at the texts."""
        rarity, field_of = self.rarity, self.prominence.get
        return ((number, rarity * weight * field_of(number, 1.0)) for number, weight in self.weight.items())


class Matcher:
    """Over one moment of the index, for one sight."""

    def __init__(self, database: sqlite3.Connection, sight: Sight) -> None:
        self._database = database
        self._sight = sight

    def matches(self, unit: Unit) -> Matches:
        found = Matches(unit)
        seen = 0.0
        for way in sorted(unit.ways, key=lambda way: -way.weight):
            if not found.complete:
                break  # there are more than anybody wants to see, by better ways
            found.ways.append(way)
            numbers, estimate = self.visible(way.expression())
            found.complete = estimate == len(numbers)
            seen = max(seen, estimate)
            found.weight = dict.fromkeys(numbers, way.weight) | found.weight
            if way.exact:
                found.confirmed.update(numbers)
        if found.weight:
            self._look_at_fields(found)
            found.rarity = unit.share * self._rarity(found.weight, seen)
        return found

    def like(self, unit: Unit, weight: float) -> Matches:
        """A word of which there are only pieces: documents that have most of its pairs of syllables."""
        found, pairs = Matches(unit), t.grams(unit.stem)[:16]
        counts: dict[int, int] = {}
        for pair in pairs:
            for number in self.visible(f'"{pair}"')[0]:
                counts[number] = counts.get(number, 0) + 1
        found.weight = {n: weight * c / len(pairs) for n, c in counts.items() if c >= max(2, _ENOUGH * len(pairs))}
        found.confirmed = set(found.weight)
        found.rarity = unit.share * self._rarity(found.weight)
        return found

    def together(self, found: Sequence[Matches]) -> list[int]:
        """Documents that have something of all."""
        each = (" OR ".join(way.expression() for way in matches.ways) for matches in found)
        return self.visible(" AND ".join(f"({ways})" for ways in each))[0]

    def known(self, words: Iterable[str]) -> list[str]:
        """Those that stand in any document; whether in one that may be seen is another question."""
        rows = self._database.execute(
            "SELECT term FROM vocabulary WHERE term IN (SELECT value FROM json_each(?))", (json.dumps([*words]),)
        )
        return [term for (term,) in rows]

    def sounding(self, keys: Iterable[str], *, hangul: bool) -> list[str]:
        """Those in one script that may sound so, whoever may see them."""
        rows = self._database.execute(
            "SELECT word FROM sounds WHERE key IN (SELECT value FROM json_each(?)) AND hangul = ?",
            (json.dumps([*keys]), hangul),
        )
        return [word for (word,) in rows]

    def visible(self, expression: str) -> tuple[list[int], float]:
        """The newest of the documents, and how many there are; guessed from those looked at where there are many.

        Whatever is given, and how many, hangs on documents that may be seen alone.
        """
        lengths, found = self._sight.lengths, list[int]()
        rows = self._database.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC", (expression,))
        while batch := rows.fetchmany(_BATCH):
            found += [number for (number,) in batch if lengths[number]]
            if len(found) > MOST:
                del found[MOST:]
                rows.close()
                looked_at = len(lengths) - found[-1] - lengths[found[-1] :].count(0)
                return found, max(MOST + 1.0, MOST * self._sight.count / looked_at)
        return found, float(len(found))

    def _rarity(self, numbers: Collection[int], seen: float = 0.0) -> float:
        """Of a word that these documents have, and more if `seen` is more, among those that have a text: however many
        pictures stand beside them, and are called so, a word is as rare as it is in what people wrote."""
        sight, documents = self._sight, max(seen, len(numbers))
        if sight.texts < sight.count and numbers:
            documents *= sum(map(sight.has_text, numbers)) / len(numbers)
        return rarity(documents, sight.texts)

    def _named(self, ways: Sequence[SearchWay], mark: str) -> list[int]:
        """A piece of a compound in a title says little of the compound, as does a syllable that a word begins with."""
        whole = [way for way in ways if way.weight >= BEGINNING and not way.vague]
        return self.visible(" OR ".join(way.expression(mark) for way in whole))[0] if whole else []

    def _look_at_fields(self, found: Matches) -> None:
        named = set[int]()
        for mark, factor in reversed(_FIELDS):
            expression = " OR ".join(way.expression(mark) for way in found.ways)
            prominent = dict.fromkeys(self.visible(expression)[0], factor)
            if mark != t.HEADINGS:
                named.update(self._named(found.ways, mark))
            found.prominence.update(prominent)
            found.weight.update(dict.fromkeys(prominent.keys() - found.weight.keys(), BEGINNING))
        found.named = frozenset(named)
        found.named_rarity = found.unit.share * self._rarity(named)
