"""Headings of Markdown, with `#` or underlined. Front matter, fenced code and comments are passed over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from octavo.text.outline.symbol import Opened, Symbol, nested

# Each of these is linear: no two repetitions in a row can take the same character.
_ATX: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_NO_PARAGRAPH: Final = re.compile(r" {4}|\t| {0,3}(?:>|[-+*](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$)|\||<)")


def headings(lines: Sequence[str]) -> Sequence[Symbol]:
    return nested(_opened(lines), len(lines))


def _opened(lines: Sequence[str]) -> Iterator[Opened]:
    paragraph: int | None = None  # where the paragraph began that an underline would make a heading
    fence = ""
    comment = False
    for n in range(_after_front_matter(lines), len(lines)):
        line = lines[n].rstrip("\r\n")
        if fence:
            fence = "" if _closes(line, fence) else fence
        elif comment or line.lstrip().startswith("<!--"):
            comment = "-->" not in line
            paragraph = None
        elif opening := _opens(line):
            fence, paragraph = opening, None
        elif atx := _ATX.match(line):
            yield Opened(_title(line[atx.end() :]), "heading", n + 1, len(atx[1]))
            paragraph = None
        elif paragraph is not None and (underline := _UNDERLINE.match(line)):
            title = " ".join(part.strip() for part in lines[paragraph:n])
            yield Opened(title, "heading", paragraph + 1, 1 if underline[1][0] == "=" else 2)
            paragraph = None
        elif not line.strip() or (paragraph is None and _NO_PARAGRAPH.match(line)):
            paragraph = None
        elif paragraph is None and (n == 0 or not _continues(lines[n - 1])):
            paragraph = n


def _continues(previous: str) -> bool:
    """A list item or a quotation goes on in the lines after it."""
    return bool(previous.strip()) and bool(_NO_PARAGRAPH.match(previous))


def _after_front_matter(lines: Sequence[str]) -> int:
    if lines and lines[0].rstrip() == "---":
        for n in range(1, len(lines)):
            if lines[n].rstrip() in ("---", "..."):
                return n + 1
    return 0


def _opens(line: str) -> str:
    fence = _FENCE.match(line)
    if not fence or (fence[1][0] == "`" and "`" in fence[2]):
        return ""
    return fence[1]


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and bare == fence[0] * len(bare)


def _title(rest: str) -> str:
    title = rest.strip()
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else title


def slugs(symbols: Sequence[Symbol]) -> Iterator[tuple[str, Symbol]]:
    """The anchor of each heading, as web views of Markdown make it; repeated ones get a number."""
    seen: dict[str, int] = {}
    for symbol in symbols:
        slug = re.sub(r"[^\w\- ]", "", symbol.name.casefold()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        yield (f"{slug}-{count}" if count else slug), symbol
