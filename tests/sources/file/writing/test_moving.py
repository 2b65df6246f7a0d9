"""Deleting, moving and copying: files and whole directories."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound, OctavoError, TooLarge
from octavo.core.ref import Ref
from octavo.sources.file.writable import WritableFileSource as FileSource
from octavo.sources.file.writing import trees

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F5", "B4")]


def ref(path: str) -> Ref:
    return Ref.parse(f"file://{path}")


def tree(root: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(root)): p.read_bytes() if p.is_file() else None for p in sorted(root.rglob("*"))}


@pytest.fixture
def filled(root: Path) -> Path:
    for path in ("a.md", "d/one.md", "d/sub/two.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path, encoding="utf-8")
    (root / "d/empty").mkdir()
    return root


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory on another file system."""
    with TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as place:
        if os.stat(place).st_dev == tmp_path.stat().st_dev:
            pytest.skip("there is no second file system to write to")
        yield Path(place)


async def test_a_deleted_file_or_directory_is_gone(source: FileSource, filled: Path) -> None:
    await source.delete(ref("a.md"), if_match=None)
    await source.delete(ref("d"), if_match=None)
    assert tree(filled) == {}
    for name in ("a.md", "d"):
        with pytest.raises((NotFound, Forbidden)):
            await source.delete(ref(name), if_match=None)


async def test_a_file_moves_with_its_content_and_attributes(source: FileSource, filled: Path) -> None:
    (filled / "a.md").chmod(0o640)
    entry = await source.move(ref("a.md"), ref("new/b.md"), if_match=(await source.stat(ref("a.md"))).version)
    assert entry == await source.stat(ref("new/b.md"))
    assert (filled / "new/b.md").read_text(encoding="utf-8") == "a.md"
    assert (filled / "new/b.md").stat().st_mode & 0o777 == 0o640
    assert not (filled / "a.md").exists()


async def test_a_directory_moves_as_a_whole(source: FileSource, filled: Path) -> None:
    entry = await source.move(ref("d"), ref("e/f"), if_match=None)
    assert (entry.ref, entry.mime_type) == (ref("e/f"), "inode/directory")
    assert tree(filled) == {
        "a.md": b"a.md", "e": None, "e/f": None, "e/f/empty": None, "e/f/one.md": b"d/one.md", "e/f/sub": None,
        "e/f/sub/two.md": b"d/sub/two.md",
    }  # fmt: skip


async def test_a_copy_is_a_file_of_its_own(source: FileSource, filled: Path) -> None:
    assert await source.copy(ref("a.md"), ref("b.md")) == await source.stat(ref("b.md"))
    await source.write(ref("b.md"), "changed", if_match=None)
    await source.copy(ref("d"), ref("e"))
    await source.delete(ref("d"), if_match=None)
    assert tree(filled) == {
        "a.md": b"a.md", "b.md": b"changed", "e": None, "e/empty": None, "e/one.md": b"d/one.md", "e/sub": None,
        "e/sub/two.md": b"d/sub/two.md",
    }  # fmt: skip


@pytest.mark.parametrize("verb", ["move", "copy"])
async def test_only_a_file_takes_the_place_of_a_file_and_only_if_it_is_said(
    source: FileSource, filled: Path, verb: str
) -> None:
    options: dict[str, Any] = {"if_match": None} if verb == "move" else {}
    before = tree(filled)
    for one, other, overwrite in (
        ("a.md", "d/one.md", False), ("a.md", "d", True), ("d", "a.md", True), ("d/sub", "d/empty", True)
    ):  # fmt: skip
        with pytest.raises((Conflict, Forbidden)):
            await getattr(source, verb)(ref(one), ref(other), overwrite=overwrite, **options)
    for other in ("a.md/b.md", "d/sub/below", "d"):
        with pytest.raises((InvalidParams, Conflict)):
            await getattr(source, verb)(ref(other.split("/")[0]), ref(other), overwrite=True, **options)
    assert tree(filled) == before
    entry = await getattr(source, verb)(ref("a.md"), ref("d/one.md"), overwrite=True, **options)
    assert entry == await source.stat(ref("d/one.md"))
    assert (filled / "d/one.md").read_bytes() == b"a.md"
    assert (filled / "a.md").exists() is (verb == "copy")


