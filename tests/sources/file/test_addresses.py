"""Relative and absolute addresses, several roots, and which file an address means."""

import os
from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import Forbidden, InvalidParams, NotFound, SourceUnavailable
from octavo.core.ref import Ref
from octavo.sources.file import FileRoot, FileSource

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F1")]


async def body(source: FileSource, uri: str) -> Any:
    return (await source.read(Ref.parse(uri), max_bytes=1000)).body


async def test_a_file_has_a_relative_and_an_absolute_spelling(root: Path, write: Any, opened: Any) -> None:
    """Seed 000 speaks of `file://documents/x`, seed 004 of `file:///project/x`: one resource, two spellings."""
    write("Documents/guide.md", "hello")
    source = await opened()
    relative, absolute = Ref.parse("file://Documents/guide.md"), Ref.parse(f"file://{root}/Documents/guide.md")
    assert absolute.absolute
    assert source.canonical(absolute) == source.canonical(relative) == relative
    assert source.spelled(relative) == absolute
    assert await source.read(absolute, max_bytes=100) == await source.read(relative, max_bytes=100)
    assert (await source.stat(absolute)).ref == relative


async def test_a_root_can_have_a_public_prefix_in_place_of_its_path(root: Path, write: Any, opened: Any) -> None:
    write("src/main.ts", "code")
    source = await opened(FileRoot(root, "/project"))
    assert await body(source, "file:///project/src/main.ts") == "code"
    assert source.spelled(Ref.parse("file://src/main.ts")) == Ref.parse("file:///project/src/main.ts")
    with pytest.raises(Forbidden):
        source.canonical(Ref.parse(f"file://{root}/src/main.ts"))


async def test_a_root_that_is_reached_through_a_link_is_known_by_both_names(
    tmp_path: Path, root: Path, write: Any, opened: Any
) -> None:
    write("a.md")
    (tmp_path / "alias").symlink_to(root)
    source = await opened(tmp_path / "alias")
    assert source.canonical(Ref.parse(f"file://{root}/a.md")) == Ref.parse("file://a.md")
    assert source.spelled(Ref.parse("file://a.md")) == Ref.parse(f"file://{tmp_path}/alias/a.md")


@pytest.mark.seed("F8")
async def test_an_absolute_address_outside_every_root_is_forbidden_whether_it_exists_or_not(
    root: Path, opened: Any
) -> None:
    source = await opened()
    for uri in ("file:///etc/passwd", "file:///no/such/file", f"file://{root}-evil/x.md", f"file://{root.parent}"):
        for ask in (source.stat(Ref.parse(uri)), source.read(Ref.parse(uri), max_bytes=10)):
            with pytest.raises(Forbidden) as caught:
                await ask
            why = "The path lies outside of what is served: use an address as lists show them"
            assert (caught.value.message, caught.value.data) == (why, {"uri": uri})


async def test_absolute_addresses_are_listed_where_the_operator_wants_them(
    root: Path, write: Any, opened: Any, listing: Any
) -> None:
    write("a.md"), write("d/b.md")
    source = await opened(uris="absolute")
    assert await listing(source) == [f"file://{root}/a.md", f"file://{root}/d/b.md"]
    assert await listing(source, f"file://{root}/d") == [f"file://{root}/d/b.md"]
    page = await source.list(Ref("file"), cursor=None, limit=10)
    assert await source.stat(page.items[0].ref) == page.items[0]
    other = await opened(uris="absolute", scheme="work")
    assert await listing(other, "work://") == ["work://a.md", "work://d/b.md"], "no other scheme has such addresses"


