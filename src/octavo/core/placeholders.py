"""Editing a text of which the caller may not see all: short signs stand for the hidden parts, and become them again
afterwards.

A sign is a number and the mark that the caller sees, in halves of surrogate pairs: no text has them and no request, so
nothing that a caller writes is found in one.
"""

from __future__ import annotations

import re
from typing import Final

_LETTERS: Final = 0xD800
_DIGITS: Final = 0xD900
_AS_MARKS: Final = {_LETTERS + n: chr(n) for n in range(128)} | {_DIGITS + n: "" for n in range(10)}

SIGN: Final = re.compile("([\ud900-\ud909]+)[\ud800-\ud87f]+")


def sign(number: int, mark: str) -> str:
    digits = "".join(chr(_DIGITS + int(digit)) for digit in str(number))
    return digits + "".join(chr(_LETTERS + ord(letter)) for letter in mark)


def number_of(found: re.Match[str]) -> int:
    return int("".join(str(ord(digit) - _DIGITS) for digit in found[1]))


def as_marks(text: str) -> str:
    """The text as its caller sees it: with marks for signs, also where one is cut."""
    return text if text.isascii() else text.translate(_AS_MARKS)
