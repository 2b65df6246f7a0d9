"""A loan word in the other script: `훅` and `hook`, `타입스크립트` and `typescript`, by how it sounds.

A Korean spelling says how a word sounds; from that follows which Latin spellings it may have, as a regular expression.
The words that are there are compared with it, so nothing is made up. What sounds otherwise than it is written stands
in a table.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice, product
from typing import Final

from octavo.search import english

_FIRST, _LAST = 0xAC00, 0xD7A3
_FINALS: Final = 28
_VOWELS: Final = 21
LONGEST: Final = 10  # syllables
_SHORTEST_LATIN: Final = 3
_LONGEST_LATIN: Final = 24
_MOST_VARIANTS: Final = 16

_LETTERS: Final = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
# In the order of _LETTERS: what a syllable may begin with.
_INITIALS: Final = (
    "g+h?", "g|k|c", "k?n+", "d+|th", "d|t", "l+|w?r+h?", "m+", "b+|v", "p|b", "s+|c+|th|sh|ch|sc|ps|ss?i(?=o)|t(?=io)",
    "s+|c|th", "", "j|z+|g|dg|s|d|ge", "j|z|tch", "t?ch|t(?=u)|c", "c+|k+|ck|qu?|ch", "t+h?", "p+h?|f+", "w?h|f",
)  # fmt: skip
# ㅏ ㅐ ㅑ ㅒ ㅓ ㅔ ㅕ ㅖ ㅗ ㅘ ㅙ ㅚ ㅛ ㅜ ㅝ ㅞ ㅟ ㅠ ㅡ ㅢ ㅣ
_MIDDLES: Final = (
    "a+r?|o|u|i|y|al|ea", "a|e|ai|ea", "y?a|ia|o", "y?e", "u+r?|o+r?|e+r?|a+r?|i?r|ou|io|ea|re|le",
    "e+|ae?|ai|ay|ea|ei", "y?eo?|io|yu|yo", "y?e", "o+r?|oar?|ow|oe|au|aw|a|ou|al", "wa|oa|oi|wi", "we|wa", "oe|we",
    "y?o|io|eo", "u|oo|ou|o|ew?|w|ue|oe", "wo|wa|uo|wor", "we|ue|wa|e", "w?i|ui|we", "y?u|e?w|iew|ue|eu|you", "e|o|u|",
    "ui|i", "i+|e+|ea|y|ie|ey|ei|a(?=g)|",
)  # fmt: skip
# By number: none, ㄱ, ㄴ, ㄹ, ㅁ, ㅂ, ㅅ, ㅇ; others end no loan word.
_ENDS: Final = {
    0: "", 1: "c?k|c+|g+|ch?|que?|gue", 4: "g?n+|nd", 8: "l+e?|r", 16: "m+b?", 17: "p+|b+",
    19: "t+|d|s+|th|x", 21: "ng?",
}  # fmt: skip
_KEYED_LETTERS: Final = dict(zip("kqbpfvtdszjlmn", "KKPPPPTTTTTLMN", strict=True))
_KEYED_INITIALS: Final = "KKNTTLMPPTT TTTKTPH"
_KEYED_ENDS: Final = {0: "", 1: "K", 4: "N", 8: "L", 16: "M", 17: "P", 19: "T", 21: "N"}
_EXCEPTIONS: Final = (
    ("쿠버네티스", "kubernetes"), ("큐", "queue"), ("쿼리", "query"), ("에이피아이", "api"), ("유알엘", "url"),
    ("스키마", "schema"), ("템플릿", "template"), ("콘텐츠", "content"), ("깃허브", "github"),
    ("애플리케이션", "application"), ("아키텍처", "architecture"),
)  # fmt: skip
_TO_LATIN: Final = {hangul: english.stem(latin) for hangul, latin in _EXCEPTIONS}
_TO_HANGUL: Final = {latin: hangul for hangul, latin in _TO_LATIN.items()}
_VOWEL_LETTERS: Final = frozenset("aeiouy")


def is_hangul(word: str) -> bool:
    return all(_FIRST <= ord(one) <= _LAST for one in word)


def sounds_like(hangul: str, latin: str) -> bool:
    """Whether both may be one word; the Latin one may have lost its last letters to stemming."""
    if hangul in _TO_LATIN or latin in _TO_HANGUL:
        return _TO_LATIN.get(hangul) == latin
    pattern = _spelled(hangul)
    return pattern is not None and pattern.fullmatch(latin) is not None


def keys(word: str) -> list[tuple[str, bool]]:
    """By which a token is found as a loan word, and whether it is in Hangul; none for what cannot be one."""
    if word in _TO_LATIN:
        return [(_TO_LATIN[word], True)]
    if word in _TO_HANGUL:
        return [(word, False)]
    if word.isascii():
        if not (word.isalpha() and _SHORTEST_LATIN <= len(word) <= _LONGEST_LATIN):
            return []
        return [(key, False) for key in _latin_keys(word)]
    key = _hangul_key(word)
    return [(key, True)] if key else []


def _hangul_key(word: str) -> str:
    """Its consonants, roughly: the same for all spellings of what sounds alike. Empty for what is no loan word."""
    if not is_hangul(word) or len(word) > LONGEST or (len(word) == 1 and not _is_closed(word)):
        return ""
    found: list[str] = []
    for one in word:
        first, rest = divmod(ord(one) - _FIRST, _VOWELS * _FINALS)
        end = _KEYED_ENDS.get(rest % _FINALS)
        if end is None:
            return ""
        found.append(_KEYED_INITIALS[first] + end)
    if _is_ing(word[-1]):  # which stemming takes off
        found[-1] = found[-1][:-1]
    return _squeezed("".join(found))


def _latin_keys(word: str) -> set[str]:
    """The same for a Latin spelling; several where letters have several sounds."""
    choices: list[tuple[str, ...]] = []
    for place, letter in enumerate(word):
        behind = word[place + 1 : place + 2]
        choices.append(_keyed(letter, behind, word[place - 1 : place]))
    spelled = product(*(choice for choice in choices if choice != ("",)))
    return {_squeezed("".join(one)) for one in islice(spelled, _MOST_VARIANTS)}


def _keyed(letter: str, behind: str, before: str) -> tuple[str, ...]:
    if letter in _VOWEL_LETTERS or letter == "w":
        return ("",)
    if letter == "r":  # behind a vowel it is not heard
        return ("L",) if behind in _VOWEL_LETTERS and behind else ("",) if behind else ("", "L")
    if letter == "h":
        return ("",) if before and before in "cstpgrw" else ("H",)
    if letter == "x":
        return ("KT", "T")
    if letter == "g":
        return ("K", "") if before == "n" or behind == "n" else ("K", "T")
    if letter == "c":
        return ("K",) if behind and behind in "aoukrlt" else ("T", "K")
    return (_KEYED_LETTERS[letter],)


def _squeezed(key: str) -> str:
    key = key.replace(" ", "")
    return "".join(sound for sound, before in zip(key, " " + key, strict=False) if sound != before)


def _is_closed(syllable: str) -> bool:
    """Whether a consonant ends it: of those that end with a vowel nearly all are something else."""
    return (ord(syllable) - _FIRST) % _FINALS != 0


def _is_ing(syllable: str) -> bool:
    return (ord(syllable) - _FIRST) % (_VOWELS * _FINALS) == 20 * _FINALS + 21


def _begun(first: int, middle: int, place: int) -> tuple[str, int]:
    """How the beginning of a syllable is spelled, and the vowel that is left to be."""
    if first < 0:
        return "(?:s|c|)", middle
    if first == _LETTERS.index("ㅅ") and middle == 6:  # 션
        return "(?:[tsc]+h?i?)", middle
    if first == 11 and middle == 20 and place:  # 이 behind a vowel belongs to it
        return "(?:i|y|e|)", -1
    return (f"(?:{_INITIALS[first]})" if _INITIALS[first] else ""), middle


@lru_cache(maxsize=1 << 12)
def _spelled(word: str) -> re.Pattern[str] | None:
    """The Latin spellings of a Korean word; None where no loan word is spelled so."""
    if not 1 <= len(word) <= LONGEST or not is_hangul(word):
        return None
    taken = [divmod(ord(one) - _FIRST, _VOWELS * _FINALS) for one in word]
    parts: list[str] = []
    for place, (first, rest) in enumerate(taken):
        middle, final = divmod(rest, _FINALS)
        end = _ENDS.get(final)
        if end is None:
            return None
        following = taken[place + 1][0] if place + 1 < len(taken) else -1
        begun, middle = _begun(first, middle, place)
        parts.append(begun)
        if place and place == len(word) - 1 and _is_ing(word[-1]):
            parts.append("(?:ing)?")
            break
        parts.append(f"(?:{_MIDDLES[middle]})" if middle >= 0 else "")
        if final == 1 and following == 9:  # 익스: ks is written x
            parts.append("(?:x|(?:c?k|c+)(?=s|c))")
            taken[place + 1] = (-1, taken[place + 1][1])
        elif final == 8 and following == 5:  # ㄹㄹ is one l
            parts.append("")
        elif end:
            parts.append(f"(?:{end})e?")
    spelled = "".join(parts) + ("(?:e|r|er|re)?" if len(word) > 1 else "e?")
    return re.compile(spelled.replace("+", "++"))  # a run of letters is one sound: no other way to part it is tried
