"""`?version=` by tag, and with all of the history by commit and day: as the branch was then, nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.sources.git.clones import Clone

from octavo.core.errors import InvalidParams, NotFound
from octavo.core.ref import Ref
from octavo.core.values import Content
from octavo.sources.catalog import DECLARATIONS, CatalogSource
from octavo.sources.git import GitSource

pytestmark = pytest.mark.anyio
PLACE = "docs/policies/expense.md"
URI = "doc://policies/expense"


def documents(store: GitSource) -> CatalogSource:
    return CatalogSource(DECLARATIONS["doc"], store)


async def read(store: GitSource, version: str) -> Content:
    return await documents(store).read(Ref.parse(f"{URI}?version={version}"), max_bytes=1 << 20)


async def refuses(store: GitSource, *versions: str) -> None:
    for version in versions:
        with pytest.raises(InvalidParams, match="has no such version; it tells none"):
            await read(store, version)


@pytest.fixture
def told(clone: Clone) -> dict[str, str]:
    """Commits of three days by what they say. Without front matter only git knows versions."""
    commits = {}
    for day, text in enumerate(("first", "second", "third")):
        clone._time = 1_772_323_200 + day * 86_400  # the first minute of the first of March 2026, in UTC
        commits[text] = clone.commit({PLACE: f"# {text}\n"})
        clone.git("tag", f"v{day + 1}")
    return commits


@pytest.mark.seed("O1", "O15")
@pytest.mark.parametrize("packed", [False, True])
async def test_a_tag_is_a_version(clone: Clone, told: dict[str, str], packed: bool) -> None:
    clone.git("tag", "-m", "annotated", "release/2026-1", told["second"])
    clone.git("tag", "-m", "of a tag", "nested", "release/2026-1")
    if packed:
        clone.git("gc", "--quiet", "--prune=now")
    async with clone.source() as store:
        for version, text in (("v1", "first"), ("v2", "second"), ("release/2026-1", "second"), ("nested", "second")):
            content = await read(store, version)
            assert content.body == f"# {text}\n"
            assert str(content.entry.ref) == f"{URI}?version={version}" and content.entry.target is None
            assert await documents(store).stat(content.entry.ref) == content.entry
        await refuses(store, "v9", "v", "../heads/main", "main", "HEAD", "2026-03-02", told["first"])


async def test_what_front_matter_says_counts_before_a_tag(clone: Clone) -> None:
    clone.commit({PLACE: "---\nversion: v1\n---\nsaid\n"})
    clone.commit({PLACE: "---\nversion: v2\n---\ntagged\n"})
    clone.git("tag", "v1")
    clone.git("tag", "other")
    clone.commit({PLACE: "---\nversion: v3\n---\nnow\n"})
    async with clone.source() as store:
        assert str((await read(store, "v1")).body).endswith("said\n")
        assert str((await read(store, "other")).body).endswith("tagged\n")


@pytest.mark.seed("O1", "O15")
async def test_with_all_of_the_history_commits_and_days_are_versions(clone: Clone, told: dict[str, str]) -> None:
    async with clone.source(history="all") as store:
        for version in (told["second"], told["second"][:7], "2026-03-02"):
            assert (await read(store, version)).body == "# second\n"
        for version, text in (("2026-03-01", "first"), ("2026-12-31", "third"), ("v3", "third")):
            assert (await read(store, version)).body == f"# {text}\n"
        await refuses(store, "2026-02-28", "2026-02-30", told["second"][:6], "0" * 40, "g" * 7, "HEAD~1")
        clone.commit({"other.md": "moves the branch\n"})
        assert (await read(store, told["third"])).body == "# third\n"


async def test_without_history_there_is_none(clone: Clone, told: dict[str, str]) -> None:
    clone.commit({PLACE: "---\nversion: 1\n---\n"})
    clone.commit({PLACE: "---\nversion: 2\n---\n", "docs/policies/expense@0.9.md": "beside\n"})
    async with clone.source(history="none") as store:
        for version in ("1", "v1", told["first"], "2026-03-01"):
            with pytest.raises(InvalidParams, match=r"it tells 2, 0\.9$"):
                await read(store, version)
        assert (await read(store, "0.9")).body == "beside\n"


async def test_what_the_branch_has_not_gone_through_is_no_version_of_it(clone: Clone, told: dict[str, str]) -> None:
    clone.git("checkout", "--quiet", "-b", "draft")
    clone.write({PLACE: "# not published\n"})
    clone.git("commit", "--quiet", "--all", "--message", "draft")
    draft = clone.git("rev-parse", "HEAD")
    clone.git("tag", "draft-1")
    clone.git("tag", "blob", clone.put("blob", b"# a blob\n"))
    clone.git("checkout", "--quiet", "main")
    async with clone.source(history="all") as store:
        await refuses(store, "draft-1", draft, draft[:9], "blob")
        clone.git("merge", "--quiet", "--no-ff", "-m", "published", "draft")
        assert (await read(store, "draft-1")).body == "# not published\n"
        assert (await read(store, draft[:9])).body == "# not published\n"


async def test_a_day_tells_what_the_branch_was_before_later_merges(clone: Clone, told: dict[str, str]) -> None:
    clone.git("checkout", "--quiet", "-b", "side", told["first"])
    clone._time = 1_772_323_200 + 3600
    clone.write({PLACE: "# side\n"})
    clone.git("commit", "--quiet", "--all", "--message", "side")
    clone.git("checkout", "--quiet", "main")
    clone._time = 1_772_323_200 + 5 * 86_400
    clone.git("merge", "--quiet", "--no-ff", "--strategy=ours", "-m", "merged", "side")
    async with clone.source(history="all") as store:
        assert (await read(store, "2026-03-01")).body == "# first\n"


async def test_a_tag_from_before_a_rename_says_where_the_file_stood(clone: Clone) -> None:
    clone.commit({"docs/hr/costs.md": "# old\n", "private/costs.md": "# private\n"})
    clone.git("tag", "v1")
    (clone.path / "docs/policies").mkdir()
    (clone.path / "docs/hr/costs.md").rename(clone.path / PLACE)
    (clone.path / "private/costs.md").rename(clone.path / "docs/policies/other.md")
    clone.commit({}, "renamed")
    clone.commit({PLACE: "# new\n", "docs/hr/costs.md": "# another file\n"})
    async with clone.source() as store:
        old = await read(store, "v1")
        assert (old.body, str(old.entry.target)) == ("# old\n", "doc://hr/costs")
        with pytest.raises(InvalidParams, match="it tells none"):
            await documents(store).read(Ref.parse("doc://policies/other?version=v1"), max_bytes=999)


async def test_a_file_that_was_not_there_then_or_is_gone_now_has_no_such_version(clone: Clone) -> None:
    clone.commit({"docs/policies/gone.md": "# gone\n"})
    clone.git("tag", "v1")
    clone.commit({"docs/policies/gone.md": None, PLACE: "# new\n"})
    async with clone.source() as store:
        await refuses(store, "v1")
        with pytest.raises(NotFound):
            await documents(store).read(Ref.parse("doc://policies/gone?version=v1"), max_bytes=999)


async def test_a_tag_that_moves_is_seen_although_no_file_has_changed(clone: Clone, told: dict[str, str]) -> None:
    async with clone.source() as store:
        catalog, ref = documents(store), Ref.parse(f"{URI}?version=v1")
        assert (await read(store, "v1")).body == "# first\n"
        assert catalog.stamp(ref, "read") is None, "no answer is kept for as long as the branch stays"
        clone.git("tag", "--force", "v1", told["third"])
        assert (await read(store, "v1")).body == "# third\n"


async def test_the_way_back_to_a_tag_is_bounded(
    clone: Clone, told: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("octavo.sources._shared.git.ancestry.MAX_COMMITS", 1)
    async with clone.source(history="all") as store:
        assert (await read(store, "v2")).body == "# second\n"
        await refuses(store, "v1", "2026-03-01")


async def test_a_shallow_clone_has_the_tags_that_it_has_commits_of(
    clone: Clone, told: dict[str, str], cloned: Callable[..., Clone]
) -> None:
    shallow = cloned("shallow")
    shallow.git("fetch", "--quiet", "--depth=2", f"file://{clone.path}", "main:served")
    for tag, text in (("v1", "first"), ("v2", "second")):
        (shallow.git_dir / "refs/tags").mkdir(exist_ok=True)
        (shallow.git_dir / "refs/tags" / tag).write_text(told[text] + "\n", encoding="ascii")
    async with shallow.source(branch="served") as store:
        assert (await read(store, "v2")).body == "# second\n"
        await refuses(store, "v1")
