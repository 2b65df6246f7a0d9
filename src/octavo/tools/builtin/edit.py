"""The tool `edit`: change a part of a text, and nothing else of the file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from octavo.core.edit import Edit, Revision
from octavo.core.errors import Forbidden, InvalidParams, NotFound
from octavo.core.tools import ToolResult
from octavo.core.values import Edited
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import address, repeated
from octavo.tools.builtin.answer_budget import Budget
from octavo.tools.builtin.kinds import instead
from octavo.tools.builtin.write import IF_MATCH, STATED
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool


async def edited(
    ctx: ToolContext, uri: str, revision: Revision, *, if_match: str | None = None, dry_run: bool
) -> Edited:
    try:
        return await ctx.edit(uri, revision, if_match=if_match, dry_run=dry_run)
    except (NotFound, Forbidden) as absent:
        raise await instead(ctx, uri, absent) from None


async def _edit(budget: Budget, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    uri, dry_run = address(asked["target"]), asked.get("dry_run", False)
    most = budget.any_text // 3  # the diff is told twice, and there are the places
    done = await edited(ctx, uri, _wanted(asked, uri, most), if_match=asked.get("if_match"), dry_run=dry_run)
    entry, diff, said = done.entry, done.report, repeated(uri)
    known: dict[str, Any] = {
        "uri": said,
        "version": entry.version,
        "added": done.added,
        "removed": done.removed,
        "places": [*done.places[:100]],
        "diff": diff,
        **({"dry_run": True} if dry_run else {}),
    }
    verb = "Would change" if dry_run else "Changed"
    sentence = f"{verb} {said}: {done.added} lines added, {done.removed} removed{d.versioned(entry)}"
    return d.result(f"{sentence}\n{diff}" if diff else f"Nothing to change in {said}", known)


def _wanted(asked: Mapping[str, Any], uri: str, most: int) -> Revision:
    if ("edits" in asked) is ("patch" in asked):
        raise InvalidParams("Give edits, or a patch: one of the two")
    edits = tuple(Edit(one["old"], one["new"], one.get("expected", 1)) for one in asked.get("edits", ()))
    return Revision(edits=edits, patch=asked.get("patch"), label=uri, most=most)


def edit_tool(budget: Budget) -> Tool:
    one = {
        **d.an_object(
            {
                "old": d.TEXT,
                "new": d.TEXT,
                "expected": d.said({"anyOf": [d.at_least(1), {"const": "all"}]}, "places, default 1"),
            },
            ["old", "new"],
        ),
        "additionalProperties": False,
    }
    return d.tool(
        "edit",
        "Edit a file",
        "Replaces text in a file: each old must stand there once (or expected times); or applies a unified diff "
        "(patch). All or nothing. Keeps encoding and line ends.",
        partial(_edit, budget),
        d.REPLACES,
        {
            "target": d.TEXT,
            "edits": {**d.a_list(one), "minItems": 1, "maxItems": 1000},
            "patch": d.FILLED,
            "dry_run": d.FLAG,
            "if_match": IF_MATCH,
        },
        required=["target"],
        gives=STATED,
    )
