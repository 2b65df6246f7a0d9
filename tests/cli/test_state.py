"""`octavo state`: moved, backed up beside a server, and brought back; and what it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import tarfile
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import pytest
from tests.audit.disks import small_disk
from tests.cli.conftest import Run
from tests.e2e.harness import Place, octavo
from tests.services.engines import PASSWORD
from tests.services.fixtures import Service, first_postgres, run_sql

from octavo.core.errors import SourceUnavailable
from octavo.core.ports.stores import Store
from octavo.stores.in_use import InUse, alone
from octavo.stores.postgres import PostgresStore
from octavo.stores.sqlite import SQLiteStore

T = TypeVar("T")
CONFIG = """
sources: {mem: {kind: memory, scheme: mem, resources: {one: {text: content}}}}
agents: {agent-brand: {roles: [marketing]}}
"""


@pytest.fixture
def site(empty: Path) -> Path:
    (empty / "octavo.yaml").write_text(CONFIG, encoding="utf-8")
    return empty


@pytest.fixture
def kept(run: Run, site: Path) -> str:
    """The id of a key, beside which there are a few changes."""
    made = json.loads(run("keys", "new", "agent-brand", "--json").stdout)
    within(site / ".octavo", lambda store: store.journal.append(b"one", b"two"))
    return str(made["id"])


def within(folder: Path, work: Callable[[Store], Awaitable[T]]) -> T:
    async def main() -> T:
        async with SQLiteStore(folder) as store:
            return await work(store)

    return asyncio.run(main())


@pytest.fixture
def service(site: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    found = first_postgres()
    monkeypatch.setenv("STORE", found.url)
    text = f'{CONFIG}store: {{kind: postgres, url: "${{STORE}}", schema: {found.schema}}}\n'
    (site / "new.yaml").write_text(text, encoding="utf-8")
    return found


def test_state_moves_to_another_store_and_back(run: Run, site: Path, kept: str, service: Service) -> None:
    moved = run("state", "move", "--to", "new.yaml")
    assert moved.exit_code == 0, moved.stderr
    assert "moved and read back: 2 changes and" in moved.stderr and "store` of new.yaml" in moved.stderr
    assert kept in run("keys", "list", "--config", "new.yaml").stdout
    assert kept in run("keys", "list").stdout, "the source is as it was"
    full = run("state", "move", "--config", "new.yaml", "--to", "octavo.yaml")
    assert full.exit_code == 1 and "is kept in that store already" in full.stderr
    (site / ".octavo/store.db").rename(site / "store.db.before")
    assert run("state", "move", "--config", "new.yaml", "--to", "octavo.yaml").exit_code == 0
    assert kept in run("keys", "list").stdout
    records = within(site / ".octavo", lambda store: store.journal.read(0))
    assert [record.body for record in records] == [b"one", b"two"]
    audit = "".join(path.read_text(encoding="utf-8") for path in (site / ".octavo/audit").glob("*.jsonl"))
    assert audit.count('"op":"state move","outcome":"ok"') == 2 and '"outcome":"conflict"' in audit
    assert PASSWORD not in audit + moved.output + full.output


def test_what_cannot_be_moved_is_said_and_left(
    run: Run, site: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "nothing to move" in run("state", "move", "--to", "new.yaml").stderr
    run("keys", "new", "agent-brand")
    assert "the same store" in run("state", "move", "--to", "octavo.yaml").stderr
    (site / "elsewhere").mkdir()
    (site / "elsewhere/octavo.yaml").write_text((site / "new.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    assert "one state folder" in run("state", "move", "--to", "elsewhere/octavo.yaml").stderr
    with suppress(asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
        asyncio.run(run_sql(str(service.socket.parent), "CREATE ROLE guarded LOGIN PASSWORD 'right'"))
    monkeypatch.setenv("STORE", service.url.replace(f"test:{PASSWORD}", "guarded:wrong-one"))
    wrong = run("state", "move", "--to", "new.yaml")
    assert wrong.exit_code == 1 and "refuses the user or the password" in wrong.stderr
    assert "wrong-one" not in wrong.output


def test_while_a_server_runs_nothing_is_moved_or_brought_back(
    run: Run, site: Path, kept: str, service: Service, tmp_path: Path
) -> None:
    assert run("state", "backup", "kept.tar").exit_code == 0
    serving = InUse(site / ".octavo")
    serving.begin()
    refused = run("state", "move", "--to", "new.yaml")
    assert refused.exit_code == 1 and "uses the state" in refused.stderr
    assert "uses the state" in run("state", "restore", "kept.tar").stderr
    serving.end()

    async def on_the_database() -> str:
        async with PostgresStore(service.url, schema=service.schema):
            return (await asyncio.to_thread(run, "state", "move", "--to", "new.yaml")).stderr

    assert "has the store open" in asyncio.run(on_the_database())
    assert run("state", "move", "--to", "new.yaml").exit_code == 0


def test_a_server_holds_the_state_for_as_long_as_it_runs(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "octavo.yaml").write_text(
        'sources: {files: {kind: file, roots: [./root]}}\nagents: {one: {key: "file:key"}}\n', encoding="utf-8"
    )
    (tmp_path / "key").write_text("octavo_key-for-tests-0123456789\n", encoding="utf-8")
    (tmp_path / "key").chmod(0o600)
    config = tmp_path / "octavo.yaml"
    with place.start(*octavo("serve", "--config", config, "--http", "127.0.0.1:0")) as server:
        server.ready()
        made = place.run("state", "backup", "kept.tar")
        assert made.returncode == 0, made.stderr
        refused = place.run("state", "restore", "kept.tar")
        assert refused.returncode == 1 and "uses the state" in refused.stderr
    (tmp_path / ".octavo").rename(tmp_path / "before")
    assert place.run("state", "restore", "kept.tar").returncode == 0
    assert json.loads(place.run("audit", "verify", "--json").stdout)["ok"]
    with place.start(*octavo("serve", "--config", config, "--http", "127.0.0.1:0")) as server:
        server.ready()


def test_a_backup_brings_back_what_was_there(run: Run, site: Path, kept: str) -> None:
    made = run("state", "backup", "kept.tar")
    assert made.exit_code == 0, made.stderr
    assert (site / "kept.tar").stat().st_mode & 0o777 == 0o600
    again = run("state", "backup", "kept.tar")
    assert again.exit_code == 1 and "is there already" in again.stderr
    assert run("state", "backup", "kept.tar", "--force").exit_code == 0
    before = (site / ".octavo/secret").read_bytes()
    full = run("state", "restore", "kept.tar")
    assert full.exit_code == 1 and "already, so nothing was brought back" in full.stderr
    (site / ".octavo").rename(site / "before")
    done = run("state", "restore", "kept.tar")
    assert done.exit_code == 0, done.stderr
    assert "2 changes" in done.stderr
    assert (site / ".octavo/secret").read_bytes() == before
    assert kept in run("keys", "list").stdout
    assert run("audit", "verify").exit_code == 0
    assert not [one.name for one in site.iterdir() if ".new-" in one.name]
    audit = "".join(path.read_text(encoding="utf-8") for path in (site / ".octavo/audit").glob("*.jsonl"))
    assert '"op":"state backup","outcome":"intent"' in audit and '"op":"state restore","outcome":"ok"' in audit


def test_a_backup_of_a_file_is_brought_back_to_a_database(run: Run, site: Path, kept: str, service: Service) -> None:
    run("state", "backup", "kept.tar")
    (site / ".octavo").rename(site / "before")
    done = run("state", "restore", "kept.tar", "--config", "new.yaml")
    assert done.exit_code == 0, done.stderr
    assert kept in run("keys", "list", "--config", "new.yaml").stdout
    assert not (site / ".octavo/store.db").exists()


@pytest.fixture
def elsewhere(run: Run, site: Path, kept: str) -> Path:
    """A backup, and no state any more."""
    assert run("state", "backup", "kept.tar").exit_code == 0
    (site / ".octavo").rename(site / "before")
    return site / "kept.tar"


def refused(run: Run, file: Path) -> str:
    done = run("state", "restore", file)
    assert done.exit_code == 1, done.output
    assert not Path(".octavo").exists(), "nothing is left of it"
    return done.stderr


def test_a_backup_that_was_cut_or_changed_anywhere_brings_back_nothing(run: Run, elsewhere: Path) -> None:
    whole = elsewhere.read_bytes()
    cuts = [0, 1, 511, 512, 600, len(whole) // 3, len(whole) // 2, len(whole) - 1_536, len(whole) - 1_024 - 700]
    for cut in cuts:
        elsewhere.write_bytes(whole[:cut])
        assert "cut off" in refused(run, elsewhere) or "damaged" in refused(run, elsewhere), cut
    for place in (3, 130, 520, 700, whole.index(b"audit/"), whole.index(b"secret"), len(whole) - 2_000):
        elsewhere.write_bytes(whole[:place] + bytes([whole[place] ^ 0x11]) + whole[place + 1 :])
        refused(run, elsewhere)


def remade(file: Path, change: Callable[[str, tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes]]) -> None:
    with tarfile.open(file) as tar:
        parts = [(one, (tar.extractfile(one) or BytesIO()).read()) for one in tar]
    with tarfile.open(file, "w") as tar:
        for info, body in parts:
            changed, text = change(info.name, info, body)
            changed.size = len(text)
            tar.addfile(changed, BytesIO(text))


def manifest(**changes: Any) -> Callable[[str, tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes]]:
    def change(name: str, info: tarfile.TarInfo, body: bytes) -> tuple[tarfile.TarInfo, bytes]:
        return info, json.dumps({**json.loads(body), **changes}).encode() if name == "manifest.json" else body

    return change


def test_a_backup_of_a_newer_octavo_or_of_another_program_is_refused(run: Run, elsewhere: Path) -> None:
    whole = elsewhere.read_bytes()
    remade(elsewhere, manifest(version=2))
    assert "written by a newer Octavo: its layout is 2" in refused(run, elsewhere)
    remade(elsewhere, manifest(kind="something"))
    assert "no backup of Octavo" in refused(run, elsewhere)
    for name, kind in (("audit/../x.jsonl", b"0"), ("/etc/x", b"0"), ("secret", tarfile.SYMTYPE), ("more", b"0")):
        elsewhere.write_bytes(whole)

        def add(found: str, info: tarfile.TarInfo, body: bytes) -> tuple[tarfile.TarInfo, bytes]:
            if found == "secret":
                info.name, info.type, info.linkname = name, kind, "/etc/passwd"
            return info, b"" if kind == tarfile.SYMTYPE and found == "secret" else body

        remade(elsewhere, add)
        refused(run, elsewhere)
    elsewhere.write_bytes(os.urandom(4096))
    assert "no backup" in refused(run, elsewhere)


@pytest.mark.parametrize("where", ["at its head", "amid"])
def test_a_source_that_is_damaged_is_said_and_left(
    run: Run, site: Path, kept: str, service: Service, where: str
) -> None:
    file = site / ".octavo/store.db"
    within(site / ".octavo", lambda store: store.journal.append(*(bytes(1_000) for _ in range(500))))
    whole = file.read_bytes()
    place, amid = (0, 14) if where == "at its head" else (len(whole) // 2, 8 * 4_096)
    damaged = whole[:place] + b"\xfe" * amid + whole[place + amid :]
    file.write_bytes(damaged)
    for words in (("backup", "kept.tar"), ("move", "--to", "new.yaml")):
        done = run("state", *words)
        assert done.exit_code == 1 and "is damaged, and was left as it is" in done.stderr
    assert file.read_bytes() == damaged and not (site / "kept.tar").exists()


def test_a_store_of_a_newer_layout_is_refused_and_left(run: Run, site: Path, kept: str, service: Service) -> None:
    with closing(sqlite3.connect(site / ".octavo/store.db")) as database:
        database.execute("PRAGMA user_version = 99")
    for words in (("backup", "kept.tar"), ("move", "--to", "new.yaml")):
        done = run("state", *words)
        assert done.exit_code == 1 and "written by a newer Octavo: its layout is 99" in done.stderr


def test_while_the_state_is_moved_nothing_begins(run: Run, site: Path, kept: str, service: Service) -> None:
    with alone(site / ".octavo"):
        for words in (("keys", "list"), ("state", "backup", "kept.tar"), ("watch", "mem://one", "--after", "0")):
            done = run(*words)
            assert done.exit_code == 1 and "being moved or restored now" in done.stderr, words

    async def on_the_database() -> None:
        async with PostgresStore(service.url, schema=service.schema, alone=True):
            with pytest.raises(SourceUnavailable, match="being moved or restored now"):
                async with PostgresStore(service.url, schema=service.schema):
                    pass

    asyncio.run(on_the_database())


def test_what_a_manifest_says_in_other_words_is_refused(run: Run, elsewhere: Path) -> None:
    whole = elsewhere.read_bytes()
    for changes in ({"version": "1"}, {"version": 10**30}, {"parts": []}, {"store": {}}, {"kind": 7}):
        elsewhere.write_bytes(whole)
        remade(elsewhere, manifest(**changes))
        refused(run, elsewhere)


def test_on_a_full_disk_nothing_is_left_of_a_backup_that_failed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "octavo.yaml").write_text(CONFIG, encoding="utf-8")
    assert place.run("keys", "new", "agent-brand").returncode == 0
    with small_disk(tmp_path / "small") as disk:
        disk.fill(leave=4096)
        file, config = tmp_path / "small/kept.tar", tmp_path / "octavo.yaml"
        with place.start(*disk.enter, *octavo("state", "backup", file, "--config", config)) as process:
            assert process.process.wait(60) == 1, process.log.text
            process.log.wait_for("No space left on device")
        assert sorted(one.name for one in disk.seen().iterdir()) == ["ballast"]
    within(tmp_path / ".octavo", lambda store: store.keys.set("large", os.urandom(3_000_000)))
    assert place.run("state", "backup", tmp_path / "kept.tar").returncode == 0
    config = tmp_path / "other.yaml"
    with small_disk(tmp_path / "state-of-it", size="2m") as disk:
        config.write_text(f"{CONFIG}state: {{path: {tmp_path}/state-of-it}}\n", encoding="utf-8")
        command = octavo("state", "restore", tmp_path / "kept.tar", "--config", config)
        with place.start(*disk.enter, *command) as process:
            assert process.process.wait(60) == 1, process.log.text
        assert [one.name for one in disk.seen().iterdir() if not one.name.endswith("lock")] == []
