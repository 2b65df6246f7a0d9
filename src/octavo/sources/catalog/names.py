"""Ids and names: `func-brand`, `brand` and `org://function/brand` are one thing to whoever refers to it."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

PREFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "function": ("func-", "function-"),
    "value-stream": ("vs-", "value-stream-", "stream-"),
    "role": ("role-",),
    "agent": ("agent-",),
    "skill": ("skill-",),
    "sop": ("sop-",),
    "doc": ("doc-",),
}
_KINDS_OF_ORG: Final = ("function", "value-stream", "role")


@lru_cache(maxsize=16_384)
def folded(text: str) -> str:
    """In one form, whatever the case and whichever dash: `value_stream` is `value-stream`."""
    return unicodedata.normalize("NFC", text).strip().casefold().replace("_", "-")


@lru_cache(maxsize=16_384)
def plain(text: str, kinds: tuple[str, ...] = ()) -> str:
    """The name in an id, a name or an address."""
    name = folded(text)
    scheme, separator, path = name.partition("://")
    if separator:
        name = path
        first, slash, rest = path.partition("/")
        if scheme == "org" and slash and first in _KINDS_OF_ORG:
            name = rest
    for kind in kinds:
        for prefix in PREFIXES.get(kind, ()):
            if name.startswith(prefix) and len(name) > len(prefix):
                return name.removeprefix(prefix)
    return name


@lru_cache(maxsize=16_384)
def alike(text: str, kinds: tuple[str, ...] = ()) -> str:
    """As `plain`, and the same for an id that has the whole path in it: `sop-brand-brief` is `sop://brand/brief`."""
    return plain(text, kinds).replace("/", "-")


def words(value: Any) -> list[str]:
    """One or many, as people write them; what is no word is left out."""
    values: list[Any] = value if isinstance(value, list) else [value]
    return [
        str(one).lower() if isinstance(one, bool) else str(one) for one in values if isinstance(one, str | int | float)
    ]
