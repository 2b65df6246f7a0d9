"""`valkey` and `postgres` for tests: one server a test run, and a place of its own for each test.

    from tests.services.fixtures import postgres, valkey

That is a database of Valkey, and a schema of PostgreSQL in the database of the process, since making a database takes
longer than most tests; `postgres_database` gives one all the same.

With SERVICES=all in the environment a service that cannot be had is a failure; else its tests are skipped, and say why.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest
from tests.services import engines
from tests.services.engines import DATABASES, PASSWORD, Absent
from tests.services.keeper import used

HOME = Path("/tmp") / f"octavo-services-{os.getuid()}"  # not tempfile's, whose path may be too long for a socket
VALKEYS = ["valkey", *engines.second("redis")]
POSTGRESES = ["postgres", *engines.second("postgres-debian")]


class Service(NamedTuple):
    """`url` leads to a database that nobody else uses; `socket` is that of the server."""

    engine: str
    url: str
    socket: Path
    database: str
    schema: str = "octavo"

    def through(self, address: tuple[str, int]) -> str:
        """The same by way of a proxy."""
        host, port = address
        if self.engine.startswith("postgres"):
            return f"postgresql://test:{PASSWORD}@{host}:{port}/{self.database}"
        return f"redis://:{PASSWORD}@{host}:{port}/{self.database}"


@pytest.fixture(params=VALKEYS)
def valkey(request: pytest.FixtureRequest) -> Service:
    told = _server(request.param)
    number = _next_number(HOME / "numbers") % DATABASES
    service = Service(
        request.param, f"unix://:{PASSWORD}@{told['address']}?db={number}", Path(told["socket"]), str(number)
    )
    asyncio.run(empty(service))
    return service


@pytest.fixture(params=POSTGRESES)
def postgres(request: pytest.FixtureRequest) -> Service:
    return _fresh_postgres(request.param)


def first_postgres() -> Service:
    """For tests of what stands on a store: its engines are told apart elsewhere."""
    return _fresh_postgres(POSTGRESES[0])


def _fresh_postgres(engine: str) -> Service:
    service = _postgres(engine, _database(engine))
    return service._replace(schema=f"s{_next_number(HOME / 'schemas')}")


@pytest.fixture(params=POSTGRESES)
def postgres_database(request: pytest.FixtureRequest) -> Iterator[Service]:
    name = _new_database(request.param)
    yield _postgres(request.param, name)
    asyncio.run(run_sql(_server(request.param)["address"], f"DROP DATABASE {name} WITH (FORCE)"))


def _postgres(engine: str, database: str) -> Service:
    told = _server(engine)
    url = f"postgresql://test:{PASSWORD}@/{database}?host={told['address']}"
    return Service(engine, url, Path(told["socket"]), database)


@cache
def _database(engine: str) -> str:
    """Of this process. It goes with its server."""
    return _new_database(engine)


def _new_database(engine: str) -> str:
    address = _server(engine)["address"]
    name = f"t{os.getpid()}_{_next_number(HOME / 'databases')}"
    asyncio.run(run_sql(address, f"CREATE DATABASE {name} TEMPLATE template0"))
    return name


async def run_sql(address: str, *statements: str, database: str = "postgres") -> list[Any]:
    import asyncpg

    connection = await asyncpg.connect(host=address, user="test", database=database, timeout=30)
    try:
        return [await connection.fetch(statement) for statement in statements]
    finally:
        await connection.close(timeout=30)


async def empty(valkey: Service) -> None:
    from redis.asyncio import Redis

    client = Redis.from_url(valkey.url)
    await client.flushdb()
    await client.aclose()


@cache
def _server(name: str) -> dict[str, str]:
    """Its lock is held until this process ends."""
    told, _ = _begun(name)
    if "absent" in told:
        absent(told["absent"])
    return told


def absent(why: str) -> NoReturn:
    if os.environ.get("SERVICES") == "all":
        pytest.fail(why)
    pytest.skip(why)


@cache
def _begun(name: str) -> tuple[dict[str, str], int]:
    try:
        engines.engine(name)
    except Absent as error:
        return {"absent": str(error)}, -1
    return used(name, _folder(name))


def _folder(name: str) -> Path:
    """The same in all processes of a run, and short."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    return HOME / hashlib.sha256(f"{run} {name}".encode()).hexdigest()[:10]


def _next_number(path: Path) -> int:
    """Of all processes of this machine, one after the other."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        number = int(os.read(descriptor, 20) or b"0") + 1
        os.pwrite(descriptor, b"%d" % number, 0)
        return number
    finally:
        os.close(descriptor)
