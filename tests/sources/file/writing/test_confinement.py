"""Writing never leaves the root, never follows a link and never touches what is not served."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import octavo
from octavo.core.errors import Forbidden, NotFound, OctavoError
from octavo.core.ref import Ref
from octavo.sources.file.writable import WritableFileSource as FileSource

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F3", "F5")]
REPOSITORY = Path(__file__).parents[4]


def ref(path: str) -> Ref:
    return Ref.parse(f"file://{path}")


def tree(root: Path) -> dict[str, bytes | str | None]:
    return {
        str(p.relative_to(root)): os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file() else None
        for p in sorted(root.rglob("*"))
    }


async def every_change_of(source: FileSource, path: str, *, deleting: bool = True) -> list[OctavoError]:
    """The refusals of everything that could change `path`; what is not refused fails the test."""
    refusals: list[OctavoError] = []
    for attempt in (
        source.write(ref(path), "x", if_match=None),
        source.write(ref(path), "x", if_match=None, mode="create"),
        source.write(ref(path), "x", if_match=None, mode="append"),
        *([source.delete(ref(path), if_match=None)] if deleting else []),
        source.move(ref(path), ref("moved.md"), if_match=None),
        source.move(ref("inside.md"), ref(path), if_match=None, overwrite=True),
        source.copy(ref(path), ref("copied.md")),
        source.copy(ref("inside.md"), ref(path), overwrite=True),
    ):
        with pytest.raises(OctavoError) as caught:
            await attempt
        refusals.append(caught.value)
    return refusals


@pytest.fixture
def filled(root: Path, tmp_path: Path) -> Path:
    (root / "folder").mkdir()
    for place in (root, root / "folder", tmp_path):
        (place / "inside.md").write_text("untouched", encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("out.md", "../inside.md", "out.md"),
        ("out.md", "../new.md", "out.md"),
        ("out", "..", "out/inside.md"),
        ("out", "..", "out/new.md"),
        ("out", "/", "out/new.md"),
        ("in.md", "inside.md", "in.md"),
        ("in", "folder", "in/inside.md"),
        ("in", "folder", "in/new.md"),
        ("dangling.md", "nothing.md", "dangling.md"),
        ("circle", "circle", "circle/x.md"),
    ],
)
async def test_a_link_is_never_written_through(
    source: FileSource, filled: Path, tmp_path: Path, link: str, target: str, path: str
) -> None:
    """Also not one that stays inside: its target has an address of its own, which other rules may hold for."""
    (filled / link).symlink_to(target)
    before = tree(filled), (tmp_path / "inside.md").read_bytes(), sorted(os.listdir(tmp_path))
    for refusal in await every_change_of(source, path, deleting=path != "in.md"):  # see test_links.py
        assert str(tmp_path) not in str(refusal)
    with pytest.raises(OctavoError):
        await source.make_directory(ref(f"{link}/new"))
    assert (tree(filled), (tmp_path / "inside.md").read_bytes(), sorted(os.listdir(tmp_path))) == before


@pytest.mark.parametrize(
    "path", [".env", "key.pem", ".git/config", "folder/.ssh/id.md", ".octavo/x.md", ".octavo-0123.md", "a.exe", "none"]
)
@pytest.mark.parametrize("there", [True, False])
async def test_what_is_not_served_is_not_written(source: FileSource, filled: Path, path: str, there: bool) -> None:
    if there:
        (filled / path).parent.mkdir(parents=True, exist_ok=True)
        (filled / path).write_text("secret", encoding="utf-8")
    before = tree(filled)
    refusals = await every_change_of(source, path)
    assert tree(filled) == before
    assert all(isinstance(refusal, NotFound | Forbidden) for refusal in refusals)


async def test_a_refusal_by_name_does_not_tell_what_is_there(source: FileSource, filled: Path) -> None:
    (filled / ".env").write_text("secret", encoding="utf-8")
    (filled / "a.exe").write_text("secret", encoding="utf-8")
    for there, absent in ((".env", ".npmrc"), ("a.exe", "b.exe")):
        told = [[str(e).replace(p, "") for e in await every_change_of(source, p)] for p in (there, absent)]
        assert told[0] == told[1]


async def test_what_is_left_out_is_not_written(opened: Any, filled: Path) -> None:
    (filled / "out/deep").mkdir(parents=True)
    (filled / "out/deep/a.md").write_text("untouched", encoding="utf-8")
    source = await opened(exclude_dirs=[filled / "out"])
    before = tree(filled)
    for path in ("out/deep/a.md", "out/new.md", "out/new/new.md"):
        await every_change_of(source, path)
    for attempt in (
        source.make_directory(ref("out/new")),
        source.delete(ref("out"), if_match=None),
        source.delete(ref("out/deep"), if_match=None),
        source.move(ref("out"), ref("in"), if_match=None),
        source.copy(ref("out"), ref("in")),
    ):
        with pytest.raises(OctavoError):
            await attempt
    assert tree(filled) == before


async def test_special_files_are_not_written(source: FileSource, filled: Path) -> None:
    os.mkfifo(filled / "pipe.md")
    await every_change_of(source, "pipe.md")
    assert (filled / "pipe.md").is_fifo()


async def test_the_root_itself_stays(source: FileSource, filled: Path) -> None:
    for attempt in (
        source.delete(ref(""), if_match=None),
        source.move(ref(""), ref("x"), if_match=None),
        source.move(ref("inside.md"), ref(""), if_match=None, overwrite=True),
        source.write(ref(""), "x", if_match=None),
        source.make_directory(ref("")),
    ):
        with pytest.raises(OctavoError):
            await attempt


def command(*arguments: str) -> str:
    """One of the heavy proofs beside this file, for a short while."""
    package = str(Path(octavo.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": package},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """In memory where that is possible: a kill does not ask what a disk has got, and tests should not wait for one."""
    memory = "/dev/shm"
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as place:
        yield Path(place)


def test_nothing_outside_changes_while_somebody_swaps_directories_and_links(quick: Path) -> None:
    told = command("tests.sources.file.writing.race", "--operations", "1000", "--where", str(quick))
    assert told.count("0 changes outside, 0 bytes from outside") == 2


def test_a_killed_writer_leaves_nothing_torn_lost_or_lying_about(quick: Path) -> None:
    told = command("tests.sources.file.writing.kills", "--kills", "150", "--where", str(quick))
    assert "0 torn, 0 lost, 0 left over" in told


def test_nor_where_every_file_needs_a_name(quick: Path) -> None:
    told = command("tests.sources.file.writing.kills", "--kills", "40", "--named", "--where", str(quick))
    assert "0 torn, 0 lost, 0 left over" in told
