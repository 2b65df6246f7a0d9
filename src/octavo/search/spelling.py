"""What a word without any hit may have been meant to be.

Guesses are made from the word that was asked for, and one counts only if a document that may be seen has it: so a
correction tells nothing of the others.
"""

from __future__ import annotations

from typing import Final

from octavo.search import english, korean, loanwords
from octavo.search import tokens as t
from octavo.search.matching import Matcher
from octavo.search.query_parse import LONG_WORD, Unit, word_unit

CORRECTED: Final = 0.7
_GUESSES: Final = 3
_SHORTEST: Final = 4  # letters of a word that is corrected: everything is near a shorter one
_LONGEST: Final = 24


def corrections(unit: Unit, matcher: Matcher) -> list[Unit]:
    """The words that it is likely to mean, likeliest first."""
    if not unit.stem or not any(map(str.isalpha, unit.stem)):
        return []
    found = _neighbours(unit, matcher)
    return found or _halves(unit, matcher)


def in_other_script(unit: Unit, matcher: Matcher) -> list[Unit]:
    """Words that are there and sound like it, in Hangul for one in Latin letters and the other way round."""
    bare = korean.syllable(unit.token)
    others = _sounding(bare, matcher) if bare else []
    if others and _has_particle(unit.token, bare, matcher):
        return [word_unit(bare), *others]
    return _sounding(unit.token, matcher)


def _has_particle(word: str, bare: str, matcher: Matcher) -> bool:
    """Whether the documents know it as one syllable with a particle (훅의), not as a noun that ends so (정의)."""
    count = len(matcher.visible(f'"{word}"')[0])
    return not count or len(matcher.visible(f'"{bare}"')[0]) > count


def _sounding(word: str, matcher: Matcher) -> list[Unit]:
    keys = [key for key, _ in loanwords.keys(word)]
    if not keys:
        return []
    hangul = loanwords.is_hangul(word)
    near = matcher.sounding(keys, hangul=not hangul)
    found = [one for one in near if loanwords.sounds_like(*((word, one) if hangul else (one, word)))]
    counted = sorted((-len(matcher.visible(f'"{one}"')[0]), one) for one in found)
    return [word_unit(one) for count, one in counted if count][:_GUESSES]


def _neighbours(unit: Unit, matcher: Matcher) -> list[Unit]:
    syllabic = t.is_syllabic(unit.stem)
    shortest, longest = (2, LONG_WORD) if syllabic else (_SHORTEST, _LONGEST)
    if not shortest <= len(unit.stem if syllabic else unit.surface) <= longest:
        return []
    meant: dict[str, str] = {}
    for guess in korean.neighbours(unit.stem) if syllabic else english.neighbours(unit.surface):
        token = t.word_tokens(guess)[0]
        if token not in meant or sorted(guess) == sorted(unit.surface):  # `taek` is `take` sooner than `tak`
            meant[token] = guess
    ranked = [
        (-len(matcher.visible(f'"{token}"')[0]), meant[token]) for token in matcher.known(meant) if token != unit.stem
    ]
    return [word_unit(guess) for count, guess in sorted(ranked) if count][:_GUESSES]


def _halves(unit: Unit, matcher: Matcher) -> list[Unit]:
    """Two words without the space between them."""
    word = unit.surface
    if t.is_syllabic(word):
        return []  # the pairs of syllables find those
    for cut in range(3, len(word) - 2):
        halves = [word_unit(word[:cut]), word_unit(word[cut:])]
        if matcher.visible(" AND ".join(f'"{half.stem}"' for half in halves))[0]:
            return [word_unit(f"{word[:cut]}-{word[cut:]}")]
    return []
