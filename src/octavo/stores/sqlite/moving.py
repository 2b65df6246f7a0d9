"""All of the file, as it stands at one moment, and all of another store into it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

from octavo.core.ports.stores import LOST, Held, Portion, Record, Row, Span
from octavo.stores._shared.portions import not_empty, portions
from octavo.stores.sqlite.file import File


@asynccontextmanager
async def dumped(file: File) -> AsyncGenerator[AsyncIterator[Portion]]:
    async with file.snapshot() as read:
        left = await read(_portions)

        async def each() -> AsyncGenerator[Portion]:
            while (portion := await read(lambda _: next(left, None))) is not None:
                yield portion

        yield each()


async def loaded(file: File, from_: AsyncIterator[Portion], wall: Callable[[], float]) -> None:
    async with file.changing(bounded=False) as changing:
        asked = "SELECT EXISTS (SELECT 1 FROM pairs WHERE key <> ?) OR EXISTS (SELECT 1 FROM records)"
        if await changing.read(lambda database: database.execute(asked, (LOST,)).fetchone()[0]):
            raise not_empty()
        await changing.change(lambda database: database.execute("DELETE FROM pairs"))
        async for portion in from_:
            await changing.change(lambda database, portion=portion: _take(database, portion, wall()))  # type: ignore[misc]


def _portions(database: sqlite3.Connection) -> Iterator[Portion]:
    database.execute("BEGIN")
    span = Span(*database.execute("SELECT after, last FROM line").fetchone())  # from here on it stands still
    pairs = database.execute("SELECT key, value, ends FROM pairs ORDER BY key")
    records = database.execute("SELECT number, body FROM records ORDER BY number")
    fences = database.execute("SELECT name, fence FROM leases ORDER BY name")
    return portions(
        span,
        (Row(key, value, None if ends is None else round(ends * 1_000_000)) for key, value, ends in pairs),
        (Record(*row) for row in records),
        (Held(*row) for row in fences),
    )


def _take(database: sqlite3.Connection, portion: Portion, now: float) -> None:
    pairs = ((key, value, None if ends is None else ends / 1_000_000) for key, value, ends in portion.pairs)
    database.executemany("INSERT INTO pairs (key, value, ends) VALUES (?, ?, ?)", pairs)
    database.executemany("INSERT INTO records VALUES (?, ?)", portion.records)
    fence = (
        "INSERT INTO leases (name, fence, ends) VALUES (?, ?, ?) "
        "ON CONFLICT (name) DO UPDATE SET fence = max(fence, excluded.fence)"
    )
    database.executemany(fence, ((*held, now) for held in portion.fences))
    if portion.span is not None:
        database.execute("UPDATE line SET after = ?, last = ?", portion.span)
