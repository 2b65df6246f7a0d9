"""The toolset `seed`: further names for reading and writing, with one argument `path` and one block of text.

They are names only: what they ask for is decided like a call of the tool that CANONICAL says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from octavo.core.tools import Text, ToolResult
from octavo.tools.aliases import SEED
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import address, repeated
from octavo.tools.builtin.answer_budget import Budget
from octavo.tools.builtin.whole import in_ranges, marked, whole_text
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

CANONICAL: Final = SEED


async def _read(budget: Budget, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    uri = address(asked["path"])
    found, entry = await whole_text(ctx, uri, {}, budget.beside(uri))
    text, beside = marked(found, entry, uri, in_ranges(uri))
    return ToolResult(content=(Text(text), *beside))


async def _write(ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    uri = address(asked["path"])
    await ctx.write(uri, asked["content"])
    return _said(f"Wrote {repeated(uri)}")


async def _create_directory(ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    uri = address(asked["path"])
    await ctx.make_directory(uri)
    return _said(f"{uri} is a folder")


async def _delete(ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    uri = address(asked["path"])
    await ctx.delete(uri)
    return _said(f"Deleted {uri}")


def _said(text: str) -> ToolResult:
    return ToolResult(content=(Text(text),))


def seed_tools(*, write: bool, budget: Budget) -> list[Tool]:
    path = {"path": d.said(d.TEXT, "a path or a URI")}
    with_content = {**path, "content": d.TEXT}
    reading = [
        d.tool(
            name,
            "Read a file",
            "The text of a file.",
            partial(_read, budget),
            d.READS,
            path,
            required=["path"],
            lane_safe=True,
        )
        for name in ("file-reader", "readFile")
    ]
    if not write:
        return reading
    return [
        *reading,
        d.tool(
            "writeFile", "Write a file", "Makes or replaces a file.", _write, d.REPLACES, with_content,
            required=["path", "content"],
        ),
        d.tool(
            "createDirectory", "Create a folder", "Makes a folder, and those above it.", _create_directory, d.ADDS,
            path, required=["path"],
        ),
        d.tool("deleteFile", "Delete a file", "Deletes a file or folder.", _delete, d.REMOVES, path, required=["path"]),
    ]  # fmt: skip
