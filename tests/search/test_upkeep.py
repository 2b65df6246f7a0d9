"""The index follows the sources (B6): at the start, by the feed, and after whatever goes wrong."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from octavo.core.errors import NotFound, OctavoError, SourceUnavailable, TooLarge
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.core.values import Change, ChangeKind, Entry
from octavo.search import Document, FullText, Index, Upkeep
from octavo.search import indexer as upkeep_module

pytestmark = pytest.mark.anyio


class Library:
    """Documents that can be listed and read, and a way to break both."""

    def __init__(self, **texts: str) -> None:
        self.texts = {Ref.parse(f"doc://{name}"): text for name, text in texts.items()}
        self.reads: list[str] = []
        self.broken: dict[str, OctavoError] = {}
        self.unlisted: OctavoError | None = None
        self.asked = asyncio.Event()

    def entry(self, ref: Ref) -> Entry:
        return Entry(ref=ref, name=ref.name, version=str(hash(self.texts[ref])))

    async def entries(self, scheme: str) -> AsyncIterator[Entry]:
        self.asked.set()
        for ref in list(self.texts):
            if self.unlisted is not None:
                raise self.unlisted
            if ref.scheme == scheme:
                yield self.entry(ref)

    async def read(self, ref: Ref, _: Entry | None = None) -> Document:
        self.reads.append(ref.name)
        self.asked.set()
        if ref.name in self.broken:
            raise self.broken[ref.name]
        if ref not in self.texts:
            raise NotFound(f"Resource not found: {ref}", uri=str(ref))
        return Document.of(self.entry(ref), self.texts[ref])


class Kept:
    def __init__(self, index: Index, library: Library, schemes: tuple[str, ...] = ("doc",)) -> None:
        self.index, self.library = index, library
        self.upkeep = Upkeep(index, schemes, entries=library.entries, read=library.read, pause=0, retry=0.01)

    def tell(self, kind: ChangeKind, name: str, text: str = "", *, source: str | None = None) -> None:
        ref = Ref.parse(f"doc://{name}")
        if kind == "deleted":
            self.library.texts.pop(ref, None)
        else:
            self.library.texts[ref] = text
        was = None if source is None else Ref.parse(f"doc://{source}")
        if was is not None:
            self.library.texts.pop(was, None)
        self.upkeep.hear(Change(kind=kind, ref=ref, source=was, at=0.0))

    async def found(self, text: str) -> list[str]:
        with anyio.fail_after(30):
            await self.upkeep.in_step()
        found = await FullText(self.index).find(TextQuery(text), allowed=lambda _: True)
        return sorted(one.ref.name for one in found.items)


@asynccontextmanager
async def kept(index: Index, library: Library, schemes: tuple[str, ...] = ("doc",)) -> AsyncIterator[Kept]:
    made = Kept(index, library, schemes)
    task = asyncio.create_task(made.upkeep.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.seed("B6")
async def test_what_is_there_at_the_start_is_found_and_what_changes_is_found_anew(index: Index) -> None:
    async with kept(index, Library(a="예산", b="경비")) as here:
        assert await here.found("예산") == ["a"]
        here.tell("created", "c", "새 예산")
        here.tell("updated", "b", "예산 둘")
        assert await here.found("예산") == ["a", "b", "c"]
        assert await here.found("경비") == []
        here.tell("deleted", "a")
        assert await here.found("예산") == ["b", "c"]


async def test_a_restart_reads_only_what_has_changed(index: Index) -> None:
    library = Library(a="예산", b="경비", c="규정")
    async with kept(index, library) as here:
        await here.found("예산")
    library.reads.clear()
    library.texts[Ref.parse("doc://b")] = "예산"
    del library.texts[Ref.parse("doc://c")]
    async with kept(index, library) as here:
        assert await here.found("예산") == ["a", "b"]
        assert await here.found("규정") == []
    assert library.reads == ["b"]


async def test_a_document_that_changes_often_is_read_once(index: Index) -> None:
    library = Library()
    async with kept(index, library) as here:
        await here.found("예산")
        for turn in range(50):
            here.tell("updated", "a", f"예산 {turn}")
        assert await here.found("예산") == ["a"]
        assert library.reads == ["a"]


async def test_after_a_gap_in_the_feed_it_looks_at_everything(index: Index) -> None:
    library = Library(a="예산")
    async with kept(index, library) as here:
        await here.found("예산")
        library.texts[Ref.parse("doc://untold")] = "예산"
        here.upkeep.compare()
        assert await here.found("예산") == ["a", "untold"]


async def test_what_was_renamed_is_found_at_its_new_address_alone(index: Index) -> None:
    async with kept(index, Library(a="예산")) as here:
        assert await here.found("예산") == ["a"]
        here.tell("renamed", "b", "예산", source="a")
        assert await here.found("예산") == ["b"]


async def test_a_page_may_go_and_what_stands_below_it_stays(index: Index) -> None:
    async with kept(index, Library(**{"team": "예산", "team/rota": "예산", "team-b": "예산"})) as here:
        assert await here.found("예산") == ["rota", "team", "team-b"]
        here.tell("deleted", "team")
        assert await here.found("예산") == ["rota", "team-b"]


async def test_what_stood_in_a_folder_goes_with_it_though_the_feed_tells_of_the_folder_alone(index: Index) -> None:
    library = Library(**{"team/rota": "예산", "team/old/plan": "예산", "other": "예산"})
    async with kept(index, library) as here:
        assert await here.found("예산") == ["other", "plan", "rota"]
        library.texts = {Ref.parse("doc://other"): "예산"}
        here.tell("deleted", "team")
        assert await here.found("예산") == ["other"]


async def test_what_is_too_much_is_left_out_and_said(caplog: pytest.LogCaptureFixture) -> None:
    index = Index(None, most=3)
    library = Library(**{f"d{n}": "예산" for n in range(5)})
    async with kept(index, library) as here:
        assert await here.found("예산") == ["d0", "d1", "d2"]
        assert here.upkeep.limited
        assert "search.documents" in caplog.text
        assert library.reads == ["d0", "d1", "d2"]
        here.tell("created", "d6", "예산")
        here.tell("updated", "d1", "경비")
        assert await here.found("예산") == ["d0", "d2"]
    index.close()


async def test_texts_that_were_redacted_by_other_rules_go_at_once_and_do_not_come_back(index: Index) -> None:
    async with kept(index, Library(a="예산")) as here:
        assert await here.found("예산") == ["a"]
        index.begin_for("other rules")
        here.tell("updated", "a", "예산 둘")
        assert await here.found("예산") == []
    index.begin_for("other rules")
    index.put([Document(ref=Ref.parse("doc://b"), version="1", title="", text="예산")], redaction="other rules")
    assert [*index.versions("doc")] == [Ref.parse("doc://b")]


async def test_changes_of_other_sources_are_left_alone(index: Index) -> None:
    async with kept(index, Library()) as here:
        await here.found("예산")
        here.upkeep.hear(Change(kind="updated", ref=Ref.parse("sop://x"), at=0.0))
        assert await here.found("예산") == []
        assert here.library.reads == []


async def test_a_source_that_is_no_longer_served_is_no_longer_found(index: Index) -> None:
    index.put([Document(ref=Ref.parse("old://x"), version="1", title="예산", text="예산")])
    async with kept(index, Library(a="예산")) as here:
        assert await here.found("예산") == ["a"]


async def test_a_source_that_cannot_be_listed_keeps_its_documents_and_is_tried_again(
    index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    library = Library(a="예산", b="예산")
    async with kept(index, library) as here:
        await here.found("예산")
    library.unlisted = SourceUnavailable("The library did not answer")
    async with kept(index, library) as here:
        await library.asked.wait()
        found = await FullText(index).find(TextQuery("예산"), allowed=lambda _: True)
        assert len(found.items) == 2
        library.unlisted = None
        del library.texts[Ref.parse("doc://b")]
        assert await here.found("예산") == ["a"]


async def test_a_document_that_cannot_be_read_is_tried_again(index: Index) -> None:
    library = Library(a="예산", b="예산")
    library.broken["a"] = SourceUnavailable("The library did not answer")
    async with kept(index, library) as here:
        while library.reads.count("a") < 2:
            library.asked.clear()
            with anyio.fail_after(30):
                await library.asked.wait()
        library.broken.clear()
        assert await here.found("예산") == ["a", "b"]


async def test_a_document_that_is_too_large_is_found_by_its_name(
    index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    library = Library(**{"yearly-budget": "예산"})
    library.broken["yearly-budget"] = TooLarge("50 MB is too large")
    async with kept(index, library) as here:
        assert await here.found("yearly budget") == ["yearly-budget"]
        assert "too large" in caplog.text


async def test_an_index_that_was_lost_is_made_again(index: Index) -> None:
    async with kept(index, Library(a="예산")) as here:
        assert await here.found("예산") == ["a"]
        index.remove_all(["doc"])
        await asyncio.to_thread(index.when_lost)
        await asyncio.sleep(0)  # the loop hears of it
        assert await here.found("예산") == ["a"]


def test_a_document_takes_its_words_from_its_entry() -> None:
    entry = Entry(ref=Ref.parse("sop://a/b"), name="b", version="7", metadata={"title": "제목", "status": "active"})
    made = Document.of(entry, "글")
    assert (made.title, made.version, made.metadata["status"]) == ("제목", "7", "active")
    assert Document.of(replace(entry, title="다른", description="설명"), "").metadata["description"] == "설명"


async def test_who_asks_waits_for_what_was_heard_by_then_and_not_for_what_is_heard_meanwhile() -> None:
    """Where something changes all the time, everybody would wait as long as anybody may."""
    library = Library(a="alpha", b="beta")
    async with kept(Index(None), library) as made:
        with anyio.fail_after(30):
            await made.upkeep.in_step()
            made.tell("updated", "a", "gamma")
            waiting = asyncio.create_task(made.upkeep.caught_up())
            turn = 0
            while not waiting.done():  # there is always one more that is not found yet
                turn += 1
                made.tell("updated", "b", f"beta {turn}")
                await anyio.lowlevel.checkpoint()
        found = await FullText(made.index).find(TextQuery("gamma"), allowed=lambda _: True)
        assert [one.ref.name for one in found.items] == ["a"]


async def test_whoever_asks_while_the_index_is_made_is_answered_from_what_is_there(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_module, "ENOUGH", 100)
    library, go_on = Library(**{f"a/{number}": "예산" for number in range(250)}), asyncio.Event()

    async def entries(scheme: str) -> AsyncIterator[Entry]:
        number = 0
        async for entry in library.entries(scheme):
            if number == 200:
                await go_on.wait()
            number += 1
            yield entry

    upkeep = Upkeep(index, ("doc",), entries=entries, read=library.read, pause=0, retry=0.01)
    async with anyio.create_task_group() as group:
        group.start_soon(upkeep.run)
        with anyio.fail_after(30):
            await upkeep.answerable()
            assert not upkeep.is_compared
            found = FullText(index).find_now(TextQuery("예산"), lambda ref: ref.name != "0")
            assert found.items and 100 - 1 <= found.seen < 250  # what may be seen is counted, and nothing else
            go_on.set()
            await upkeep.compared()
        assert FullText(index).find_now(TextQuery("예산"), lambda _: True).seen == 250
        group.cancel_scope.cancel()


@pytest.mark.parametrize(("on_disk", "least", "most"), [(False, 13, 26), (True, 1, 4)], ids=["in memory", "on disk"])
async def test_an_index_in_memory_takes_few_documents_at_once_and_one_on_disk_many(
    tmp_path: Path, on_disk: bool, least: int, most: int
) -> None:
    """In memory a question waits for the end of a transaction, so each is short."""
    index = Index(tmp_path / "index" if on_disk else None)
    before = changes_of(index)
    async with kept(index, Library(**{str(number): "예산" for number in range(100)})) as made:
        with anyio.fail_after(30):
            await made.upkeep.compared()
        assert least <= changes_of(index) - before <= most
        assert len(index.versions("doc")) == 100
    index.close()


def changes_of(index: Index) -> int:
    with index.reading() as database:
        revision: int = database.execute("SELECT revision FROM state").fetchone()[0]
        return revision
