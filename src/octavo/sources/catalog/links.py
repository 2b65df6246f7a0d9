"""Addresses and relative links in the text of a file that lead nowhere."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from octavo.core.errors import OctavoError
from octavo.core.ref import Ref
from octavo.sources.catalog.card import Card
from octavo.sources.catalog.handbook import Pages
from octavo.sources.catalog.problems import Problem

MAX_LINKED: Final = 1 << 20  # bytes of a text that is looked at

_ADDRESS: Final = re.compile(r"(?<![\w+.:/-])(?P<scheme>[a-z][a-z0-9+.-]{0,63})://(?P<path>[^\s<>()\[\]\"'`|,;\\]+)")
_RELATIVE: Final = re.compile(r"\]\(\s*<?(?P<path>[^()<>\s:#?@]+\.(?:md|markdown|yml|yaml))(?:#[^()<>\s]*)?[>\s)]")
_BEHIND: Final = ".:!?*_~。、"  # what ends a sentence, or emphasis
_PARTICLE: Final = re.compile(r"[가-힣]{1,6}\Z")


def dangling(card: Card, text: str, pages: Pages) -> Iterator[Problem]:
    """A warning each: a text may speak of addresses that it does not mean to lead to."""
    told = frozenset(card.lines.values())  # references of the front matter are checked for themselves
    for number, link in nowhere(text, pages, card.file):
        if number not in told:
            yield Problem(card.file, number, f"{link[:200]} leads nowhere", card.ref, serious=False)


def nowhere(text: str, pages: Pages, file: str = "") -> Iterator[tuple[int, str]]:
    """Line by line the addresses in a text, and the links relative to its file, behind which there is nothing.

    Only catalogs are looked at: what other sources and folders hold is not known here.
    """
    for number, line in enumerate(text.splitlines(), 1):
        for scheme, uri in _mentioned(line):
            if scheme in pages.schemes and not _leads(uri, pages):
                yield number, uri
        for found in _RELATIVE.finditer(line) if file and "](" in line else ():
            target = posixpath.normpath(posixpath.join(posixpath.dirname(file), unquote(found["path"])))
            if pages.keeps(target) and target not in pages.files:
                yield number, found["path"]


def _mentioned(line: str) -> Iterator[tuple[str, str]]:
    """Scheme and address of everything that is one; patterns and templates are none."""
    for found in _ADDRESS.finditer(line) if "://" in line else ():
        if "/*" not in found[0] and "{" not in found[0]:
            yield found["scheme"], found[0].partition("#")[0].rstrip(_BEHIND)


def _leads(uri: str, pages: Pages) -> bool:
    """In Korean a particle stands right behind a word, and an address is one."""
    return any(_is_held(one, pages) for one in dict.fromkeys((uri, _PARTICLE.sub("", uri))))


def _is_held(uri: str, pages: Pages) -> bool:
    try:
        return pages.holds(Ref.parse(uri).bare)
    except OctavoError:
        return False
