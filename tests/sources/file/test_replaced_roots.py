"""The path of a root may come to lead to another folder while the server runs: that one is served, and told (F12)."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from octavo.core.edit import Edit, Revision
from octavo.core.errors import OctavoError, SourceUnavailable
from octavo.core.ref import Ref
from octavo.core.values import Change
from octavo.sources.file.addresses import FileRoot
from octavo.sources.file.writable import WritableFileSource

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F12")]

A = Ref.parse("file://a.md")


def fill(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


class Served:
    def __init__(self, source: WritableFileSource) -> None:
        self.source = source
        self.told: dict[str, bool] = {}  # whether it is there, by the last that was told of it
        self._news = anyio.Event()

    async def listen(self) -> None:
        async for change in self.source.watch(Ref("file")):
            self.hear(change)

    def hear(self, change: Change) -> None:
        for ref, is_there in ((change.source, False), (change.ref, change.kind != "deleted")):
            if ref is not None:
                self.told[ref.name] = is_there
        self._news.set()
        self._news = anyio.Event()

    async def until(self, **told: bool) -> None:
        wanted = {f"{name}.md": is_there for name, is_there in told.items()}
        with anyio.fail_after(30):
            while self.told != wanted:
                await self._news.wait()

    async def text(self) -> str:
        """As soon as there is an answer."""
        with anyio.fail_after(30):
            while True:
                try:
                    return str((await self.source.read(A, max_bytes=100)).body)
                except SourceUnavailable:
                    await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def served(root: Path, journal: Path) -> AsyncIterator[Served]:
    async with WritableFileSource([FileRoot(root)], secret=b"x" * 32, journal=journal) as source:
        one = Served(source)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.listen)
            await source.armed()
            yield one
            tasks.cancel_scope.cancel()


def renamed(base: Path) -> None:
    (base / "cur").rename(base / "old")
    (base / "next").rename(base / "cur")


def link_flipped(base: Path) -> None:
    (base / "flip").symlink_to("next")
    (base / "flip").rename(base / "cur")


def copied_back(base: Path) -> None:
    shutil.rmtree(base / "cur")
    shutil.copytree(base / "next", base / "cur")


def folder_above_renamed(base: Path) -> None:
    """The folder itself stays as it is: nobody who follows it hears of this."""
    base.rename(base.with_name("away"))
    base.mkdir()
    shutil.copytree(base.with_name("away") / "next", base / "cur")


WAYS: list[Callable[[Path], None]] = [renamed, link_flipped, copied_back, folder_above_renamed]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_another_folder_in_the_place_of_a_root_is_served_and_what_is_different_is_told(
    tmp_path: Path, way: Callable[[Path], None]
) -> None:
    base = tmp_path / "base"
    first = fill(base / ("first" if way is link_flipped else "cur"), a="old", gone="x")
    if way is link_flipped:
        (base / "cur").symlink_to("first")
    fill(base / "next", a="new text", b="y")
    async with served(base / "cur", tmp_path / "journal") as one:
        assert await one.text() == "old"
        way(base)
        await one.until(a=True, b=True, gone=False)
        assert await one.text() == "new text"
        page = await one.source.list(Ref("file"), cursor=None, limit=10)
        assert [entry.ref.name for entry in page.items] == ["a.md", "b.md"]
        await one.source.write(Ref.parse("file://c.md"), "z", if_match=None, by="me")
        assert (base / "cur/c.md").read_text(encoding="utf-8") == "z"
        assert not (first / "c.md").exists() or way in (renamed, copied_back, folder_above_renamed)


async def test_nothing_is_written_to_a_folder_that_no_path_leads_to(tmp_path: Path) -> None:
    """It was, and told as done. Not even before anybody has noticed: a write looks for itself."""
    fill(tmp_path / "cur", a="old")
    async with served(tmp_path / "cur", tmp_path / "journal") as one:
        (tmp_path / "cur").rename(tmp_path / "old")
        changes = (
            lambda: one.source.write(Ref.parse("file://new.md"), "x", if_match=None, by="me"),
            lambda: one.source.write(Ref.parse("file://below/new.md"), "x", if_match=None, by="me"),
            lambda: one.source.write(A, "x", if_match=None, by="me"),
            lambda: one.source.delete(A, if_match=None, by="me"),
            lambda: one.source.move(A, Ref.parse("file://b.md"), if_match=None, by="me"),
            lambda: one.source.copy(A, Ref.parse("file://b.md"), by="me"),
            lambda: one.source.make_directory(Ref.parse("file://folder"), by="me"),
            lambda: one.source.edit(A, Revision(edits=(Edit("", "x"),)), if_match=None, by="me"),
        )
        for change in changes:
            with pytest.raises(SourceUnavailable):
                await change()
        assert os.listdir(tmp_path / "old") == ["a.md"]
        assert (tmp_path / "old/a.md").read_text(encoding="utf-8") == "old"
        assert not (tmp_path / "cur").exists()


async def test_while_there_is_no_folder_nothing_is_told_and_everything_is_unavailable(tmp_path: Path) -> None:
    """Absent would be a lie: nobody has deleted these files."""
    fill(tmp_path / "cur", a="old", b="same")
    async with served(tmp_path / "cur", tmp_path / "journal") as one:
        (tmp_path / "cur").rename(tmp_path / "old")
        with anyio.fail_after(30):
            while await answers(one):
                await anyio.lowlevel.checkpoint()
        with pytest.raises(SourceUnavailable):
            await one.source.list(Ref("file"), cursor=None, limit=10)
        with pytest.raises(SourceUnavailable):
            await one.source.stat(A)
        assert one.told == {}
        (tmp_path / "old/a.md").write_text("other text", encoding="utf-8")
        (tmp_path / "old").rename(tmp_path / "cur")
        await one.until(a=True)
        assert await one.text() == "other text"


async def answers(one: Served) -> bool:
    try:
        await one.source.read(A, max_bytes=100)
    except OctavoError:
        return False
    return True


async def test_descriptors_of_folders_that_were_replaced_are_closed(tmp_path: Path) -> None:
    """A folder that is replaced every minute must not use them up."""
    fill(tmp_path / "cur", a="0")
    async with served(tmp_path / "cur", tmp_path / "journal") as one:
        before = len(os.listdir("/proc/self/fd"))
        for turn in range(1, 6):
            fill(tmp_path / f"next{turn}", a=f"{turn}" * (turn + 1))
            (tmp_path / "cur").rename(tmp_path / f"old{turn}")
            (tmp_path / f"next{turn}").rename(tmp_path / "cur")
            with anyio.fail_after(30):
                while await one.text() != f"{turn}" * (turn + 1):
                    await anyio.lowlevel.checkpoint()
        assert len(os.listdir("/proc/self/fd")) <= before + 1
