"""The tool `info`: what is known of a file or a folder without giving its content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from octavo.core.errors import Forbidden, NotFound, OctavoError
from octavo.core.ref import Ref
from octavo.core.sizes import KIB
from octavo.core.tools import ToolResult
from octavo.text.lines import endings, split
from octavo.text.outline import outline
from octavo.text.tokens import tokens
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import address, below, repeated
from octavo.tools.builtin.answer_budget import Budget, Room
from octavo.tools.builtin.kinds import folders
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

SMALL: Final = 256 * KIB  # bytes that are read to count what is in them

_ENDS: Final = {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}


async def _info(budget: Budget, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    uri = address(asked["target"])
    try:
        entry = await ctx.stat(uri)
    except (NotFound, Forbidden) as absent:  # a folder is no resource, and its name has no extension to be served
        return await _folder(ctx, uri, absent)
    known = {**d.facts(entry), "mimeType": entry.mime_type, "version": entry.version}
    if entry.ref.absolute or Ref.parse(uri).absolute:  # one of several spellings, and not the one that was asked for
        known["uri"] = repeated(uri)
    if entry.description is not None:
        known["description"] = entry.description
    if entry.metadata:
        metadata = dict(entry.metadata)
        fits = Room(budget.told_twice).take(json.dumps(metadata, ensure_ascii=False, default=str))
        known["metadata"] = metadata if fits else "more than an answer holds: read the resource"
    if entry.size is not None and entry.size <= SMALL:
        known |= await _inside(ctx, uri)
    return d.result("\n".join(f"{key}: {value}" for key, value in known.items()), known)


async def _inside(ctx: ToolContext, uri: str) -> dict[str, Any]:
    """What only the content tells; nothing for whoever may not read it."""
    try:
        content = await ctx.read(uri)
    except OctavoError:
        return {}
    known: dict[str, Any] = {"etag": content.etag} if content.etag else {}
    if isinstance(content.body, str):
        text = content.body
        if content.encoding:
            known["encoding"] = content.encoding
        known |= {"lines": len(split(text)), "tokens": tokens(text)}
        known["symbols"] = len(outline(text, content.entry.mime_type))
        if ends := endings(text):
            known["lineEnds"] = " and ".join(_ENDS[end] for end in ends)
    return known


async def _folder(ctx: ToolContext, uri: str, absent: OctavoError) -> ToolResult:
    page = await ctx.list(uri)
    if not page.items and not await ctx.folders(uri):
        raise absent
    scope = Ref.parse(uri)
    more = "at least " if page.cursor is not None else ""
    names = {below(ctx, entry.ref, scope)[:1] for entry in page.items}
    names |= {one.names for one in await folders(ctx, uri, 1) if one.names}
    known = {"uri": uri, "name": scope.name, "type": "directory", "files": len(page.items)}
    return d.result(f"{uri} is a folder: {more}{len(page.items)} files, {more}{len(names)} entries at its top", known)


def info_tool(budget: Budget) -> Tool:
    return d.tool(
        "info",
        "File facts",
        "Type, size, time, version and etag (for if_match), lines, tokens of a file; whether a target is a folder.",
        partial(_info, budget),
        d.READS,
        {"target": d.TEXT},
        required=["target"],
        gives=d.an_object({"uri": d.TEXT, "type": d.TEXT}, ["uri", "type"]),
        lane_safe=True,
    )
