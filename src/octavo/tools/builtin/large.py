"""Reads parts of files that are too large to be read whole, by ranges of bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, NamedTuple

from octavo.core.errors import InvalidParams, TooLarge
from octavo.core.sizes import MIB
from octavo.text.lines import line_range, numbered, split, tail
from octavo.tools.builtin.addresses import read_with
from octavo.tools.builtin.answer_budget import Budget
from octavo.tools.builtin.parts import Piece, pair, the_one_part
from octavo.tools.context import ToolContext

_SEARCHED: Final = 64 * MIB  # bytes that are walked through to find a line


class Binary(Exception):
    """There is no text in it."""


class Large(NamedTuple):
    ctx: ToolContext
    uri: str
    size: int
    at_once: int  # bytes of one read
    refusal: TooLarge

    @classmethod
    def of(cls, ctx: ToolContext, uri: str, refusal: TooLarge) -> Large:
        """Raises the refusal again where it does not say enough to ask for parts."""
        size, limit = refusal.data.get("size"), refusal.data.get("limit")
        if not isinstance(size, int) or not isinstance(limit, int):
            raise refusal
        # Less than may be read: text may grow on its way, marks are longer than what they hide.
        return cls(ctx, uri, size, max(limit - limit // 4, 1), refusal)

    async def text(self, start: int, stop: int) -> str:
        """The characters that begin between two places in bytes."""
        try:
            content = await read_with(self.ctx, self.uri, f"range={start}-{stop - 1}")
        except InvalidParams:  # this source gives no ranges
            raise self.refusal from None
        if isinstance(content.body, bytes):
            raise Binary
        return content.body

    async def lines(self) -> AsyncIterator[list[str]]:
        """Whole lines from the beginning, some at a time, as far as they are searched."""
        rest = ""
        for start in range(0, min(self.size, _SEARCHED), self.at_once):
            lines = split(rest + await self.text(start, min(start + self.at_once, self.size)))
            rest = lines.pop() if lines else ""
            yield lines
        if rest and self.size <= _SEARCHED:
            yield [rest]

    async def each_line(self) -> AsyncIterator[str]:
        async for lines in self.lines():
            for line in lines:
                yield line


async def large_piece(ctx: ToolContext, uri: str, asked: Mapping[str, Any], refusal: TooLarge, budget: Budget) -> Piece:
    """Raises the refusal again where no part can be given, Binary where there is no text."""
    large = Large.of(ctx, uri, refusal)
    size, room = large.size, min(budget.any_text, large.at_once)
    match the_one_part(asked):
        case None:
            return await _bytes(large, 0, size, room)
        case "bytes":
            return await _bytes(large, *pair(asked, "bytes"), room)
        case "head":
            return await _lines(large, 1, asked["head"], room, asked)
        case "lines":
            return await _lines(large, *pair(asked, "lines"), room, asked)
        case "tail":
            return await _tail(large, asked["tail"], room)
        case _:
            raise TooLarge(
                f"The file has {size:,} bytes, too many to find a section: read head, tail, lines or bytes of it",
                **refusal.data,
            )


async def _bytes(large: Large, start: int, stop: int, room: int) -> Piece:
    if not 0 <= start <= stop:
        raise InvalidParams("A byte range is 0 <= start <= stop", bytes=large.size)
    if start > large.size:
        raise InvalidParams(f"Byte {start} is beyond the end: the file has {large.size} bytes", bytes=large.size)
    stop = min(stop, large.size)
    end = min(stop, start + room)
    text = await large.text(start, end) if start < end else ""
    return Piece(text, f"bytes: [{end}, {min(end + room, large.size)}] (of {large.size})" if end < stop else "")


async def _tail(large: Large, count: int, room: int) -> Piece:
    start = large.size - room
    text = await large.text(start, large.size)
    earlier = f"bytes: [{max(start - room, 0)}, {start}] for what stands before"
    whole = split(text)[1:]  # the first line may have begun earlier
    if not whole:
        return Piece(text, earlier)
    last = tail("".join(whole), count)
    return Piece(last.text, earlier if count > last.total else "")


async def _lines(large: Large, first: int, last: int, room: int, asked: Mapping[str, Any]) -> Piece:
    if first < 1 or last < first:
        raise InvalidParams("Lines of a file this large count from its beginning: lines: [first, last] from 1")
    taken: list[str] = []
    size = number = 0
    async for line in large.each_line():
        number += 1
        if number < first:
            continue
        size += len(line.encode("utf-8", "surrogatepass"))
        if number > last or size > room:
            break
        taken.append(line)
    else:
        number += 1
    if not taken:
        searched = "" if large.size <= _SEARCHED else f" in the first {_SEARCHED:,} bytes"
        raise InvalidParams(f"Line {first} is not there{searched}, or longer than an answer: read by bytes")
    goes_on = f"lines: [{number}, {last}]" if size > room and number <= last else ""
    part = line_range("".join(taken), 1)._replace(first=first, last=first + len(taken) - 1)
    return Piece(numbered(part) if asked.get("line_numbers") else part.text, goes_on)
