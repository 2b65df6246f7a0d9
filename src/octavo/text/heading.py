"""The first heading of a document, which is its title where nothing else is."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from octavo.text.lines import split
from octavo.text.outline.markdown import headings

MAX_LINES: Final = 200  # in which it must begin
MAX_TITLE: Final = 200

_ADOC: Final = re.compile(r"={1,6}[ \t]+(?P<title>\S.*)")
_RULE: Final = re.compile(r"([=\-`:'\"~^_*+#<>.])\1{2,}[ \t]*$")
_ROLE: Final = re.compile(r":[a-z][a-z0-9:+.-]{0,40}:`[~!]?")  # :class:`~name` in a heading of reStructuredText
_ANCHOR: Final = re.compile(r"[ \t]*\{(?:#|/\*)[^{}]*\}[ \t]*$")  # {#name} and {/*name*/} behind a heading
_LINK: Final = re.compile(r"!?\[(?P<text>[^\[\]]*)\](?P<to>\([^()]*\)|\[[^\[\]]*\])?")
_MARKS: Final = re.compile(r"[*`]|(?<!\w)_|_(?!\w)|<[^<>]{0,200}>")


def first_heading(text: str, ending: str) -> str:
    """Of the text behind the front matter; empty if there is none. `ending` is that of the file."""
    lines = split(text[: MAX_LINES * 400])[:MAX_LINES]
    if ending == ".adoc":
        return next((_plain(found["title"]) for line in lines if (found := _ADOC.match(line))), "")
    if ending in (".rst", ".txt"):
        return _underlined([line.rstrip() for line in lines], plain=ending == ".txt")
    if ending in (".md", ".mdx", ".markdown"):
        return next((title for one in headings(lines) if (title := _plain(one.name, text))), "")
    return ""


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
    """Without the marks of emphasis, links and anchors. `[Deprecated]` is a link only where the text says to what."""

    def shown(link: re.Match[str]) -> str:
        return link["text"] if link["to"] or _defines(text, link["text"]) else link[0]

    bare = _MARKS.sub("", _LINK.sub(shown, _ANCHOR.sub("", title[: 2 * MAX_TITLE])))
    return " ".join(bare.split())[:MAX_TITLE]


def _defines(text: str, label: str) -> bool:
    return f"[{label}]:" in text and re.search(rf"^ {{0,3}}\[{re.escape(label)}\]:", text, re.MULTILINE) is not None
