"""The servers that other tests stand on."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.services import engines, fixtures
from tests.services.fixtures import Service, postgres, postgres_database, run_sql, valkey

__all__ = ["postgres", "postgres_database", "valkey"]

ROOT = Path(__file__).parents[2]


@pytest.mark.anyio
async def test_a_test_can_have_a_database_of_its_own(postgres: Service, postgres_database: Service) -> None:
    made = (f"CREATE SCHEMA {postgres.schema}", f"CREATE TABLE {postgres.schema}.mine (one int)")
    await run_sql(str(postgres.socket.parent), *made, database=postgres.database)
    asked = "SELECT count(*) FROM pg_class WHERE relname = 'mine'"
    (tables,) = await run_sql(str(postgres_database.socket.parent), asked, database=postgres_database.database)
    assert tables[0][0] == 0


@pytest.mark.anyio
async def test_a_valkey_is_empty_and_wants_its_password(valkey: Service) -> None:
    from redis.asyncio import Redis
    from redis.exceptions import ConnectionError as Refused

    async with Redis.from_url(valkey.url) as client:
        assert await client.dbsize() == 0
    async with Redis.from_url(valkey.url.replace(engines.PASSWORD, "wrong")) as client:
        with pytest.raises(Refused, match="password"):
            await client.ping()


def test_a_service_that_cannot_be_had_is_skipped_or_fails_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixtures, "_begun", lambda name: ({"absent": "There is none here"}, -1))
    for environ, raised in (("", pytest.skip.Exception), ("all", pytest.fail.Exception)):
        monkeypatch.setenv("SERVICES", environ)
        with pytest.raises(raised, match="There is none here"):
            fixtures._server.__wrapped__("valkey")


def test_a_server_ends_with_the_last_process_that_used_it(tmp_path: Path) -> None:
    fixtures._server("valkey")
    code = (
        "import sys; from pathlib import Path; from tests.services.keeper import used\n"
        "told, lock = used('valkey', Path(sys.argv[1])); print(told['socket'], flush=True); sys.stdin.read()"
    )
    folder = fixtures.HOME / f"{tmp_path.stat().st_ino:x}"
    command = [sys.executable, "-c", code, str(folder)]
    users = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        for _ in range(2)
    ]
    sockets = [user.stdout.readline().strip() for user in users if user.stdout is not None]
    assert sockets[0] == sockets[1], "both use one server"
    users[0].kill()
    users[0].communicate(timeout=30)
    assert engines._answers("valkey", Path(sockets[0]))
    users[1].communicate(timeout=30)
    until_gone(folder)
    assert not engines._answers("valkey", Path(sockets[0]))


def until_gone(folder: Path) -> None:
    """The keeper holds the lock alone until it has stopped its server, and removes the folder with it."""
    with suppress(FileNotFoundError):
        while (folder / "server.json").exists():
            with (folder / "users").open("ab") as users:
                fcntl.flock(users, fcntl.LOCK_SH)
