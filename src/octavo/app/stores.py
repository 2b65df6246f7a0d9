"""The store of the configuration, for as long as the server runs: opened by its first use, and outliving reloads."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from octavo.config.sections.stores import Postgres, Store
from octavo.core.errors import SourceUnavailable

if TYPE_CHECKING:
    from octavo.stores.memory import MemoryStore
    from octavo.stores.postgres import PostgresStore
    from octavo.stores.sqlite import SQLiteStore

    Opened: TypeAlias = MemoryStore | PostgresStore | SQLiteStore


class Home:
    """`folder` is the state folder. Without one the store is memory, of whatever kind it is to be: versions and marks
    are made with the secret of the folder, so what is kept elsewhere would fit nothing after the end of the process."""

    def __init__(self, section: Store, folder: Path | None) -> None:
        self._section, self._folder = section, folder
        self._stack = AsyncExitStack()
        self._opened: Opened | None = None
        self._closed = False
        self._turn = asyncio.Lock()

    async def store(self) -> Opened:
        """Opened by the first call: no start waits for it. Raises SourceUnavailable, and the next call tries again."""
        async with self._turn:
            if self._closed:
                raise SourceUnavailable("The server is ending: its store is closed")
            if self._opened is None:
                opened: Opened = await self._stack.enter_async_context(self._made())
                self._opened = opened
            return self._opened

    async def close(self) -> None:
        async with self._turn:
            self._closed, self._opened = True, None
            await self._stack.aclose()

    def _made(self) -> Opened:
        """Each kind is imported where it is used: nobody waits for a driver that he does not need."""
        if self._folder is None:
            from octavo.stores.memory import MemoryStore

            return MemoryStore()
        if isinstance(self._section, Postgres):
            from octavo.stores.postgres import PostgresStore

            url = self._section.url.get_secret_value()
            return PostgresStore(url, schema=self._section.tables, patience=self._section.time)
        from octavo.stores.sqlite import SQLiteStore

        return SQLiteStore(self._folder)
