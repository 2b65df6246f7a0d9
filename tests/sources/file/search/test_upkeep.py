"""The index is what is on disk: after changes, after a lost queue of events, and while somebody plays with links."""

import asyncio
import os
import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from octavo.core.errors import OctavoError
from octavo.core.ref import Ref
from octavo.core.values import Page
from octavo.sources._shared.fs.notify import Batch, Inotify, NoHints
from octavo.sources.file import FileRoot, FileSource
from octavo.sources.file import source as source_module
from octavo.sources.file.search import ContentQuery, NameQuery
from octavo.sources.file.search import paths as paths_module
from octavo.sources.file.search import scan as scan_module

pytestmark = pytest.mark.anyio
PATIENCE = 30


async def test_what_was_changed_before_a_search_is_seen(
    write: Any, opened: Any, named: Any, containing: Any, root: Path
) -> None:
    write("a.md", "needle"), write("d/b.md", "hay")
    source = await opened()
    await source.learned()
    assert await containing(source, "needle") == ["a.md"]
    write("new.md", "needle")
    assert await containing(source, "needle") == ["a.md", "new.md"]
    write("a.md", "straw"), write("d/b.md", "needle")
    assert await containing(source, "needle") == ["d/b.md", "new.md"]
    await source.learned()
    assert await containing(source, "straw") == ["a.md"]
    os.rename(root / "d", root / "e")
    assert await containing(source, "needle") == ["e/b.md", "new.md"]
    assert await named(source, "*.md") == ["a.md", "e/b.md", "new.md"]
    (root / "new.md").unlink(), shutil.rmtree(root / "e")
    assert await containing(source, "needle") == []
    assert await named(source, "*.md") == ["a.md"]


def with_text(root: Path, text: str) -> set[str]:
    files = [path for path in root.rglob("*.md") if path.read_text(encoding="utf-8") == text]
    return {path.relative_to(root).as_posix() for path in files}


async def test_the_index_follows_any_changes(
    write: Any, opened: Any, named: Any, listing: Any, containing: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths_module, "_FEW_CHANGES", 4)  # so that it is made anew several times
    chance = random.Random(4)
    source = await opened()
    for turn in range(40):
        for _ in range(chance.randrange(4)):
            place = root / chance.choice("abc") / chance.choice("de") / f"{chance.randrange(4)}.md"
            move = chance.randrange(5)
            if move < 3:
                write(place.relative_to(root).as_posix(), f"text {chance.randrange(3)}")
            elif move == 3:
                place.unlink(missing_ok=True)
            elif place.parent.parent.exists():
                os.rename(place.parent.parent, root / f"{chance.choice('abc')}{turn}")
        if turn % 3 == 0:
            await source.learned()
        assert [f"file://{path}" for path in await named(source, "**", limit=50)] == await listing(source, limit=50)
        assert set(await containing(source, "text 1", limit=50)) == with_text(root, "text 1")


