"""A process that records changes in a state folder until it is killed: `python -m tests.feed.recorder FOLDER FIRST`.

Says the number of each change once it is stored."""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from octavo.core.ref import Ref
from octavo.core.values import Change, Entry
from octavo.feed.journal import ChangeJournal
from octavo.stores.sqlite import SQLiteStore


def numbered(number: int) -> Change:
    ref = Ref("note", (f"n{number % 7}",))
    return Change(kind="updated", ref=ref, at=1.0, new=Entry(ref=ref, name="n", version=str(number)))


async def main(folder: Path, first: int) -> None:
    async with SQLiteStore(folder, patience=60) as store:

        async def opened() -> SQLiteStore:
            return store

        journal = ChangeJournal(opened)
        for number in itertools.count(first, 2):
            await journal.record([numbered(number), numbered(number + 1)])
            print(number + 1, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
