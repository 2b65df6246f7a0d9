"""The store of the configuration, and what is shared beside it, for as long as the server runs: opened by their first
use, and outliving reloads; and what the change feed keeps there."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from octavo.app.narrowing import Narrowing
from octavo.config.load import Loaded, state_directory
from octavo.config.sections.source import Options
from octavo.config.sections.stores import Postgres, Shared, Store
from octavo.core.errors import SourceUnavailable
from octavo.core.ports.stores import STORE_FILE, Bus, Opens
from octavo.feed.journal import ChangeJournal
from octavo.feed.known import Serving
from octavo.feed.reconcile import MOST
from octavo.feed.storing import Storing
from octavo.stores import earlier
from octavo.stores.in_use import InUse

if TYPE_CHECKING:
    from octavo.stores.memory import MemoryStore
    from octavo.stores.postgres import PostgresStore
    from octavo.stores.presence import Presence
    from octavo.stores.redis import RedisShared
    from octavo.stores.sqlite import SQLiteStore

    Opened: TypeAlias = MemoryStore | PostgresStore | SQLiteStore

T = TypeVar("T")
_ANYHOW: Final = {"cache", "expose"}  # options that change nothing of what is there


class Home:
    """`folder` is the state folder. Without one the store is memory, of whatever kind it is to be: versions and marks
    are made with the secret of the folder, so what is kept elsewhere would fit nothing after the end of the process.
    Then nothing is `shared` either. `mends` is whether a file that is damaged is set aside, and a new one begun."""

    def __init__(
        self, section: Store, folder: Path | None, shared: Shared | None = None, *, mends: bool = True
    ) -> None:
        self._section, self._folder, self._shared = section, folder, None if folder is None else shared
        self._mends = mends
        self._in_use = InUse(folder)
        self._store: _Once[Opened] = _Once(self._made_up)
        self._bus: _Once[RedisShared] = _Once(self._made_shared)

    def begin(self) -> None:
        """From now on nobody moves the state away. Raises SourceUnavailable while somebody does."""
        self._in_use.begin()

    async def store(self) -> Opened:
        """Opened by the first call: no start waits for it. Raises SourceUnavailable, and the next call tries again."""
        if asyncio.current_task() is None:  # a request that was never waited for has none, and limits of time need one
            await asyncio.sleep(0)
        return await self._store.opened()

    async def bus(self) -> Bus | None:
        """The same, of what wakes other servers; None where nothing is shared."""
        return None if self._shared is None else (await self._bus.opened()).bus

    def presence(self) -> Presence:
        """By which other processes on the same state know that this one lives."""
        from octavo.stores.presence import InFolder, InStore

        shared = self._folder is not None and isinstance(self._section, Postgres)
        return InStore(self.store) if shared else InFolder(self._folder)

    async def close(self) -> None:
        await self._bus.close()
        await self._store.close()
        self._in_use.end()

    def _made_shared(self) -> RedisShared:
        from octavo.stores.redis import RedisShared

        assert self._shared is not None
        return RedisShared(self._shared.url.get_secret_value(), name=self._shared.name, patience=self._shared.time)

    @asynccontextmanager
    async def _made_up(self) -> AsyncGenerator[Opened]:
        """With what earlier versions kept elsewhere."""
        self.begin()
        async with self._made() as opened:
            if self._folder is not None:
                await earlier.take_in(opened, self._folder)
            yield opened

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

        return SQLiteStore(self._folder, mends=self._mends)


def looked_at(loaded: Loaded, work: Callable[[Opens], Awaitable[T]]) -> T:
    """What `work` finds in the store, for a command that only shows: where nothing is kept, nothing is made."""
    folder = state_directory(loaded)
    section = loaded.config.store
    kept = isinstance(section, Postgres) or os.path.lexists(folder / STORE_FILE) or bool(earlier.left(folder))

    async def main() -> T:
        home = Home(section, folder if kept else None, mends=False)
        try:
            return await work(home.store)
        finally:
            await home.close()

    return asyncio.run(main())


class _Once(Generic[T]):
    """Opened by its first use, and closed once."""

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._make = make
        self._stack = AsyncExitStack()
        self._opened: T | None = None
        self._closed = False
        self._turn = asyncio.Lock()

    async def opened(self) -> T:
        async with self._turn:
            if self._closed:
                raise SourceUnavailable("The server is ending: its store is closed")
            if self._opened is None:
                async with AsyncExitStack() as trying:
                    opened = await trying.enter_async_context(self._make())
                    self._stack, self._opened = trying.pop_all(), opened
            return self._opened

    async def close(self) -> None:
        async with self._turn:
            self._closed, self._opened = True, None
            await self._stack.aclose()


def storing_of(loaded: Loaded, home: Home) -> Storing:
    options = loaded.config.feed
    journal = ChangeJournal(home.store, keep=options.keep, age=options.age)
    return Storing(journal, most=None if options.catch_up else MOST, bus=home.bus)


def serving_of(loaded: Loaded, narrowing: Narrowing, key: bytes) -> dict[str, Serving]:
    """How each source is served, by its scheme. With the `key` of the state folder: versions are made with its secret,
    so that servers with other folders know other versions of the same."""
    sources = loaded.config.sources
    found: dict[str, Serving] = {}
    for source in sources.values():
        by_name = source.record.by_name if "refuse" in source.can else frozenset[str]()
        whole, reach = [str(loaded.base), source.model_dump_json(exclude={*_ANYHOW, *by_name})], list[str]()
        over = source.over
        below = None if over is None else sources.get(over.store)
        if below is not None:
            whole += [below.model_dump_json(exclude=_ANYHOW), *_left_of(below, narrowing)]
        if narrowing.relative and source.record.extensions is not None:
            whole.append("relative")
        (reach if by_name else whole).extend(_left_of(source, narrowing))
        reach.append(source.model_dump_json(include={*by_name}))
        found[source.scheme] = Serving(_digest(key, whole), _digest(key, reach))
    return found


def _left_of(source: Options, narrowing: Narrowing) -> Iterator[str]:
    """What the wishes of a client leave of it; nothing where it is whole."""
    if source.record.extensions is None:
        return
    yield from (
        f"{place} {left}"
        for place, one in enumerate(source.folders)
        if (left := narrowing.within(one.path)) is not None
    )
    if narrowing.extensions is not None:
        yield f"only {sorted(narrowing.extensions)}"


def _digest(key: bytes, parts: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(parts).encode(), key=key, digest_size=16).hexdigest()
