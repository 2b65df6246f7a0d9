"""Completion gives what a listing would show, for paths and for the variables of templates."""

from typing import Any

import pytest

from octavo.core.values import Template

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F6")]


async def test_paths_begin_with_what_was_typed_and_are_only_those_that_are_listed(
    root: Any, write: Any, opened: Any
) -> None:
    for path in ("docs/readme.md", "docs/ref/a.md", "docs/ref/b.md", "docs/x.exe", "dot/.env", "한글/가나.md"):
        write(path)
    source = await opened()
    complete = source.complete
    assert await complete("path", "docs/re", {}) == ["docs/readme.md", "docs/ref/a.md", "docs/ref/b.md"]
    assert await complete("path", "docs/ref/", {}) == ["docs/ref/a.md", "docs/ref/b.md"]
    assert await complete("path", "do", {}) == ["docs/readme.md", "docs/ref/a.md", "docs/ref/b.md"]
    assert await complete("path", "\u1112\u1161\u11ab", {}) == ["한글/가나.md"]  # typed in decomposed form
    for nonsense in ("../", "docs/../", "//", "a\x00b", "zzz", "docs/readme.md/"):
        assert await complete("path", nonsense, {}) == []
    assert await complete("other", "", {}) == []
    for typed in ("/", f"{root}/한", str(root)[:-1]):
        assert f"{root}/한글/가나.md" in await complete("path", typed, {})


async def test_at_most_a_hundred_values_are_given(write: Any, opened: Any) -> None:
    for number in range(150):
        write(f"f{number:03}.md")
    source = await opened()
    assert await source.complete("path", "f", {}) == [f"f{number:03}.md" for number in range(100)]


@pytest.mark.seed("A3")
async def test_the_variables_of_a_template_are_found_in_the_names_that_match_it(
    root: Any, write: Any, opened: Any
) -> None:
    for path in ("logs/2025-01-01.log", "logs/2025-01-02.log", "logs/2026-01-01.log", "logs/other.md", "logs/x/y.log"):
        write(path)
    for path in ("t/red/1/a.md", "t/red/2/b.md", "t/blue/1/c.md"):
        write(path)
    source = await opened(
        templates=[
            Template(uri_template=f"file://{root}/logs/{{date}}.log", name="log"),
            Template(uri_template="file://t/{team}/{id}/{name}.md", name="note"),
            Template(uri_template="file://t/{+rest}", name="rest"),
        ]
    )
    assert await source.complete("date", "2025", {}) == ["2025-01-01", "2025-01-02"]
    assert await source.complete("date", "", {}) == ["2025-01-01", "2025-01-02", "2026-01-01", "other"][:3]
    assert await source.complete("team", "", {}) == ["blue", "red"]
    assert await source.complete("id", "", {"team": "red"}) == ["1", "2"]
    assert await source.complete("id", "", {"team": ".."}) == []
    assert await source.complete("name", "", {"team": "blue", "id": "1"}) == ["c"]
    assert await source.complete("rest", "red/2", {}) == ["red/2/b.md"]
    assert [template.uri_template for template in source.templates()][-1] == "file://{+path}"
