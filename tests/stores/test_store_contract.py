"""Every store keeps the contract of `octavo.core.ports.stores`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from octavo.core.clock import FrozenClock
from octavo.core.ports.stores import Shared
from octavo.stores.memory import MemoryStore
from octavo.stores.sqlite import SQLiteStore
from octavo.testing import StoreSuite


class Timed(StoreSuite):
    """The clock of the store stands still until a test moves it."""

    __test__ = False
    clock: FrozenClock

    def now(self, store: Shared) -> float:
        return self.clock.wall()

    async def later(self, store: Shared, seconds: float) -> None:
        self.clock.advance(seconds)

    async def set_back(self, store: Shared, seconds: float) -> None:
        self.clock.advance(-seconds)


class TestMemory(Timed):
    __test__ = True

    @pytest.fixture
    async def store(self) -> AsyncIterator[MemoryStore]:
        self.clock = FrozenClock()
        async with MemoryStore(clock=self.clock) as store:
            yield store


class TestSQLite(Timed):
    __test__ = True

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SQLiteStore]:
        self.clock, self.folder = FrozenClock(), tmp_path
        async with SQLiteStore(tmp_path, clock=self.clock) as store:
            yield store

    def another(self, store: Any) -> AbstractAsyncContextManager[SQLiteStore]:
        return SQLiteStore(self.folder, clock=self.clock)
