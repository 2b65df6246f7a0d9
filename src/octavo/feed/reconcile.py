"""What changed while nobody watched: what a source lists, held against what was last told of it.

What is known is read first, then what is there, and then each difference is stored only if nothing else was told of its
address meanwhile. So it runs beside watches and beside other processes: what one of them tells in between is newer,
and what both find is stored once. The first comparison of a source tells nothing: nobody could have a number from
before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Final

from octavo.core.clock import Clock, SystemClock
from octavo.core.ports.source import Aliases, Source
from octavo.core.ref import Ref
from octavo.core.values import Entry
from octavo.feed.journal import ChangeJournal, Difference, Seen, key_of

MOST: Final = 100_000  # entries of a source that is compared unasked
PAGE: Final = 1_000  # entries that are listed at once
TOGETHER: Final = 100  # differences of one transaction, for which others wait


async def reconcile(
    journal: ChangeJournal,
    source: Source,
    *,
    served: str = "",
    watched: int | None = None,
    most: int | None = MOST,
    clock: Clock | None = None,
) -> bool:
    """Whether everything is told now. With more than `most` entries it is not, and numbers from before its watch began
    are a gap. The source has to be watched, by now or since the number `watched`, and must list all that any process
    would that serves it so: under another name in `served` it is another source, and is compared for the first time."""
    clock = clock or SystemClock()
    number = await journal.mark() if watched is None else watched
    goes_on = await journal.begun(source.scheme, served) is not None
    known = await journal.known(source.scheme, served)
    there: dict[str, Entry] = {}
    cursor: str | None = None
    while True:
        page = await source.list(Ref(source.scheme), cursor=cursor, limit=PAGE)
        there |= {key_of(entry.ref, entry, served): entry for entry in page.items}
        if most is not None and len(there) > most:
            await journal.give_up(source.scheme, served)
            return False
        cursor = page.cursor
        if cursor is None:
            break
        await asyncio.sleep(0)
    differences = _differences(source, known, there)
    while some := [*islice(differences, TOGETHER)]:
        await journal.settle(some, at=clock.wall(), told=goes_on, served=served)
    await journal.begin(source.scheme, number, served)
    return True


def _differences(source: Source, known: dict[str, Seen], there: dict[str, Entry]) -> Iterator[Difference]:
    """What is gone first: it may have made room."""
    for key, seen in known.items():
        if key not in there:
            yield Difference(key, seen, None, None)
    for key, entry in there.items():
        seen_before = known.get(key)
        if seen_before is None or seen_before.version != entry.version:
            ref = source.canonical(entry.ref) if isinstance(source, Aliases) else entry.ref
            yield Difference(key, seen_before, ref, entry)
