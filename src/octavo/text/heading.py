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
_ANCHOR: Final = re.compile(r"[ \t]*\{(?:#|/\*)[^{}]*\}[ \t]*$")  # {#name} and {/*name*/} behind a heading
_LINK: Final = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])?")
_MARKS: Final = re.compile(r"[*`]|(?<!\w)_|_(?!\w)|<[^<>]{0,200}>")


def first_heading(text: str, ending: str) -> str:
    """Of the text behind the front matter; empty if there is none. `ending` is that of the file."""
    lines = split(text[: MAX_LINES * 400])[:MAX_LINES]
    if ending == ".adoc":
        return next((_plain(found["title"]) for line in lines if (found := _ADOC.match(line))), "")
    if ending == ".rst":
        return _underlined([line.rstrip() for line in lines])
    if ending in (".md", ".mdx", ".markdown"):
        return next((title for one in headings(lines) if (title := _plain(one.name))), "")
    return ""


def _underlined(lines: list[str]) -> str:
    for above, line in pairwise(lines):
        if above.strip() and not _RULE.match(above) and _RULE.match(line) and len(line) + 2 >= len(above.strip()):
            return _plain(above)
    return ""


def _plain(title: str) -> str:
    """Without the marks of emphasis, links and anchors."""
    bare = _MARKS.sub("", _LINK.sub(r"\1", _ANCHOR.sub("", title[: 2 * MAX_TITLE])))
    return " ".join(bare.split())[:MAX_TITLE]
