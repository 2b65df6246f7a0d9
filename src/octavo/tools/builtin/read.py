"""The tool `read`: one resource or many, whole or in part, as text or as media, inside of the budget."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError, TooLarge
from octavo.core.tools import Block, Link, Text, ToolResult
from octavo.core.values import Content, Entry
from octavo.text.frontmatter import of_markdown, of_yaml
from octavo.text.tokens import tokens
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import address, read_with
from octavo.tools.builtin.answer_budget import Budget, Media, Shares, shortened, weight
from octavo.tools.builtin.kinds import instead
from octavo.tools.builtin.large import Binary, large_piece
from octavo.tools.builtin.media import as_such, is_picture, only_a_link, smaller
from octavo.tools.builtin.parts import Piece, outlined, piece
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

TOKENS: Final = "dev.octavo/tokens"
ETAG: Final = "dev.octavo/etag"
LABELLED: Final = "dev.octavo/labels"
ENCODING: Final = "dev.octavo/encoding"

_MANY: Final = 50  # targets of one call
_TITLE: Final = Budget(400, 200)  # for a target as it was written, or what went wrong with it


class _Read(NamedTuple):
    """One target: what the model wrote, and what is asked for it."""

    ctx: ToolContext
    uri: str
    asked: Mapping[str, Any]

    async def blocks(self, budget: Budget, media: Media) -> tuple[Block, ...]:
        budget = budget.beside(self.uri)
        if self.asked.get("as") == "image":
            return await smaller(self.ctx, self.uri, await self.ctx.stat(self.uri), media)
        try:
            content = await self.content()
        except TooLarge as refusal:
            return await self._of_large(refusal, budget, media)
        entry, body = content.entry, content.body
        if isinstance(body, bytes):
            return await self._of_bytes(entry, body, media)
        if self.asked.get("outline"):
            return self._texts(outlined(body, entry.mime_type, budget), content)
        return self._texts(piece(body, entry.mime_type, self.asked, budget), content)

    async def content(self) -> Content:
        names = [name for name in ("as", "encoding") if name in self.asked]
        written = "&".join(f"{name}={quote(self.asked[name], safe='')}" for name in names)
        try:
            return await (read_with(self.ctx, self.uri, written) if written else self.ctx.read(self.uri))
        except (NotFound, Forbidden) as absent:
            raise await instead(self.ctx, self.uri, absent) from None

    async def _of_bytes(self, entry: Entry, body: bytes, media: Media) -> tuple[Block, ...]:
        shown = as_such(entry, body, media)
        if shown is None and is_picture(entry):
            return await smaller(self.ctx, self.uri, entry, media)
        return shown or only_a_link(entry, self.uri)

    async def _of_large(self, refusal: TooLarge, budget: Budget, media: Media) -> tuple[Block, ...]:
        if "as" in self.asked or "encoding" in self.asked or self.asked.get("outline"):
            raise refusal
        entry = await self.ctx.stat(self.uri)
        try:
            found = await large_piece(self.ctx, self.uri, self.asked, refusal, budget)
            return self._texts(found, Content(entry=entry, body=""))
        except Binary:
            return (
                await smaller(self.ctx, self.uri, entry, media) if is_picture(entry) else only_a_link(entry, self.uri)
            )

    def _texts(self, found: Piece, content: Content) -> tuple[Block, ...]:
        known = {TOKENS: tokens(found.text), ETAG: content.etag, ENCODING: content.encoding}
        told = {key: value for key, value in known.items() if value != ""}
        if labels := d.labels(content.entry):
            told[LABELLED] = labels
        blocks: list[Block] = [Text(found.marked(), told)]
        if content.encoding:
            blocks.append(Text(f"[the file is in {content.encoding}]"))
        return (*blocks, Link(content.entry, self.uri)) if found.goes_on else tuple(blocks)


async def _read(budget: Budget, media: Media, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    targets: list[str] = [*asked.get("targets", ()), *([asked["target"]] if "target" in asked else ())]
    if not targets:
        raise InvalidParams("Say what to read: a target, or several targets")
    if asked.get("shape") == "resource":
        if len(targets) > 1:
            raise InvalidParams("shape: resource gives one resource: read several one by one")
        return await _resource(_Read(ctx, address(targets[0]), asked), budget)
    if len(targets) == 1:
        return ToolResult(content=await _Read(ctx, address(targets[0]), asked).blocks(budget, media))
    return await _several(ctx, targets, asked, budget, Media(media.max_bytes // len(targets)))


async def _several(
    ctx: ToolContext, targets: list[str], asked: Mapping[str, Any], budget: Budget, media: Media
) -> ToolResult:
    """Each has its share, and failures of its own."""
    blocks: list[Block] = []
    shares, failed = Shares(budget, len(targets)), 0
    for target in targets:
        share = shares.next()
        head = f"==> {shortened(target, _TITLE)} <=="
        try:
            found = await _Read(ctx, address(target), asked).blocks(share.beside(head), media)
        except OctavoError as error:
            failed += 1
            found = (Text(shortened(f"{type(error).__name__}: {error}", _TITLE)),)
        first = found[0]
        if isinstance(first, Text):
            found = (Text(f"{head}\n{first.text}", first.meta), *found[1:])
        else:
            found = (Text(head), *found)
        found = tuple(block for block in found if not isinstance(block, Link) or weight(block) <= share.max_bytes)
        shares.spend(found)
        blocks += found
    return ToolResult(content=tuple(blocks), is_error=failed == len(targets))


async def _resource(one: _Read, budget: Budget) -> ToolResult:
    content = await one.content()
    entry, body = content.entry, content.body
    # Where an id was asked for, the answer is that of the name.
    uri = str(entry.ref) if "id" in entry.metadata and not entry.ref.absolute else one.uri
    contents: dict[str, Any] = {"uri": uri, "mimeType": entry.mime_type}
    if isinstance(body, str):
        found = piece(body, entry.mime_type, one.asked, budget.beside(one.uri, one.uri))
        if found.goes_on:
            raise TooLarge(
                f"The text has {content.size:,} bytes, more than an answer holds: read a part of it, or the resource",
                uri=one.uri, size=content.size, limit=budget.max_bytes,
            )  # fmt: skip
        contents["text"] = found.text
    elif 4 * len(body) // 3 > budget.max_bytes:
        raise TooLarge(
            f"{entry.name} has {content.size:,} bytes, more than an answer holds: read the resource",
            uri=one.uri, size=content.size, limit=budget.max_bytes,
        )  # fmt: skip
    else:
        contents["blob"] = base64.b64encode(body).decode("ascii")
    shape = {
        "uri": uri,
        "name": entry.name,
        "mimeType": entry.mime_type,
        "metadata": {**entry.metadata, **_parsed(content, budget)},
        "contents": [contents],
    }
    what = f"{entry.name} ({entry.mime_type}, {d.sized(content.size)})"
    return d.result(f"{what} is in the structured content; without shape it is here", shape)


def _parsed(content: Content, budget: Budget) -> dict[str, Any]:
    """Of a definition, which has an id and a name of its own: what its text says, as far as there is room for both."""
    body, known = content.body, content.entry.metadata
    if not isinstance(body, str) or not {"id", "name"} <= known.keys() or 2 * content.size > budget.max_bytes:
        return {}
    texts = frozenset(key for key, value in known.items() if isinstance(value, str))
    of = of_yaml if content.entry.mime_type == "application/yaml" else of_markdown
    return {"parsed": dict(of(body, texts=texts).data)}


def read_tool(budget: Budget, media: Media) -> Tool:
    two = {"type": "array", "items": d.WHOLE, "minItems": 2, "maxItems": 2}
    return d.tool(
        "read",
        "Read files",
        "Text, images and audio of one target or several (URIs or paths), whole or in part. "
        "Long text is cut; its last line says how to go on.",
        partial(_read, budget, media),
        d.READS,
        {
            "target": d.FILLED,
            "targets": {**d.TEXTS, "minItems": 1, "maxItems": _MANY},
            "lines": d.said(two, "[first, last] from 1; -1: the last"),
            "head": d.said(d.at_least(1), "lines"),
            "tail": d.said(d.at_least(1), "lines"),
            "bytes": d.said(two, "[from, to)"),
            "section": d.said(d.FILLED, "heading, Class.method or key"),
            "outline": d.said(d.FLAG, "only headings, symbols"),
            "line_numbers": d.FLAG,
            "as": d.said(d.one_of("text", "image"), "text of PDF, Office, HWPX; a smaller image"),
            "encoding": d.said(d.FILLED, "default: detected"),
            "shape": d.one_of("blocks", "resource"),
        },
        lane_safe=True,
    )
