"""Listing: order, pages, and what the whole source shows."""

from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import InvalidParams, NotFound
from octavo.core.ref import Ref
from octavo.sources.file.root import Tree

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F6")]


async def test_the_order_is_that_of_the_segments(write: Any, opened: Any, listing: Any) -> None:
    """`a` before `a.md` before `a/x.md` would be the order of strings; ours compares names one by one."""
    for path in ("a.md", "a/z.md", "a/b/c.md", "a-b.md", "b.md", "A.md", "a/b.md"):
        write(path)
    source = await opened()
    expected = ["A.md", "a/b/c.md", "a/b.md", "a/z.md", "a-b.md", "a.md", "b.md"]
    for limit in (1, 2, 3, 100):
        assert await listing(source, limit=limit) == [f"file://{path}" for path in expected]


async def test_a_scope_that_is_a_file_gives_that_file_and_a_missing_one_nothing(
    write: Any, opened: Any, listing: Any
) -> None:
    write("d/a.md"), write("d/a.md.d/b.md")
    source = await opened()
    assert await listing(source, "file://d/a.md") == ["file://d/a.md"]
    for uri in ("file://nope", "file://d/nope/deeper", "file://d/a.md/below", "file://d/a"):
        assert await listing(source, uri) == []


async def test_what_the_whole_source_lists_can_be_narrowed_and_the_rest_stays_readable(
    write: Any, opened: Any, listing: Any
) -> None:
    for path in ("a.md", "docs/b.md", "docs/deep/c.md"):
        write(path)
    assert await listing(await opened(list_under="docs")) == ["file://docs/b.md", "file://docs/deep/c.md"]
    assert await listing(await opened(list_recursive=False)) == ["file://a.md"]
    source = await opened(list_under="docs", list_recursive=False)
    assert await listing(source) == ["file://docs/b.md"]
    assert await listing(source, "file://docs/deep") == ["file://docs/deep/c.md"]
    assert (await source.read(Ref.parse("file://a.md"), max_bytes=100)).body == "text\n"
    assert await listing(await opened(list_under="missing")) == []


async def test_a_page_looks_at_nothing_before_its_cursor_and_little_after_its_end(
    root: Path, write: Any, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page costs what is on it: directories before the cursor and after the page are not even opened."""
    for letter in "abcdefghij":
        for number in range(3):
            write(f"{letter}/{number}.md")
    source = await opened()
    first = await source.list(Ref("file"), cursor=None, limit=14)
    touched: list[str] = []
    from octavo.sources.file.root import Tree

    original = Tree.open_directory
    monkeypatch.setattr(
        Tree, "open_directory", lambda tree, disk: touched.append("/".join(disk)) or original(tree, disk)
    )
    page = await source.list(Ref("file"), cursor=first.cursor, limit=3)
    assert [str(entry.ref) for entry in page.items] == ["file://e/2.md", "file://f/0.md", "file://f/1.md"]
    assert touched == ["", "e", "f"]


async def test_a_large_directory_is_listed_right_while_it_changes(
    root: Path, write: Any, opened: Any, listing: Any
) -> None:
    """Large directories are kept sorted between pages, for as long as stat says that they are the same."""
    for number in range(700):
        write(f"f{number:03}.md", "")
    source = await opened()
    expected = [f"file://f{number:03}.md" for number in range(700)]
    assert await listing(source, limit=100) == expected
    (root / "f350.md").unlink()
    write("f350-new.md")
    (root / "f351.md").rename(root / "other")
    expected[350:352] = ["file://f350-new.md"]
    assert await listing(source, limit=100) == expected


@pytest.mark.parametrize(
    "cursor", ["", "x", "e30=", "WzAsICJhIl0=garbage", "W251bGwsICJhIl0=", "WzAsIDFd", "//8=", "한"]
)
async def test_a_cursor_that_is_not_ours_is_refused(write: Any, opened: Any, cursor: str) -> None:
    write("d/a.md")
    source = await opened()
    with pytest.raises(InvalidParams):
        await source.list(Ref.parse("file://d"), cursor=cursor, limit=1)


async def test_a_cursor_of_another_scope_is_refused(write: Any, opened: Any) -> None:
    for path in ("a/1.md", "a/2.md", "b/1.md"):
        write(path)
    source = await opened()
    page = await source.list(Ref.parse("file://a"), cursor=None, limit=1)
    with pytest.raises(InvalidParams):
        await source.list(Ref.parse("file://b"), cursor=page.cursor, limit=1)


async def test_a_file_under_more_than_127_folders_has_no_address(root: Path, opened: Any, listing: Any) -> None:
    deepest = "/".join(["d"] * 127)
    (root / deepest / "d").mkdir(parents=True)
    (root / deepest / "last.md").write_text("text", encoding="utf-8")
    (root / deepest / "d" / "beyond.md").write_text("text", encoding="utf-8")
    source = await opened()
    assert await listing(source) == [f"file://{deepest}/last.md"]
    assert (await source.read(Ref.parse(f"file://{deepest}/last.md"), max_bytes=10)).body == "text"
    with pytest.raises(NotFound):
        await source.stat(Ref.parse(f"file://{deepest}/d/beyond.md"))


async def _levels(source: Any, uri: str, depth: int, limit: int) -> list[str]:
    found, cursor = list[str](), None
    while True:
        page = await source.list_levels(Ref.parse(uri), depth=depth, cursor=cursor, limit=limit)
        found += [str(entry.ref).removeprefix("file://") for entry in page.items]
        cursor = page.cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_levels_are_listed_with_one_file_for_each_deeper_folder(write: Any, opened: Any, limit: int) -> None:
    for path in ("a/b/c.md", "a/b/d.md", "a/x.md", "a.md", "a-/z.md", "b/c/d/e.md", "b/c/d/f.md"):
        write(path)
    source = await opened()
    assert await _levels(source, "file://", 1, limit) == ["a/b/c.md", "a-/z.md", "a.md", "b/c/d/e.md"]
    assert await _levels(source, "file://", 2, limit) == ["a/b/c.md", "a/x.md", "a-/z.md", "a.md", "b/c/d/e.md"]
    assert await _levels(source, "file://b", 1, limit) == ["b/c/d/e.md"]
    assert await _levels(source, "file://a.md", 1, limit) == ["a.md"]
    narrowed = await opened(list_under="a/b")
    assert await _levels(narrowed, "file://", 1, limit) == ["a/b/c.md"]
    assert await _levels(narrowed, "file://", 3, limit) == ["a/b/c.md", "a/b/d.md"]


async def test_levels_look_into_no_more_than_one_folder_of_each(
    write: Any, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in "abcdefgh":
        for below in "xyz":
            write(f"{folder}/{below}/1.md")
    looked, children = list[str](), Tree.children

    def recorded(tree: Tree, fd: int, names: tuple[str, ...]) -> Any:
        looked.append("/".join(names))
        return children(tree, fd, names)

    monkeypatch.setattr(Tree, "children", recorded)
    source = await opened()
    assert len(await _levels(source, "file://", 1, 100)) == 8
    assert sorted(looked) == sorted(["", *"abcdefgh", *(f"{folder}/x" for folder in "abcdefgh")])
