"""How often something stands in a text, and what that is worth."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from octavo.search.query_parse import Unit, folded, squeezed

WEIGHTS: Final = (8.0, 6.0, 2.0, 1.0)  # title, tags, headings, body
_SATURATION: Final = 1.2
_LENGTH: Final = 0.4
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")


class Texts(NamedTuple):
    """The fields of one document, made ready to be counted in."""

    fields: tuple[str, str, str, str]

    @classmethod
    def of(cls, title: str, tags: str, headings: str, body: str) -> Texts:
        return cls((folded(title), folded(tags), folded(headings), folded(body)))

    def frequency(self, unit: Unit) -> float:
        """Weighted by field. Of the spellings of a word the one that counts most."""
        fields = tuple(" ".join(field.split()) for field in self.fields) if unit.phrase else self.fields
        return max((_frequency(fields, one.strings, one.weight) for one in unit.spellings), default=0.0)

    def says(self, plain: str) -> float:
        """Whether the whole question stands there in one piece, and how prominently."""
        title, _, headings, body = map(squeezed, self.fields)
        if title == plain:
            return 1.0
        if plain in title:
            return 0.6
        return 0.3 if plain in headings else 0.2 if plain in body else 0.0


def rarity(documents: float, count: int) -> float:
    """Of a word that stands in so many documents out of `count`."""
    return math.log(1 + (max(count, documents) - documents + 0.5) / (documents + 0.5))


def worth(frequency: float, length: float, average: float) -> float:
    """BM25: more is better, and less and less so; in a long text it means less."""
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * length / average)
    return frequency * (_SATURATION + 1) / (frequency + norm)


def _frequency(fields: tuple[str, ...], strings: tuple[str, ...], weight: float) -> float:
    found = 0.0
    for string in strings:
        counts = sum(w * _count(field, string) for w, field in zip(WEIGHTS, fields, strict=True))
        if not counts:
            return 0.0
        found = counts if not found else min(found, counts)
    return weight * found


def _count(text: str, string: str) -> int:
    """A short word in Latin letters is counted where it stands alone: `hr` is no part of `three`."""
    if len(string) < 4 and string.isascii():
        return _count_alone(text, string)
    return text.count(string)


def _count_alone(text: str, string: str) -> int:
    """One more letter may follow, as in `prs`. Without a regular expression, which would look at every character."""
    count, begin = 0, text.find(string)
    while begin >= 0:
        end = begin + len(string)
        goes_on = text[end : end + 2]
        stands = (not begin or text[begin - 1] not in _PLAIN) and (len(goes_on) < 2 or not _PLAIN.issuperset(goes_on))
        count += stands
        begin = text.find(string, end if stands else begin + 1)
    return count
