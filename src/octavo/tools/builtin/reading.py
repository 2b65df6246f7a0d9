"""The tool `read`: one resource or many, whole or in part, as text or as media, inside of the budget."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from octavo.core.errors import InvalidParams, OctavoError, TooLarge
from octavo.core.model import Content, Entry
from octavo.core.surface import Audio, Block, Image, Link, Text, ToolResult
from octavo.text.budget import tokens
from octavo.tools.builtin import defining as d
from octavo.tools.builtin.addresses import address, with_parameter
from octavo.tools.builtin.large import Binary, large_piece
from octavo.tools.builtin.parts import Piece, outlined, piece
from octavo.tools.builtin.room import Budget
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

TOKENS: Final = "dev.octavo/tokens"
ETAG: Final = "dev.octavo/etag"

_MANY: Final = 50  # targets of one call


class _Read(NamedTuple):
    """One target: what the model wrote, and what is asked for it."""

    ctx: ToolContext
    uri: str
    asked: Mapping[str, Any]

    async def blocks(self, budget: Budget) -> tuple[Block, ...]:
        try:
            content = await self.content()
        except TooLarge as refusal:
            return await self._of_large(refusal, budget)
        body = content.body
        if isinstance(body, bytes):
            return _media(content, body, self.uri)
        if self.asked.get("outline"):
            return self._texts(outlined(body, content.entry.mime_type, budget), content.entry, content.etag)
        return self._texts(piece(body, content.entry.mime_type, self.asked, budget), content.entry, content.etag)

    async def content(self) -> Content:
        form = self.asked.get("as")
        return await self.ctx.read(self.uri if form is None else with_parameter(self.uri, f"as={form}"))

    async def _of_large(self, refusal: TooLarge, budget: Budget) -> tuple[Block, ...]:
        if "as" in self.asked or self.asked.get("outline"):
            raise refusal
        entry = await self.ctx.stat(self.uri)
        try:
            return self._texts(await large_piece(self.ctx, self.uri, self.asked, refusal, budget), entry, "")
        except Binary:
            return _only_a_link(entry, self.uri)

    def _texts(self, found: Piece, entry: Entry, etag: str) -> tuple[Block, ...]:
        meta: dict[str, Any] = {TOKENS: tokens(found.text)}
        if etag:
            meta[ETAG] = etag
        text = Text(found.marked(), meta)
        return (text, Link(entry, self.uri)) if found.goes_on else (text,)


async def _read(budget: Budget, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    targets: list[str] = [*asked.get("targets", ()), *([asked["target"]] if "target" in asked else ())]
    if not targets:
        raise InvalidParams("Say what to read: a target, or several targets")
    if asked.get("shape") == "resource":
        if len(targets) > 1:
            raise InvalidParams("shape: resource gives one resource: read several one by one")
        return await _resource(_Read(ctx, address(targets[0]), asked), budget)
    if len(targets) == 1:
        return ToolResult(content=await _Read(ctx, address(targets[0]), asked).blocks(budget))
    return await _several(ctx, targets, asked, budget)


async def _several(ctx: ToolContext, targets: list[str], asked: Mapping[str, Any], budget: Budget) -> ToolResult:
    """Each has an equal share, and failures of its own."""
    blocks: list[Block] = []
    failed = 0
    for target in targets:
        try:
            found = await _Read(ctx, address(target), asked).blocks(budget.share(len(targets)))
        except OctavoError as error:
            failed += 1
            found = (Text(f"{type(error).__name__}: {error}"),)
        first = found[0]
        if isinstance(first, Text):
            blocks += (Text(f"==> {target} <==\n{first.text}", first.meta), *found[1:])
        else:
            blocks += (Text(f"==> {target} <=="), *found)
    return ToolResult(content=tuple(blocks), is_error=failed == len(targets))


async def _resource(one: _Read, budget: Budget) -> ToolResult:
    content = await one.content()
    entry, body = content.entry, content.body
    contents: dict[str, Any] = {"uri": one.uri, "mimeType": entry.mime_type}
    if isinstance(body, str):
        found = piece(body, entry.mime_type, one.asked, budget)
        if found.goes_on:
            raise TooLarge(
                f"The text has {content.size:,} bytes, more than an answer holds: read a part of it, or the resource",
                uri=one.uri, size=content.size, limit=budget.max_bytes,
            )  # fmt: skip
        contents["text"] = found.text
    else:
        contents["blob"] = base64.b64encode(body).decode("ascii")
    shape = {
        "uri": one.uri,
        "name": entry.name,
        "mimeType": entry.mime_type,
        "metadata": dict(entry.metadata),
        "contents": [contents],
    }
    return d.result(f"{entry.name} ({entry.mime_type}, {d.sized(content.size)}) is in the structured content", shape)


def _media(content: Content, body: bytes, uri: str) -> tuple[Block, ...]:
    mime = content.entry.mime_type
    if mime.startswith("image/"):
        return (Image(body, mime),)
    if mime.startswith("audio/"):
        return (Audio(body, mime),)
    return _only_a_link(content.entry, uri)


def _only_a_link(entry: Entry, uri: str) -> tuple[Block, ...]:
    sentence = f"{entry.name} is no text: {entry.mime_type}, {d.sized(entry.size)}."
    if entry.mime_type.startswith("application/"):
        sentence += ' as: "text" gives the text of documents (PDF, Office, HWPX, notebooks).'
    return (Text(sentence), Link(entry, uri))


def read_tool(budget: Budget) -> Tool:
    two = {"type": "array", "items": d.WHOLE, "minItems": 2, "maxItems": 2}
    return d.tool(
        "read",
        "Read files",
        "Text, images and audio of one target or several targets (URIs or paths), whole or in part. "
        "Long text is cut, with a last line that says how to go on.",
        partial(_read, budget),
        d.READS,
        {
            "target": d.TEXT,
            "targets": {**d.TEXTS, "maxItems": _MANY},
            "lines": d.said(two, "[first, last] from 1; -1: the last"),
            "head": d.said(d.at_least(1), "lines"),
            "tail": d.said(d.at_least(1), "lines"),
            "bytes": d.said(two, "[from, to)"),
            "section": d.said(d.TEXT, "heading, Class.method or key"),
            "outline": d.said(d.FLAG, "only headings, symbols"),
            "line_numbers": d.FLAG,
            "as": d.said(d.one_of("text"), "for PDF, Office, HWPX"),
            "shape": d.one_of("blocks", "resource"),
        },
        lane_safe=True,
    )
