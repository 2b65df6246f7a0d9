"""Titles, links and front matter of foreign texts, however long and strange they are."""

import pytest

from octavo.text.handwritten import handwritten
from octavo.text.heading import first_heading
from octavo.text.references import MAX_REFERENCES, references, referring

pytestmark = pytest.mark.seed("O17", "O18")

MANY = 100_000


@pytest.mark.parametrize(
    "text",
    [
        "`" * MANY + "a" * MANY,
        "`a``b```c" * (MANY // 9),
        "[" * MANY, "[a" * MANY, "](" * MANY, "[a](" * MANY, "[x](<" * MANY, "link:" * MANY, "<a href=" * MANY,
        "---\na: " + " " * MANY + "[\n---\n",
        "---\n" + "a: [\n" * (MANY // 5) + "---\n",
        "---\n" + "- " * MANY + "\n",
        "+++\n" * MANY, "{" * MANY, "{\"a\":" * MANY, "# " + " " * MANY + "{", "# " + "<" * MANY,
    ],
)  # fmt: skip
def test_no_text_takes_long(text: str) -> None:
    """A pattern that looks at everything again from each place would need hours for these."""
    found = handwritten(text)
    for ending in (".md", ".rst", ".adoc"):
        first_heading(text[found.matter.body :], ending)
        assert len(references(text, ending, found.matter.data)) <= MAX_REFERENCES


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("see [a](a.md), `[b](b.md)` and [c](c.md)", ["a.md", "c.md"]),
        ("``a ` [b](b.md)`` [c](c.md)", ["c.md"]),
        ("an ` alone and [c](c.md)", ["c.md"]),
        ('[c](c%20d.md "title") [e](f_(g).md)', ["c d.md", "f_(g).md"]),
        ("[c](javascript:x.md) [d](//host/x.md) [e](a@b.md)", []),
        ("[^1]: note.md", []),
    ],
)
def test_links_are_found_and_code_is_passed_over(line: str, paths: list[str]) -> None:
    assert [found.path for found in referring(line, ".md")] == paths


@pytest.mark.parametrize(
    ("text", "ending", "title"),
    [
        ("import a from 'b'\n\n# The *title* {#anchor}\n", ".mdx", "The title"),
        ("text\n\n## A [link](x.md) and `code`\n", ".md", "A link and code"),
        ("Title\n=====\n", ".md", "Title"),
        ("=====\nTitle\n=====\n", ".rst", "Title"),
        (":author: x\n\n= Title\n", ".adoc", "Title"),
        ("no heading\n", ".md", ""),
        ("# no heading here\n", ".txt", ""),
    ],
)
def test_the_first_heading_is_the_title(text: str, ending: str, title: str) -> None:
    assert first_heading(text, ending) == title
