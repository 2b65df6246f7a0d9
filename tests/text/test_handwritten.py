"""Titles, links and front matter of foreign texts, however long and strange they are."""

import pytest

from octavo.text.handwritten import handwritten
from octavo.text.references import MAX_REFERENCES, references, referring
from octavo.text.titles import first_heading

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


@pytest.mark.parametrize("end", ["--", "----", "—"])
def test_a_slipped_end_mark_and_a_colon_without_quotes_cost_two_remarks(end: str) -> None:
    found = handwritten(f"---\ntitle: Deploying: how we do it\ntags: [ops]\n{end}\n\nThe text.\n")
    assert found.matter.data == {"title": "Deploying: how we do it", "tags": ["ops"]}
    assert [slip.line for slip in found.slips] == [2, 4]
    text = f"---\ntitle: Deploying: how we do it\ntags: [ops]\n{end}\n\nThe text.\n"
    assert text[found.matter.body :] == "\nThe text.\n"


def test_a_text_under_a_rule_stays_a_text_though_it_has_colons() -> None:
    text = "---\nNote: see the other page: it says more\n\nThe text.\n"
    found = handwritten(text)
    assert (found.matter.data, text[found.matter.body :]) == ({}, text)
    assert len(found.slips) == 1


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "title": "Deploying",\n}\n\nThe text.\n',
        "{\n  title: 'Deploying'\n}\n\nThe text.\n",
        '{\r\n\t"title": "Deploying"\r\n\r\nThe text.\r\n',
    ],
)
def test_front_matter_in_json_that_is_none_is_said(text: str) -> None:
    found = handwritten(text)
    assert (found.matter.data, text[found.matter.body :]) == ({}, text)
    assert [slip.message for slip in found.slips] == ["begins like front matter in JSON, and is no JSON"]


@pytest.mark.parametrize(
    "text", ["{{< toc >}}\n\nText.\n", "{% raw %}\na: b\n", "{.class}\n# Title\n", "{ a: 1 } is a set\n", "{\n  x\n}\n"]
)
def test_a_text_that_begins_with_a_brace_is_a_text(text: str) -> None:
    found = handwritten(text)
    assert (found.matter.data, text[found.matter.body :], found.slips) == ({}, text, ())
