"""A text for tools that know no parts: all of it where it fits, else its beginning, clearly marked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from octavo.core.errors import InvalidParams, TooLarge
from octavo.core.model import Entry
from octavo.core.surface import Block, Link
from octavo.tools.builtin.large import Binary, large_piece
from octavo.tools.builtin.parts import Piece, piece
from octavo.tools.builtin.room import Budget
from octavo.tools.context import ToolContext


async def whole_text(ctx: ToolContext, uri: str, asked: Mapping[str, Any], budget: Budget) -> tuple[Piece, Entry]:
    """`asked` may have a head or a tail. Raises InvalidParams for what is no text."""
    try:
        content = await ctx.read(uri)
    except TooLarge as refusal:
        entry = await ctx.stat(uri)
        try:
            return await large_piece(ctx, uri, asked, refusal, budget), entry
        except Binary:
            raise _no_text(entry) from None
    if isinstance(content.body, bytes):
        raise _no_text(content.entry)
    return piece(content.body, content.entry.mime_type, asked, budget), content.entry


def marked(found: Piece, entry: Entry, uri: str) -> tuple[str, tuple[Block, ...]]:
    """The text, and a link to the whole where it is not."""
    if not found.goes_on:
        return found.text, ()
    return found.marked(" of the tool read"), (Link(entry, uri),)


def _no_text(entry: Entry) -> InvalidParams:
    return InvalidParams(f"{entry.name} is no text, but {entry.mime_type}: use the tool read, or read_media_file")
