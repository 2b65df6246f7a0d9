"""Reads a text for tools that know no parts: all of it, or its beginning, clearly marked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from octavo.core.errors import Forbidden, InvalidParams, NotFound, TooLarge
from octavo.core.tools import Block, Link
from octavo.core.values import Entry
from octavo.tools.builtin.addresses import with_parameter
from octavo.tools.builtin.answer_budget import Budget
from octavo.tools.builtin.kinds import instead
from octavo.tools.builtin.large import Binary, large_piece
from octavo.tools.builtin.parts import Piece, piece
from octavo.tools.context import ToolContext


async def whole_text(ctx: ToolContext, uri: str, asked: Mapping[str, Any], budget: Budget) -> tuple[Piece, Entry]:
    """`asked` may have a head or a tail. Raises InvalidParams for what is no text."""
    try:
        content = await ctx.read(uri)
    except (NotFound, Forbidden) as absent:
        raise await instead(ctx, uri, absent) from None
    except TooLarge as refusal:
        entry = await ctx.stat(uri)
        try:
            return await large_piece(ctx, uri, asked, refusal, budget), entry
        except Binary:
            raise _no_text(entry, uri) from None
    if isinstance(content.body, bytes):
        raise _no_text(content.entry, uri)
    return piece(content.body, content.entry.mime_type, asked, budget), content.entry


def marked(found: Piece, entry: Entry, uri: str, how: str) -> tuple[str, tuple[Block, ...]]:
    """The text, and where it is not the whole how to read on, and a link."""
    if not found.goes_on:
        return found.text, ()
    return found.marked(how), (Link(entry, uri),)


def in_ranges(uri: str) -> str:
    """How to read on where no tool may be there that gives parts."""
    return f"the resource {with_parameter(uri, 'range=FROM-TO')} gives any bytes of it"


def _no_text(entry: Entry, uri: str) -> InvalidParams:
    how = "read it as a resource"
    if entry.mime_type.startswith("application/"):
        how += f"; {with_parameter(uri, 'as=text')} is the text of documents"
    return InvalidParams(f"{entry.name} is no text, but {entry.mime_type}: {how}", uri=uri)
