"""Links in a folder go where it goes, as links; nobody looks at, or touches, what they lead to."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest

from octavo.core.errors import Conflict, Forbidden, OctavoError
from octavo.core.ref import Ref
from octavo.sources.file.writable import WritableFileSource as FileSource
from octavo.sources.file.writing import engine, trees
from octavo.sources.file.writing.staging import copy_all

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F3", "F5")]


def ref(path: str) -> Ref:
    return Ref.parse(f"file://{path}")


def tree(root: Path) -> dict[str, str | None]:
    return {
        str(p.relative_to(root)): f"-> {os.readlink(p)}"
        if p.is_symlink()
        else p.read_text(encoding="utf-8")
        if p.is_file()
        else None
        for p in sorted(root.rglob("*"))
    }


@pytest.fixture
def filled(root: Path, tmp_path: Path) -> Path:
    (root / "a/sub").mkdir(parents=True)
    (root / "a/f.md").write_text("f", encoding="utf-8")
    (root / "kept.md").write_text("kept", encoding="utf-8")
    (tmp_path / "outside.md").write_text("outside", encoding="utf-8")
    for link, target in (
        ("ln.md", "f.md"), ("up.md", "../kept.md"), ("out.md", "../../outside.md"), ("nowhere.md", "nothing.md"),
        ("folder.md", "sub"), ("sub/circle.md", "circle.md"),
    ):  # fmt: skip
        (root / "a" / link).symlink_to(target)
    return root


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory on another file system."""
    with TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as place:
        if os.stat(place).st_dev == tmp_path.stat().st_dev:
            pytest.skip("there is no second file system to write to")
        yield Path(place)


async def test_a_folder_is_deleted_with_its_links_and_comes_back_with_them(
    source: FileSource, filled: Path, tmp_path: Path
) -> None:
    before, when = tree(filled), os.lstat(filled / "a/ln.md").st_mtime_ns
    await source.delete(ref("a"), if_match=None)
    assert tree(filled) == {"kept.md": "kept"}
    assert (tmp_path / "outside.md").read_text(encoding="utf-8") == "outside"
    await source.undo("")
    assert tree(filled) == before
    assert os.lstat(filled / "a/ln.md").st_mtime_ns == when


async def test_a_folder_is_moved_with_its_links_and_back(source: FileSource, filled: Path) -> None:
    before = tree(filled)
    await source.move(ref("a"), ref("b"), if_match=None)
    assert tree(filled) == {name.replace("a", "b", 1) if name[0] == "a" else name: k for name, k in before.items()}
    await source.undo("")
    assert tree(filled) == before


async def test_links_are_copied_as_links(source: FileSource, filled: Path) -> None:
    before = tree(filled)
    await source.copy(ref("a"), ref("b"))
    after = tree(filled)
    assert {name[1:]: kind for name, kind in after.items() if name[0] == "b"} == {
        name[1:]: kind for name, kind in before.items() if name[0] == "a"
    }
    await source.undo("")
    assert tree(filled) == before


async def test_links_are_carried_to_another_file_system(opened: Any, filled: Path, elsewhere: Path) -> None:
    source = await opened(filled, elsewhere)
    before = tree(filled)
    await source.move(ref("a"), ref("b?root=2"), if_match=None)
    assert tree(elsewhere) == {f"b{name[1:]}": kind for name, kind in before.items() if name[0] == "a"}
    assert tree(filled) == {"kept.md": "kept"}
    await source.undo("")
    assert (tree(filled), tree(elsewhere)) == (before, {})


@pytest.mark.parametrize("link", ["a/ln.md", "a/up.md", "a/folder.md"])
async def test_a_link_is_deleted_itself_and_comes_back_as_a_link(source: FileSource, filled: Path, link: str) -> None:
    before = tree(filled)
    with pytest.raises(Conflict, match="is a link"):
        await source.delete(ref(link), if_match="x")
    await source.delete(ref(link), if_match=None)
    assert tree(filled) == {name: kind for name, kind in before.items() if name != link}
    await source.undo("")
    assert tree(filled) == before


async def test_where_links_cannot_be_made_they_are_neither_deleted_nor_copied(
    source: FileSource, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a wall that lets nobody make links."""

    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    before = tree(filled)
    monkeypatch.setattr(os, "symlink", denied)
    for attempt in (
        source.delete(ref("a"), if_match=None),
        source.delete(ref("a/ln.md"), if_match=None),
        source.copy(ref("a"), ref("b")),
    ):
        with pytest.raises(Forbidden, match="may not make such links"):
            await attempt
    assert tree(filled) == before


async def test_a_trial_that_was_cut_off_is_cleared_away(
    opened: Any, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(filled)
    first = await opened()

    def cut_off(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", cut_off)
        patched.setattr(engine, "settle", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            first._writing.delete(ref("a"), first._addresses.where(ref("a")), if_match=None, by="")
    assert any(name.startswith(".octavo-") for name in tree(filled))
    await opened()
    assert tree(filled) == before


async def test_a_deleted_link_does_not_come_back_over_something_else(source: FileSource, filled: Path) -> None:
    await source.delete(ref("a/ln.md"), if_match=None)
    (filled / "a/ln.md").symlink_to("other.md")
    with pytest.raises(Conflict):
        await source.undo("")
    assert os.readlink(filled / "a/ln.md") == "other.md"


@pytest.mark.parametrize("link", ["a/out.md", "a/nowhere.md", "a/sub/circle.md"])
async def test_a_link_that_is_not_served_is_not_deleted_by_its_name(
    source: FileSource, filled: Path, link: str
) -> None:
    with pytest.raises(OctavoError):
        await source.delete(ref(link), if_match=None)
    assert (filled / link).is_symlink()


async def test_links_change_nothing_for_what_is_hidden(source: FileSource, filled: Path) -> None:
    (filled / "a/.env").write_text("secret", encoding="utf-8")
    (filled / "to.md").symlink_to("a/.env")
    before = tree(filled)
    for attempt in (
        source.delete(ref("a"), if_match=None),
        source.move(ref("a"), ref("b"), if_match=None),
        source.copy(ref("a"), ref("b")),
        source.delete(ref("to.md"), if_match=None),
    ):
        with pytest.raises(Forbidden):
            await attempt
    assert tree(filled) == before


async def test_a_cancelled_copy_or_deletion_is_taken_back(
    source: FileSource, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(filled)
    for change in (lambda: source.copy(ref("a"), ref("b")), lambda: source.delete(ref("a"), if_match=None)):
        begun, goes_on = threading.Event(), threading.Event()

        def slow(*told: Any, begun: threading.Event = begun, goes_on: threading.Event = goes_on) -> None:
            begun.set()
            goes_on.wait(20)
            copy_all(*told)

        with monkeypatch.context() as patched:
            patched.setattr(trees, "copy_all", slow)
            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    group.start_soon(change)
                    await anyio.to_thread.run_sync(begun.wait)
                    group.cancel_scope.cancel()
            goes_on.set()
            await source.make_directory(ref("after"))  # waits for its turn in the same folder
        os.rmdir(filled / "after")
        assert tree(filled) == before
    assert [past.op for past in await source.history("")] == ["make_directory"] * 2
