"""What a plain Markdown file calls itself (O17, B6)."""

from __future__ import annotations

import pytest

from octavo.text.titles import first_heading, title_of

pytestmark = pytest.mark.seed("B6")


@pytest.mark.parametrize(
    ("text", "names", "title"),
    [
        ("---\ntitle: 컨피그맵\n---\n# Other\n", "a.md", "컨피그맵"),
        ('---\ntitle: "State: 기억"\n---\n', "a.md", "State: 기억"),
        ("---\ntitle: 2026\n---\n", "a.md", "2026"),
        ("---\ntags: [x]\n---\n\nText first.\n\n# The heading\n", "a.md", "The heading"),
        ("# **Bold** and `code` {#anchor}\n", "a.md", "Bold and code"),
        ("# See [the guide](guide.md) ##\n", "a.md", "See the guide"),
        ("# The key max_file_size of C#\n", "a.md", "The key max_file_size of C#"),
        ("# _Two_ times 2 * 3\n", "a.md", "Two times 2 * 3"),
        ("Title\n=====\n", "a.md", "Title"),
        ("<!-- a remark -->\n\n## Only of the second level\n", "a.md", "Only of the second level"),
        ("Some text.\n\n## A part\n", "a.md", None),
        ("```sh\n# no heading\n```\n", "a.md", None),
        ("no heading at all\n", "team/README.md", "team"),
        ("", "team/_index.md", "team"),
        ("", "index.md", None),
        ("---\ntitle: [a, b]\n---\n# Heading\n", "a.md", "Heading"),
        ("---\ntitle: broken\n# no end\n", "a.md", "no end"),
        ("", "a.md", None),
    ],
)
def test_a_title_is_taken_from(text: str, names: str, title: str | None) -> None:
    assert title_of(text, names.split("/")) == title


@pytest.mark.parametrize("title", ["The key max_file_size of C#", "2 * 3", "**Bold** `code`", "See [it](it.md) ##"])
def test_a_heading_reads_the_same_wherever_titles_are_told(title: str) -> None:
    assert first_heading(f"# {title}\n", ".md") == title_of(f"# {title}\n", ["a.md"])


def test_a_title_is_bounded_and_quickly_found_in_hostile_text() -> None:
    assert len(title_of("# " + "x" * 100_000, ["a.md"]) or "") == 200
    for hostile in ("[" * 100_000, "<!--" * 50_000, "`" * 100_000, "# " + "*" * 100_000, "<" * 100_000):
        title_of(hostile, ["a.md"])
