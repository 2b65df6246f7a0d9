"""The file source keeps the contract of every source, in both ways of confinement and under broken disks."""

import errno
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from octavo.core.ports.source import Source, abilities
from octavo.sources.file import FileRoot, FileSource
from octavo.testing import Fault, FaultSuite, SourceSuite
from octavo.testing.base import Suite

SECRET = "correct horse battery staple"


class OnDisk(Suite):
    """The tree in a directory, changed behind the source's back."""

    secrets = (SECRET,)
    options: dict[str, object] = {}

    @pytest.fixture
    async def source(self, tmp_path: Path) -> AsyncIterator[FileSource]:
        self.root = tmp_path / "root"
        for path, text in self.TREE.items():
            self.write(path, text)
        async with await self.fresh() as source:
            yield source

    async def fresh(self) -> FileSource:
        options: dict[str, object] = {"extensions": ["*"], "secret": SECRET.encode(), **self.options}
        return FileSource([FileRoot(self.root)], **options)  # type: ignore[arg-type]

    def write(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    async def put(self, source: Source, path: str, text: str) -> None:
        self.write(path, text)

    async def remove(self, source: Source, path: str) -> None:
        (self.root / path).unlink()


class TestWithOpenat2(OnDisk, SourceSuite):
    options = {"confinement": "openat2"}


class TestWithAWalk(OnDisk, SourceSuite):
    options = {"confinement": "walk"}


class TestWithoutLinks(OnDisk, SourceSuite):
    options = {"symlinks": "refuse"}


class TestUnderAnotherScheme(OnDisk, SourceSuite):
    options = {"scheme": "work"}


class TestUnderFaults(OnDisk, FaultSuite):
    """The disk gives an I/O error, or nothing in time, or a descriptor of something else."""

    options = {"confinement": "openat2"}

    @contextmanager
    def broken(self, source: Source, fault: Fault) -> Iterator[None]:
        def open_wrongly(dir_fd: int, path: bytes, how: int) -> int:
            if fault == "garbage":
                return os.open("/dev/null", os.O_RDONLY)
            raise TimeoutError if fault == "hangs" else OSError(errno.EIO, f"{SECRET} on /dev/sda1")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("octavo.sources._shared.fs.syscalls.openat2", open_wrongly)
            yield


def test_it_has_every_ability_but_writing() -> None:
    source = FileSource([FileRoot(Path("/"))], secret=b"")
    reading = {
        "watch",
        "levels",
        "folders",
        "complete",
        "spell",
        "refuse",
        "stamp",
        "template",
        "search",
        "suggest",
        "suggest_more",
    }
    assert abilities(source) == reading
