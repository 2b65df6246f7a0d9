"""The running house: the works of the current configuration, and what outlives a reload."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, cast

from octavo.app.compose import Works, compose
from octavo.config.load import Loaded, state_directory
from octavo.core.ports import Ledger
from octavo.feed import ChangeFeed
from octavo.stores.ledger import FileLedger, MemoryLedger
from octavo.stores.state import StateDirectory

GRACE = 30.0  # seconds that calls on old works have after a reload


class Octavo:
    """The running house. An async context manager: entered once, left once."""

    def __init__(self, loaded: Loaded, *, state: StateDirectory | None = None) -> None:
        self._loaded = loaded
        self._state = state or StateDirectory.open(state_directory(loaded))
        audit = loaded.config.audit
        self.feed = ChangeFeed()
        self.ledger: Ledger = (
            MemoryLedger()
            if self._state.audit is None
            else FileLedger(
                self._state.audit,
                self._state.key("audit"),
                sync=audit.sync,
                max_bytes=audit.rotate,
                keep=audit.keep,
                fail_closed=audit.fail_closed,
            )
        )
        self._works: Works | None = None
        self._open: AsyncExitStack | None = None
        self._unfollow: Callable[[], Awaitable[None]] | None = None
        self._swapping = asyncio.Lock()
        self._on_swap: list[Callable[[], None]] = []
        self._retiring: set[asyncio.Task[None]] = set()

    @property
    def works(self) -> Works:
        if self._works is None:
            raise RuntimeError("The house is not open")
        return self._works

    def key(self, purpose: Any) -> bytes:
        return self._state.key(purpose)

    def note(self, who: str, what: str, outcome: str, **fields: Any) -> None:
        self.works.audit.note(who, what, outcome, **fields)

    def on_swap(self, listener: Callable[[], None]) -> None:
        self._on_swap.append(listener)

    async def __aenter__(self) -> Octavo:
        try:
            await self._swap(self._loaded)
        except BaseException:
            self._close_ledger()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.feed.close()
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        if self._open is not None:
            await self._open.aclose()
        self._close_ledger()

    async def reload(self, loaded: Loaded) -> None:
        """Swap to another configuration. Raises, and changes nothing, when it cannot be composed."""
        async with self._swapping:  # of two at once the later one stays
            await self._swap(loaded)
            for listener in self._on_swap:
                listener()

    def _close_ledger(self) -> None:
        cast("FileLedger | MemoryLedger", self.ledger).close()

    async def _swap(self, loaded: Loaded) -> None:
        stack = AsyncExitStack()
        try:
            works = await compose(loaded, self._state, self.ledger, self.feed, stack)
        except BaseException:
            await stack.aclose()
            raise
        old, self._open = self._open, stack
        self._works, self._loaded = works, loaded
        stack.callback(self.feed.subscribe(works.cache.forget))
        unfollow, self._unfollow = self._unfollow, self.feed.follow(works.sources)
        if old is not None:
            task = asyncio.get_running_loop().create_task(_retire(old))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)
        if unfollow is not None:
            await unfollow()  # at once: a change that two watches see would be told twice


async def _retire(old: AsyncExitStack) -> None:
    """Old sources stay open for the calls that still run on them."""
    try:
        await asyncio.sleep(GRACE)
    finally:
        await old.aclose()
