"""The cursors of the tools that walk over files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from octavo.core.values import Entry, Page

# Gives one page: (cursor, limit).
Ask = Callable[[str | None, int], Awaitable[Page[Entry]]]


class WalkStep(NamedTuple):
    """One file of a walk, with what is needed to stop before or after it."""

    entry: Entry
    page: Page[Entry]
    cursor: str | None  # of the page
    number: int  # on the page, from 0


class PagedWalk:
    """Files page by page, from a cursor on. Only pages that are needed are asked."""

    def __init__(self, ask: Ask, cursor: str | None, *, page: int) -> None:
        self._ask, self._cursor, self._limit = ask, cursor, page

    async def __aiter__(self) -> AsyncIterator[WalkStep]:
        cursor = self._cursor
        while True:
            page = await self._ask(cursor, self._limit)
            for number, entry in enumerate(page.items):
                yield WalkStep(entry, page, cursor, number)
            if page.cursor is None:
                return
            cursor = page.cursor

    async def before(self, step: WalkStep) -> str | None:
        """The cursor with which a walk begins at this file; None is the beginning."""
        if not step.number:
            return step.cursor
        page = await self._ask(step.cursor, step.number)
        last = step.page.items[step.number - 1].ref
        if page.cursor is not None and page.items and page.items[-1].ref == last:
            return page.cursor
        return step.cursor  # it has changed meanwhile: rather tell something twice than leave it out