async def test_after_an_overflow_everything_is_looked_at_again(
    write: Any, opened: Any, named: Any, containing: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel says that events were lost, and not which."""
    for number in range(20):
        write(f"d/{number:02}.md", "needle")
    source = await opened()
    await source.learned()
    assert len(await containing(source, "needle")) == 20

    def overflown(self: Inotify, batch: Batch) -> None:
        taken = Batch()
        take(self, taken)
        batch.everything = True

    take = Inotify.take
    monkeypatch.setattr(Inotify, "take", overflown)
    write("d/00.md", "straw"), (root / "d/01.md").unlink(), write("new/x.md", "needle")
    os.rename(root / "d/02.md", root / "d/renamed.md")
    expected = [*(f"d/{number:02}.md" for number in range(3, 20)), "d/renamed.md", "new/x.md"]
    assert await containing(source, "needle", limit=50) == expected
    assert await named(source, "**", limit=50) == ["d/00.md", *expected]


async def test_where_nothing_is_reported_the_next_look_finds_it(
    write: Any, opened: Any, named: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "hints", lambda paths: NoHints)
    write("a.md")
    source: FileSource = await opened()
    assert await named(source, "*.md") == ["a.md"]
    write("b.md")
    with anyio.fail_after(PATIENCE):
        changes = source.watch(Ref("file"))
        assert (await anext(changes)).ref == Ref.parse("file://b.md")
        await changes.aclose()  # type: ignore[attr-defined]
    assert await named(source, "*.md") == ["a.md", "b.md"]


async def test_a_file_that_vanished_unseen_is_not_told(
    write: Any, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "hints", lambda paths: NoHints)
    place = write("a.md")
    source = await opened()
    assert (await source.search(Ref("file"), NameQuery("a"), cursor=None, limit=1)).items
    place.unlink()
    assert await source.search(Ref("file"), NameQuery("a"), cursor=None, limit=1) == Page(())


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Readers that say that they have begun and go on when they are let."""
    begun, let = threading.Event(), threading.Event()
    is_in = scan_module.Needle.is_in

    def held_is_in(self: scan_module.Needle, raw: bytes, name: bytes) -> bool:
        begun.set()
        let.wait(PATIENCE)
        return is_in(self, raw, name)

    monkeypatch.setattr(scan_module.Needle, "is_in", held_is_in)
    yield begun, let
    let.set()


async def test_a_search_nobody_waits_for_stops(
    write: Any, opened: Any, held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, let = held
    for number in range(300):
        write(f"{number}/a.md", "needle")
    source = await opened()
    await source.armed()
    opened_folders: list[Any] = []
    monkeypatch.setattr(
        scan_module.SearchScan, "_opened", lambda self, folder, real=scan_module.SearchScan._opened: (
            opened_folders.append(folder), real(self, folder)
        )[1],
    )  # fmt: skip
    search = asyncio.ensure_future(source.search(Ref("file"), ContentQuery(text="needle"), cursor=None, limit=900))
    await asyncio.to_thread(begun.wait, PATIENCE)
    search.cancel()
    await asyncio.wait([search])
    let.set()
    with anyio.fail_after(PATIENCE):
        await source.__aexit__(None, None, None)  # waits for the reader
    assert search.cancelled() and len(opened_folders) == 1


async def test_a_source_that_closes_ends_its_searches(write: Any, opened: Any, held: Any) -> None:
    begun, let = held
    write("a.md", "needle"), write("b/a.md", "needle")
    source = await opened()
    search = asyncio.ensure_future(source.search(Ref("file"), ContentQuery(text="needle"), cursor=None, limit=9))
    await asyncio.to_thread(begun.wait, PATIENCE)
    closing = asyncio.ensure_future(source.__aexit__(None, None, None))
    await anyio.lowlevel.checkpoint()
    let.set()
    with anyio.fail_after(PATIENCE):
        await closing
        with pytest.raises(OctavoError):
            await search
    with pytest.raises(OctavoError):
        await source.search(Ref("file"), NameQuery("a"), cursor=None, limit=9)


async def test_before_the_first_look_is_done_a_search_says_where_to_go_on(write: Any, opened: Any) -> None:
    for number in range(600):
        write(f"{number % 30}/{number}.md")
    source: FileSource = await opened()
    cursor, found = None, []
    with anyio.fail_after(PATIENCE):
        while True:
            page = await source.search(Ref("file"), NameQuery("*7.md"), cursor=cursor, limit=1000, deadline=0.001)
            found += page.items
            cursor = page.cursor
            if cursor is None:
                break
    assert len(found) == 60


async def test_no_race_with_links_finds_what_is_outside(write: Any, root: Path, tmp_path: Path) -> None:
    """Somebody swaps a folder and a file for links that lead out, as fast as they can."""
    write("d/a.md", "hay"), write("f.md", "hay"), write("a.md", "needle", below=tmp_path / "out")
    (tmp_path / "dlink").symlink_to(tmp_path / "out", target_is_directory=True)
    (tmp_path / "flink").symlink_to(tmp_path / "out" / "a.md")
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            for real, link in ((root / "d", tmp_path / "dlink"), (root / "f.md", tmp_path / "flink")):
                os.rename(real, tmp_path / "aside")
                os.rename(link, real)
                os.rename(real, link)
                os.rename(tmp_path / "aside", real)

    racer = threading.Thread(target=swap)
    async with FileSource([FileRoot(root)], secret=b"secret") as source:
        await source.armed()
        racer.start()
        try:
            for _ in range(100):
                page = await source.search(
                    Ref("file"), ContentQuery(text="needle"), cursor=None, limit=9, deadline=0.02
                )
                assert page.items == ()
        finally:
            ended.set()
            racer.join()
