"""Matching by meaning, for whoever brings an embedder (B6). The one here knows four things and two languages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import anyio
import pytest

from octavo.core.errors import SourceUnavailable
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.core.values import Entry
from octavo.search import Document, FullText, Index, Meaning, Upkeep

pytestmark = pytest.mark.anyio

THINGS = [
    ("돈", "예산", "budget", "money"),
    ("휴가", "leave", "vacation"),
    ("옷", "fabric", "원단"),
    ("고객", "customer"),
]


class Dictionary:
    name = "dictionary"

    def __init__(self) -> None:
        self.embedded = 0
        self.down = False

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if self.down:
            raise SourceUnavailable("The embedder did not answer")
        self.embedded += len(texts)
        return [[float(sum(map(text.lower().count, words))) for words in THINGS] for text in texts]


def put(index: Index, **texts: str) -> None:
    index.put([Document(ref=Ref.parse(f"doc://{k}"), version="1", title="-", text=v) for k, v in texts.items()])


async def found(search: FullText, text: str, hidden: str = "", cursor: str | None = None, limit: int = 10) -> list[str]:
    page = await search.find(TextQuery(text), allowed=lambda ref: ref.name != hidden, cursor=cursor, limit=limit)
    return [one.ref.name for one in page.items]


async def test_there_is_none_unless_it_is_brought(index: Index) -> None:
    put(index, a="vacation rules")
    assert await found(FullText(index), "휴가") == []


async def test_a_document_is_found_without_any_of_the_words(index: Index) -> None:
    meaning = Meaning(index, Dictionary())
    put(index, a="vacation rules", b="fabric rules", c="휴가 휴가 customer")
    await meaning.learn()
    search = FullText(index, meaning=meaning)
    assert await found(search, "휴가") == ["c", "a"]
    assert await found(search, "휴가", hidden="a") == ["c"]
    assert await found(search, "휴가", hidden="c") == ["a"]


async def test_only_what_has_changed_is_embedded_again(index: Index) -> None:
    embedder = Dictionary()
    meaning = Meaning(index, embedder)
    put(index, a="vacation", b="fabric")
    await meaning.learn()
    await meaning.learn()
    assert embedder.embedded == 2
    put(index, b="vacation")
    await meaning.learn()
    assert embedder.embedded == 3
    assert sorted(await found(FullText(index, meaning=meaning), "휴가")) == ["a", "b"]


async def test_words_are_searched_when_the_embedder_is_down(index: Index, caplog: pytest.LogCaptureFixture) -> None:
    embedder = Dictionary()
    meaning = Meaning(index, embedder)
    embedder.down = True
    put(index, a="vacation", b="휴가")
    await meaning.learn()
    assert await found(FullText(index, meaning=meaning), "휴가") == ["b"]
    assert "embedded" in caplog.text


async def test_pages_go_on_through_both_orders(index: Index) -> None:
    meaning = Meaning(index, Dictionary())
    put(index, **{f"word{n}": "휴가 " * (n + 1) for n in range(5)}, **{f"like{n}": "vacation" for n in range(5)})
    await meaning.learn()
    search = FullText(index, meaning=meaning)
    whole = await found(search, "휴가")
    assert len(whole) == 10
    paged: list[str] = []
    cursor = None
    for _ in range(4):
        page = await search.find(TextQuery("휴가"), allowed=lambda _: True, cursor=cursor, limit=3)
        paged += [one.ref.name for one in page.items]
        cursor = page.cursor
    assert paged == whole and cursor is None


async def test_the_upkeep_learns_what_documents_mean(index: Index) -> None:
    async def entries(_: str) -> AsyncIterator[Entry]:
        yield Entry(ref=Ref.parse("doc://a"), name="a", version="1")

    async def read(ref: Ref, _: Entry | None) -> Document:
        return Document(ref=ref, version="1", title="a", text="vacation")

    meaning = Meaning(index, Dictionary())
    upkeep = Upkeep(index, ["doc"], entries=entries, read=read, meaning=meaning, pause=0)
    task = asyncio.create_task(upkeep.run())
    with anyio.fail_after(30):
        await upkeep.in_step()
    assert await found(FullText(index, meaning=meaning), "휴가") == ["a"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
