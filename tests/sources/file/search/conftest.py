"""Searches page by page, through the public surface of a source."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo.core.ref import Ref
from octavo.sources.file import FileSource
from octavo.sources.file.search import ContentQuery, NameQuery


async def pages(
    source: FileSource, query: NameQuery | ContentQuery, uri: str, limit: int, deadline: float
) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await source.search(Ref.parse(uri), query, cursor=cursor, limit=limit, deadline=deadline)
        assert len(page.items) <= limit
        found += [entry.ref.path for entry in page.items]
        cursor = page.cursor
        if cursor is None:
            return found


@pytest.fixture
def named() -> Callable[..., Any]:
    async def named(source: FileSource, text: str, uri: str = "file://", limit: int = 3) -> list[str]:
        return await pages(source, NameQuery(text), uri, limit, 30.0)

    return named


@pytest.fixture
def containing() -> Callable[..., Any]:
    async def containing(
        source: FileSource, text: str, uri: str = "file://", limit: int = 3, deadline: float = 30.0, **options: Any
    ) -> list[str]:
        return await pages(source, ContentQuery(text=text, **options), uri, limit, deadline)

    return containing
