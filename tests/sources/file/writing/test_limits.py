"""Two writers at once, and a disk that is full."""

import asyncio
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import octavo
from octavo.core.errors import Conflict, OctavoError, SourceUnavailable, TooLarge
from octavo.core.ref import Ref
from octavo.sources.file.writable import WritableFileSource as FileSource

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F5", "B4")]
MB = 1 << 20
REPOSITORY = Path(__file__).parents[4]

COUNTER = """
import sys
from pathlib import Path
from octavo.core.errors import Conflict
from tests.sources.file.writing.engines import hand
root, journal, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
with hand(root, journal) as one:
    conflicts = 0
    sys.stdout.write("ready\\n"), sys.stdout.flush()
    sys.stdin.readline()
    for _ in range(count):
        while True:
            number, version = one.read("count.md")
            try:
                one.write("count.md", b"%d" % (int(number) + 1), if_match=version)
                break
            except Conflict:
                conflicts += 1
print(conflicts)
"""


def ref(path: str) -> Ref:
    return Ref.parse(f"file://{path}")


@pytest.mark.parametrize("journals", [["j", "j"], ["j", "k"]], ids=["shared", "apart"])
def test_two_processes_lose_no_update(root: Path, tmp_path: Path, journals: list[str]) -> None:
    """Also when they know nothing of each other: the lock is on the directory."""
    (root / "count.md").write_text("0", encoding="utf-8")
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTER, str(root), str(tmp_path / journal), "60"],
            cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": f"{Path(octavo.__file__).parents[1]}:{REPOSITORY}"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )
        for journal in journals
    ]  # fmt: skip
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    told = []
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        told.append(worker.communicate(timeout=60)[0])
    assert [worker.returncode for worker in workers] == [0, 0]
    assert (root / "count.md").read_text(encoding="utf-8") == "120"
    assert sum(map(int, told)) > 0, "they never met"


async def test_many_tasks_lose_no_update(source: FileSource, root: Path) -> None:
    await source.write(ref("count.md"), "0", if_match=None)

    async def count() -> None:
        for _ in range(5):
            while True:
                content = await source.read(ref("count.md"), max_bytes=MB)
                try:
                    await source.write(ref("count.md"), f"{int(content.body) + 1}", if_match=content.etag)
                    break
                except Conflict:
                    continue

    async with asyncio.TaskGroup() as group:
        for _ in range(6):
            group.create_task(count())
    assert (root / "count.md").read_text(encoding="utf-8") == "30"


async def test_appends_at_once_are_all_there(source: FileSource, root: Path) -> None:
    async with asyncio.TaskGroup() as group:
        for n in range(30):
            group.create_task(source.write(ref("log.md"), f"{n}\n", if_match=None, mode="append"))
    assert sorted(map(int, (root / "log.md").read_text(encoding="utf-8").split())) == list(range(30))


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    place = tmp_path / "small"
    place.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None or os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("mounting is not permitted here")
    try:
        yield place
    finally:
        subprocess.run([umount, "-l", str(place)], check=True)


def tree(root: Path) -> dict[str, int]:
    return {str(p.relative_to(root)): p.stat().st_size for p in sorted(root.rglob("*"))}


async def attempts(source: FileSource) -> list[OctavoError]:
    refused: list[OctavoError] = []
    for attempt in (
        source.write(ref("new/new.md"), b"x" * 2 * MB, if_match=None),
        source.write(ref("old.md"), b"x" * 2 * MB, if_match=None),
        source.write(ref("old.md"), b"x" * 2 * MB, if_match=None, mode="append"),
        source.copy(ref("d"), ref("e")),
        source.copy(ref("old.md"), ref("copy.md")),
    ):
        try:
            await attempt
        except OctavoError as error:
            refused.append(error)
    return refused


async def test_a_full_disk_is_said_and_nothing_is_half_done(opened: Any, small: Path) -> None:
    (small / "d").mkdir()
    (small / "d/a.md").write_bytes(b"a" * 300_000)
    (small / "old.md").write_bytes(b"o" * 700_000)
    before = tree(small)
    refused = await attempts(await opened(small))
    assert [type(error) for error in refused] == [SourceUnavailable] * 5
    assert all("No space is left" in str(error) for error in refused)
    assert tree(small) == before


async def test_a_full_journal_is_said_and_nothing_is_half_done(opened: Any, small: Path, root: Path) -> None:
    for name in ("old.md", "d/a.md"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(b"o" * 2 * MB)
    source = await opened(journal=small / "journal")
    before = tree(root)
    for attempt in (
        source.write(ref("old.md"), "x", if_match=None),
        source.delete(ref("old.md"), if_match=None),
        source.delete(ref("d"), if_match=None),
        source.move(ref("d/a.md"), ref("old.md"), if_match=None, overwrite=True),
    ):
        with pytest.raises(SourceUnavailable, match="No space is left"):
            await attempt
    assert tree(root) == before
    assert os.listdir(small / "journal/kept") == []


async def test_a_limit_on_the_size_of_files_is_said_and_nothing_is_half_done(source: FileSource, root: Path) -> None:
    (root / "old.md").write_bytes(b"o")
    before = tree(root)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MB, limits[1]))
    try:
        refused = (await attempts(source))[:3]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [type(error) for error in refused] == [TooLarge] * 3
    await source.undo("", count=9)  # the copy, which was small enough
    assert tree(root) == before
