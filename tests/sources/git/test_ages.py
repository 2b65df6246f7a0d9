"""A file has the time of its last commit, as `git log` tells it; a catalog says `last_updated` from it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.sources.git.clones import Clone

from octavo.core.ref import Ref
from octavo.sources._shared.git import ages
from octavo.sources.catalog import DECLARATIONS, CatalogSource
from octavo.sources.git import GitSource

pytestmark = pytest.mark.anyio


async def times(store: GitSource) -> dict[str, float | None]:
    page = await store.list(Ref("git"), cursor=None, limit=1000)
    for entry in page.items:
        assert await store.stat(entry.ref) == entry
        assert (await store.read(entry.ref, max_bytes=999)).entry == entry
    return {entry.ref.path: entry.modified for entry in page.items}


def told(clone: Clone) -> dict[str, float | None]:
    """By git itself."""
    paths = clone.git("-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", "main").splitlines()
    return {path: float(clone.git("log", "-1", "--format=%ct", "main", "--", path)) for path in paths}


@pytest.fixture
def busy(clone: Clone) -> Clone:
    clone.commit({"a.md": "a", "폴더/나.md": "1", "폴더/다.md": "1", "x/y/z.md": "1", "gone.md": "1", "s.md": "s"})
    clone.commit({"폴더/나.md": "2", "gone.md": None})
    clone.git("checkout", "--quiet", "-b", "side")
    clone.write({"x/y/z.md": "2", "side.md": "1"})
    clone.git("add", "--all")
    clone.git("commit", "--quiet", "--message", "side")
    clone.git("checkout", "--quiet", "main")
    clone.commit({"폴더/다.md": "2", "s.md": None})
    clone.git("merge", "--quiet", "--no-ff", "-m", "merged", "side")
    clone.commit({"s.md/was a file.md": "now in a folder"})
    clone.commit({"a.md": "b"})
    clone.commit({"a.md": "a"}, "and back again")
    return clone


@pytest.mark.seed("O15")
async def test_every_file_has_the_time_of_its_last_commit(busy: Clone) -> None:
    async with busy.source() as store:
        assert await times(store) == told(busy)
        busy.commit({"폴더/나.md": "3"})
        busy.git("checkout", "--quiet", "-b", "late", "HEAD~3")
        busy.write({"late.md": "1"})
        busy.git("add", "--all")
        busy.git("commit", "--quiet", "--message", "late")
        busy.git("checkout", "--quiet", "main")
        busy.git("merge", "--quiet", "--no-ff", "-m", "merged again", "late")
        assert await times(store) == told(busy), "after the branch has moved"
        busy.git("reset", "--quiet", "--hard", "HEAD~4")
        assert await times(store) == told(busy), "and when it was forced back"


async def test_a_catalog_says_when_a_document_was_last_updated(clone: Clone) -> None:
    clone._time = 1_772_323_200
    clone.commit({"docs/policies/a.md": "# A\n", "docs/policies/b.md": "---\nlast_updated: 2020-02-02\n---\n# B\n"})
    async with clone.source() as store:
        catalog = CatalogSource(DECLARATIONS["doc"], store)

        async def said() -> list[object]:
            page = await catalog.list(Ref("doc"), cursor=None, limit=9)
            return [entry.metadata["last_updated"] for entry in page.items]

        assert await said() == ["2026-03-01", "2020-02-02"]
        clone._time += 86_400
        clone.commit({"docs/policies/a.md": "# Another\n"})
        clone._time += 86_400
        clone.commit({"docs/policies/a.md": "# A\n"})
        assert await said() == ["2026-03-03", "2020-02-02"], "a text that is as it was before has changed since"


async def test_without_history_nobody_looks_at_it(clone: Clone) -> None:
    clone.commit({"a.md": "a"})
    async with clone.source(history="none") as store:
        assert await times(store) == {"a.md": None}


async def test_where_a_shallow_clone_ends_files_may_be_older(clone: Clone, cloned: Callable[..., Clone]) -> None:
    clone.commit({"old.md": "1"})
    clone.commit({"new.md": "1"})
    clone.commit({"newest.md": "1"})
    shallow = cloned("shallow")
    shallow.git("fetch", "--quiet", "--depth=2", f"file://{clone.path}", "main:served")
    async with shallow.source(branch="served") as store:
        assert await times(store) == {"new.md": None, "newest.md": told(clone)["newest.md"], "old.md": None}


async def test_the_way_back_is_bounded(busy: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ages, "MAX_COMMITS", 1)
    async with busy.source() as store:
        found = await times(store)
        assert {path for path, time in found.items() if time} == {"a.md"}
    monkeypatch.setattr(ages, "MAX_DATED", 3)
    async with busy.source() as store:
        assert set((await times(store)).values()) == {None}
