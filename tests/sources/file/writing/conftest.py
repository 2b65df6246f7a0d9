"""A writable source over a root with a journal beside it, in both ways of confinement."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from octavo.sources.file import FileRoot
from octavo.sources.file.writable import WritableFileSource as FileSource


class Open(Protocol):
    async def __call__(self, *roots: Path, **options: Any) -> FileSource: ...


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    place.mkdir()
    return place


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture(params=["openat2", "walk"])
async def opened(root: Path, journal: Path, request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def open_one(*roots: Path, **options: Any) -> FileSource:
            options = {
                "secret": b"secret", "confinement": request.param, "journal": journal, **options
            }  # fmt: skip
            return await stack.enter_async_context(FileSource([FileRoot(p) for p in roots or (root,)], **options))

        yield open_one


@pytest.fixture
async def source(opened: Open) -> FileSource:
    return await opened()
