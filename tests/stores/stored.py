"""A store for what is kept in one: of each kind, opened once, and given as `opens` to whoever asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.services.fixtures import first_postgres

from octavo.core.ports.stores import Opens, Store
from octavo.stores.memory import MemoryStore
from octavo.stores.postgres import PostgresStore
from octavo.stores.sqlite import SQLiteStore

Opening: TypeAlias = Callable[[], AbstractAsyncContextManager[Store]]


def given(store: Store) -> Opens:
    async def opens() -> Store:
        return store

    return opens


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Opening:
    """Makes the store, or another opening of the same one."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    if request.param == "sqlite":
        state = tmp_path / "state of the store"
        state.mkdir()
        return lambda: SQLiteStore(state)
    service = first_postgres()
    return lambda: PostgresStore(service.url, schema=service.schema)


@pytest.fixture
async def opens(made: Opening) -> AsyncIterator[Opens]:
    async with made() as store:
        yield given(store)
