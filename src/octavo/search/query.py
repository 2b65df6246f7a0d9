"""Ranked search: what is asked, looked for among what the viewer may see, page by page."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import islice
from typing import Final

from octavo.core.arguments import Allowed
from octavo.core.clock import Clock, SystemClock
from octavo.core.cursor import INVALID, joined, parts_of
from octavo.core.errors import InvalidParams
from octavo.core.query import TextQuery
from octavo.core.search_results import Finding, Findings
from octavo.search.index import UNREAD, Index
from octavo.search.matching import Matcher, Matches
from octavo.search.query_parse import LOAN, SYNONYM, ParsedQuery, Unit, question, word_unit
from octavo.search.ranking import UNSEEN, Hurry, Ranked, RankedQuestion, fused, ranked
from octavo.search.snippets import WantedWords, snippet
from octavo.search.spelling import CORRECTED, corrections, in_other_script
from octavo.search.vectors import Meaning
from octavo.search.visible_set import Sight, Sights

MAX_FINDINGS: Final = 1000  # that one query can be followed to
MAX_LIMIT: Final = 100
_GUESSED: Final = 4  # words of a question whose meaning is guessed
_LIKE: Final = 0.4  # what it is worth to have most of the pairs of syllables of a word
_FOREIGN: Final = "The cursor is not one of this query; search again from the start"


class FullText:
    """`synonyms` are groups of words of which each finds the others, though later. With a `meaning`, documents that
    are alike in it are found as well, and count as much as those with the words."""

    def __init__(
        self,
        index: Index,
        *,
        synonyms: Sequence[Sequence[str]] = (),
        meaning: Meaning | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._index = index
        self._clock = clock or SystemClock()
        self.meaning = meaning
        self._sights = Sights()
        self._others = {
            word_unit(word).stem: [word_unit(other) for other in group if other != word]
            for group in synonyms
            for word in group
        }

    async def find(
        self,
        query: TextQuery,
        *,
        allowed: Allowed,
        viewer: Hashable | None = None,
        cursor: str | None = None,
        limit: int = 10,
        seconds: float | None = None,
    ) -> Findings:
        """See `core.ports.Finds`. `allowed` is called in a thread. None: however long it takes."""
        hurry = Hurry(self._clock, seconds)  # also while it waits for its turn
        vector = None if self.meaning is None else await self.meaning.of(query.text)
        return await self._index.threads.run(self.find_now, query, allowed, viewer, cursor, limit, vector, hurry)

    def find_now(
        self,
        query: TextQuery,
        allowed: Allowed,
        viewer: Hashable | None = None,
        cursor: str | None = None,
        limit: int = 10,
        vector: array[float] | None = None,
        hurry: Hurry | None = None,
    ) -> Findings:
        """The same, in the thread of the caller. `vector` is what the question means, where that is known."""
        limit = max(1, min(limit, MAX_LIMIT))
        hurry = hurry or Hurry(self._clock, None)
        with self._sights.of(query, viewer) as sight:
            findings = self._found(query, sight, allowed, cursor, limit, vector, hurry)
        if viewer is None or all(_may(allowed, one) for one in findings.items):
            return findings
        self._sights.forget(viewer)  # the rules are not those that were remembered
        return self._found(query, Sight(query), allowed, cursor, limit, vector, hurry)

    def _found(
        self,
        query: TextQuery,
        sight: Sight,
        allowed: Allowed,
        cursor: str | None,
        limit: int,
        vector: array[float] | None,
        hurry: Hurry,
    ) -> Findings:
        asked = question(query.text)
        digest = _digest(query)
        given, last = _place(cursor, digest)
        with self._index.reading() as database:
            sight.refresh(database, allowed)
            found = self._matched(asked, Matcher(database, sight))
            ranking = ranked(found, sight, database, hurry)
            if self.meaning is not None and vector is not None:
                ranking = fused(ranking, self.meaning.nearest(database, sight, vector), database)
            best = list(islice(ranking, MAX_FINDINGS if last else limit + 1))
            places = {str(one.ref): place for place, one in enumerate(best, 1)} if last else {}
            begin = places.get(last, given)
            page = best[begin : begin + limit]
            rows = database.execute("SELECT id, partial FROM documents WHERE partial")
            lacking = Counter(how == UNREAD for number, how in rows if sight.lengths[number])
            shown = _shown(page, found, database, hurry)
        more = len(best) > begin + limit
        following = joined(digest, begin + limit, str(page[-1].ref)) if more and page else None
        return Findings(
            shown,
            following,
            found.corrected,
            asked.ignored,
            seen=sight.count,
            partial=lacking[False],
            unread=lacking[True],
            cut=hurry.left_out,
        )

    def _matched(self, asked: ParsedQuery, matcher: Matcher) -> RankedQuestion:
        found: list[Matches] = []
        corrected: dict[str, str] = {}
        guessed = 0
        for unit in map(self._with_synonyms, asked.units):
            matches, asking = matcher.matches(unit), unit.share < 1.0
            others = [] if asking else in_other_script(unit, matcher)
            if not matches.weight and not unit.phrase and not asking:
                meant = corrections(unit, matcher) if guessed < _GUESSED else []
                guessed += 1
                if meant:
                    corrected[unit.surface] = meant[0].surface
                    matches = matcher.matches(unit.with_others(meant, CORRECTED).with_others(others, CORRECTED * LOAN))
                elif others:
                    matches = matcher.matches(unit.with_others(others, LOAN))
                elif len(unit.stem) >= 3:
                    matches = matcher.like(unit, _LIKE)
            elif others:
                matches = matcher.matches(unit.with_others(others, LOAN))
            found.append(matches)
        there = [matches for matches in found if matches.weight and matches.ways]
        if len(there) > 1 and not all(matches.complete for matches in there):
            for number in matcher.together(there):
                for matches in there:
                    matches.weight.setdefault(number, UNSEEN)
        return RankedQuestion(asked, found, corrected)

    def _with_synonyms(self, unit: Unit) -> Unit:
        others = self._others.get(unit.stem) if unit.stem else None
        return unit if others is None else unit.with_others(others, SYNONYM)


def _shown(
    page: Sequence[Ranked], asked: RankedQuestion, database: sqlite3.Connection, hurry: Hurry
) -> tuple[Finding, ...]:
    wanted = WantedWords.of(matches.unit for matches in asked.matches if matches.weight)
    found: list[Finding] = []
    for one in page:
        title, tags, body, metadata, version, partial = database.execute(
            "SELECT title, tags, body, metadata, version, partial FROM texts JOIN documents USING (id) WHERE id = ?",
            (one.number,),
        ).fetchone()
        text, marks = snippet(body or tags, wanted, hurried=hurry.is_up)
        found.append(
            Finding(
                ref=one.ref,
                title=title,
                score=round(one.score, 4),
                snippet=text,
                marks=marks,
                version=version,
                metadata=json.loads(metadata) or {},
                partial=bool(partial),
            )
        )
    return tuple(found)


def _may(allowed: Allowed, found: Finding) -> bool:
    said = allowed(found.ref)
    return said if isinstance(said, bool) else said(found.metadata)


def _digest(query: TextQuery) -> str:
    told = repr((query.text, query.within, query.where)).encode("utf-8", "backslashreplace")
    return hashlib.blake2b(told, digest_size=6).hexdigest()


def _place(cursor: str | None, digest: str) -> tuple[int, str]:
    """How many were given, and the last of them."""
    if cursor is None:
        return 0, ""
    asked, given, last = parts_of(cursor, str, int, str, refusal=_FOREIGN)
    if asked != digest or not 0 < given <= MAX_FINDINGS:
        raise InvalidParams(_FOREIGN, reason=INVALID)
    return given, last
