"""Denies that match nothing that is there today: a name may be misspelt, and its deny would come too late."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.ports.chain import page_of
from octavo.core.ref import Ref
from octavo.core.values import Principal

if TYPE_CHECKING:
    from octavo.app.composition import Composed

MOST: Final = 20_000  # entries of one source that are looked at; of a larger one nothing is said
_PAGE: Final = 500
_NOBODY: Final = Principal("")


class Unmatched(NamedTuple):
    rule: int
    pattern: str
    nearest: str  # an address that is there; empty where none is near


async def unmatched(works: Composed) -> AsyncIterator[Unmatched]:
    found: dict[str, list[Ref] | None] = {"tool": [Ref("tool", (name,)) for name in works.tools.names]}
    known = {*works.dispatch.exposed, "tool", "prompt"}
    for number, rule in enumerate(works.config.policy):
        for pattern in rule.what if rule.effect == "deny" else ():
            glob = Glob(pattern)
            scheme = glob.scheme
            if glob.literal.absolute or not glob.literal.segments or scheme not in known:
                continue
            if scheme not in found:
                found[scheme] = await _entries(works, scheme)
            refs = found[scheme]
            if refs is not None and not any(glob.matches(one) for ref in refs for one in _called(works, ref)):
                yield Unmatched(number, pattern, _nearest(glob.literal, refs))


async def _entries(works: Composed, scheme: str) -> list[Ref] | None:
    """None where there are too many, or it does not answer."""
    refs: list[Ref] = []
    cursor: str | None = None
    while len(refs) <= MOST:
        call = works.calls.listing(_NOBODY, Ref(scheme), cursor)._replace(limit=_PAGE)
        try:
            page = page_of(await works.behind(call))
        except OctavoError:
            return None
        refs += [works.canonical(entry.ref) for entry in page.items]
        cursor = page.cursor
        if cursor is None:
            return refs
    return None


def _called(works: Composed, ref: Ref) -> Iterable[Ref]:
    """A rule may be about a folder, and may name an entry by its id."""
    return (*_with_those_above(ref), *chain(*works.called(ref)))


def _with_those_above(ref: Ref) -> Iterable[Ref]:
    """A rule may be about a folder."""
    return (ref._replace(segments=ref.segments[:end]) for end in range(1, len(ref.segments) + 1))


def _nearest(literal: Ref, refs: Iterable[Ref]) -> str:
    """By the first name of the pattern that is not there."""
    known = {above.segments for ref in refs for above in _with_those_above(ref)}
    depth = next((end for end in range(1, len(literal.segments) + 1) if literal.segments[:end] not in known), 0)
    if not depth:
        return ""
    beside = [names[-1] for names in known if len(names) == depth and names[:-1] == literal.segments[: depth - 1]]
    near = get_close_matches(literal.segments[depth - 1], beside, n=1)
    return str(Ref(literal.scheme, (*literal.segments[: depth - 1], near[0]))) if near else ""
