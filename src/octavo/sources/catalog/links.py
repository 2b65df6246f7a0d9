"""Addresses in the text of a file that lead nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from octavo.core.errors import OctavoError
from octavo.core.ref import Ref
from octavo.sources.catalog.card import Card
from octavo.sources.catalog.handbook import Pages
from octavo.sources.catalog.problems import Problem

MAX_LINKED: Final = 1 << 20  # bytes of a text that is looked at

_ADDRESS: Final = re.compile(r"(?<![\w+.:/-])(?P<scheme>[a-z][a-z0-9+.-]{0,63})://(?P<path>[^\s<>()\[\]\"'`|,;]+)")
_BEHIND: Final = ".:!?*_~。、"  # what ends a sentence, or emphasis
_PARTICLE: Final = re.compile(r"[가-힣]{1,6}\Z")


def dangling(card: Card, text: str, pages: Pages) -> Iterator[Problem]:
    """A warning each: a text may speak of addresses that it does not mean to lead to."""
    told = frozenset(card.lines.values())  # references of the front matter are checked for themselves
    for number, scheme, uri in _mentioned(text):
        if number not in told and scheme in pages.schemes and not _leads(uri, pages):
            yield Problem(card.file, number, f"{uri[:200]} leads nowhere", card.ref, serious=False)


def _mentioned(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, scheme and address of everything that is one; patterns and templates are none."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in _ADDRESS.finditer(line) if "://" in line else ():
            if "/*" not in found[0] and "{" not in found[0]:
                yield number, found["scheme"], found[0].rstrip(_BEHIND)


def _leads(uri: str, pages: Pages) -> bool:
    """In Korean a particle stands right behind a word, and an address is one."""
    return any(_is_held(one, pages) for one in dict.fromkeys((uri, _PARTICLE.sub("", uri))))


def _is_held(uri: str, pages: Pages) -> bool:
    try:
        return pages.holds(Ref.parse(uri).bare)
    except OctavoError:
        return False
