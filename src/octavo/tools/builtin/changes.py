"""The tool `changes`: what happened since a number of the change feed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from octavo.core.errors import InvalidParams
from octavo.core.event import numbered
from octavo.core.tools import ToolResult
from octavo.core.values import Change, News
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import address
from octavo.tools.builtin.answer_budget import Budget, Room
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

_GAP = "[gap: what happened since then is not known; list anew, then go on with next]"


async def _changes(budget: Budget, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    target, after = asked.get("target"), asked.get("after")
    if target and "?" in target:
        raise InvalidParams("Changes are told of an address and all below it, without a query: leave it out")
    news = await ctx.changes(address(target) if target else None, after=after, limit=asked.get("limit", 100))
    told, lines = _fitting(news, budget, latest=after is None)
    following, more = news.next, news.more
    if after is not None and len(told) < len(news.changes):
        following, more = told[-1]["seq"], True
    structured: dict[str, Any] = {"changes": told, "next": following}
    structured |= {name: True for name, holds in (("more", more), ("gap", news.gap)) if holds}
    lines = [_GAP] if news.gap else lines or ["Nothing has changed"]
    lines.append(f"[{'more: ' if more else ''}call again with after: {following}]")
    return d.result("\n".join(lines), structured)


def _fitting(news: News, budget: Budget, *, latest: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """As many as there is room for, oldest first: the oldest ones, or the latest."""
    room, told, lines = Room(budget), list[dict[str, Any]](), list[str]()
    for change in reversed(news.changes) if latest else news.changes:
        event, line = numbered(change), _line(change)
        if not room.take(json.dumps(event, ensure_ascii=False), line) and told:
            break
        told.append(event)
        lines.append(line)
    return (told[::-1], lines[::-1]) if latest else (told, lines)


def _line(change: Change) -> str:
    moved = "" if change.shown_source is None else f"{change.shown_source} -> "
    return f"{change.kind} {moved}{change.shown}"


def changes_tool(budget: Budget) -> Tool:
    return d.tool(
        "changes",
        "What changed",
        "Files created, updated, deleted or renamed below target since a number; without after the latest changes. "
        "next is the number to go on with; gap: list anew.",
        partial(_changes, budget),
        d.READS,
        {"target": d.TEXT, "after": d.at_least(0), "limit": d.at_least(1, 1000)},
        gives=d.an_object(
            {"changes": d.a_list(), "next": d.WHOLE, "more": d.FLAG, "gap": d.FLAG},
            ["changes", "next"],
        ),
    )
