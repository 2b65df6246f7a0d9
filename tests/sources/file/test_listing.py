"""Listing: order, pages, and what the whole source shows."""

from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import InvalidParams, NotFound
from octavo.core.ref import Ref

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
    from octavo.sources.file.tree import Tree

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
