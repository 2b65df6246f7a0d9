"""A writable file source keeps the contract of every source, and tells what it changes itself."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from octavo.core.ports.source import abilities
from octavo.sources.file import FileRoot
from octavo.sources.file.writable import WritableFileSource as FileSource
from octavo.testing import SourceSuite
from octavo.testing.base import Suite


class Writable(Suite):
    options: dict[str, object] = {}

    @pytest.fixture
    async def source(self, tmp_path: Path) -> AsyncIterator[FileSource]:
        root = tmp_path / "root"
        for path, text in self.TREE.items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        options: dict[str, object] = {
            "extensions": ["*"], "secret": b"secret", "journal": tmp_path / "journal", **self.options
        }  # fmt: skip
        async with FileSource([FileRoot(root)], **options) as source:  # type: ignore[arg-type]
            yield source


class TestWithOpenat2(Writable, SourceSuite):
    options = {"confinement": "openat2"}


class TestWithAWalk(Writable, SourceSuite):
    options = {"confinement": "walk"}


def test_it_can_write() -> None:
    source = FileSource([FileRoot(Path("/"))], secret=b"", journal=None)
    assert {"write", "edit", "arrange"} <= abilities(source)
