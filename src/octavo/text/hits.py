"""The lines of a text that match. Pure: callers give it the text that may be shown."""

from __future__ import annotations

from typing import Final, NamedTuple

from octavo.core.query import ContentQuery
from octavo.text.patterns import line_pattern

MAX_LINE_CHARACTERS: Final = 400
_BEFORE_MATCH: Final = 100  # characters of a long line that are shown before the match


class Hit(NamedTuple):
    """One line that matches, at its first match. Line and column count from 1, the column in characters.
    Long lines are cut to the part around the match, which `…` shows."""

    line: int
    column: int
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def matches(text: str, query: ContentQuery, context: int = 0, *, limit: int = 1000) -> list[Hit]:
    """At most `limit` hits, each with up to `context` lines before and after it."""
    pattern = line_pattern(query)
    if not text:
        return []
    text = text.replace("\r\n", "\n").removesuffix("\n")
    lines, data = text.split("\n"), text.encode(errors="replace")
    hits: list[Hit] = []
    at = number = 0
    while at <= len(data) and len(hits) < limit and (match := pattern.search(data, at)):
        start = match.start(1)
        begin = data.rfind(b"\n", 0, start) + 1
        number += data.count(b"\n", at, begin)
        column = len(data[begin:start].decode())
        before = tuple(_cut(line, 0) for line in lines[max(0, number - context) : number])
        after = tuple(_cut(line, 0) for line in lines[number + 1 : number + 1 + context])
        hits.append(Hit(number + 1, column + 1, _cut(lines[number], column), before, after))
        end = data.find(b"\n", start)
        if end < 0:
            break
        at, number = end + 1, number + 1
    return hits


def _cut(line: str, column: int) -> str:
    if len(line) <= MAX_LINE_CHARACTERS:
        return line
    begin = max(0, min(column - _BEFORE_MATCH, len(line) - MAX_LINE_CHARACTERS))
    end = begin + MAX_LINE_CHARACTERS
    return ("…" if begin else "") + line[begin:end] + ("…" if end < len(line) else "")
