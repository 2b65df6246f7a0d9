"""What changed while nobody watched is found and told once (B3, A4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from tests.feed.reading import since

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.core.clock import FrozenClock
from octavo.core.errors import NotFound, OctavoError, SourceUnavailable
from octavo.core.ref import Ref
from octavo.core.values import Change, Content, Entry, Page
from octavo.feed.journal import ChangeJournal
from octavo.feed.known import Serving
from octavo.feed.reconcile import reconcile
from octavo.stores.memory import MemoryStore
from octavo.stores.sqlite import SQLiteStore
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("B3", "A4")]


class Shelf:
    """Lists what stands in `versions`, three at a time."""

    scheme = "note"

    def __init__(self, **versions: str) -> None:
        self.versions = versions
        self.fails_at = ""

    def entry(self, name: str) -> Entry:
        return Entry(ref=Ref("note", (name,)), name=name, version=self.versions[name], metadata={"owner": name})

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        names = [name for name in sorted(self.versions) if cursor is None or name > cursor]
        if self.fails_at in names[:3]:
            raise SourceUnavailable("The shelf fell over")
        return Page(tuple(map(self.entry, names[:3])), names[2] if len(names) > 3 else None)

    async def stat(self, ref: Ref) -> Entry:
        return self.entry(ref.path)

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        raise NotImplementedError

    def changed(self, name: str, version: str | None) -> Change:
        old = self.entry(name) if name in self.versions else None
        if version is None:
            del self.versions[name]
            return Change(kind="deleted", ref=Ref("note", (name,)), at=1.0, old=old)
        self.versions[name] = version
        new = self.entry(name)
        return Change(kind="updated" if old else "created", ref=new.ref, at=1.0, old=old, new=new)


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MemoryStore | SQLiteStore]:
    made = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path)
    async with made as opened:
        yield opened


def over(store: MemoryStore | SQLiteStore) -> ChangeJournal:
    """As another process on the state would have it."""

    async def opened() -> MemoryStore | SQLiteStore:
        return store

    return ChangeJournal(opened)


async def told(journal: ChangeJournal, number: int, served: str = "", reach: str = "") -> list[str]:
    assert await journal.covers(number, "note", Serving(served, reach)), "a gap"
    changes = await since(journal, number, {"note": served})
    assert changes is not None, "a gap"
    return [f"{one.kind} {one.ref.path} {'' if one.new is None else one.new.version}".strip() for one in changes]


async def test_what_was_there_at_first_is_no_change_and_before_it_there_is_a_gap(
    store: MemoryStore | SQLiteStore,
) -> None:
    journal, shelf = over(store), Shelf(a="1", b="1", c="1", d="1")
    before = await journal.mark()
    assert await since(journal, before) == [] and not await journal.covers(before, "note")
    assert await reconcile(journal, shelf)
    assert not await journal.covers(before, "note")
    assert await told(journal, await journal.mark()) == []


async def test_what_changed_while_nobody_watched_is_told_once(store: MemoryStore | SQLiteStore) -> None:
    shelf = Shelf(a="1", b="1", c="1", d="1", e="1")
    first = over(store)
    await reconcile(first, shelf)
    number = await first.mark()
    await first.record([shelf.changed("e", "2")])
    shelf.changed("a", None)
    shelf.changed("b", "2")
    shelf.changed("f", "1")
    for _ in range(2):
        later = over(store)
        assert await reconcile(later, shelf)
        assert await told(later, number) == ["updated e 2", "deleted a", "updated b 2", "created f 1"]
    changes = await since(later, number) or []
    gone = next(one for one in changes if one.kind == "deleted")
    assert gone.old is not None and gone.old.metadata == {"owner": "a"}, "the policy has to know of it"
    changed = next(one for one in changes if one.ref.path == "b")
    assert changed.changes["version"] == ["1", "2"]


async def test_processes_that_begin_at_once_tell_it_once(store: MemoryStore | SQLiteStore) -> None:
    shelf = Shelf(**{f"n{number}": "1" for number in range(20)})
    await reconcile(over(store), shelf)
    number = await over(store).mark()
    for place in range(20):
        shelf.changed(f"n{place}", None if place % 3 else "2")
    assert all(await asyncio.gather(*(reconcile(over(store), shelf) for _ in range(4))))
    found = await told(over(store), number)
    assert len(found) == 20 == len(set(found))


async def test_of_two_first_comparisons_the_number_of_the_first_holds(
    store: MemoryStore | SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, shelf = over(store), Shelf(a="1")
    numbers: list[int] = []

    async def mark() -> int:
        """The other one is first, between two steps of this one, and somebody has a number of it."""
        await reconcile(over(store), shelf)
        numbers.append(await over(store).mark())
        return await over(store).mark()

    monkeypatch.setattr(late, "mark", mark)
    await reconcile(late, shelf)
    assert await told(over(store), numbers[0]) == []


async def test_what_a_watch_tells_meanwhile_is_newer_than_what_was_listed(store: MemoryStore | SQLiteStore) -> None:
    journal = over(store)

    class Slow(Shelf):
        async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
            page = await super().list(scope, cursor=cursor, limit=limit)
            if watched and cursor is None:
                await journal.record([self.changed("a", "3"), self.changed("b", None), self.changed("c", "1")])
            return page

    watched, shelf = False, Slow(a="1", b="1", e="1")
    await reconcile(journal, shelf)
    number = await journal.mark()
    shelf.changed("a", "2")
    watched = True
    assert await reconcile(journal, shelf)
    assert await told(journal, number) == ["updated a 3", "deleted b", "created c 1"]
    watched = False
    await reconcile(over(store), shelf)
    assert len(await told(journal, number)) == 3


async def test_what_comes_about_while_a_source_is_listed_for_the_first_time_is_told(
    store: MemoryStore | SQLiteStore,
) -> None:
    """The watch has begun: what the list gives may be newer than what the watch has told so far."""
    shelf, journal = Shelf(a="1", b="1", gone="1"), over(store)
    begin = await journal.mark()
    made, changed, gone = shelf.changed("new", "1"), shelf.changed("a", "2"), shelf.changed("gone", None)
    await reconcile(journal, shelf, watched=begin)
    await journal.record([made, changed, gone])
    assert await told(journal, begin) == ["created new 1", "updated a 2", "deleted gone"]
    await over(store).record([made, changed, gone])  # another process sees the same
    assert len(await told(journal, begin)) == 3


async def test_a_watch_that_tells_what_was_found_already_repeats_nothing(store: MemoryStore | SQLiteStore) -> None:
    journal, shelf = over(store), Shelf(a="1", b="1")
    await reconcile(journal, shelf)
    number = await journal.mark()
    late = [shelf.changed("a", "2"), shelf.changed("b", None)]
    await reconcile(journal, shelf)
    await journal.record(late)
    assert sorted(await told(journal, number)) == ["deleted b", "updated a 2"]


async def test_a_source_that_fails_in_between_is_compared_the_next_time_and_nothing_of_it_is_gone(
    store: MemoryStore | SQLiteStore,
) -> None:
    journal, shelf = over(store), Shelf(a="1", b="1", c="1", d="1")
    await reconcile(journal, shelf)
    number = await journal.mark()
    shelf.changed("a", "2")
    shelf.fails_at = "d"
    with pytest.raises(SourceUnavailable):
        await reconcile(over(store), shelf)
    assert await told(journal, number) == []
    shelf.fails_at = ""
    await reconcile(over(store), shelf)
    assert await told(journal, number) == ["updated a 2"]


async def test_a_source_that_is_too_large_is_a_gap_until_it_is_compared(store: MemoryStore | SQLiteStore) -> None:
    journal, shelf = over(store), Shelf(a="1", b="1", c="1", d="1")
    await reconcile(journal, shelf)
    number = await journal.mark()
    assert not await reconcile(journal, shelf, most=3)
    assert not await journal.covers(number, "note")
    assert await reconcile(journal, shelf, most=None)
    assert not await journal.covers(number, "note") and await told(journal, await journal.mark()) == []


async def test_a_source_that_is_served_otherwise_begins_anew_and_tells_nothing_of_what_it_hides_now(
    store: MemoryStore | SQLiteStore,
) -> None:
    shelf = Shelf(a="1", key="1")
    await reconcile(over(store), shelf, serving=Serving("all"))
    number = await over(store).mark()
    await over(store).record([shelf.changed("key", "2")], {"note": "all"})
    del shelf.versions["key"]
    journal = over(store)
    await reconcile(journal, shelf, serving=Serving("without keys"))
    assert not await journal.covers(number, "note", Serving("without keys"))
    assert await since(journal, number, {"note": "without keys"}) == [], "and whoever asks all the same is told nothing"
    later = await journal.mark()
    shelf.changed("a", "2")
    await reconcile(over(store), shelf, serving=Serving("without keys"))
    assert await told(journal, later, "without keys") == ["updated a 2"]
    shelf.versions["key"] = "2"
    await reconcile(over(store), shelf, serving=Serving("all"))
    assert await told(over(store), number, "all") == ["updated key 2", "updated a 2"], (
        "as it was served before, it goes on"
    )


class Picky(Shelf):
    """Serves no name that begins with one of these letters."""

    def __init__(self, letters: str, **versions: str) -> None:
        super().__init__(**versions)
        self.letters = letters
        self.serving = Serving("", letters)

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        served = [self.entry(name) for name in sorted(self.versions) if name[0] not in self.letters]
        return Page(tuple(served), None)

    def refuses(self, ref: Ref) -> OctavoError | None:
        return NotFound("Hidden", uri=str(ref)) if ref.path[0] in self.letters else None


async def test_names_that_are_refused_now_are_not_gone_and_no_number_is_lost(store: MemoryStore | SQLiteStore) -> None:
    shelf = Picky("", a="1", key="1")
    await reconcile(over(store), shelf, serving=shelf.serving)
    number = await over(store).mark()
    await over(store).record([shelf.changed("key", "2")])
    shelf = Picky("k", a="1", key="2")
    await reconcile(over(store), shelf, serving=shelf.serving)
    shelf.changed("a", "2")
    shelf.changed("key", "3")
    await reconcile(over(store), shelf, serving=shelf.serving)
    assert await told(over(store), number, reach="k") == ["updated key 2", "updated a 2"], "key was not found gone"
    shelf = Picky("", a="2", key="3")
    await reconcile(over(store), shelf, serving=shelf.serving)
    assert await told(over(store), number) == ["updated key 2", "updated a 2", "updated key 3"]


async def test_of_what_was_never_reached_nobody_can_say_whether_it_is_new(store: MemoryStore | SQLiteStore) -> None:
    shelf = Picky("k", a="1", key="1")
    await reconcile(over(store), shelf, serving=shelf.serving)
    number = await over(store).mark()
    shelf = Picky("", a="2", key="1")
    await reconcile(over(store), shelf, serving=shelf.serving)
    assert not await over(store).covers(number, "note", shelf.serving)
    later = await over(store).mark()
    assert await told(over(store), later) == []


async def test_two_that_serve_other_things_under_one_scheme_tell_each_other_nothing(
    store: MemoryStore | SQLiteStore,
) -> None:
    mine, yours = Shelf(a="1"), Shelf(a="9", b="9")
    await reconcile(over(store), mine, serving=Serving("mine"))
    await reconcile(over(store), yours, serving=Serving("yours"))
    number = await over(store).mark()
    await over(store).record([mine.changed("a", "2")], {"note": "mine"})
    await over(store).record([yours.changed("b", "3")], {"note": "yours"})
    for shelf, served, wanted in ((mine, "mine", ["updated a 2"]), (yours, "yours", ["updated b 3"])):
        await reconcile(over(store), shelf, serving=Serving(served))
        assert await told(over(store), number, served) == wanted


async def test_what_nobody_serves_for_long_is_forgotten(tmp_path: Path) -> None:
    clock = FrozenClock()
    async with SQLiteStore(tmp_path, clock=clock) as store:
        journal = over(store)
        await reconcile(journal, Shelf(a="1"), serving=Serving("once"))
        clock.advance(20 * 86_400.0)
        await reconcile(journal, Shelf(a="1"), serving=Serving("now"))
        await journal.forget_unserved()
        assert [one async for one in journal.known("note", "once")]
        clock.advance(20 * 86_400.0)
        await journal.forget_unserved()
        assert not [one async for one in journal.known("note", "once")]
        assert [one async for one in journal.known("note", "now")]
        assert await journal.begun("note", "once") is None


FILES = {
    "relative": "{kind: file, uris: relative, roots: [./one]}",
    "absolute": "{kind: file, roots: [./one]}",
    "two roots": "{kind: file, roots: [./one, ./two]}",
    "catalog": "{kind: sop, store: work, path: ''}",
}


@pytest.mark.parametrize("kind", FILES)
async def test_what_a_watch_tells_and_what_a_list_gives_are_known_by_one_key(tmp_path: Path, kind: str) -> None:
    """Else a comparison would find what was told already, or find again and again what is gone."""
    for name in ("one", "two"):
        (tmp_path / name / "sub").mkdir(parents=True)
        for file in "abc":
            (tmp_path / name / "sub" / f"{file}.md").write_text(f"---\ntitle: {file}\n---\n{name}", encoding="utf-8")
    (tmp_path / "one" / "link.md").symlink_to("sub/a.md")
    entry = f"  served: {FILES[kind]}\n"
    if kind == "catalog":
        entry += "  work: {kind: file, roots: [./one], expose: false}\n"
    config = load_text(f"version: 1\nsources:\n{entry}", file=tmp_path / "octavo.yaml", environ={})
    async with Octavo(config, state=StateDirectory.in_memory()) as octavo, MemoryStore() as store:
        (source,) = octavo.works.sources
        journal, heard, news = over(store), list[Change](), asyncio.Event()
        octavo.feed.subscribe(lambda change: (heard.append(change), news.set()))
        with anyio.fail_after(30):
            await octavo.feed.followed([source.scheme])
            await reconcile(journal, source)
            (tmp_path / "one" / "sub" / "a.md").write_text("---\ntitle: new\n---\nlonger", encoding="utf-8")
            (tmp_path / "one" / "sub" / "b.md").rename(tmp_path / "one" / "moved.md")
            (tmp_path / "one" / "sub" / "c.md").unlink()
            (tmp_path / "one" / "later.md").write_text("---\ntitle: later\n---\nnew", encoding="utf-8")
            while not {"a.md", "moved.md", "c.md", "later.md"} <= {_file(one) for one in heard}:
                news.clear()
                await news.wait()
        told_live = over(store)
        await told_live.record(heard)
        number = await journal.mark()
        await reconcile(over(store), source)
        assert [f"{one.kind} {one.ref}" for one in await since(journal, number) or []] == []


def _file(change: Change) -> str:
    name = change.ref.name
    return name if name.endswith(".md") else f"{name}.md"
