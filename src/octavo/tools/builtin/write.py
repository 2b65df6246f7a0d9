"""The tools that change files: `write`, `create_directory`, `delete`, `undo`, `move` and `copy`."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from octavo.core.errors import InvalidParams
from octavo.core.ref import Ref
from octavo.core.tools import ToolResult
from octavo.core.values import Entry
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import address, repeated
from octavo.tools.builtin.answer_budget import Budget, Room
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

IF_MATCH = d.FILLED  # a version or an etag, as `info` says
STATED = d.an_object({"uri": d.TEXT}, ["uri"])


def stated(entry: Entry, uri: str, sentence: str) -> ToolResult:
    """What a change answers: where the file is now, as it was asked for, and its version for the next change."""
    return d.result(sentence, {**d.facts(entry), "uri": repeated(uri), "version": entry.version})


async def _write(ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    uri, mode = address(asked["target"]), asked.get("mode", "upsert")
    entry = await ctx.write(
        uri,
        _body(asked),
        if_match=asked.get("if_match"),
        mode=mode,
        encoding=asked.get("encoding"),
    )
    done = "Appended to" if mode == "append" else "Wrote"
    return stated(entry, uri, f"{done} {repeated(uri)}, which has {d.sized(entry.size)}{d.versioned(entry)}")


def _body(asked: Mapping[str, Any]) -> str | bytes:
    if ("content" in asked) is ("base64" in asked):
        raise InvalidParams("Give the text as content, or bytes as base64: one of the two")
    if "content" in asked:
        text: str = asked["content"]
        return text
    if "encoding" in asked:
        raise InvalidParams("Bytes have no encoding: leave it out, or give the text as content")
    try:
        return base64.b64decode(asked["base64"], validate=True)
    except (binascii.Error, ValueError):
        raise InvalidParams("base64 is not valid base64") from None


async def _delete(ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    uri = address(asked["target"])
    kept = await ctx.delete(uri, if_match=asked.get("if_match"))
    return d.result(f"Deleted {uri}; undo brings it back" if kept else f"Deleted {uri}", {"uri": uri, "undo": kept})


async def _create_directory(ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    uri = address(asked["target"])
    await ctx.make_directory(uri)
    return d.result(f"{uri} is a folder", {"uri": uri})


async def _undo(budget: Budget, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    where = address(asked["target"]) if "target" in asked else None
    done, room = await ctx.undo(where, count=asked.get("count", 1)), Room(budget)
    undone, lines, more = list[dict[str, str]](), list[str](), dict[str, int]()
    asked_for = None if where is None else Ref.parse(where)
    for one in done:
        # The address that was written is repeated; what was found has the form of lists.
        same = asked_for is not None and ctx.canonical(one.ref) == ctx.canonical(asked_for)
        uri = str(asked_for if same else one.ref)
        told = {"op": str(one.op), "uri": uri, "effect": str(one.effect)}
        line = f"{one.op} {uri}: {one.effect}"
        if not room.take(json.dumps(told, ensure_ascii=False), line):
            more["more"] = len(done) - len(undone)
            lines.append(f"[and {more['more']} more]")
            break
        undone.append(told)
        lines.append(line)
    return d.result("\n".join(lines) or "Nothing is there to undo", {"undone": undone, **more})


def writing_tools(budget: Budget) -> list[Tool]:
    target = {"target": d.TEXT}
    return [
        d.tool(
            "write", "Write a file", "Creates, replaces or appends to a file; makes its folders.",
            _write, d.REPLACES,
            {
                **target, "content": d.TEXT, "base64": d.TEXT,
                "mode": d.one_of("upsert", "create", "overwrite", "append"),
                "encoding": d.said(d.FILLED, "default: the file's"),
                "if_match": IF_MATCH,
            },
            required=["target"], gives=STATED,
        ),
        d.tool(
            "delete", "Delete", "Deletes a file or folder; says if undo brings it back.",
            _delete, d.REMOVES, {**target, "if_match": IF_MATCH}, required=["target"], gives=STATED,
        ),
        d.tool(
            "create_directory", "Create a folder", "Makes a folder, and those above it.",
            _create_directory, d.ADDS, target, required=["target"], gives=STATED,
        ),
        d.tool(
            "undo", "Undo", "Takes back your newest changes, of all or of a target.",
            partial(_undo, budget), d.REPLACES, {"target": d.TEXT, "count": d.at_least(1, 100)},
            gives=d.an_object({"undone": d.a_list()}, ["undone"]),
        ),
    ]  # fmt: skip


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
