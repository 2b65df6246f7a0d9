"""Links of a document to others beside it: relative ones, and those from the root of its site.

What stands in code is quoted, and what stands in an HTML comment is seen by nobody: no links. Each pattern is linear:
no two repetitions in a row take the same character.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

MAX_REFERENCES: Final = 500  # of one document
_MAX_LENGTH: Final = 500

_FENCE: Final = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_TICKS: Final = re.compile(r"`+")
_INLINE: Final = re.compile(
    r"(?<!!)\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)?\]\([ \t]*"
    r"(?:<(?P<angled>[^<>\n]*)>|(?P<plain>[^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*)?))"
)
_DEFINED: Final = re.compile(r" {0,3}\[(?!\^)[^\[\]]+\]:[ \t]+<?(?P<plain>[^\s<>]+)")
_HREF: Final = re.compile(r"<[A-Za-z][^<>\n]*?\s(?:href|to)=(?:\"(?P<double>[^\"\n{}]+)\"|'(?P<single>[^'\n{}]+)')")
_RST: Final = re.compile(r":doc:`(?:[^`<>]*<(?P<angled>[^`<>]+)>|(?P<plain>[^`<>]+))`")
_ADOC: Final = re.compile(r"(?:xref|link):(?P<plain>[^\s\[\]]{1,500})\[")
_COMMENT: Final = re.compile(r"<!--|-->")
_ELSEWHERE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#|\?|\{|<|%7B|\$")
_PATH: Final = re.compile(r"(?:\.{0,2}/)?[^\s:?#{}<>|*]+\.(?:md|mdx|markdown|rst|adoc|yml|yaml)")

_KINDS: Final[Mapping[str, tuple[re.Pattern[str], ...]]] = {
    ".md": (_INLINE, _DEFINED, _HREF), ".mdx": (_INLINE, _DEFINED, _HREF), ".markdown": (_INLINE, _DEFINED, _HREF),
    ".rst": (_RST,), ".txt": (_RST,), ".adoc": (_ADOC,),
}  # fmt: skip


class Reference(NamedTuple):
    line: int
    path: str  # without anchor and query, and unquoted: `../team/index.md`, `/handbook/team/`


def references(text: str, ending: str, data: Mapping[str, Any]) -> tuple[str, ...]:
    """Of the text, and of the values of its front matter that are paths of files; each once, in their order."""
    found: dict[str, None] = {}
    for one in referring(text, ending):
        found.setdefault(sys.intern(one.path))
        if len(found) == MAX_REFERENCES:
            return tuple(found)
    for value in _values(data):
        if _PATH.fullmatch(value) and len(found) < MAX_REFERENCES:
            found.setdefault(sys.intern(value))
    return tuple(found)


def referring(text: str, ending: str) -> Iterator[Reference]:
    """Line by line, as they stand there."""
    patterns = _KINDS.get(ending, ())
    for number, line in _told(text, marked=_INLINE in patterns) if patterns else ():
        bare = line if ending in (".rst", ".txt") or "`" not in line else _without_code(line)
        for pattern in patterns:
            for path in _paths(pattern, bare):
                yield Reference(number, path)


def _told(text: str, *, marked: bool) -> Iterator[tuple[int, str]]:
    """The lines that may hold a reference, without code that is fenced, and of Markdown without comments."""
    fence, comment = "", False
    closed = text.count("\n", 0, text.rfind("-->") + 1) + 1 if marked and "-->" in text else 0
    for number, line in enumerate(text.split("\n"), 1):
        if not comment and ("```" in line or "~~~" in line) and (mark := _FENCE.match(line)) is not None:
            fence = _fenced(fence, mark, line)
            continue
        if not fence and number <= closed and (comment or "<!--" in line):  # one that never ends is none
            comment, line = _without_comments(line, comment)
        if not fence and ("](" in line or "]:" in line or "=" in line or ":" in line):
            yield number, line


def _fenced(fence: str, mark: re.Match[str], line: str) -> str:
    """The fence that stays open behind such a line; none where it closes it."""
    if not fence:
        return mark[1]
    return "" if mark[1].startswith(fence) and not line[mark.end() :].strip() else fence


def _paths(pattern: re.Pattern[str], line: str) -> Iterator[str]:
    for match in pattern.finditer(line) if pattern is not _DEFINED else filter(None, (pattern.match(line),)):
        path = _path(next(filter(None, match.groupdict().values()), ""))
        if path:
            yield path


def _without_comments(line: str, comment: bool) -> tuple[bool, str]:
    """Whether a comment goes on behind the line, and what of the line is none."""
    bare, kept, at = line if comment else _without_code(line), list[str](), 0
    for found in _COMMENT.finditer(bare):
        if comment == (found[0] == "-->"):
            kept += () if comment else (bare[at : found.start()],)
            comment, at = not comment, found.end()
    return comment, "".join((*kept, "" if comment else bare[at:]))


def _without_code(line: str) -> str:
    """Code begins with some backticks and ends with as many. Each is looked at once, however many there are."""
    ticks = [found.span() for found in _TICKS.finditer(line)]
    behind: dict[int, list[int]] = {}  # by their number, the later first
    for at in range(len(ticks) - 1, -1, -1):
        behind.setdefault(ticks[at][1] - ticks[at][0], []).append(at)
    kept: list[str] = []
    done = at = 0
    while at < len(ticks):
        begin, end = ticks[at]
        same = behind[end - begin]
        while same and same[-1] <= at:
            same.pop()
        if same:
            at = same[-1]
            kept += (line[done:begin], " ")
            done = ticks[at][1]
        at += 1
    return "".join((*kept, line[done:]))


def _path(href: str) -> str:
    if _ELSEWHERE.match(href) or len(href) > _MAX_LENGTH or "{{" in href:
        return ""
    path = unquote(href.partition("#")[0].partition("?")[0]).strip()
    return path if path.isprintable() and "@" not in path else ""


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _values(item)
    elif isinstance(value, list):
        for item in value:
            yield from _values(item)