async def test_the_first_root_that_has_a_name_wins_and_the_other_keeps_an_address(
    tmp_path: Path, write: Any, opened: Any, listing: Any
) -> None:
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    write("both.md", "one", one), write("only-one.md", "one", one)
    write("both.md", "two", two), write("only-two.md", "two", two)
    write("both.md", "three", three), write("d/only-three.md", "three", three)
    source = await opened(one, two, three)
    expected = [
        "file://both.md", f"file://{two}/both.md", f"file://{three}/both.md", "file://d/only-three.md",
        "file://only-one.md", "file://only-two.md",
    ]  # fmt: skip
    for limit in (1, 2, 3, 100):
        assert await listing(source, limit=limit) == expected
    assert [await body(source, uri) for uri in expected] == ["one", "two", "three", "three", "one", "two"]
    assert source.canonical(Ref.parse(f"file://{two}/both.md")) == Ref.parse("file://both.md?root=2")
    assert source.spelled(Ref.parse("file://both.md?root=2")) == Ref.parse(f"file://{two}/both.md")
    assert source.spelled(Ref.parse("file://only-two.md")) == Ref.parse(f"file://{two}/only-two.md")
    assert await listing(source, "file://?root=3") == [f"file://{three}/both.md", "file://d/only-three.md"]


async def test_a_plain_name_of_a_later_root_says_where_it_led(tmp_path: Path, write: Any, opened: Any) -> None:
    """Or a rule on the later root's absolute address would not hold for the plain one."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    write("x.md", "two", two)
    source = await opened(one, two)
    entry = await source.stat(Ref.parse("file://x.md"))
    assert (str(entry.ref), str(entry.target)) == ("file://x.md", "file://x.md?root=2")
    assert (await source.stat(Ref.parse("file://x.md?root=2"))).target is None
    for parameter in ("range=0-1", "encoding=utf-8"):
        content = await source.read(Ref.parse(f"file://x.md?{parameter}"), max_bytes=100)
        assert content.body == "two"[: 2 if "range" in parameter else 3]
        assert str(content.entry.target) == "file://x.md?root=2"
        with pytest.raises(NotFound):
            await source.read(Ref.parse(f"file://{one}/x.md?{parameter}"), max_bytes=100)
    with pytest.raises(NotFound):
        await source.stat(Ref.parse("file://x.md?root=1"))


async def test_unknown_parameters_are_refused_by_name(root: Path, write: Any, opened: Any) -> None:
    write("a.md")
    source = await opened()
    for uri in ("file://a.md?view=raw", "file://a.md?root=1&x=2", "file://a.md?root=2", "file://a.md?root=x"):
        with pytest.raises(InvalidParams, match="root"):
            await source.stat(Ref.parse(uri))
    with pytest.raises(InvalidParams, match="known are: as, bytes, encoding, pages, range, sheet"):
        await source.stat(Ref.parse(f"file://{root}/a.md?root=1"))


async def test_roots_that_overlap_are_refused(root: Path, write: Any, opened: Any) -> None:
    """A file in two roots would have two addresses, and a rule on one would not hold for the other."""
    write("d/a.md")
    for roots in ((root, root / "d"), (root / "d", root), (root, root)):
        with pytest.raises(InvalidParams, match="overlap"):
            await opened(*roots)


async def test_a_root_that_is_missing_is_said_and_a_source_without_roots_is_refused(
    tmp_path: Path, opened: Any
) -> None:
    with pytest.raises(SourceUnavailable) as caught:
        await opened(tmp_path, tmp_path.parent / "missing")
    assert str(tmp_path.parent) not in caught.value.message
    with pytest.raises(InvalidParams):
        FileSource([], secret=b"")


async def test_a_root_stays_the_directory_that_was_opened(root: Path, write: Any, opened: Any) -> None:
    """Whatever takes its name later is not served."""
    write("a.md", "old")
    source = await opened()
    os.rename(root, root.with_name("elsewhere"))
    write("a.md", "new")
    assert await body(source, "file://a.md") == "old"


async def test_a_source_that_is_closed_says_so(root: Path, write: Any) -> None:
    write("a.md")
    async with FileSource([FileRoot(root)], secret=b"") as source:
        pass
    for ask in (
        source.stat,
        lambda ref: source.read(ref, max_bytes=1),
        lambda ref: source.list(ref, cursor=None, limit=1),
    ):
        with pytest.raises(SourceUnavailable):
            await ask(Ref.parse("file://a.md"))
    with pytest.raises(SourceUnavailable):
        source.watch(Ref("file"))
    assert source.stamp(Ref.parse("file://a.md"), "read") is None
