"""What changed while nobody watched: what a source lists, held against what was last told of it.

What is known is read first, then what is there, and then each difference is stored only if nothing else was told of its
address meanwhile. So it runs beside watches and beside other processes: what one of them tells in between is newer,
and what both find is stored once. The first comparison of a source tells nothing: nobody could have a number from
before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import Final

from octavo.core.clock import Clock, SystemClock
from octavo.core.ports.source import Aliases, Rejects, Source
from octavo.core.ref import Ref
from octavo.core.values import Entry
from octavo.feed.journal import ChangeJournal
from octavo.feed.known import AS_EVER, Difference, Refuses, Seen, Serving, key_of

MOST: Final = 100_000  # entries of a source that is compared unasked
PAGE: Final = 1_000  # entries that are listed at once
IN_A_ROW: Final = 100  # of them that are looked at before others have their turn
TOGETHER: Final = 100  # differences of one transaction, for which others wait


async def reconcile(
    journal: ChangeJournal,
    source: Source,
    *,
    serving: Serving = AS_EVER,
    watched: int | None = None,
    most: int | None = MOST,
    clock: Clock | None = None,
) -> int | None:
    """The number from which on every change is told; None with more than `most` entries: then it is told from the
    number on from which the source was watched. That is `watched`, or now.

    It must list all that any process would that serves it so, but for names that it refuses. Where it refuses others
    than when it was last compared, nobody can say whether what was not known then is new: it is told to nobody, and
    numbers from before are a gap."""
    clock, served = clock or SystemClock(), serving.history
    number = await journal.mark() if watched is None else watched
    begun = await journal.begun(source.scheme, served)
    known = {key: seen async for key, seen in journal.known(source.scheme, served)}

    async def settle(differences: Iterable[Difference], *, told: bool) -> None:
        rest = iter(differences)
        while some := [*islice(rest, TOGETHER)]:
            await journal.settle(some, at=clock.wall(), told=told, served=served, refuses=refusing(source))

    changed, new = list[Difference](), list[Difference]()
    are_told = begun is not None and begun.reach == serving.reach
    count = unsure = 0
    async for entry in _entries(source):
        count += 1
        if most is not None and count > most:
            await journal.give_up(source.scheme, served)
            return None
        key = key_of(entry.ref, entry, served)
        before = known.pop(key, None)
        if before is None:
            new.append(_difference(source, key, before, entry))
        elif before.version != entry.version:
            changed.append(_difference(source, key, before, entry))
        if not are_told and len(new) == TOGETHER:
            await settle(new, told=False)
            unsure += len(new)
            new.clear()
    # What is gone first: it may have made room.
    await settle((Difference(key, seen, None, None) for key, seen in known.items()), told=begun is not None)
    await settle(changed, told=begun is not None)
    await settle(new, told=are_told)
    unsure += 0 if are_told else len(new)
    return await journal.begin(source.scheme, number, serving, surely=not unsure)


async def _entries(source: Source) -> AsyncIterator[Entry]:
    cursor: str | None = None
    while True:
        page = await source.list(Ref(source.scheme), cursor=cursor, limit=PAGE)
        for place, entry in enumerate(page.items, 1):
            yield entry
            if place % IN_A_ROW == 0:
                await asyncio.sleep(0)
        cursor = page.cursor
        if cursor is None:
            return


def _difference(source: Source, key: str, before: Seen | None, entry: Entry) -> Difference:
    ref = source.canonical(entry.ref) if isinstance(source, Aliases) else entry.ref
    return Difference(key, before, ref, entry)


def refusing(source: Source) -> Refuses:
    """Whether it would not serve what it may have served once, by the names of it and of where it leads."""
    if not isinstance(source, Rejects):
        return lambda ref, entry: False

    def refuses(ref: Ref, entry: Entry | None) -> bool:
        target = None if entry is None else entry.target
        return any(one is not None and source.refuses(one) is not None for one in (ref, target))

    return refuses