@pytest.mark.parametrize("name", [".env", "picture.exe", ".git", ".octavo-0123456789abcdef"])
async def test_a_directory_that_holds_something_not_served_stays(source: FileSource, filled: Path, name: str) -> None:
    (filled / "d/sub" / name).write_text("secret", encoding="utf-8")
    before = tree(filled)
    for attempt in (
        source.delete(ref("d"), if_match=None),
        source.move(ref("d"), ref("e"), if_match=None),
        source.copy(ref("d"), ref("e")),
    ):
        with pytest.raises(Forbidden, match="can go along"):
            await attempt
    assert tree(filled) == before


async def test_a_move_cannot_bring_a_credential_to_light(source: FileSource, filled: Path) -> None:
    """`.aws/credentials` is hidden by both names together."""
    (filled / ".aws").mkdir()
    (filled / ".aws/credentials").write_text("secret", encoding="utf-8")
    with pytest.raises(OctavoError):
        await source.move(ref(".aws"), ref("aws"), if_match=None)
    with pytest.raises(NotFound):
        await source.move(ref("a.md"), ref(".ssh/a.md"), if_match=None)
    assert (filled / ".aws/credentials").exists()


async def test_special_files_keep_a_directory_in_place(source: FileSource, filled: Path) -> None:
    os.mkfifo(filled / "d/pipe.md")
    with pytest.raises(Forbidden):
        await source.delete(ref("d"), if_match=None)
    with pytest.raises(OctavoError):
        await source.delete(ref("d/pipe.md"), if_match=None)
    assert (filled / "d/sub/two.md").exists()


async def test_too_large_a_directory_is_refused_with_a_sentence(
    source: FileSource, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "MOST_ENTRIES", 3)
    monkeypatch.setattr(trees, "MOST_BYTES", 3)
    before = tree(filled)
    for attempt in (source.delete(ref("d"), if_match=None), source.move(ref("d"), ref("e"), if_match=None)):
        with pytest.raises(TooLarge, match="more than 3 entries"):
            await attempt
    monkeypatch.setattr(trees, "MOST_ENTRIES", 100)
    with pytest.raises(TooLarge, match="bytes"):
        await source.copy(ref("d"), ref("e"))
    assert tree(filled) == before


async def test_a_file_that_comes_into_a_directory_while_it_is_deleted_saves_it(
    source: FileSource, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = trees.plant

    def slow(*args: Any, **options: Any) -> None:
        plant(*args, **options)
        (filled / "d/sub/late.md").write_text("late", encoding="utf-8")

    monkeypatch.setattr("octavo.sources.file.writing.backup.plant", slow)
    with pytest.raises(Conflict):
        await source.delete(ref("d"), if_match=None)
    assert (filled / "d/sub/late.md").exists() and (filled / "d/one.md").exists()
    assert not [name for name in tree(filled) if ".octavo" in name]


async def test_between_file_systems_the_copy_is_there_before_the_original_goes(
    opened: Any, filled: Path, elsewhere: Path
) -> None:
    source = await opened(filled, elsewhere)
    entry = await source.move(ref("a.md"), ref("a.md?root=2"), if_match=None, by="me")
    assert entry == await source.stat(ref("a.md?root=2"))
    await source.move(ref("d"), ref("x/d?root=2"), if_match=None, by="me")
    assert tree(filled) == {}
    assert {k for k, v in tree(elsewhere).items() if v is not None} == {"a.md", "x/d/one.md", "x/d/sub/two.md"}
    await source.undo("me", count=2)
    assert {k for k, v in tree(filled).items() if v is not None} == {"a.md", "d/one.md", "d/sub/two.md"}
    assert tree(elsewhere) == {}


async def test_a_move_in_a_later_root_stays_there(opened: Any, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    (two / "a.md").write_text("a", encoding="utf-8")
    source = await opened(one, two)
    await source.move(ref("a.md"), ref("b.md"), if_match=None)
    assert (tree(one), tree(two)) == ({}, {"b.md": b"a"})
