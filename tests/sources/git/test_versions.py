"""`?version=` looks into the history of a file: the newest commit whose front matter says so."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
from tests.sources.git.clones import Clone

from octavo.core.errors import InvalidParams, NotFound, TooLarge
from octavo.core.ref import Ref
from octavo.core.values import Content
from octavo.sources._shared.git import history
from octavo.sources.catalog import DECLARATIONS, CatalogSource
from octavo.sources.git import GitSource

pytestmark = pytest.mark.anyio
DOC = "---\nid: doc-x\ntitle: 문서\nversion: {0}\n---\n{1}\n"
PLACE = "docs/policies/expense.md"
URI = "doc://policies/expense"


def documents(store: GitSource) -> CatalogSource:
    return CatalogSource(DECLARATIONS["doc"], store)


async def read(catalog: CatalogSource, uri: str) -> Content:
    return await catalog.read(Ref.parse(uri), max_bytes=1 << 20)


@pytest.mark.seed("O1", "O15")
async def test_a_version_is_found_in_the_history(clone: Clone) -> None:
    for version in ("1.0.0", "1.1.0", "1.2.0"):
        clone.commit(
            {PLACE: DOC.format(version, f"text of {version}"), "docs/policies/other.md": DOC.format("9", version)}
        )
    async with clone.source() as store:
        catalog = documents(store)
        for version in ("1.2.0", "1.1.0", "1.0.0"):
            content = await read(catalog, f"{URI}?version={version}")
            assert str(content.body).endswith(f"text of {version}\n")
            assert (str(content.entry.ref), content.entry.metadata["version"]) == (f"{URI}?version={version}", version)
            assert await catalog.stat(Ref.parse(f"{URI}?version={version}")) == content.entry
            assert content.entry.target is None
        old, new = await read(catalog, f"{URI}?version=1.0.0"), await read(catalog, URI)
        assert old.entry.version != new.entry.version
        assert old.entry.modified == 1_700_000_000 + 3 * 60, "when it was committed"


async def test_of_several_contents_with_one_version_the_newest_counts(clone: Clone) -> None:
    for version, text in (
        ("1.0.0", "draft"),
        ("1.0.0", "corrected"),
        ("2.0.0", "new"),
        ("1.0.0", "taken back"),
        ("3.0.0", "now"),
    ):
        clone.commit({PLACE: DOC.format(version, text)})
    async with clone.source() as store:
        assert "taken back" in (await read(documents(store), f"{URI}?version=1.0.0")).body


async def test_an_unknown_version_names_those_that_are_known(clone: Clone) -> None:
    for version in ("1.0.0", "AKIAIOSFODNN7EXAMPLE", "1.1.0"):
        clone.commit({PLACE: DOC.format(version, version), "docs/policies/expense@0.9.md": DOC.format("0.9", "old")})
    async with clone.source() as store:
        catalog = documents(store)
        with pytest.raises(InvalidParams) as refused:
            await read(catalog, f"{URI}?version=7")
        assert str(refused.value) == f"{URI} has no such version; it tells 1.1.0, 1.0.0, 0.9"
        assert (await read(catalog, f"{URI}?version=0.9")).body == DOC.format("0.9", "old")
        for version in ("", "../1", "HEAD", "*", "x" * 3000):
            with pytest.raises(InvalidParams):
                await catalog.stat(Ref("doc", ("policies", "expense"), (("version", version),)))


async def test_of_many_versions_an_error_names_some(clone: Clone) -> None:
    for number in range(25):
        clone.commit({PLACE: DOC.format(f"1.{number}.0", number)})
    async with clone.source() as store:
        with pytest.raises(InvalidParams, match=r"it tells 1\.24\.0, 1\.23\.0, .* and others$"):
            await read(documents(store), f"{URI}?version=7")


async def test_a_file_that_was_renamed_keeps_its_versions_under_both_addresses(clone: Clone) -> None:
    clone.commit({"docs/brand/costs.md": DOC.format("1.0.0", "first")})
    (clone.path / "docs/policies").mkdir()
    (clone.path / "docs/brand/costs.md").rename(clone.path / PLACE)
    clone.commit({}, "renamed")
    clone.commit({PLACE: DOC.format("2.0.0", "second")})
    clone.commit({PLACE: DOC.format("3.0.0", "third")})
    async with clone.source() as store:
        catalog = documents(store)
        assert (await read(catalog, f"{URI}?version=2.0.0")).entry.target is None
        first = await read(catalog, f"{URI}?version=1.0.0")
        assert first.body == DOC.format("1.0.0", "first")
        assert first.entry.target is None, "it had this address when it was renamed, with that version"


async def test_an_old_version_that_stood_elsewhere_says_where(clone: Clone) -> None:
    clone.commit({"docs/brand/costs.md": DOC.format("0.9", "secret of brand")})
    clone.commit({"docs/brand/costs.md": DOC.format("1.0.0", "public")})
    (clone.path / "docs/policies").mkdir()
    (clone.path / "docs/brand/costs.md").rename(clone.path / PLACE)
    clone.commit({}, "renamed")
    async with clone.source() as store:
        catalog = documents(store)
        old = await read(catalog, f"{URI}?version=0.9")
        assert (old.body, str(old.entry.target)) == (DOC.format("0.9", "secret of brand"), "doc://brand/costs")
        with pytest.raises(InvalidParams, match=r"it tells 1\.0\.0$"):
            await read(catalog, f"{URI}?version=7")


async def test_what_came_from_outside_the_catalog_has_no_versions_there(clone: Clone) -> None:
    clone.commit({"private/costs.md": DOC.format("0.9", "private")})
    clone.commit({"private/costs.md": DOC.format("1.0.0", "public")})
    (clone.path / "docs/policies").mkdir(parents=True)
    (clone.path / "private/costs.md").rename(clone.path / PLACE)
    clone.commit({}, "published")
    async with clone.source() as store:
        with pytest.raises(InvalidParams, match=r"it tells 1\.0\.0$"):
            await read(documents(store), f"{URI}?version=0.9")


async def test_what_is_deleted_has_no_versions(clone: Clone) -> None:
    clone.commit({PLACE: DOC.format("1.0.0", "x"), "docs/policies/other.md": DOC.format("1", "y")})
    clone.commit({PLACE: None})
    async with clone.source() as store:
        with pytest.raises(NotFound):
            await read(documents(store), f"{URI}?version=1.0.0")
        clone.commit({PLACE: DOC.format("2.0.0", "again")})
        assert "x" in (await read(documents(store), f"{URI}?version=1.0.0")).body


async def test_versions_of_both_sides_of_a_merge_are_found(clone: Clone) -> None:
    clone.commit({PLACE: DOC.format("1.0.0", "base")})
    clone.git("checkout", "--quiet", "-b", "side")
    clone.write({PLACE: DOC.format("1.0.1", "side")})
    clone.git("commit", "--quiet", "--all", "--message", "side")
    clone.git("checkout", "--quiet", "main")
    clone.commit({PLACE: DOC.format("1.1.0", "main")})
    clone.git("merge", "--quiet", "--strategy=ours", "--no-commit", "side")
    clone.commit({PLACE: DOC.format("2.0.0", "merged")})
    async with clone.source() as store:
        for version, text in (("1.0.0", "base"), ("1.0.1", "side"), ("1.1.0", "main"), ("2.0.0", "merged")):
            assert text in (await read(documents(store), f"{URI}?version={version}")).body


async def test_a_shallow_clone_knows_as_much_as_it_has(clone: Clone, cloned: Callable[..., Clone]) -> None:
    for version in ("1.0.0", "1.1.0", "1.2.0"):
        clone.commit({PLACE: DOC.format(version, version)})
    shallow = cloned("shallow")
    shallow.git("fetch", "--quiet", "--depth=2", f"file://{clone.path}", "main:served")
    async with shallow.source(branch="served") as store:
        assert "1.1.0" in (await read(documents(store), f"{URI}?version=1.1.0")).body
        with pytest.raises(InvalidParams, match=r"it tells 1\.2\.0, 1\.1\.0$"):
            await read(documents(store), f"{URI}?version=1.0.0")


async def test_a_definition_has_versions_and_the_limit_of_a_read_holds(clone: Clone) -> None:
    for version in ("1.0.0", "2.0.0"):
        clone.commit({"skills/brand/write.yml": f"id: s\nname: write\nversion: {version}\ndescription: {'x' * 500}\n"})
    async with clone.source() as store:
        catalog = CatalogSource(DECLARATIONS["skill"], store)
        assert "1.0.0" in (await read(catalog, "skill://brand/write?version=1.0.0")).body
        with pytest.raises(TooLarge):
            await catalog.read(Ref.parse("skill://brand/write?version=1.0.0"), max_bytes=100)


async def test_the_way_back_is_bounded(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        clone.commit({PLACE: DOC.format(f"1.{number}.0", number)})
    monkeypatch.setattr(history, "MAX_COMMITS", 3)
    async with clone.source() as store:
        entries = await store.past(Ref.parse(f"git://{PLACE}"), limit=100)
        assert len(entries) == 3
        assert len(await store.past(Ref.parse(f"git://{PLACE}"), limit=2)) == 2
        with pytest.raises(InvalidParams, match=r"it tells 1\.7\.0, 1\.6\.0, 1\.5\.0$"):
            await read(documents(store), f"{URI}?version=1.0.0")


async def test_a_long_history_without_the_file_ends_in_time(clone: Clone) -> None:
    """Five hundred commits that do not touch it."""
    parent, tree = clone.commit({PLACE: DOC.format("1.0.0", "old")}), clone.git("rev-parse", "HEAD^{tree}")
    who = b"x <x@example.com> 1700001000 +0000"
    for _ in range(500):
        lines = (b"tree " + tree.encode(), b"parent " + parent.encode(), b"author " + who, b"committer " + who)
        parent = clone.put("commit", b"\n".join((*lines, b"", b"x")))
    (clone.git_dir / "refs/heads/main").write_text(f"{parent}\n", encoding="ascii")
    clone.commit({PLACE: DOC.format("2.0.0", "new")})
    with anyio.fail_after(30):
        async with clone.source() as store:
            assert "old" in (await read(documents(store), f"{URI}?version=1.0.0")).body


async def test_a_commit_of_a_strange_time_and_many_parents_is_followed(clone: Clone) -> None:
    parent, tree = clone.commit({PLACE: DOC.format("1.0.0", "old")}), clone.git("rev-parse", "HEAD^{tree}")
    who = b"x <x@example.com> %d +0000" % 10**30
    lines = [b"tree " + tree.encode(), *[b"parent " + parent.encode()] * 5_000, b"author " + who, b"committer " + who]
    merged = clone.put("commit", b"\n".join((*lines, b"", b"x")))
    (clone.git_dir / "refs/heads/main").write_text(f"{merged}\n", encoding="ascii")
    new = clone.tree(("40000", b"docs", clone.tree(("40000", b"policies", clone.tree(
        ("100644", b"expense.md", clone.put("blob", DOC.format("2.0.0", "new").encode()))
    )))))  # fmt: skip
    clone.commit_tree_of_anything(new, merged, time=10**30)
    async with clone.source() as store:
        assert "old" in (await read(documents(store), f"{URI}?version=1.0.0")).body
        newest = (await store.past(Ref.parse(f"git://{PLACE}"), limit=9))[0]
        assert newest.modified == 253_402_300_799
