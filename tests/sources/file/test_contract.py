"""The file source keeps the contract of every source, in both ways of confinement and under broken disks."""

import errno
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from octavo.core.ports import Source, abilities
from octavo.core.ref import Ref
from octavo.sources.file import FileRoot, FileSource
from octavo.testing import SourceSuite

SECRET = "correct horse battery staple"


class OnDisk(SourceSuite):
    """The tree in a directory, changed behind the source's back."""

    secrets = (SECRET,)
    options: dict[str, object] = {}

    @pytest.fixture
    async def source(self, tmp_path: Path) -> AsyncIterator[FileSource]:
        self.root = tmp_path / "root"
        for path, text in self.TREE.items():
            self.write(path, text)
        options: dict[str, object] = {"extensions": ["*"], "secret": SECRET.encode(), **self.options}
        async with FileSource([FileRoot(self.root)], **options) as source:  # type: ignore[arg-type]
            yield source

    def write(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    async def put(self, source: Source, path: str, text: str) -> None:
        self.write(path, text)

    async def remove(self, source: Source, path: str) -> None:
        (self.root / path).unlink()


class TestWithOpenat2(OnDisk):
    options = {"confinement": "openat2"}


class TestWithAWalk(OnDisk):
    options = {"confinement": "walk"}


class TestWithoutLinks(OnDisk):
    options = {"symlinks": "refuse"}


class TestUnderAnotherScheme(OnDisk):
    options = {"scheme": "work"}


def test_it_has_every_ability_but_writing() -> None:
    source = FileSource([FileRoot(Path("/"))], secret=b"")
    assert abilities(source) == {"watch", "complete", "spell", "stamp", "template"}
