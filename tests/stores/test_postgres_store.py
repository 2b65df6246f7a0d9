"""The store in PostgreSQL keeps the contract, and what it does beyond it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.services import fixtures
from tests.services.engines import PASSWORD, Absent
from tests.services.fixtures import Service, postgres, run_sql
from tests.stores.writers import restarted

from octavo.core.errors import SourceUnavailable
from octavo.stores.postgres import PostgresStore
from octavo.testing import Proxy, StoreFaultSuite, StoreSuite
from octavo.testing.base import told
from octavo.testing.proxy import Fault

__all__ = ["postgres"]

pytestmark = pytest.mark.anyio


class TestPostgres(StoreSuite):
    secrets = (PASSWORD,)

    @pytest.fixture
    async def store(self, postgres: Service) -> AsyncIterator[PostgresStore]:
        self.service = postgres
        async with PostgresStore(postgres.url, schema=postgres.schema, patience=30) as store:
            yield store

    def another(self, store: Any) -> AbstractAsyncContextManager[PostgresStore]:
        return PostgresStore(self.service.url, schema=self.service.schema, patience=30)

    async def set_back(self, store: Any, seconds: float) -> None:
        """Its clock cannot be set here: what it told so far is moved ahead instead, which is the same to it."""
        ahead = int(seconds * 1_000_000)
        moved = (("line", "last"), ("records", "number"), ("leases", "fence"))
        sql = [f"UPDATE {self.service.schema}.{table} SET {what} = {what} + {ahead}" for table, what in moved]
        await run_sql(str(self.service.socket.parent), *sql, database=self.service.database)


class TestPostgresUnderFaults(StoreFaultSuite):
    secrets = (PASSWORD,)

    @pytest.fixture
    async def store(self, postgres: Service) -> AsyncIterator[PostgresStore]:
        self.service = postgres
        async with Proxy(str(postgres.socket)) as self.proxy:
            url = postgres.through((self.proxy.host, self.proxy.port))
            async with PostgresStore(url, schema=postgres.schema, patience=30) as store:
                yield store

    @asynccontextmanager
    async def broken(self, store: PostgresStore, fault: Fault) -> AsyncGenerator[None]:
        await self.proxy.break_(fault)
        patience = store._pool.patience
        if fault == "hangs":  # else it is given as long as a busy machine may need
            store._pool.patience = self.limit
        if fault == "emptied":
            sql = f"DROP SCHEMA {self.service.schema} CASCADE"
            await run_sql(str(self.service.socket.parent), sql, database=self.service.database)
        try:
            yield
        finally:
            store._pool.patience = patience
            await self.proxy.mend()


# -- beyond the contract


async def test_what_was_stored_is_there_for_the_next_server(postgres: Service) -> None:
    async with PostgresStore(postgres.url, schema=postgres.schema) as store:
        await store.keys.set("one", b"1")
        numbers = [*await store.journal.append(b"a", b"b")]
    async with PostgresStore(postgres.url, schema=postgres.schema) as store:
        assert await store.keys.get("one") == b"1"
        assert [record.number for record in await store.journal.read(0)] == numbers


async def test_two_schemas_are_two_stores(postgres: Service) -> None:
    async with (
        PostgresStore(postgres.url, schema=postgres.schema) as one,
        PostgresStore(postgres.url, schema=f"{postgres.schema}_b") as two,
        two.bus.listen("feed") as hints,
    ):
        await one.keys.set("one", b"1")
        assert await two.keys.get("one") is None
        async with one.transaction() as transaction:
            await transaction.keys.set("one", b"2")
            await two.keys.set("one", b"3")
        await one.bus.publish("feed", b"of one")
        await two.bus.publish("feed", b"of two")
        assert await anext(hints) == ("feed", b"of two")


async def test_many_begin_at_once(postgres: Service) -> None:
    async def begin() -> int:
        async with PostgresStore(postgres.url, schema=postgres.schema, patience=30) as store:
            return (await store.journal.span()).after

    assert len({*await asyncio.gather(*(begin() for _ in range(4)))}) == 1


async def test_a_newer_layout_is_refused_with_a_sentence_and_left_as_it_is(postgres: Service) -> None:
    async with PostgresStore(postgres.url, schema=postgres.schema) as store:
        await store.keys.set("one", b"1")
    address = str(postgres.socket.parent)
    await run_sql(address, f"UPDATE {postgres.schema}.layout SET number = 99", database=postgres.database)
    with pytest.raises(SourceUnavailable, match=r"newer Octavo.*99"):
        async with PostgresStore(postgres.url, schema=postgres.schema):
            pass
    asked = f"SELECT value FROM {postgres.schema}.pairs"
    assert (await run_sql(address, asked, database=postgres.database))[0][0][0] == b"1"


async def test_a_role_that_may_make_no_schema_uses_the_one_it_was_given(postgres: Service) -> None:
    role = f"r_{postgres.schema}"
    address = str(postgres.socket.parent)
    made = (f"CREATE ROLE {role} LOGIN", f"CREATE SCHEMA {postgres.schema} AUTHORIZATION {role}")
    await run_sql(address, *made, database=postgres.database)
    url = f"postgresql://{role}@/{postgres.database}?host={address}"
    async with PostgresStore(url, schema=postgres.schema) as store:
        await store.keys.set("one", b"1")
    with pytest.raises(SourceUnavailable, match="InsufficientPrivilege"):
        async with PostgresStore(url, schema=f"{postgres.schema}_b"):
            pass


async def test_a_wrong_password_is_said_and_not_shown(postgres: Service) -> None:
    address = str(postgres.socket.parent)
    with suppress(asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
        await run_sql(address, "CREATE ROLE guarded LOGIN PASSWORD 'right'", database=postgres.database)
    url = f"postgresql://guarded:{PASSWORD}@/{postgres.database}?host={address}"
    with pytest.raises(SourceUnavailable, match="refuses the user or the password") as caught:
        async with PostgresStore(url, schema=postgres.schema):
            pass
    assert PASSWORD not in told(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://user:{PASSWORD}@host/db", f"{PASSWORD}", f"postgresql://user:{PASSWORD}@host:port{PASSWORD}/db",
        f"postgresql://user:{PASSWORD}@[::1/db", f"postgresql://{PASSWORD}@host/db?sslmode={PASSWORD}", "",
    ],
)  # fmt: skip
async def test_what_is_no_address_is_said_and_not_shown(url: str) -> None:
    with pytest.raises(SourceUnavailable) as caught:
        async with PostgresStore(url, patience=2):
            pass
    assert PASSWORD not in told(caught.value)


async def test_a_server_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="cannot be reached"):
        async with PostgresStore(f"postgresql://user:{PASSWORD}@/db?host={tmp_path}", patience=5):
            pass


async def test_hints_of_strangers_are_passed_over(postgres: Service) -> None:
    async with PostgresStore(postgres.url, schema=postgres.schema) as store, store.bus.listen("feed") as hints:
        for text in ("", "no base64!", "/w== /w==", "ZmVlZA== *"):
            sql = f"SELECT pg_notify('octavo_{postgres.schema}', '{text}')"
            await run_sql(str(postgres.socket.parent), sql, database=postgres.database)
        await store.bus.publish("feed", b"ours")
        assert await anext(hints) == ("feed", b"ours")


async def test_what_has_ended_is_cleared_away(postgres: Service) -> None:
    async with PostgresStore(postgres.url, schema=postgres.schema, patience=30) as store:
        for number in range(20):
            await store.keys.set(f"short/{number}", b"v", expires=0.001)
        for number in range(256):
            await store.keys.set(f"long/{number % 10}", b"v")
    (rows,) = await run_sql(
        str(postgres.socket.parent), f"SELECT count(*) FROM {postgres.schema}.pairs", database=postgres.database
    )
    assert rows[0][0] == 10


@pytest.mark.slow
async def test_writers_go_on_when_postgres_is_restarted_amid_their_appends() -> None:
    try:
        outcome = await restarted(writers=2, turns=30, restarts=3, seed=3)
    except Absent as error:
        fixtures.absent(str(error))
    assert outcome.faults == []
    assert outcome.killed == 3
    assert outcome.records == 60, "none is missing, and none is there twice"
