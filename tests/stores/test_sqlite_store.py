"""What the store in one file does beyond the contract: restarts, damage, newer layouts, full disks, busy neighbours."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from octavo.core.clock import FrozenClock
from octavo.core.errors import SourceUnavailable
from octavo.core.ports.stores import LOST
from octavo.core.ports.stores import STORE_FILE as NAME
from octavo.stores.sqlite import SQLiteStore

pytestmark = pytest.mark.anyio


def aside(folder: Path) -> list[bytes]:
    """What was set aside."""
    return [path.read_bytes() for path in folder.glob(f"{NAME}.damaged-*[0-9a-f]")]


def modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in folder.iterdir()}


async def filled(folder: Path) -> bytes:
    async with SQLiteStore(folder) as store:
        for number in range(40):
            async with store.transaction() as transaction:
                await transaction.journal.append(b"%d " % number * 50)
                await transaction.keys.set(f"key/{number}", b"v" * 100)
    return (folder / NAME).read_bytes()


async def test_what_was_stored_is_there_after_a_restart(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path) as store:
        await store.keys.set("one", b"1")
        numbers = [*await store.journal.append(b"a", b"b")]
        held = await store.leases.acquire("lease", ttl=600)
        span = await store.journal.span()
    async with SQLiteStore(tmp_path) as store:
        assert await store.keys.get("one") == b"1"
        assert [record.number for record in await store.journal.read(0)] == numbers
        assert await store.journal.span() == span
        assert held is not None
        assert await store.leases.holds(held)


async def test_nobody_else_can_read_the_file(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path) as store:
        await store.keys.set("one", b"1")
        assert modes(tmp_path) == {0o600}


async def test_a_newer_layout_is_refused_with_a_sentence_and_left_as_it_is(tmp_path: Path) -> None:
    await filled(tmp_path)
    database = sqlite3.connect(tmp_path / NAME)
    database.execute("PRAGMA user_version = 99")
    database.close()
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(SourceUnavailable, match=r"newer Octavo.*99"):
        async with SQLiteStore(tmp_path):
            pass
    assert (tmp_path / NAME).read_bytes() == before
    assert not aside(tmp_path)


@pytest.mark.parametrize("part", [*range(1, 16), 0.5, 99, 1000])
async def test_a_file_that_was_cut_is_used_or_set_aside_and_said(
    tmp_path: Path, part: float, caplog: pytest.LogCaptureFixture
) -> None:
    whole = await filled(tmp_path)
    cut = int(len(whole) * part / 16) if 1 <= part < 16 else int(part)
    (tmp_path / NAME).write_bytes(whole[:cut])
    with caplog.at_level(logging.WARNING):
        async with SQLiteStore(tmp_path) as store:
            kept = len(await store.journal.read(0))
            (number,) = await store.journal.append(b"goes on")
            assert (await store.journal.read(0))[-1] == (number, b"goes on")
            span = await store.journal.span()
    left = aside(tmp_path)
    assert bool(left) is ("damaged" in caplog.text)
    if left:
        assert left == [whole[:cut]], "what is left of it is kept"
        assert kept == 0
        assert span.after > 0, "a reader from before sees that it has missed something"


async def test_a_write_ahead_log_that_was_cut_leaves_whole_transactions(tmp_path: Path) -> None:
    """As a machine that lost its power leaves it: the file, and a part of what was to go into it."""
    running, left = tmp_path / "running", tmp_path / "left"
    running.mkdir()
    async with SQLiteStore(running) as store:
        await store.keys.set("done", b"-1")
        for turn in range(12):
            async with store.transaction() as transaction:
                await transaction.journal.append(b"%d" % turn)
                await transaction.keys.set("done", b"%d" % turn)
        whole, log = (running / NAME).read_bytes(), (running / f"{NAME}-wal").read_bytes()
    assert len(log) > 10_000
    kept: list[int] = []
    for cut in (*range(0, len(log), len(log) // 40), len(log) - 1, len(log)):
        shutil.rmtree(left, ignore_errors=True)
        left.mkdir()
        (left / NAME).write_bytes(whole)
        (left / f"{NAME}-wal").write_bytes(log[:cut])
        async with SQLiteStore(left) as store:
            turns = [int(record.body) for record in await store.journal.read(0)]
            assert turns == [*range(len(turns))]
            assert int(await store.keys.get("done") or b"-1") == len(turns) - 1
            kept.append(len(turns))
            assert await store.journal.append(b"goes on")
    assert kept == sorted(kept)
    assert kept[-1] == 12


async def test_what_is_no_database_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"not a database at all" * 100)
    async with SQLiteStore(tmp_path) as store:
        await store.keys.set("one", b"1")
    assert aside(tmp_path) == [b"not a database at all" * 100]


async def test_damage_under_an_open_store_is_an_error_at_most_and_then_a_new_file(tmp_path: Path) -> None:
    whole = await filled(tmp_path)
    async with SQLiteStore(tmp_path) as store:
        (tmp_path / NAME).write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))
        with suppress(SourceUnavailable):  # a connection that is opened now sees it before anything is asked
            for _ in range(3):
                await store.keys.scan("")
                await store.keys.set("one", b"1")
        with anyio.fail_after(30):
            while True:
                try:
                    await store.keys.set("one", b"2")
                    break
                except SourceUnavailable:
                    continue
        assert await store.keys.get("one") == b"2"
    assert aside(tmp_path)


async def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="cannot be read or written"):
        async with SQLiteStore(tmp_path / "absent"):
            pass


async def test_a_full_disk_stops_changes_and_nothing_else(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path) as store:
        await store.keys.set("one", b"1")
        (number,) = await store.journal.append(b"1")
        pages = "PRAGMA max_page_count = 12"
        await store._file._writer.run(lambda database: database.execute(pages).fetchall())
        with pytest.raises(SourceUnavailable, match="cannot be read or written"):
            async with store.transaction() as transaction:
                await transaction.keys.set("one", b"2")
                await transaction.journal.append(b"x" * 1_000_000)
        with pytest.raises(SourceUnavailable, match="nothing of it was stored"):
            async with store.transaction() as transaction:
                await transaction.keys.set("one", b"2")
                with suppress(SourceUnavailable):
                    await transaction.journal.append(b"x" * 1_000_000)
        assert await store.keys.get("one") == b"1"
        assert [record.number for record in await store.journal.read(0)] == [number]
        await store._file._writer.run(lambda database: database.execute("PRAGMA max_page_count = 100000").fetchall())
        assert await store.journal.append(b"y" * 1_000_000)


async def test_a_neighbour_that_keeps_the_file_busy_stops_changes_for_a_while(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path, patience=30) as store:
        await store.keys.set("one", b"1")
        store._file._patience = 0.3
        neighbour = sqlite3.connect(tmp_path / NAME, isolation_level=None)
        neighbour.execute("BEGIN IMMEDIATE")
        with pytest.raises(SourceUnavailable, match="busy"):
            await store.keys.set("one", b"2")
        with pytest.raises(SourceUnavailable, match="busy"):
            async with store.transaction() as transaction:
                await transaction.keys.set("one", b"2")
        store._file._patience = 30
        assert await store.keys.get("one") == b"1"
        neighbour.execute("ROLLBACK")
        neighbour.close()
        await store.keys.set("one", b"3")
        assert await store.keys.get("one") == b"3"


async def test_what_has_ended_is_cleared_away(tmp_path: Path) -> None:
    clock = FrozenClock()
    async with SQLiteStore(tmp_path, clock=clock) as store:
        for number in range(200):
            await store.keys.set(f"short/{number}", b"v", expires=1)
        clock.advance(2)
        for number in range(256):
            await store.keys.set(f"long/{number % 10}", b"v")
        counted = await store._file.read(lambda database: database.execute("SELECT count(*) FROM pairs").fetchone())
    assert counted == (10,)


async def test_a_link_is_no_store(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.db"
    elsewhere.touch()
    (tmp_path / NAME).symlink_to(elsewhere)
    with pytest.raises(SourceUnavailable):
        async with SQLiteStore(tmp_path):
            pass
    assert elsewhere.stat().st_size == 0


async def test_a_file_that_is_moved_away_or_replaced_is_not_gone_on_with(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever looks at the folder, or starts there, would know another store."""
    async with SQLiteStore(tmp_path) as one:
        await one.keys.set("before", b"1")
        (tmp_path / NAME).rename(tmp_path / "elsewhere.db")
        async with SQLiteStore(tmp_path) as other:
            await other.keys.set("after", b"2")
            assert await one.keys.get("after") == b"2" and await one.keys.get("before") is None
            async with one.transaction() as within:
                await within.keys.set("again", b"3")
            assert await other.keys.get("again") == b"3"
            assert await other.keys.get(LOST) is not None, "whoever relies on what was kept can know that it is gone"
    assert "moved away or replaced" in caplog.text and "store of before is gone" in caplog.text


async def test_only_the_file_in_which_there_is_damage_is_set_aside(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path) as store:
        for number in range(200):
            await store.keys.set(f"{number:04}", bytes(500))
    damaged = bytearray((tmp_path / NAME).read_bytes())
    damaged[4096:] = bytes(byte ^ 0xFF for byte in damaged[4096:])
    (tmp_path / NAME).write_bytes(damaged)
    async with SQLiteStore(tmp_path) as store:
        for _ in range(4):
            with suppress(SourceUnavailable):
                await store.keys.scan("", limit=1000)
            with suppress(SourceUnavailable):
                await store.keys.set("new", b"1")
        assert await store.keys.get("new") == b"1"
    assert (
        len([name for name in os.listdir(tmp_path) if "damaged" in name and "-wal" not in name and "-shm" not in name])
        == 1
    )


async def test_a_file_that_was_emptied_is_said_to_be_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with SQLiteStore(tmp_path) as store:
        await store.keys.set("before", b"1")
        assert await store.keys.get(LOST) is None
    (tmp_path / NAME).write_bytes(b"")
    async with SQLiteStore(tmp_path) as store:
        assert await store.keys.get("before") is None and await store.keys.get(LOST) is not None
    assert "store of before is gone" in caplog.text
