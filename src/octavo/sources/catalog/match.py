"""Which entries answer a request in plain words, Korean or English, and why.

Each text of an entry is a set of terms: words with their endings cut for Latin script, pairs of syllables for Hangul,
so that particles and endings do not matter. What an author wrote as a trigger counts more than the name, the name more
than the description. A score depends on the request and on the one entry alone: how rare a term is among all would
tell of entries that the caller may not see.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from octavo.sources.catalog.record import Card

MAX_REQUEST: Final = 2000  # characters that are looked at
MIN_SCORE: Final = 0.04
MAX_TEXTS: Final = 200  # of one entry
_WEIGHTS: Final[Mapping[str, float]] = {
    "triggers": 3.0, "name": 2.5, "address": 1.5, "tags": 1.5, "description": 1.0, "required_tools": 0.6,
    "permissions": 0.4,
}  # fmt: skip
_WHOLE: Final = 6.0  # for a trigger that stands in the request as it is
_TOKEN: Final = re.compile(r"[가-힣]+|[a-z]+|[0-9]+|[^\W\d_a-z가-힣]+")
_ENGLISH: Final = (
    "a an and are as at be by can could do does for from have help how i in is it its let make me my need of on or our "
    "please should some that the their them there these this to us want was we what when which will with would you your"
)
_KOREAN: Final = (  # pairs of syllables of endings and polite forms
    "하다 해줘 해주 주세 세요 하는 어떻 떻게 하고 싶어 어요 나요 인가 가요 습니 니다 줘요 이요 것을 에서 으로"
)
_STOP: Final = frozenset(_ENGLISH.split()) | frozenset(_KOREAN.split())


class RecordMatch(NamedTuple):
    card: Card
    score: float  # 0 to 1: how much of what the request says is answered
    reasons: tuple[str, ...]


def matches(request: str, cards: Sequence[Card]) -> list[RecordMatch]:
    """The best first, without those that have nothing in common with the request."""
    asked = terms(request[:MAX_REQUEST])
    squeezed = _squeezed(request[:MAX_REQUEST])
    if not asked:
        return []
    best = max(_WEIGHTS.values()) * sum(map(_weight, asked)) + _WHOLE
    found: list[RecordMatch] = []
    for card in cards:
        score, reasons = _scored(asked, squeezed, _texts(card))
        if score >= MIN_SCORE * best:
            found.append(RecordMatch(card, round(min(1.0, score / best), 4), reasons))
    return sorted(found, key=lambda one: (-one.score, one.card.ref.segments))


def terms(text: str) -> frozenset[str]:
    found: set[str] = set()
    for token in _TOKEN.findall(unicodedata.normalize("NFC", text).casefold()):
        if "가" <= token[0] <= "힣":
            pairs = [token[n : n + 2] for n in range(len(token) - 1)] or [token]
            found.update(pair for pair in pairs if pair not in _STOP)
        elif token not in _STOP and (len(token) > 1 or not token.isascii()):
            found.add(_stem(token))
    return frozenset(found)


_known: Final = lru_cache(maxsize=4096)(terms)  # of what entries say, which is asked again and again


def _scored(asked: frozenset[str], squeezed: str, said: Mapping[str, Sequence[str]]) -> tuple[float, tuple[str, ...]]:
    reasons: list[str] = []
    score = 0.0
    whole = [text for text in said.get("triggers", ()) if len(_squeezed(text)) > 1 and _squeezed(text) in squeezed]
    if whole:
        longest = max(whole, key=len)
        score += _WHOLE * min(1.0, 0.5 + len(_squeezed(longest)) / 16)
        reasons.append(f"trigger: {longest[:80]}")
    best: dict[str, tuple[float, str]] = {}  # each term counts once, where it weighs most
    for field, texts in said.items():
        for term in asked & _known(" \n ".join(texts)):
            best[term] = max(best.get(term, (0.0, "")), (_WEIGHTS[field], field))
    for field in _WEIGHTS:
        shared = sorted(term for term, (_, where) in best.items() if where == field)
        if shared:
            score += _WEIGHTS[field] * sum(map(_weight, shared))
            reasons.append(f"{field}: {', '.join(shared[:8])}")
    return score, tuple(reasons)


def _texts(card: Card) -> dict[str, list[str]]:
    return {
        "triggers": list(_leaves(card.get("triggers"))),
        "name": [card.entry.name, *_leaves(card.get("name"))],
        "address": [*card.ref.segments],
        "tags": list(_leaves(card.get("tags"))),
        "description": [card.entry.description or ""],
        "required_tools": list(_leaves(card.get("required_tools"))),
        "permissions": list(_leaves(card.get("permissions"))),
    }


def _leaves(value: Any, depth: int = 6) -> Iterable[str]:
    """Every text in lists and mappings, whatever the author called them."""
    found: list[str] = []
    level: list[Any] = [value]
    for _ in range(depth):
        below: list[Any] = []
        for one in level:
            if isinstance(one, str):
                found.append(one)
            elif isinstance(one, list):
                below += one
            elif isinstance(one, Mapping):
                below += one.values()
        level = below
    return found[:MAX_TEXTS]


def _weight(term: str) -> float:
    """A pair of syllables is part of a word; a number says little by itself."""
    return 0.6 if "가" <= term[0] <= "힣" else 0.4 if term.isdigit() else 1.0


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ies", "ers", "es", "ed", "er", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word.removesuffix("e") if len(word) > 4 else word


def _squeezed(text: str) -> str:
    return "".join(_TOKEN.findall(unicodedata.normalize("NFC", text).casefold()))
