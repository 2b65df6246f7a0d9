"""Addresses and relative links in the text of a file: where they lead, and which of them lead nowhere."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Final

from octavo.core.errors import OctavoError
from octavo.core.ref import Ref
from octavo.core.sizes import MIB
from octavo.sources.catalog.crossrefs import Pages
from octavo.sources.catalog.declaration import ending_of
from octavo.sources.catalog.problems import FileProblem
from octavo.sources.catalog.record import Card
from octavo.text.references import referring

MAX_LINKED: Final = MIB  # bytes of a text that is looked at

_ADDRESS: Final = re.compile(r"(?<![\w+.:/-])(?P<scheme>[a-z][a-z0-9+.-]{0,63})://(?P<path>[^\s<>()\[\]\"'`|,;\\]+)")
_BEHIND: Final = ".:!?*_~。、"  # what ends a sentence, or emphasis
_PARTICLE: Final = re.compile(r"[가-힣]{1,6}\Z")


def dangling(card: Card, text: str, pages: Pages, may_be: Callable[[str], bool]) -> Iterator[FileProblem]:
    """A remark each: a text may speak of addresses that it does not mean to lead to. `may_be` says whether a file of
    the whole store is there, whether a catalog serves it, another source does, or nobody."""
    told = frozenset(card.lines.values())  # references of the front matter are checked for themselves
    for number, link in nowhere(text, pages):
        if number not in told:
            said = "an address leads nowhere"
            yield FileProblem(card.file, number, f"{link[:200]} leads nowhere", card.ref, serious=False, group=said)
    for number, path in referring(text, ending_of(card.place[-1])):
        if path.startswith("/") or not ending_of(path) or pages.linked(card, path) is not None:
            continue  # what stands at the root of a site only its builder knows
        target = posixpath.normpath(posixpath.join(posixpath.dirname(card.file), path))
        if not pages.keeps(target) or pages.is_part(card, target):
            continue
        which = "is not served as a document" if may_be(target) else "leads nowhere"
        yield FileProblem(card.file, number, f"{path[:200]} {which}", card.ref, serious=False, group=f"a link {which}")


def nowhere(text: str, pages: Pages) -> Iterator[tuple[int, str]]:
    """Line by line the addresses in a text behind which there is nothing.

    Only catalogs are looked at: what other sources and folders hold is not known here.
    """
    for number, line in enumerate(text.splitlines(), 1):
        for scheme, uri in _mentioned(line):
            if scheme in pages.schemes and not _leads(uri, pages):
                yield number, uri


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
