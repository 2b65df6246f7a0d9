"""What a Markdown text calls itself: the title of its front matter, its first heading, or the name of its folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from octavo.text.frontmatter import of_markdown

ENDINGS: Final = (".md", ".mdx", ".markdown")
HEAD: Final = 8192  # characters of a text in which its title is looked for
MAX_TITLE: Final = 200
_FOLDERS: Final = frozenset(("index", "_index", "readme"))  # pages that speak for their folder
_SKIPPED: Final = re.compile(
    r"\s+|<!--.*?-->|\{\{.*?\}\}|\[?!\[[^\n]*|<[^>\n]*>[^\n]*|(?:import|export) [^\n]*", re.DOTALL
)
_HEADING: Final = re.compile(r"^ {0,3}# +(\S[^\n]*)|^(\S[^\n]*)\n=+[ \t]*$", re.MULTILINE)
_FIRST: Final = re.compile(r" {0,3}#{1,6} +(\S[^\n]*)")
_FENCED: Final = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"!?\[([^\]\n]*)\](?:\([^)\n]*\)|\[[^\]\n]*\])")
_MARKS: Final = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}|<[^>\n]+>|\\(?=[\W_])")
_ANCHOR: Final = re.compile(r"\s*(?:\{[#:/*][^}\n]*\}|<a [^>\n]*></a>|#+)\s*$")


def is_markdown(name: str) -> bool:
    return name.lower().endswith(ENDINGS)


def title_of(text: str, segments: Sequence[str]) -> str | None:
    """Of a text that is served under these names; None where nothing but its file name names it."""
    head = text[:HEAD]
    front = of_markdown(head, whole=len(text) <= HEAD)
    given = front.data.get("title")
    if isinstance(given, str | int | float) and not isinstance(given, bool) and (named := _plain(str(given))):
        return named
    return _heading(head[front.body :]) or _folder(segments)


def _heading(body: str) -> str | None:
    """The first of the first level; else the one that the text begins with."""
    body = _FENCED.sub("", body)
    found = _HEADING.search(body)
    if found is None:
        begin = 0
        while (skipped := _SKIPPED.match(body, begin)) and skipped.end() > begin:
            begin = skipped.end()
        found = _FIRST.match(body, begin)
    if found is None:
        return None
    return _plain(found[1] or found[2]) or None


def _folder(segments: Sequence[str]) -> str | None:
    if len(segments) < 2 or segments[-1].partition(".")[0].lower() not in _FOLDERS:
        return None
    return segments[-2]


def _plain(title: str) -> str:
    """As people read it: without marks, links and the anchor behind it."""
    title = _LINK.sub(r"\1", _ANCHOR.sub("", title.strip()))
    return " ".join(_MARKS.sub("", title).split())[:MAX_TITLE]
