from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.core.search_results import Findings
from octavo.search import Document, FullText, Index

Put = Callable[..., None]
Find = Callable[..., list[str]]


@pytest.fixture
def index() -> Iterator[Index]:
    made = Index(None)
    yield made
    made.close()


@pytest.fixture
def put(index: Index) -> Put:
    """`put(uri, text, title=..., key=value)`: one document with its metadata."""

    def put(uri: str, text: str = "", *, title: str = "-", version: str = "1", **metadata: Any) -> None:
        ref = Ref.parse(uri)
        index.put([Document(ref=ref, version=version, title=title, text=text, metadata=metadata)])

    return put


@pytest.fixture
def findings(index: Index) -> Callable[..., Findings]:
    search = FullText(index)

    def findings(
        text: str, *, hidden: tuple[str, ...] = (), cursor: str | None = None, limit: int = 10, **query: Any
    ) -> Findings:
        hide = tuple(map(Ref.parse, hidden))
        return search.find_now(
            TextQuery(text, **query), lambda ref: not any(map(ref.within, hide)), None, cursor, limit
        )

    return findings


@pytest.fixture
def find(findings: Callable[..., Findings]) -> Find:
    """The addresses of what is found, best first."""
    return lambda text, **options: [str(one.ref) for one in findings(text, **options).items]
