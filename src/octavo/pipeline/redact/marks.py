"""Reads marks of redaction: whether something is hidden in metadata, and numbers in the place of digests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, Final

from octavo.core.marks import DIGITS, MARK
from octavo.core.values import Entry

_HIDDEN: Final = re.compile(MARK)


def numbered(text: str) -> str:
    """With numbers in the place of digests. A digest says which values are equal: whoever can have a value of his
    choice hidden would learn from it whether he has guessed another."""
    numbers = count(1)
    return _HIDDEN.sub(lambda mark: numbered_mark(mark.group(), next(numbers)), text)


def numbered_mark(mark: str, number: int) -> str:
    return f"{mark[: -DIGITS - 1]}{number % 10**DIGITS:0{DIGITS}}]"


def hides(entry: Entry, keys: Iterable[str]) -> bool:
    """Whether something is hidden in these metadata; for a key that is none of them, anywhere in the entry."""
    return hides_in(entry.metadata, (entry.name, entry.title, entry.description, entry.metadata), keys)


def hides_in(metadata: Mapping[str, Any], everything: object, keys: Iterable[str]) -> bool:
    """The same of what is told of an entry elsewhere."""
    return any(_HIDDEN.search(str(metadata.get(key, everything))) for key in keys)
