"""All that the schema keeps, as it stands at one moment, and all of another store into it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from octavo.core.ports.stores import Held, Portion, Record, Row, Span
from octavo.stores._shared.portions import ENOUGH, not_empty
from octavo.stores.postgres import statements
from octavo.stores.postgres.pool import Pool

ROWS = 1_000  # of one portion


@asynccontextmanager
async def dumped(pool: Pool) -> AsyncGenerator[AsyncIterator[Portion]]:
    async with pool.snapshot() as fetch:

        async def each() -> AsyncGenerator[Portion]:
            yield Portion(span=Span(*(await fetch(statements.SPAN))[0]))
            async for rows in _pages(fetch, "pairs", statements.LARGEST_PAIR, statements.ALL_PAIRS):
                yield Portion(pairs=[Row(*row) for row in rows])
            async for rows in _pages(fetch, "records", statements.LARGEST_RECORD, statements.ALL_RECORDS):
                yield Portion(records=[Record(*row) for row in rows])
            async for rows in _pages(fetch, "fences", statements.LARGEST_FENCE, statements.ALL_FENCES):
                yield Portion(fences=[Held(*row) for row in rows])

        yield each()


async def _pages(fetch: Callable[..., Any], name: str, largest: str, query: str) -> AsyncGenerator[Any]:
    """As many rows at a time as fit into memory when each is as large as the largest."""
    rows = max(1, min(ROWS, ENOUGH // max(1, (await fetch(largest))[0][0])))
    await fetch(f"DECLARE {name} NO SCROLL CURSOR FOR {query}")
    while some := await fetch(f"FETCH {rows} FROM {name}"):
        yield some


async def loaded(pool: Pool, from_: AsyncIterator[Portion]) -> None:
    async with pool.transaction(bounded=False) as connection:

        async def run(query: str, *values: object) -> Any:
            return await pool.within(connection, query, *values)

        if (await run(statements.IS_KEPT))[0][0]:
            raise not_empty()
        async for portion in from_:
            if portion.pairs:
                await run(statements.PUT_PAIRS, *map(list, zip(*portion.pairs, strict=True)))
            if portion.records:
                await run(statements.PUT_RECORDS, *map(list, zip(*portion.records, strict=True)))
            if portion.fences:
                await run(statements.PUT_FENCES, *map(list, zip(*portion.fences, strict=True)))
            if portion.span is not None:
                await run(statements.PUT_SPAN, *portion.span)
