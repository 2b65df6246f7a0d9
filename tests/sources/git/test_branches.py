"""A branch that moves is seen at once, and told as changes of files."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from tests.sources.git.clones import Clone

from octavo.core.errors import OctavoError, SourceUnavailable
from octavo.core.ref import Ref
from octavo.core.values import Change
from octavo.sources.catalog import DECLARATIONS, CatalogSource
from octavo.sources.git import GitSource

pytestmark = pytest.mark.anyio
Heard = asyncio.Queue[Change | OctavoError]
SOP = "---\nid: {0}\ntitle: {0}\nversion: {1}\nstatus: active\n---\n"


@asynccontextmanager
async def heard(source: GitSource | CatalogSource, scope: str = "git://") -> AsyncIterator[Heard]:
    """What a watch tells from now on, and how it ends."""
    queue: Heard = asyncio.Queue()

    async def listen() -> None:
        try:
            async for change in source.watch(Ref.parse(scope)):
                queue.put_nowait(change)
        except OctavoError as error:
            queue.put_nowait(error)

    task = asyncio.create_task(listen())
    await asyncio.sleep(0)
    await source.armed()
    try:
        yield queue
    finally:
        task.cancel()
        await asyncio.wait([task])


async def told(queue: Heard) -> tuple[str, str]:
    with anyio.fail_after(30):
        change = await queue.get()
    assert isinstance(change, Change)
    where = f"{change.source.path} -> {change.ref.path}" if change.source else change.ref.path
    return change.kind, where


async def body(source: GitSource, path: str) -> str | bytes:
    return (await source.read(Ref.parse(f"git://{path}"), max_bytes=1 << 20)).body


@pytest.mark.seed("O10", "O15")
async def test_a_commit_is_told_as_created_updated_deleted_and_renamed(clone: Clone) -> None:
    clone.commit({"a.md": "a", "b.md": "b", "c/d.md": "d", "c/same.md": "same"})
    async with clone.source() as source, heard(source) as queue:
        clone.write({"a.md": "changed", "b.md": None, "new.md": "new"})
        (clone.path / "c/d.md").rename(clone.path / "moved.md")
        clone.commit({})
        assert sorted([await told(queue) for _ in range(4)]) == [
            ("created", "new.md"), ("deleted", "b.md"), ("renamed", "c/d.md -> moved.md"), ("updated", "a.md"),
        ]  # fmt: skip
        assert [await body(source, path) for path in ("a.md", "moved.md")] == ["changed", "d"]


async def test_a_change_has_what_the_file_was_and_is(clone: Clone) -> None:
    clone.commit({"a.md": "a"})
    async with clone.source() as source, heard(source) as queue:
        before = await source.stat(Ref.parse("git://a.md"))
        clone.commit({"a.md": "changed"})
        with anyio.fail_after(30):
            change = await queue.get()
        assert isinstance(change, Change)
        assert (change.old, change.new) == (before, await source.stat(Ref.parse("git://a.md")))


async def test_a_watch_hears_what_is_under_its_scope(clone: Clone) -> None:
    clone.commit({"in/a.md": "a", "in/b.md": "b", "out/c.md": "c"})
    async with clone.source() as source, heard(source, "git://in") as queue:
        (clone.path / "in/a.md").rename(clone.path / "out/a.md")
        (clone.path / "out/c.md").rename(clone.path / "in/c.md")
        clone.commit({"out/d.md": "d"})
        assert sorted([await told(queue), await told(queue)]) == [("created", "in/c.md"), ("deleted", "in/a.md")]
        assert queue.empty()


async def test_a_branch_that_is_forced_back_tells_the_difference(clone: Clone) -> None:
    first = clone.commit({"a.md": "one"})
    clone.commit({"a.md": "two", "b.md": "b"})
    async with clone.source() as source, heard(source) as queue:
        clone.git("reset", "--quiet", "--hard", first)
        assert sorted([await told(queue), await told(queue)]) == [("deleted", "b.md"), ("updated", "a.md")]
        clone.git("checkout", "--quiet", "--orphan", "fresh")
        clone.git("commit", "--quiet", "--message", "no parents")
        clone.git("update-ref", "refs/heads/main", "fresh")
        assert await body(source, "a.md") == "one", "another history, the same files"
        assert queue.empty()


@pytest.mark.parametrize("branch", ["main", "feature/길/deep"])
async def test_the_branch_that_was_asked_for_is_the_one_that_counts(clone: Clone, branch: str) -> None:
    clone.commit({"a.md": "on main"})
    clone.git("checkout", "--quiet", "-b", "feature/길/deep")
    clone.write({"a.md": "on the feature"})
    clone.git("commit", "--quiet", "--all", "--message", "feature")
    text = "on main" if branch == "main" else "on the feature"
    async with clone.source(branch=branch) as source:
        assert await body(source, "a.md") == text
        clone.git("pack-refs", "--all", "--prune")
        assert await body(source, "a.md") == text
        clone.git("checkout", "--quiet", "main")
        assert await body(source, "a.md") == text


async def test_without_a_name_the_branch_of_head_is_followed(clone: Clone) -> None:
    clone.commit({"a.md": "on main"})
    clone.git("branch", "other")
    clone.commit({"a.md": "later on main"})
    async with clone.source() as source, heard(source) as queue:
        clone.git("checkout", "--quiet", "other")
        assert await told(queue) == ("updated", "a.md")
        assert await body(source, "a.md") == "on main"
        clone.git("checkout", "--quiet", "--detach", "main")
        assert await body(source, "a.md") == "later on main"


async def test_a_branch_that_is_gone_is_unavailable_and_its_files_are_not_told_as_deleted(clone: Clone) -> None:
    clone.commit({"a.md": "one"})
    clone.git("branch", "served")
    async with clone.source(branch="served") as source, heard(source) as queue:
        clone.git("branch", "--quiet", "-D", "served")
        for ask in (source.stat(Ref.parse("git://a.md")), source.list(Ref("git"), cursor=None, limit=9)):
            with pytest.raises(SourceUnavailable, match="no branch served"):
                await ask
        assert source.stamp(Ref("git"), "list") is None
        clone.commit({"a.md": "two"})
        clone.git("branch", "served")
        assert await told(queue) == ("updated", "a.md")
        assert await body(source, "a.md") == "two"


async def test_a_branch_that_is_not_there_is_told_at_once(clone: Clone) -> None:
    with pytest.raises(SourceUnavailable, match="that HEAD names, or nothing was committed"):
        async with clone.source():
            pass
    clone.commit({"a.md": "a"})
    with pytest.raises(SourceUnavailable, match="no branch mian"):
        async with clone.source(branch="mian"):
            pass


async def test_a_push_into_a_bare_repository_is_noticed(clone: Clone, tmp_path: Path) -> None:
    clone.commit({"a.md": "one"})
    clone.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    async with GitSource(tmp_path / "bare.git", secret=b"") as source, heard(source) as queue:
        clone.commit({"a.md": "two", "b.md": "b"})
        clone.git("push", "--quiet", str(tmp_path / "bare.git"), "main")
        assert sorted([await told(queue), await told(queue)]) == [("created", "b.md"), ("updated", "a.md")]


async def test_a_repository_that_is_put_in_place_of_another_is_served(clone: Clone, tmp_path: Path) -> None:
    clone.commit({"a.md": "one"})
    served, fresh = tmp_path / "served.git", tmp_path / "fresh.git"
    clone.git("clone", "--quiet", "--bare", ".", str(served))
    clone.commit({"a.md": "two"})
    clone.git("clone", "--quiet", "--bare", ".", str(fresh))
    async with GitSource(served, secret=b"") as source, heard(source) as queue:
        served.rename(tmp_path / "old.git")
        fresh.rename(served)
        assert await body(source, "a.md") == "two"
        assert await told(queue) == ("updated", "a.md")


async def test_another_history_in_the_place_of_a_repository_is_told_as_the_difference(
    clone: Clone, tmp_path: Path
) -> None:
    """Nothing of the old one is there any more to compare with."""
    clone.commit({"same.md": "same", "a.md": "one", "gone.md": "gone", "sub/b.md": "moved"})
    clone.commit({"late.md": "late"})
    fresh = Clone(tmp_path / "fresh")
    fresh.commit({"same.md": "same", "a.md": "two", "late.md": "late", "new.md": "new", "c.md": "moved"})
    async with clone.source() as source, heard(source) as queue:
        shutil.rmtree(clone.path)
        fresh.path.rename(clone.path)
        heard_of = {await told(queue) for _ in range(4)}
        assert heard_of == {
            ("updated", "a.md"), ("deleted", "gone.md"), ("created", "new.md"), ("renamed", "sub/b.md -> c.md"),
        }  # fmt: skip
        shutil.rmtree(clone.path)
        again = Clone(clone.path)
        again.commit({"same.md": "same", "a.md": "three", "late.md": "late", "new.md": "new", "c.md": "moved"})
        assert await told(queue) == ("updated", "a.md")


async def test_a_repository_that_is_copied_here_bit_by_bit_is_told_when_it_is_whole(
    clone: Clone, tmp_path: Path
) -> None:
    clone.commit({"a.md": "one"})
    fresh = Clone(tmp_path / "fresh")
    fresh.commit({"a.md": "two"})
    async with clone.source() as source:
        async with heard(source) as queue:
            (fresh.git_dir / "objects").rename(tmp_path / "objects")
            (fresh.git_dir / "objects").mkdir()
            shutil.rmtree(clone.path)
            fresh.path.rename(clone.path)
            with anyio.fail_after(30):
                assert isinstance(await queue.get(), SourceUnavailable), "whoever watches begins again"
        (clone.git_dir / "objects").rmdir()
        (tmp_path / "objects").rename(clone.git_dir / "objects")
        async with heard(source) as queue:
            assert await told(queue) == ("updated", "a.md")


async def test_a_stamp_holds_until_the_branch_moves(clone: Clone) -> None:
    clone.commit({"a.md": "one"})
    async with clone.source() as source:
        await source.stat(Ref.parse("git://a.md"))
        stamp = source.stamp(Ref("git"), "list")
        assert stamp is not None and source.stamp(Ref("git"), "list") == stamp
        clone.git("pack-refs", "--all", "--prune")
        assert source.stamp(Ref("git"), "list") == stamp, "the branch is where it was"
        clone.commit({"a.md": "two"})
        assert source.stamp(Ref("git"), "list") not in (None, stamp)


async def test_whoever_watches_hears_when_the_source_closes(clone: Clone) -> None:
    clone.commit({"a.md": "one"})
    source = clone.source()
    async with source:
        watching = heard(source)
        queue = await watching.__aenter__()
    with anyio.fail_after(30):
        assert isinstance(await queue.get(), SourceUnavailable)
    await watching.__aexit__(None, None, None)


async def test_changes_that_cannot_be_told_end_the_watch(clone: Clone) -> None:
    clone.commit({"a.md": "one"})
    async with clone.source() as source, heard(source) as queue:
        clone.commit_tree_of_anything("1" * 40)
        with anyio.fail_after(30):
            assert isinstance(await queue.get(), SourceUnavailable)


@pytest.mark.seed("O10", "O15")
async def test_a_catalog_over_a_branch_tells_the_difference_of_the_metadata(clone: Clone) -> None:
    clone.commit({"sops/brand/a.md": SOP.format("a", "1.0.0"), "sops/brand/b.md": SOP.format("b", "1.0.0")})
    async with clone.source() as store:
        catalog = CatalogSource(DECLARATIONS["sop"], store)
        async with heard(catalog, "sop://brand") as queue:
            clone.commit({"sops/brand/a.md": SOP.format("a", "1.1.0"), "other.md": "no SOP"})
            with anyio.fail_after(30):
                change = await queue.get()
            assert isinstance(change, Change)
            assert (change.kind, str(change.ref), change.changes["version"]) == (
                "updated", "sop://brand/a", ["1.0.0", "1.1.0"],
            )  # fmt: skip
            (clone.path / "sops/brand/b.md").rename(clone.path / "sops/brand/c.md")
            clone.commit({})
            assert await told(queue) == ("renamed", "brand/b -> brand/c")
            (clone.path / "sops/brand/c.md").rename(clone.path / "elsewhere.md")
            clone.commit({})
            assert await told(queue) == ("deleted", "brand/c")
            page = await catalog.list(Ref("sop"), cursor=None, limit=9)
            assert [str(entry.ref) for entry in page.items] == ["sop://brand/a"]


async def test_a_catalog_that_follows_a_branch_is_the_same_as_one_that_looks(clone: Clone) -> None:
    clone.commit({"sops/x/a.md": SOP.format("a", "1.0.0")})
    async with clone.source() as store:
        catalog = CatalogSource(DECLARATIONS["sop"], store)
        async with heard(catalog, "sop://") as queue:
            for turn in range(6):
                files = {f"sops/x/{turn % 3}.md": SOP.format(turn, turn), f"sops/x/{turn}@1.0.md": "old"}
                clone.commit({**files, "sops/x/a.md": SOP.format("a", f"1.{turn}.1")})
                await told(queue)
                assert await catalog.look() == await CatalogSource(DECLARATIONS["sop"], store).look()
