"""What the durable feed does with damage, outages and nonsense: an error with its kind or a repair that is said, and
never a read that is lost (A4, B3)."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from tests.app.test_durable_feed import WORK, news, put, serving, told, told_until, work
from tests.gate.doors import Pipe
from tests.gate.twins import META, frame
from tests.services.fixtures import Service, postgres

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.app.once import request
from octavo.core.errors import InvalidParams, OctavoError, SourceUnavailable
from octavo.core.ports.chain import expected
from octavo.core.ref import Ref
from octavo.core.values import Change, Content, Entry
from octavo.feed import storing

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A4", "B3")]
__all__ = ["postgres", "work"]

FILE = Path(".octavo", "store.db")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again at once."""
    monkeypatch.setattr(storing, "PAUSE", 0.01)


async def is_read(octavo: Octavo) -> None:
    content = expected(await request(octavo, None, "read", "file://a.md"), Content)
    assert content.body


async def subscribers_are_told(octavo: Octavo, folder: Path) -> None:
    heard = asyncio.Event()
    leave = octavo.feed.subscribe(lambda _: heard.set())
    put(folder, "a", "longer than before")
    with anyio.fail_after(30):
        await heard.wait()
    leave()


@pytest.mark.parametrize("part", [0.0, 0.001, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
async def test_a_file_that_was_cut_is_begun_anew_or_goes_on_and_nothing_is_told_as_whole_that_is_not(
    tmp_path: Path, work: Path, part: float, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as octavo:
        number = (await news(octavo)).next
        for turn in range(20):
            put(work, "a", "longer" * turn)
            await told_until(octavo, number, ["updated a"] * (turn + 1))
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[: int(len(whole) * part)])
    with caplog.at_level(logging.WARNING):
        async with serving(tmp_path) as octavo:
            await is_read(octavo)
            with anyio.fail_after(30):
                while True:
                    try:
                        found = await news(octavo, number)
                        break
                    except SourceUnavailable:  # whoever notices the damage first
                        continue
            assert found.gap or len(found.changes) == 20
            put(work, "b", "longer")
            await told_until(octavo, found.next, ["updated b"])
    said = "damaged" in caplog.text or "cannot be read" in caplog.text
    assert said or not found.gap or part == 0.0, "an empty file is a new one"


async def test_a_full_disk_stops_the_history_and_nothing_else(
    tmp_path: Path, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as octavo:
        number = (await news(octavo)).next
        assert told(await news(octavo, number)) == []
        store = await octavo.home.store()

        async def room(pages: int) -> None:
            await store._file._writer.run(  # type: ignore[union-attr]
                lambda database: database.execute(f"PRAGMA max_page_count = {pages}").fetchall()
            )

        await room(1)  # as many as there are
        large = Entry(ref=Ref("file", ("a.md",)), name="a.md", version="x", description="x" * 100_000)
        octavo.feed.publish(Change(kind="updated", ref=large.ref, at=1.0, new=large))
        with anyio.fail_after(30):
            while "cannot be stored now" not in caplog.text:
                await asyncio.sleep(0)
        await is_read(octavo)
        await subscribers_are_told(octavo, work)
        with suppress(SourceUnavailable):  # or it is not told yet: it waits in memory until there is room
            assert told(await news(octavo, number)) == []
        await room(1_000_000)
        await told_until(octavo, number, ["updated a"] * 2)


async def test_a_store_of_a_newer_layout_is_left_as_it_is_and_said(tmp_path: Path, work: Path) -> None:
    async with serving(tmp_path) as octavo:
        number = (await news(octavo)).next
        assert told(await news(octavo, number)) == []
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    before = (tmp_path / FILE).read_bytes()
    async with serving(tmp_path) as octavo:
        await octavo.feed.followed(["file"])
        await is_read(octavo)
        await subscribers_are_told(octavo, work)
        with pytest.raises(SourceUnavailable, match="written by a newer Octavo"):
            await news(octavo, number)
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize("fault", ["wrong password", "nobody there", "never answers"])
async def test_a_database_that_is_away_stops_the_history_and_nothing_else(
    tmp_path: Path, work: Path, postgres: Service, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1_024):
            pass
        writer.close()

    silent = await asyncio.start_unix_server(say_nothing, tmp_path / ".s.PGSQL.5432")
    (tmp_path / "none").mkdir()
    url = {
        "wrong password": f"postgresql://guarded:hunter2@/guarded?host={postgres.socket.parent}",
        "nobody there": f"postgresql://test:hunter2@/x?host={tmp_path / 'none'}",
        "never answers": f"postgresql://test:hunter2@/x?host={tmp_path}",
    }[fault]
    text = (WORK % "") + "store: {kind: postgres, url: '${DB}', time: 200ms}\n"
    config = load_text(text, file=tmp_path / "octavo.yaml", environ={"DB": url})
    async with silent, Octavo(config, lasting=True) as octavo:
        await octavo.feed.followed(["file"])
        await is_read(octavo)
        await subscribers_are_told(octavo, work)
        with pytest.raises(SourceUnavailable) as caught:
            await news(octavo, 10**15)
        await is_read(octavo)
    assert "hunter2" not in caplog.text + str(caught.value)


NUMBERS = ["-1", "-" + "9" * 400, "9" * 400, "1e3", "0x1", "", "1 2", "٣"]


@pytest.mark.parametrize("number", NUMBERS)
async def test_what_is_no_number_is_refused_at_the_address(tmp_path: Path, work: Path, number: str) -> None:
    async with serving(tmp_path) as octavo:
        with pytest.raises(InvalidParams):
            await request(octavo, None, "read", f"changes://file?after={number}")
        await is_read(octavo)


@pytest.mark.parametrize("number", [-1, -(10**400), 10**400, 2**63, 2**53])
async def test_what_was_never_given_is_a_gap_that_goes_on(tmp_path: Path, work: Path, number: int) -> None:
    async with serving(tmp_path) as octavo:
        found = await news(octavo, number)
        assert found.gap and found.changes == () and not (await news(octavo, found.next)).gap


async def test_a_number_of_another_principal_gives_what_the_own_rules_allow(tmp_path: Path, work: Path) -> None:
    who = "agents: {a: {}, b: {}}\npolicy:\n  - {who: a, may: '*', what: '**'}\n  - {who: b, may: '*', what: 'file://b*'}\n"
    async with serving(tmp_path, who) as octavo:
        number = (await news(octavo, who="a")).next
        put(work, "a", "longer")
        await told_until(octavo, number, ["updated a"], "a")
        put(work, "b", "longer")
        await told_until(octavo, number, ["updated a", "updated b"], "a")
        first = (await news(octavo, number, "a")).changes[0].seq
        for given in (number, first):
            assert told(await news(octavo, given, "b")) == ["updated b"]


async def test_a_cursor_of_another_principal_is_refused(tmp_path: Path, work: Path) -> None:
    who = "agents: {a: {}, b: {}}\npolicy:\n  - {who: a, may: '*', what: '**'}\n  - {who: b, may: '*', what: 'file://b*'}\n"
    async with serving(tmp_path, who + "limits: {page: 1}\n") as octavo:
        for asking, other in (("a", "b"), ("b", "a")):
            async with pipe(octavo, asking) as mine, pipe(octavo, other) as yours:
                (answer,) = await mine.ask(frame("resources/list", {"_meta": META}, 1))
                cursor = answer.value["result"].get("nextCursor", "AAAA")
                (refused,) = await yours.ask(frame("resources/list", {"cursor": cursor, "_meta": META}, 1))
                assert refused.value["error"]["code"] == -32602


def pipe(octavo: Octavo, who: str) -> Pipe:
    return Pipe(octavo, octavo.works.identity.launched(who), lane=True)


COVERING: list[Callable[[int], str]] = [lambda k: "file://" + "**/" * k + "*", lambda k: "file://" + "**/" * k + "*.md"]


async def test_a_subscriber_of_a_hundred_patterns_that_match_everything_is_told_once(
    tmp_path: Path, work: Path
) -> None:
    patterns = [make(k) for make in COVERING for k in range(50)]
    async with serving(tmp_path) as octavo, Pipe(octavo, octavo.works.identity.launched(None), lane=True) as client:
        listen = {"notifications": {"resourceSubscriptions": patterns}, "_meta": META}
        await client.write(frame("subscriptions/listen", listen, 9) + b"\n")
        (acknowledged,) = await client.until(1)
        assert acknowledged.count(b"**/") > 2_000
        await octavo.feed.followed(["file"])
        for turn in range(3):
            put(work, "a", "longer" * (turn + 1))
            (note,) = await client.until(1)
            assert b"resources/updated" in note and note.count(b"a.md") >= 1
        one_more = {"notifications": {"resourceSubscriptions": [*patterns, "file://one"]}, "_meta": META}
        await client.write(frame("subscriptions/listen", one_more, 10) + b"\n")
        (refused,) = await client.until(1)
        assert b'"rate_limited"' in refused
        with pytest.raises(OctavoError):
            await request(octavo, None, "read", "file://nothing.md")
