"""A text as lines that keep their own ends, and the parts of it that a caller may ask for.

A line ends with LF, CRLF or CR; whatever follows the last end is a line too, unless it is empty. Other characters
that `str.splitlines` knows (form feed, U+2028) are content: editors count that way.
"""

from __future__ import annotations

import io
from typing import NamedTuple

from octavo.core.errors import InvalidParams


class LinePart(NamedTuple):
    """Whole lines of a text: `first` to `last` of `total`, counted from 1. Empty when `last` is `first` - 1."""

    text: str
    first: int
    last: int
    total: int


class ByteRange(NamedTuple):
    """The bytes `start` to `stop` (exclusive) of the UTF-8 form, which has `total`."""

    text: str
    start: int
    stop: int
    total: int


def split(text: str) -> list[str]:
    return io.StringIO(text, newline="").readlines()


def split_at_lf(text: str) -> list[str]:
    """As diffs count lines: a CR is content."""
    return io.StringIO(text, newline="\n").readlines()


def ending(line: str) -> str:
    if line.endswith("\n"):
        return "\r\n" if line.endswith("\r\n") else "\n"
    return "\r" if line.endswith("\r") else ""


def body(line: str) -> str:
    return line[: len(line) - len(ending(line))]


def endings(text: str) -> list[str]:
    """The kinds of line end in use, the most frequent first."""
    pairs = text.count("\r\n")
    counted = {"\n": text.count("\n") - pairs, "\r\n": pairs, "\r": text.count("\r") - pairs}
    return sorted((end for end in counted if counted[end]), key=counted.__getitem__, reverse=True)


def line_range(text: str, first: int, last: int = -1) -> LinePart:
    """Lines `first` to `last`, both included, counted from 1, or from the end when negative.

    An end beyond the text is the end of the text; a beginning beyond it is an error, because then the caller has
    another text in mind.
    """
    lines = split(text)
    total = len(lines)
    if first == 0 or last == 0:
        raise InvalidParams("Lines count from 1; negative numbers count from the end (-1 is the last line)")
    begin = first if first > 0 else max(total + 1 + first, 1)
    end = min(last, total) if last > 0 else total + 1 + last
    if begin > max(total, 1):
        raise InvalidParams(f"Line {first} is beyond the end: the text has {total} lines, numbered from 1", lines=total)
    if end < begin and total:
        raise InvalidParams(
            f"Lines {first} to {last} are no range: give the first and then the last, of {total} lines", lines=total
        )
    return LinePart("".join(lines[begin - 1 : end]), begin, end, total)


def head(text: str, count: int) -> LinePart:
    return line_range(text, 1, _positive(count))


def tail(text: str, count: int) -> LinePart:
    return line_range(text, -_positive(count))


def byte_range(text: str, start: int, stop: int) -> ByteRange:
    """The bytes from `start` up to `stop` of the text in UTF-8.

    Each border that falls into a character moves to its beginning, so that neighbouring ranges meet and nothing is
    told twice; `start` and `stop` of the answer say where they are.
    """
    raw = text.encode("utf-8", "surrogatepass")
    total = len(raw)
    if not 0 <= start <= stop:
        raise InvalidParams("A byte range is 0 <= start <= stop", bytes=total)
    if start > total:
        raise InvalidParams(f"Byte {start} is beyond the end: the text has {total} bytes, give less", bytes=total)
    begin, end = _character(raw, start), _character(raw, min(stop, total))
    return ByteRange(raw[begin:end].decode("utf-8", "surrogatepass"), begin, end, total)


def numbered(part: LinePart) -> str:
    """Each line after its number and a tab."""
    width = len(str(part.last))
    return "".join(f"{number:>{width}}\t{line}" for number, line in enumerate(split(part.text), part.first))


def _positive(count: int) -> int:
    if count < 1:
        raise InvalidParams("Ask for at least one line")
    return count


def _character(raw: bytes, at: int) -> int:
    while 0 < at < len(raw) and raw[at] & 0xC0 == 0x80:
        at -= 1
    return at
