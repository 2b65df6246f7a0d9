"""Light stemming for words in Latin letters: one form for the singular, the plural, -ing and -ed."""

from __future__ import annotations

import re
import string
import unicodedata
from typing import Final

_VOWEL: Final = re.compile("[aeiouy]")
_KEEP_DOUBLE: Final = frozenset("lsz")  # calling, passing: the double letter belongs to the word
_NO_PLURAL: Final = ("ss", "us", "is")


def fold(word: str) -> str:
    """Without capitals and accents: `Café` and `cafe` are one word."""
    if word.isascii():
        return word.lower()
    apart = unicodedata.normalize("NFD", word.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in apart if not unicodedata.combining(c)))


def stem(word: str) -> str:
    """Of a folded word. The result need not be a word: pricing, priced, prices and price are `pric`."""
    if len(word) < 4 or not word.isascii():
        return word
    if word.endswith("s") and not word.endswith(_NO_PLURAL):
        word = word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and _VOWEL.search(rest):
            word = rest
            if word[-1] == word[-2] and word[-1] not in _KEEP_DOUBLE:
                word = word[:-1]
            elif word.endswith("i") and len(word) > 3:
                word = word[:-1] + "y"  # carried
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def neighbours(word: str) -> list[str]:
    """Words at one slip of the keyboard: a letter too many, too few, another, or two the other way round."""
    found: dict[str, None] = {}
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        found |= dict.fromkeys(before + letter + after for letter in string.ascii_lowercase)
        if after:
            found[before + after[1:]] = None
            found |= dict.fromkeys(before + letter + after[1:] for letter in string.ascii_lowercase)
        if len(after) > 1:
            found[before + after[1] + after[0] + after[2:]] = None
    found.pop(word, None)
    return [*found]
