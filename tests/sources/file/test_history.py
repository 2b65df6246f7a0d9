"""`history:` of a folder in a git work tree: `?version=` of catalogs over it, and how old its files are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.sources.git.clones import Clone

from octavo.core.errors import InvalidParams, NotFound, SourceUnavailable
from octavo.core.ref import Ref
from octavo.core.values import Content, Entry
from octavo.sources._shared.git import repository
from octavo.sources.catalog import DECLARATIONS, CatalogSource
from octavo.sources.file import FileRoot
from octavo.sources.file.committed import CommittedFileSource
from octavo.sources.file.writable_committed import WritableCommittedFileSource

pytestmark = pytest.mark.anyio
PLACE = "docs/policies/expense.md"
URI = "doc://policies/expense"
FIRST_OF_MARCH = 1_772_323_200


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "clone")


@pytest.fixture(params=["", "handbook/한글"])
def below(request: pytest.FixtureRequest) -> str:
    """The folder of the work tree that is the root."""
    return str(request.param)


@pytest.fixture
def told(clone: Clone, below: str) -> dict[str, str]:
    """Commits of three days by what they say, and a change that nobody has committed."""
    commits = {"outside": clone.commit({"docs/policies/expense.dat": "outside of the root, or of another kind"})}
    for day, text in enumerate(("first", "second", "third")):
        clone._time = FIRST_OF_MARCH + day * 86_400
        commits[text] = clone.commit({f"{below}/{PLACE}".lstrip("/"): f"# {text}\n"})
        clone.git("tag", f"v{day + 1}")
    clone.git("tag", "-m", "of the second", "release/2026-1", commits["second"])
    clone.git("tag", "before", commits["outside"])
    clone.write({f"{below}/{PLACE}".lstrip("/"): "# not committed\n"})
    return commits


def source(clone: Clone, below: str = "", **options: Any) -> CommittedFileSource:
    return CommittedFileSource(
        [FileRoot(clone.path / below)], **{"secret": b"secret", "history": "refs", "extensions": ["*"], **options}
    )


async def read(store: CommittedFileSource, version: str, uri: str = URI) -> Content:
    catalog = CatalogSource(DECLARATIONS["doc"], store)
    return await catalog.read(Ref.parse(f"{uri}?version={version}" if version else uri), max_bytes=1 << 20)


async def refuses(store: CommittedFileSource, *versions: str, uri: str = URI) -> None:
    for version in versions:
        with pytest.raises(InvalidParams, match="has no such version"):
            await read(store, version, uri)


async def entries(store: CommittedFileSource) -> dict[str, Entry]:
    page = await store.list(Ref("file"), cursor=None, limit=99)
    return {entry.ref.path: entry for entry in page.items}


@pytest.mark.seed("O1")
async def test_a_tag_is_a_version(clone: Clone, told: dict[str, str], below: str) -> None:
    async with source(clone, below) as store:
        for version, text in (("v1", "first"), ("v2", "second"), ("release/2026-1", "second"), ("v3", "third")):
            content = await read(store, version)
            assert content.body == f"# {text}\n" and str(content.entry.ref) == f"{URI}?version={version}"
        assert (await read(store, "")).body == "# not committed\n"
        await refuses(store, "v9", "before", "HEAD", "main", "2026-03-02", told["first"])


@pytest.mark.seed("O1")
async def test_with_all_of_the_history_commits_and_days_are_versions(
    clone: Clone, told: dict[str, str], below: str
) -> None:
    async with source(clone, below, history="all") as store:
        for version in (told["second"], told["second"][:7], "2026-03-02"):
            assert (await read(store, version)).body == "# second\n"
        await refuses(store, "2026-02-28", "0" * 40, "HEAD~1", told["outside"])
        clone.git("reset", "--quiet", "--hard", told["second"])
        assert (await read(store, "2026-03-31")).body == "# second\n"
        await refuses(store, "v3", told["third"])


async def test_what_front_matter_said_counts_before_a_tag(clone: Clone) -> None:
    for version in ("v1", "v2", "v3"):
        clone.commit({PLACE: f"---\nversion: {version}\n---\nsaid {version}\n"})
    clone.git("tag", "v1")
    async with source(clone) as store:
        for version in ("v1", "v2", "v3"):
            assert str((await read(store, version)).body).endswith(f"said {version}\n")
        with pytest.raises(InvalidParams, match=r"it tells v3, v2, v1$"):
            await read(store, "v9")


async def test_an_old_name_counts_and_hidden_ones_do_not(clone: Clone, tmp_path: Path) -> None:
    old = {"docs/hr/costs.md": "# costs\n", "docs/state/kept.md": "# kept\n", "docs/a.draft.md": "# draft\n"}
    clone.commit({**old, "elsewhere.md": "# elsewhere\n"})
    clone.git("tag", "v1")
    clone.commit({"docs/policies/x.md": "x"})
    for path, name in zip((*old, "elsewhere.md"), ("expense", "kept", "draft", "elsewhere"), strict=True):
        (clone.path / path).rename(clone.path / f"docs/policies/{name}.md")
    clone.commit({}, "renamed")
    kept = clone.path / "docs/state"
    async with source(clone, hidden=["*.draft.md"], exclude_dirs=[kept]) as store:
        then = await read(store, "v1")
        assert (then.body, str(then.entry.target)) == ("# costs\n", "doc://hr/costs")
        for name in ("kept", "draft", "elsewhere"):
            await refuses(store, "v1", uri=f"doc://policies/{name}")
        commit = clone.git("rev-parse", "v1")
        for path in ("docs/state/kept.md", "docs/a.draft.md", ".git/config", "docs/gone.md"):
            with pytest.raises(NotFound):
                await store.read(Ref.parse(f"file://{path}?commit={commit}"), max_bytes=99)


async def test_what_is_not_committed_or_a_link_has_no_versions(clone: Clone, told: dict[str, str], below: str) -> None:
    root = clone.path / below
    (root / "docs/policies/link.md").symlink_to("expense.md")
    clone.commit({f"{below}/docs/gone.md".lstrip("/"): "# gone\n"})
    clone.git("tag", "gone")
    clone.commit({f"{below}/docs/gone.md".lstrip("/"): None})
    (root / "docs/gone.md").write_text("# another\n", encoding="utf-8")
    async with source(clone, below) as store:
        await refuses(store, "gone", uri="doc://gone")
        await refuses(store, "v1", uri="doc://policies/link")
        (root / PLACE).unlink()
        with pytest.raises(NotFound):
            await read(store, "v1")


async def test_a_work_tree_without_a_commit_has_no_versions(clone: Clone) -> None:
    clone.write({PLACE: "# new\n"})
    async with source(clone, history="all") as store:
        assert (await read(store, "")).body == "# new\n"
        await refuses(store, "v1", "2026-03-01")


async def test_a_file_is_as_old_as_its_last_commit_unless_it_was_changed_since(
    clone: Clone, told: dict[str, str], below: str
) -> None:
    root = clone.path / below
    clone._time = FIRST_OF_MARCH
    clone.commit({f"{below}/same.md".lstrip("/"): "same", f"{below}/other.md".lstrip("/"): "other"})
    committed = clone._time
    (root / "new.md").write_text("new", encoding="utf-8")
    (root / "other.md").write_text("rehto", encoding="utf-8")
    for name in ("same.md", "other.md", "new.md"):
        os.utime(root / name, (5, 5))
    async with source(clone, below) as store:
        found = await entries(store)
        assert [found[name].modified for name in ("same.md", "other.md", "new.md")] == [committed, 5, 5]
        for name in ("same.md", "other.md"):
            ref = Ref.parse(f"file://{name}")
            assert await store.stat(ref) == (await store.read(ref, max_bytes=99)).entry == found[name]
        clone.commit({})
        assert (await entries(store))["other.md"].modified == clone._time
    async with source(clone, below, extensions=[".md"]) as store:
        catalog = CatalogSource(DECLARATIONS["doc"], store, path="")
        page = await catalog.list(Ref("doc"), cursor=None, limit=9)
        assert {entry.metadata["last_updated"] for entry in page.items if entry.name == "same"} == {"2026-03-01"}


async def test_the_content_of_a_large_file_is_not_compared(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo.sources.file.committed.MAX_COMPARED", 3)
    clone.commit({"older.md": "large", "newer.md": "large"})
    for name, time in (("older.md", 5), ("newer.md", clone._time + 5)):
        os.utime(clone.path / name, (time, time))
    async with source(clone) as store:
        found = await entries(store)
        assert [found[name].modified for name in ("older.md", "newer.md")] == [clone._time, clone._time + 5]


async def test_a_writable_folder_has_a_history_too(clone: Clone, told: dict[str, str], tmp_path: Path) -> None:
    root = FileRoot(clone.path)
    async with WritableCommittedFileSource([root], journal=tmp_path / "journal", secret=b"s", history="refs") as store:
        ref = Ref.parse("file://docs/policies/new.md")
        await store.write(ref, "# new\n", if_match=None)
        with pytest.raises(InvalidParams):
            await store.write(ref._replace(params=(("commit", told["first"]),)), "# old\n", if_match=None)
        clone.commit({})
        clone.git("tag", "new")
        await store.write(ref, "# newer\n", if_match=None)
        assert (await read(store, "new", "doc://policies/new")).body == "# new\n"


async def test_a_folder_in_no_work_tree_and_a_repository_of_somebody_else_are_refused(
    clone: Clone, told: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(SourceUnavailable, match="lies in no work tree"):
        async with CommittedFileSource([FileRoot(tmp_path / "plain")], secret=b"", history="refs"):
            pass
    if os.geteuid() == 0:
        os.chown(clone.git_dir, 54_321, 54_321)
    else:
        monkeypatch.setattr(repository.os, "geteuid", lambda: 54_321)
    with pytest.raises(SourceUnavailable, match="belongs to another user"):
        async with source(clone):
            pass


async def test_a_pack_that_is_made_to_lead_elsewhere_is_not_read(
    clone: Clone, told: dict[str, str], below: str, tmp_path: Path
) -> None:
    async with source(clone, below) as store:
        assert (await read(store, "v1")).body == "# first\n"
        (clone.git_dir / "objects/pack").mkdir(exist_ok=True)
        (clone.git_dir / "objects/pack/pack-1.idx").symlink_to(tmp_path / "elsewhere")
        clone.commit({})
        assert (await read(store, "")).body == "# not committed\n"
        with pytest.raises(SourceUnavailable):
            await read(store, "v1")


async def test_a_repository_that_goes_away_leaves_the_files(
    clone: Clone, told: dict[str, str], below: str, tmp_path: Path
) -> None:
    async with source(clone, below) as store:
        clone.git_dir.rename(tmp_path / "away")
        assert (await read(store, "")).body
        with pytest.raises(SourceUnavailable):
            await read(store, "v1")
        (tmp_path / "away").rename(clone.path / ".git")
        assert (await read(store, "v1")).body == "# first\n"
