"""What a text calls itself, wherever that is asked: in lists of files, in the index, in catalogs.

A Markdown file goes by the title of its front matter, its first heading, or the name of its folder (`title_of`); an
entry of a catalog whose front matter has no title by the first heading of any level (`first_heading`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from octavo.text.frontmatter import of_markdown
from octavo.text.lines import split
from octavo.text.outline.markdown import headings

ENDINGS: Final = (".md", ".mdx", ".markdown")
HEAD: Final = 8192  # characters of a text in which its title is looked for
MAX_LINES: Final = 200  # in which the first heading must begin
MAX_TITLE: Final = 200
_FOLDERS: Final = frozenset(("index", "_index", "readme"))  # pages that speak for their folder
_SKIPPED: Final = re.compile(
    r"\s+|<!--.*?-->|\{\{.*?\}\}|\[?!\[[^\n]*|<[^>\n]*>[^\n]*|(?:import|export) [^\n]*", re.DOTALL
)
_HEADING: Final = re.compile(r"^ {0,3}# +(\S[^\n]*)|^(\S[^\n]*)\n=+[ \t]*$", re.MULTILINE)
_FIRST: Final = re.compile(r" {0,3}#{1,6} +(\S[^\n]*)")
_FENCED: Final = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
_ADOC: Final = re.compile(r"={1,6}[ \t]+(?P<title>\S.*)")
_RULE: Final = re.compile(r"([=\-`:'\"~^_*+#<>.])\1{2,}[ \t]*$")
_ROLE: Final = re.compile(r":[a-z][a-z0-9:+.-]{0,40}:`[~!]?")  # :class:`~name` in a heading of reStructuredText
# Behind a heading: {#name}, {/*name*/}, an empty anchor of HTML, and the marks that close it.
_ANCHOR: Final = re.compile(r"(?:[ \t]*(?:\{[#:/*][^{}\n]*\}|<a [^>\n]*></a>)|[ \t]+#+)\s*$")
_LINK: Final = re.compile(r"!?\[(?P<text>[^\[\]\n]*)\](?P<to>\([^()\n]*\)|\[[^\[\]\n]*\])?")
# Emphasis, code, tags and what is escaped; not a star between blanks, and no underscore inside of a name.
_MARKS: Final = re.compile(
    r"[*`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)|<[^<>\n]{1,200}>|\\(?=[\W_])"
)


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


def first_heading(text: str, ending: str) -> str:
    """Of the text behind the front matter; empty if there is none. `ending` is that of the file."""
    lines = split(text[: MAX_LINES * 400])[:MAX_LINES]
    if ending == ".adoc":
        return next((_plain(found["title"]) for line in lines if (found := _ADOC.match(line))), "")
    if ending in (".rst", ".txt"):
        return _underlined([line.rstrip() for line in lines], plain=ending == ".txt")
    if ending in ENDINGS:
        return next((title for one in headings(lines) if (title := _plain(one.name, text))), "")
    return ""


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


def _underlined(lines: list[str], *, plain: bool) -> str:
    """In plain text a rule may end a paragraph, or be as wide as the page: a heading stands alone, and so wide."""
    for number, (above, line) in enumerate(pairwise(lines)):
        title = above.strip()
        if not title or _RULE.match(above) or not _RULE.match(line) or len(line) + 2 < len(title):
            continue
        before = lines[number - 1] if number else ""
        alone = not before or (_RULE.match(before) and before == line)
        if not plain or (alone and len(line) <= 2 * len(title) + 2):
            return _plain(_ROLE.sub("`", above))
    return ""


def _plain(title: str, text: str = "") -> str:
    """As people read it: without the marks of emphasis, links and the anchor behind it. `[Deprecated]` is a link only
    where the text says to what."""

    def shown(link: re.Match[str]) -> str:
        return link["text"] if link["to"] or _defines(text, link["text"]) else link[0]

    bare = _LINK.sub(shown, _ANCHOR.sub("", title[: 2 * MAX_TITLE].strip()))
    return " ".join(_MARKS.sub("", bare).split())[:MAX_TITLE]


def _defines(text: str, label: str) -> bool:
    return f"[{label}]:" in text and re.search(rf"^ {{0,3}}\[{re.escape(label)}\]:", text, re.MULTILINE) is not None
