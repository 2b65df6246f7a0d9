"""A root to fill and a source over it, in both ways of confinement."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from octavo.core.ref import Ref
from octavo.sources.file import FileRoot, FileSource


class Open(Protocol):
    async def __call__(self, *roots: Path | FileRoot, **options: Any) -> FileSource: ...


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    place.mkdir()
    return place


@pytest.fixture
def write(root: Path) -> Callable[..., Path]:
    def write(path: str, text: str = "text\n", below: Path = root) -> Path:
        place = below / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return place

    return write


@pytest.fixture
def put(root: Path, write: Callable[..., Path]) -> Callable[..., Path]:
    """Like `write`, but all at once: nobody sees the file empty."""

    def put(path: str, text: str = "text\n", below: Path = root) -> Path:
        place = below / path
        place.parent.mkdir(parents=True, exist_ok=True)
        return write("staged", text, root.parent).replace(place)

    return put


@pytest.fixture(params=["openat2", "walk"])
async def opened(root: Path, request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """Opens a source over `root`, or over the roots that are given, until the test ends."""
    async with AsyncExitStack() as stack:

        async def open_one(*roots: Path | FileRoot, **options: Any) -> FileSource:
            places = [place if isinstance(place, FileRoot) else FileRoot(place) for place in roots or (root,)]
            options = {"secret": b"secret", "confinement": request.param, **options}
            return await stack.enter_async_context(FileSource(places, **options))

        yield open_one


@pytest.fixture
def listing() -> Callable[..., Any]:
    async def listing(source: FileSource, uri: str = "file://", limit: int = 3) -> list[str]:
        """The addresses of a whole listing, page by page."""
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await source.list(Ref.parse(uri), cursor=cursor, limit=limit)
            found += [str(entry.ref) for entry in page.items]
            cursor = page.cursor
            if cursor is None:
                return found

    return listing
