"""The tools that come with the house. What they touch, they ask for through a ToolContext, like every plugin."""

from __future__ import annotations

from octavo.tools.builtin.answer_budget import Budget, Media
from octavo.tools.builtin.changes import changes_tool
from octavo.tools.builtin.edit import edit_tool
from octavo.tools.builtin.info import info_tool
from octavo.tools.builtin.list import list_tool
from octavo.tools.builtin.read import read_tool
from octavo.tools.builtin.search import LINES, SearchKinds, search_tool
from octavo.tools.builtin.write import moving_tools, writing_tools
from octavo.tools.registry import Tool

__all__ = ["SearchKinds", "file_tools"]


def file_tools(*, write: bool, budget: Budget, media: Media, searches: SearchKinds = LINES) -> list[Tool]:
    """The toolset `files`. No answer holds more than the budgets say."""
    reading = [
        list_tool(budget),
        read_tool(budget, media),
        info_tool(budget),
        search_tool(budget, searches),
        changes_tool(budget),
    ]
    if not write:
        return reading
    making, *others = writing_tools(budget)
    return [*reading, making, edit_tool(budget), *moving_tools(), *others]
