"""Folders, empty ones too, under the rules that hold for files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import Forbidden
from octavo.core.ref import Ref
from octavo.sources.file import FileRoot

pytestmark = pytest.mark.anyio


def make(root: Path, *folders: str) -> None:
    for folder in folders:
        (root / folder).mkdir(parents=True)


async def found(source: Any, scope: str = "", depth: int | None = None, limit: int = 100) -> list[str]:
    refs = await source.folders(Ref.parse(f"file://{scope}"), depth=depth, limit=limit)
    return [str(ref).removeprefix("file://") for ref in refs]


async def test_folders_come_in_order_with_the_scope_first(opened: Any, root: Path) -> None:
    make(root, "b/c", "a-b", "a/z", "한글")
    source = await opened()
    everything = ["", "a", "a/z", "a-b", "b", "b/c", "한글"]
    assert await found(source) == everything
    assert await found(source, limit=3) == everything[:3]
    assert await found(source, depth=1) == ["", "a", "a-b", "b", "한글"]
    assert await found(source, "b", depth=0) == ["b"]


async def test_what_is_no_folder_is_none(opened: Any, root: Path, write: Any) -> None:
    write("a.md")
    source = await opened()
    assert await found(source, "nowhere") == await found(source, "a.md") == await found(source, "a.md/b") == []
    with pytest.raises(Forbidden):
        await found(source, "/etc")


async def test_hidden_and_excluded_folders_and_links_are_none(opened: Any, root: Path, tmp_path: Path) -> None:
    make(root, ".git/x", ".ssh", "state/x", "open", "open/.aws")
    make(tmp_path, "outside/x")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "in").symlink_to("open")
    source = await opened(exclude_dirs=[root / "state"])
    assert await found(source) == ["", "open", "open/.aws"]
    assert await found(source, depth=1) == ["", "open"]
    for scope in (".git", ".git/x", ".ssh", "state", "state/x", "out", "out/x", "in"):
        assert await found(source, scope) == []


async def test_a_narrowed_root_has_what_leads_to_its_folders_only(opened: Any, root: Path) -> None:
    make(root, "a/in/x", "a/beside", "b")
    source = await opened(FileRoot(root, within=(("a", "in"),)))
    assert await found(source) == ["", "a", "a/in", "a/in/x"]
    for scope in ("b", "a/beside"):
        assert await found(source, scope) == []


async def test_folders_of_a_later_root_say_so(opened: Any, tmp_path: Path) -> None:
    make(tmp_path, "one/both", "two/both", "two/second")
    source = await opened(tmp_path / "one", tmp_path / "two")
    assert await found(source) == ["", "?root=2", "both", "both?root=2", "second?root=2"]


async def test_a_listing_that_is_bounded_bounds_them_too(opened: Any, root: Path) -> None:
    make(root, "docs/a/b", "other")
    assert await found(await opened(list_under="docs")) == ["docs", "docs/a", "docs/a/b"]
    assert await found(await opened(list_under="docs"), depth=1) == ["docs"]
    assert await found(await opened(list_under="docs", list_recursive=False)) == ["docs"]
