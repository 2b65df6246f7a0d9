"""Candidates from the index, counted and confirmed in their texts.

The index says which documents may have the words, those with them in a prominent field first. The best of them are
looked at in the text, where the words are counted and what the index only guessed is confirmed. Everything that is
counted is counted over the documents in sight: an order is the same as if there were no others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from octavo.core.clock import Clock
from octavo.core.ref import Ref
from octavo.search.counting import Texts, worth
from octavo.search.index import ref_of
from octavo.search.matching import NAMED, Matches
from octavo.search.query_parse import ParsedQuery
from octavo.search.visible_set import Sight

UNSEEN: Final = 0.8  # what a word is worth that stands in the text, by a way that was not followed to its end
_SAID: Final = 0.5  # what it is worth to say the whole question in one piece
_BY_NAME: Final = 0.5  # of what a text is worth that says as much: a picture has a name, and answers nothing
_LOOKED_AT: Final = 150  # candidates whose texts are counted in at once
_MOST_LOOKED_AT: Final = 4 * _LOOKED_AT  # with those that have no text
_AT_LEAST: Final = 10  # of them, however late it is
_COUNTED: Final = 100_000  # characters of a text that are counted in, where they are enough to confirm it
_PLACES: Final = 60  # added to a place, so that the first few of one order do not outweigh all of the other


class Ranked(NamedTuple):
    score: float
    number: int
    ref: Ref


class RankedQuestion(NamedTuple):
    """A question, and where the index says that its words are."""

    question: ParsedQuery
    matches: list[Matches]
    corrected: dict[str, str]


class Hurry:
    """When the time for one question is up. `left_out`: it was, and not everything was looked at."""

    def __init__(self, clock: Clock, seconds: float | None) -> None:
        self._now = clock.monotonic
        self._until = None if seconds is None else self._now() + seconds
        self.left_out = False

    @property
    def is_up(self) -> bool:
        return self._until is not None and self._now() >= self._until


def ranked(asked: RankedQuestion, sight: Sight, database: sqlite3.Connection, hurry: Hurry) -> Iterator[Ranked]:
    """Best first, by what the texts say, a batch of the best candidates after the other, as far as there is time."""
    first: dict[int, float] = {}
    for matches in asked.matches:
        for number, score in matches.scores():
            first[number] = first.get(number, 0.0) + score
    for matches in asked.matches:
        if matches.unit.phrase:
            first = {number: score for number, score in first.items() if number in matches.weight}
    candidates = [number for _, number in sorted(((score, n) for n, score in first.items()), reverse=True)]
    for batch in _batches(candidates, sight):
        if hurry.left_out:
            return
        yield from _counted(batch, asked, sight, database, hurry)


def _batches(candidates: Sequence[int], sight: Sight) -> Iterator[list[int]]:
    """Names alone cost little to look at, and keep no text out of a batch."""
    batch, texts = list[int](), 0
    for number in candidates:
        batch.append(number)
        texts += sight.has_text(number)
        if texts == _LOOKED_AT or len(batch) == _MOST_LOOKED_AT:
            yield batch
            batch, texts = [], 0
    yield batch


def fused(ranking: Iterator[Ranked], near: Sequence[int], database: sqlite3.Connection) -> Iterator[Ranked]:
    """By the places in both orders: their scores cannot be compared."""
    places = {one.number: (place, one.ref) for place, one in enumerate(islice(ranking, _LOOKED_AT), 1)}
    scores = {number: 1 / (_PLACES + place) for number, (place, _) in places.items()}
    refs = {number: ref for number, (_, ref) in places.items()}
    for place, number in enumerate(near, 1):
        scores[number] = scores.get(number, 0.0) + 1 / (_PLACES + place)
        if number not in refs:
            row = database.execute("SELECT scheme, path, odd FROM documents WHERE id = ?", (number,)).fetchone()
            refs[number] = ref_of(*row)
    yield from sorted(
        (Ranked(score, number, refs[number]) for number, score in scores.items()),
        key=lambda one: (-one.score, one.ref),
    )
    for place, one in enumerate(ranking, len(places) + 1):
        if one.number not in scores:
            yield one._replace(score=1 / (_PLACES + place))


def _counted(
    candidates: Sequence[int], asked: RankedQuestion, sight: Sight, database: sqlite3.Connection, hurry: Hurry
) -> list[Ranked]:
    found: list[Ranked] = []
    for looked_at, number in enumerate(candidates):
        if looked_at >= _AT_LEAST and hurry.is_up:
            hurry.left_out = True
            break
        scheme, path, odd, title, tags, headings, body, long = database.execute(
            "SELECT scheme, path, odd, title, tags, headings, substr(body, 1, ?), length(body) > ?"
            " FROM documents JOIN texts USING (id) WHERE id = ?",
            (_COUNTED, _COUNTED, number),
        ).fetchone()
        texts = Texts.of(title, tags, headings, body)
        if long and not all(texts.frequency(one.unit) for one in asked.matches if number in one.weight):
            (body,) = database.execute("SELECT body FROM texts WHERE id = ?", (number,)).fetchone()
            texts = Texts.of(title, tags, headings, body)
        score = _score(number, texts, asked, sight)
        if score > 0:
            found.append(Ranked(score, number, ref_of(scheme, path, odd)))
    found.sort(key=lambda one: (-one.score, one.ref))
    return found


def _score(number: int, texts: Texts, asked: RankedQuestion, sight: Sight) -> float:
    """0 where the text does not say what the index guessed."""
    score = possible = reached = 0.0
    for matches in asked.matches:
        possible += matches.most
        weight = matches.weight.get(number)
        if weight is None and matches.complete:
            continue
        frequency = texts.frequency(matches.unit)
        if not frequency:
            if matches.unit.phrase:
                return 0.0
            if number not in matches.confirmed:
                continue
            frequency = 1.0
        score += matches.rarity * (weight or UNSEEN) * worth(frequency, sight.length(number), sight.average)
        if number in matches.named and sight.has_text(number):  # beside having the word
            score += NAMED * matches.named_rarity * (weight or UNSEEN)
        reached += matches.counts(number)
    if not score:
        return 0.0
    if not sight.has_text(number):
        score *= _BY_NAME
    said = texts.says(asked.question.plain) if asked.question.plain else 0.0
    return score * (reached / possible) * (1 + _SAID * said)
