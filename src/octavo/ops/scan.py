"""What redaction would hide, without hiding it: rules, addresses and lines, never what was found."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from octavo.app.composition import Composed
from octavo.core.errors import OctavoError
from octavo.core.ports.chain import expected, page_of
from octavo.core.ref import Ref
from octavo.core.values import Call, Content, Principal


class Sighting(NamedTuple):
    """Something that would be hidden; or, without a line, a resource that could not be looked at, and why."""

    ref: Ref
    line: int | None
    what: str


async def scan(composition: Composed, scope: Ref | None, looked: Callable[[int], None]) -> AsyncIterator[Sighting]:
    """Everything exposed, or what stands below an address, whoever may read it; `looked` hears at how many so far.
    Raises what the scope's source does."""
    count = itertools.count(1)
    scopes = (
        [Ref(scheme) for scheme in composition.dispatch.exposed] if scope is None else [composition.canonical(scope)]
    )
    for place in scopes:
        try:
            async for sighting in _scan(composition, place, lambda: looked(next(count))):
                yield sighting
        except OctavoError as fault:
            if scope is not None:
                raise
            yield Sighting(place, None, fault.message)


async def _scan(composition: Composed, scope: Ref, looked: Callable[[], None]) -> AsyncIterator[Sighting]:
    cursor: str | None = None
    seen = False
    while True:
        page = page_of(await composition.dispatch(_call(composition, "list", scope)._replace(cursor=cursor)))
        for entry in page.items:
            seen = True
            looked()
            for sighting in await _sightings(composition, entry.ref):
                yield sighting
        cursor = page.cursor
        if cursor is None:
            break
    if not seen and scope.segments:  # one resource rather than a folder
        for sighting in await _sightings(composition, scope):
            yield sighting


async def _sightings(composition: Composed, ref: Ref) -> list[Sighting]:
    try:
        content = expected(await composition.dispatch(_call(composition, "read", ref)), Content)
    except OctavoError as fault:
        return [Sighting(ref, None, fault.message)]
    sightings = composition.redact.redactor(ref.scheme).sightings(content.body, content.entry.mime_type)
    return [Sighting(ref, line, rule) for line, rule in sightings]


def _call(composition: Composed, op: str, ref: Ref) -> Call:
    return composition.calls.at("list" if op == "list" else "read", Principal("local"), ref)
