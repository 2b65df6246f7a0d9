"""Connections, their limits, and what becomes of their errors.

What waits too long, or is cancelled, loses its connection: nothing is asked of a server that may never answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

from octavo.core.errors import Conflict, OctavoError, SourceUnavailable
from octavo.stores._shared.layouts import newer, steps

try:
    import asyncpg  # type: ignore[import-untyped]
except ImportError:  # said when a store is opened
    asyncpg = None

logger = logging.getLogger(__name__)

T = TypeVar("T")
MOST: Final = 8  # connections of one process
AWAY: Final = "The store cannot be reached now"
# The connection was lost or never made, or the server is about to end, or has just begun.
GONE: Final = () if asyncpg is None else (
    asyncpg.PostgresConnectionError, asyncpg.OperatorInterventionError, asyncpg.InterfaceError,
    asyncpg.InternalClientError, OSError,
)  # fmt: skip


class Pool:
    """`url` is told to the driver alone."""

    def __init__(self, url: str, *, schema: str, patience: float, alone: bool = False) -> None:
        if asyncpg is None:
            raise SourceUnavailable("kind: postgres needs the extra postgres: install octavo[postgres]")
        if not schema.isidentifier() or not schema.isascii() or schema != schema.lower() or len(schema) > 40:
            raise SourceUnavailable("The schema of the store has to be a name of small letters, digits and _")
        self.schema, self.patience = schema, patience
        self.lock = _number(f"octavo {schema}")  # of whoever changes something
        self._users = _number(f"users of octavo {schema}")  # of whoever has it open
        self._alone = alone
        self._url = url
        self._pool: Any = None
        self._layout_lost = False

    async def open(self) -> None:
        limits = f"{max(1, round(self.patience * 1_000))}ms"
        settings = {
            "search_path": self.schema, "application_name": "octavo", "statement_timeout": limits,
            "lock_timeout": limits, "idle_in_transaction_session_timeout": limits,
        }  # fmt: skip
        self._connecting = {
            "dsn": self._url, "timeout": self.patience, "command_timeout": self.patience, "server_settings": settings,
        }  # fmt: skip
        try:
            self._pool = asyncpg.create_pool(
                min_size=0, max_size=1 if self._alone else MOST, init=self._enter, reset=_as_it_is, **self._connecting
            )
            async with self.translated():
                await self._pool
            async with self.connection() as connection:
                await self._bring_up(connection)
        except ValueError:  # says what stands in the address
            raise SourceUnavailable("The address of the store is no PostgreSQL address") from None

    async def close(self) -> None:
        if self._pool is not None:
            try:
                async with asyncio.timeout(self.patience):
                    await self._pool.close()
            except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                self._pool.terminate()

    async def read(self, query: str, *values: object) -> Sequence[Any]:
        """Asked once more on another connection where the first was gone."""
        try:
            return await self.write(query, *values)
        except _Gone:
            return await self.write(query, *values)

    async def write(self, query: str, *values: object) -> Sequence[Any]:
        async with self.connection() as connection:
            rows: Sequence[Any] = await connection.fetch(query, *values)
            return rows

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Any]:
        """For queries of this module alone: errors of the block are taken for those of the server."""
        async with self.translated(), self._acquired() as connection, asyncio.timeout(self.patience):
            yield connection

    async def within(self, connection: Any, query: str, *values: object) -> Sequence[Any]:
        """A step of a transaction."""
        async with self.translated(), asyncio.timeout(self.patience):
            rows: Sequence[Any] = await connection.fetch(query, *values)
            return rows

    @asynccontextmanager
    async def snapshot(self) -> AsyncGenerator[Callable[..., Awaitable[Sequence[Any]]]]:
        """Reads what stood there when it began, for as long as the block takes. What it raises leaves as it is."""
        async with AsyncExitStack() as stack:
            async with self.translated():
                connection = await stack.enter_async_context(self._acquired())
            fetch = partial(self.within, connection)
            try:
                await fetch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                await fetch("SET LOCAL idle_in_transaction_session_timeout = 0")
                yield fetch
                await fetch("ROLLBACK")
            except BaseException:
                end(connection)
                raise

    @asynccontextmanager
    async def transaction(self, *, bounded: bool = True) -> AsyncGenerator[Any]:
        """A connection that has the lock of the schema alone. What the block raises leaves as it is. Not bounded is
        the whole; each step is."""
        async with AsyncExitStack() as stack:
            async with self.translated():
                connection = await stack.enter_async_context(self._acquired())
            try:
                async with asyncio.timeout(self.patience if bounded else None) as limit:
                    async with self.translated():
                        await connection.execute("BEGIN")
                        if not bounded:
                            await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                        await connection.execute("SELECT pg_advisory_xact_lock($1)", self.lock)
                    yield connection
                    async with self.translated():
                        await connection.execute("COMMIT")
            except TimeoutError:
                end(connection)
                if not limit.expired():
                    raise
                raise SourceUnavailable("The store was busy for too long") from None
            except Exception:
                with suppress(SourceUnavailable):  # it ends with its connection
                    async with self.translated(), asyncio.timeout(self.patience):
                        await connection.execute("ROLLBACK")
                raise

    @asynccontextmanager
    async def _acquired(self) -> AsyncGenerator[Any]:
        connection = await self._pool.acquire(timeout=self.patience)
        try:
            if self._layout_lost:
                await self._bring_up(connection)
                self._layout_lost = False
            yield connection
        except BaseException as error:
            if not isinstance(error, (asyncpg.PostgresError, OctavoError)) or isinstance(error, GONE):
                end(connection)
            raise
        finally:
            if _is_open(connection) and connection.is_in_transaction():
                end(connection)
            await self._pool.release(connection)

    @asynccontextmanager
    async def listening(
        self, channel: str, told: Callable[[str], None]
    ) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
        """A connection of its own that hears what is told on a channel. What it gives is awaited for its end."""
        async with self.translated(), asyncio.timeout(self.patience):
            connection = await asyncpg.connect(**self._connecting)
            try:
                await self._enter(connection)
            except BaseException:
                connection.terminate()
                raise
        ended = asyncio.Event()

        async def wait() -> None:
            """Until it is gone; a server that says nothing any more is asked now and then."""
            while not ended.is_set():
                try:
                    async with asyncio.timeout(self.patience):
                        await ended.wait()
                except TimeoutError:
                    async with self.translated(), asyncio.timeout(self.patience):
                        await connection.fetchval("SELECT 1")
            raise SourceUnavailable(AWAY)

        try:
            connection.add_termination_listener(lambda _: ended.set())
            async with self.translated(), asyncio.timeout(self.patience):
                await connection.add_listener(channel, lambda *what: told(what[3]))
            yield wait
        finally:
            connection.terminate()

    @asynccontextmanager
    async def translated(self) -> AsyncGenerator[None]:
        try:
            yield
        except TimeoutError:
            raise SourceUnavailable(f"The store did not answer within {self.patience:g} s") from None
        except (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError):
            raise SourceUnavailable("The store refuses the user or the password of its address") from None
        except (asyncpg.QueryCanceledError, asyncpg.LockNotAvailableError):
            raise SourceUnavailable("The store was busy for too long") from None
        except asyncpg.ClientConfigurationError:  # an InterfaceError that says what stands in the address
            raise SourceUnavailable("The address of the store is no PostgreSQL address") from None
        except GONE as error:
            logger.debug("PostgreSQL: %s", type(error).__name__)
            raise _Gone(AWAY) from None
        except asyncpg.PostgresError as error:
            # Of a database that was made anew: the next call begins it.
            self._layout_lost = self._layout_lost or isinstance(error, asyncpg.UndefinedTableError)
            logger.warning("PostgreSQL refused what the store asked: %s", type(error).__name__)
            raise SourceUnavailable(f"{AWAY}: PostgreSQL says {type(error).__name__}") from None

    async def _enter(self, connection: Any) -> None:
        """Each connection says that the store is open, until it ends: state is not moved away under anybody."""
        asked = "SELECT pg_try_advisory_lock($1)" if self._alone else "SELECT pg_try_advisory_lock_shared($1)"
        if await connection.fetchval(asked, self._users):
            return
        if self._alone:
            raise Conflict("A server has the store open: stop it first, on whatever machine it runs")
        raise SourceUnavailable("The state is being moved or restored now: start again when that is done")

    async def _bring_up(self, connection: Any) -> None:
        known = steps("octavo.stores.postgres")
        async with asyncio.timeout(self.patience), connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", self.lock)
            if await connection.fetchval("SELECT to_regnamespace($1)", self.schema) is None:
                await connection.execute(f"CREATE SCHEMA {self.schema}")
            await connection.execute("CREATE TABLE IF NOT EXISTS layout (one boolean PRIMARY KEY, number int NOT NULL)")
            layout = await connection.fetchval("SELECT number FROM layout") or 0
            if layout > len(known):
                raise newer(layout, len(known))
            for statement in (one for step in known[layout:] for one in step):
                await connection.execute(statement)
            made = "INSERT INTO layout VALUES (true, $1) ON CONFLICT (one) DO UPDATE SET number = excluded.number"
            if layout < len(known):
                await connection.execute(made, len(known))


def _number(name: str) -> int:
    """Of an advisory lock."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


class _Gone(SourceUnavailable):
    """The connection was lost, or never made."""


def end(connection: Any) -> None:
    """At once. The pool has it back then, and says so to whoever looks at it."""
    if _is_open(connection):
        connection.terminate()


def _is_open(connection: Any) -> bool:
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:
        return False


async def _as_it_is(_: object) -> None:
    """Nothing is set on a connection that the next one could find: locks end with their transactions."""
