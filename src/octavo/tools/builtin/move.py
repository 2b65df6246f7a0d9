"""The tools `move` and `copy`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from octavo.core.tools import ToolResult
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import address, repeated
from octavo.tools.builtin.write import IF_MATCH, STATED, stated
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool


async def _move(ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    uri, to = address(asked["target"]), address(asked["to"])
    entry = await ctx.move(uri, to, if_match=asked.get("if_match"), overwrite=asked.get("overwrite", False))
    return stated(entry, to, f"Moved {uri} to {repeated(to)}{d.versioned(entry)}")


async def _copy(ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    uri, to = address(asked["target"]), address(asked["to"])
    entry = await ctx.copy(uri, to, overwrite=asked.get("overwrite", False))
    return stated(entry, to, f"Copied {uri} to {repeated(to)}{d.versioned(entry)}")


def moving_tools() -> list[Tool]:
    takes = {"target": d.TEXT, "to": d.said(d.TEXT, "the new place, with its name"), "overwrite": d.FLAG}
    required = ["target", "to"]
    return [
        d.tool(
            "move", "Move or rename", "Moves a file or folder.", _move, d.REPLACES,
            {**takes, "if_match": IF_MATCH}, required=required, gives=STATED,
        ),
        d.tool(
            "copy", "Copy", "Copies a file or folder.", _copy, d.REPLACES, takes, required=required, gives=STATED,
        ),
    ]  # fmt: skip
