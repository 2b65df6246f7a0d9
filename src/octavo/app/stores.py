"""The store of the configuration, for as long as the server runs: opened by its first use, and outliving reloads; and
what the change feed keeps in it."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from octavo.config.load import Loaded
from octavo.config.sections.stores import Postgres, Store
from octavo.core.errors import SourceUnavailable
from octavo.feed.journal import ChangeJournal
from octavo.feed.reconcile import MOST
from octavo.feed.storing import Storing

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


def storing_of(loaded: Loaded, home: Home) -> Storing:
    options = loaded.config.feed
    journal = ChangeJournal(home.store, keep=options.keep, age=options.age)
    return Storing(journal, most=None if options.catch_up else MOST)


def served_as(loaded: Loaded) -> dict[str, str]:
    """How each source is served, by its scheme: another digest where its section, or that of its store, is another."""
    sources = loaded.config.sources
    found: dict[str, str] = {}
    for source in sources.values():
        below = sources.get(getattr(source, "store", ""))
        parts = [str(loaded.base), *(one.model_dump_json() for one in (source, below) if one is not None)]
        found[source.scheme] = hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
    return found
