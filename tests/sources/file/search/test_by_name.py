"""Searching by name: what a listing would show and the query matches, in the order of a listing."""

import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import InvalidParams
from octavo.core.glob import Glob
from octavo.core.ref import Ref
from octavo.sources.file.search import ContentQuery, NameQuery
from octavo.sources.file.search.paths import Catalog, Paths, key_of, names_of
from octavo.text.patterns import name_pattern, path_pattern

pytestmark = pytest.mark.anyio

NAMES = st.sampled_from(["a", "b", "ab", "a-b", "A.md", "b.md", "회의", "회의록.md", "a.b", "x"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(tuple)
PARTS = st.sampled_from(["a", "*", "**", "*.md", "a*", "*b*", "회*", "b.md", "a*b"])


async def test_a_word_is_found_anywhere_in_a_path_in_any_case(write: Any, opened: Any, named: Any) -> None:
    for path in ("docs/Budget 2026.md", "BUDGET/notes.md", "other/plan.md"):
        write(path)
    source = await opened()
    assert await named(source, "budget") == ["BUDGET/notes.md", "docs/Budget 2026.md"]
    assert await named(source, "get/no") == ["BUDGET/notes.md"]
    assert await named(source, "budget", "file://docs") == ["docs/Budget 2026.md"]
    assert await named(source, "nowhere") == []


async def test_a_pattern_without_a_slash_is_one_of_the_last_name(write: Any, opened: Any, named: Any) -> None:
    for path in ("a.md", "docs/a.md", "docs/deep/b.md", "docs/b.txt", "md/c.txt"):
        write(path)
    source = await opened()
    assert await named(source, "*.md") == ["a.md", "docs/a.md", "docs/deep/b.md"]
    assert await named(source, "/*.md") == ["a.md"]
    assert await named(source, "docs/*.md") == ["docs/a.md"]
    assert await named(source, "docs/*") == ["docs/a.md", "docs/b.txt", "docs/deep/b.md"]
    assert await named(source, "**/deep/*.md") == ["docs/deep/b.md"]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
async def test_the_unicode_form_of_names_does_not_matter(write: Any, opened: Any, named: Any, form: Any) -> None:
    write(unicodedata.normalize(form, "회의/결과 보고.md"))
    source = await opened()
    for query in ("회의", "과 보고", "회의/결과", "*보고.md", "회의/*"):
        for asked in ("NFC", "NFD"):
            assert await named(source, unicodedata.normalize(asked, query)) == ["회의/결과 보고.md"]


async def test_what_is_hidden_or_not_served_is_never_found(write: Any, opened: Any, named: Any, root: Path) -> None:
    for path in (".env", ".git/config.md", "keys/server.pem", ".ssh/notes.md", "program.exe", "kept.md"):
        write(path)
    os.mkfifo(root / "pipe.md")
    source = await opened()
    assert await named(source, "**") == ["kept.md"]
    for query in ("env", "config", "server", "notes", "program", "pipe"):
        assert await named(source, query) == []


async def test_a_link_is_found_by_its_name_when_it_leads_to_something_served(
    write: Any, opened: Any, named: Any, root: Path, tmp_path: Path
) -> None:
    write("real.md"), write("secret.md", below=tmp_path)
    (root / "inside.md").symlink_to("real.md")
    (root / "outside.md").symlink_to(tmp_path / "secret.md")
    (root / "folder").symlink_to(tmp_path, target_is_directory=True)
    assert await named(await opened(), "*.md") == ["inside.md", "real.md"]


async def test_a_file_that_a_first_root_hides_keeps_its_own_address(write: Any, opened: Any, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write("a.md"), write("a.md", below=other), write("b.md", below=other)
    source = await opened(tmp_path / "root", other)
    page = await source.search(Ref("file"), NameQuery("*.md"), cursor=None, limit=10)
    assert [str(entry.ref) for entry in page.items] == ["file://a.md", f"file://{other}/a.md", "file://b.md"]
    assert page == await source.list(Ref("file"), cursor=None, limit=10)


async def test_a_cursor_survives_what_comes_and_goes(write: Any, opened: Any, root: Path) -> None:
    for name in "bdfhj":
        write(f"{name}.md")
    source = await opened()
    first = await source.search(Ref("file"), NameQuery("*.md"), cursor=None, limit=2)
    assert [entry.name for entry in first.items] == ["b.md", "d.md"]
    (root / "d.md").unlink(), (root / "f.md").unlink()
    write("a.md"), write("e.md"), write("z.md")
    rest = await source.search(Ref("file"), NameQuery("*.md"), cursor=first.cursor, limit=9)
    assert [entry.name for entry in rest.items] == ["e.md", "h.md", "j.md", "z.md"] and rest.cursor is None


async def test_the_last_page_has_no_cursor(write: Any, opened: Any) -> None:
    write("a.md"), write("b.md")
    page = await (await opened()).search(Ref("file"), NameQuery("*.md"), cursor=None, limit=2)
    assert len(page.items) == 2 and page.cursor is None


@pytest.mark.parametrize("cursor", ["nonsense", "WzAsICJ4Il0=", "", "W10="])
async def test_a_cursor_of_something_else_is_refused(write: Any, opened: Any, cursor: str) -> None:
    write("docs/a.md")
    with pytest.raises(InvalidParams):
        await (await opened()).search(Ref.parse("file://docs"), NameQuery("a"), cursor=cursor, limit=2)


@pytest.mark.parametrize("text", ["", "a\nb", "a\0b", "x" * 2000, "\ud800"])
def test_odd_text_is_refused(text: str) -> None:
    for make in (NameQuery, lambda text: ContentQuery(text=text), lambda text: ContentQuery(text="x", include=(text,))):
        with pytest.raises(InvalidParams):
            make(text)


@pytest.mark.parametrize("text", ["a//*", "../*", "./*.md", "a/../*"])
async def test_a_pattern_that_could_match_nothing_is_refused(opened: Any, named: Any, text: str) -> None:
    with pytest.raises(InvalidParams):
        await named(await opened(), text)


@given(st.lists(PATHS, max_size=12), st.lists(PARTS, min_size=2, max_size=4).map("/".join))
def test_patterns_match_as_in_the_one_pattern_language(paths: list[tuple[str, ...]], text: str) -> None:
    glob, pattern = Glob(f"file://{text}"), path_pattern((text,))
    for names in paths:
        assert (pattern.search(key_of(names)) is not None) == glob.matches(Ref("file", names))


@given(
    st.sets(PATHS), st.lists(st.tuples(PATHS, st.booleans())), PATHS, PATHS, st.sampled_from(["a", "*.md", "회", "b"])
)
def test_a_catalog_is_what_came_and_has_not_gone(
    first: set[tuple[str, ...]],
    changes: list[tuple[tuple[str, ...], bool]],
    scope: tuple[str, ...],
    begin: tuple[str, ...],
    text: str,
) -> None:
    catalog, expected = Catalog(Paths(map(key_of, first))), set(first)
    for names, is_there in changes:
        (expected.add if is_there else expected.discard)(names)
        key = [key_of(names)]
        catalog = catalog.updated(key if is_there else (), () if is_there else key)
    assert len(catalog) == len(expected)
    for where in ((), scope):
        found = [names_of(key) for key in catalog.keys(key_of(where), key_of(begin))]
        assert found == sorted(n for n in expected if n[: len(where)] == where and n >= begin)
    found = [names_of(key) for key in catalog.keys(b"", b"", name_pattern(text))]
    literal = text.removeprefix("*")
    assert found == sorted(
        n for n in expected if (n[-1].endswith(literal) if "*" in text else literal in "/".join(n).lower())
    )
