"""From text to the tokens that are stored, for texts and for questions alike.

A document is a set of tokens; how often and where exactly a word stands is counted in the text itself, of the few
documents that are worth it. There are two kinds of tokens, and each may carry the field that it stands in:

    예산        a word: folded, stemmed, without its particle; and the whole word where that differs
    +예산       two neighbouring syllables of a word, so that a part of a compound is found
    =예산 =+예산   the same in the title; `@` in tags and names, `^` in headings

`snake_case`, `camelCase`, `kebab-case` and `AI캠페인` give their parts, each two neighbours, and the whole, without
what joins it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final

from octavo.search import english, korean

VERSION: Final = 2  # of the tokens: an index with others is made anew
MARKS: Final = "+=@^"  # no letters or digits, so no word begins with one
TITLE, TAGS, HEADINGS = "=", "@", "^"

MAX_WORD: Final = 64  # characters of one token; longer runs are cut: nobody asks for them whole
_MAX_RUN: Final = 256  # of letters and joiners that is looked at as one thing
_MAX_PARTS: Final = 16
_USUAL: Final = 24  # characters of a word that is worth remembering

_HANGUL = "가-힣"
_IDEOGRAPHS = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3041-\u3096\u30a1-\u30fc"
# A number with its commas, or letters and digits that single joiners hold together.
_RUN: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?![\d,])|[^\W_]+(?:[_.@-][^\W_]+)*")
_PART: Final = re.compile(
    rf"[{_HANGUL}]+|[{_IDEOGRAPHS}]+|\d+|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+(?![^\W\d_{_HANGUL}{_IDEOGRAPHS}A-Z])"
    rf"|[A-Z]+(?![^\W\d_{_HANGUL}{_IDEOGRAPHS}])|[^\W\d_{_HANGUL}{_IDEOGRAPHS}]+"
)
_SYLLABIC: Final = re.compile(rf"[{_HANGUL}{_IDEOGRAPHS}]")
_DATE: Final = re.compile(
    r"(?<!\d)((?:19|20)\d\d)(?:[-./]\s?|년\s?)(1[0-2]|0?[1-9])(?:(?:[-./]\s?|월\s?)(3[01]|[12]\d|0?[1-9])(?!\d))?"
)


def normal(text: str) -> str:
    """One spelling for each character, and none that could not be stored."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8"))


def tokens(text: str) -> set[str]:
    """Of a text that is `normal`."""
    found: set[str] = set(dates(text))
    for run in set(_RUN.findall(text)):
        found.update(_of_usual(run) if len(run) <= _USUAL else _of_run(run[:_MAX_RUN]))
    return found


def runs(text: str) -> list[str]:
    """The words of a text, compounds in one piece."""
    return [run[:_MAX_RUN] for run in _RUN.findall(text)]


def dates(text: str) -> Iterator[str]:
    """`2025-03-14`, `2025.3.14` and `2025년 3월 14일` are one day of one month."""
    for year, month, day in _DATE.findall(text):
        yield f"{year}{int(month):02}"
        if day:
            yield f"{year}{int(month):02}{int(day):02}"


def parts(run: str) -> list[str]:
    """The pieces of a compound, by script, joiner and capital letter."""
    if run.isascii() and run.isalpha() and (run.islower() or run.isupper()):
        return [run]
    if "," in run:
        return [run.replace(",", "")]
    found: list[str] = _PART.findall(run)[:_MAX_PARTS]
    if len(found) > 1 and korean.is_ending(found[-1]) and not is_syllabic(found[-2]):
        del found[-1]
    return found


def is_syllabic(word: str) -> bool:
    """Written in syllables or ideographs, without spaces that could be relied on."""
    return _SYLLABIC.match(word) is not None


def word_tokens(part: str) -> tuple[str, ...]:
    """Of one piece in one script: what it is looked for as, best first."""
    if not is_syllabic(part):
        return (english.stem(english.fold(part))[:MAX_WORD],)
    whole, stem = part[:MAX_WORD], korean.stem(part)[:MAX_WORD]
    return (whole,) if whole == stem else (stem, whole)


def grams(word: str) -> list[str]:
    """Each two neighbouring syllables."""
    return [f"+{a}{b}" for a, b in pairwise(word)]


def whole(pieces: list[str]) -> str:
    """A compound as one token, the same for all its spellings."""
    *head, last = pieces
    joined = "".join(map(english.fold, head))
    return (korean.stem(joined + last) if is_syllabic(last) else joined + word_tokens(last)[0])[:MAX_WORD]


def _of_run(run: str) -> tuple[str, ...]:
    pieces = parts(run)
    found: list[str] = []
    for piece in pieces:
        found += word_tokens(piece)
        if is_syllabic(piece):
            found += grams(piece[:_MAX_RUN])
    if len(pieces) > 1:
        found.append(whole(pieces))
    if len(pieces) > 2:  # post_mortem_process is found by postmortem
        found += [whole([*pair]) for pair in pairwise(pieces) if all(map(str.isalpha, pair))]
    return tuple(found)


_of_usual = lru_cache(maxsize=1 << 14)(_of_run)  # words come again and again; long ones would fill the memory
