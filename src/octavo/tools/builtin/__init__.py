"""The tools that come with the house. What they touch, they ask for through a ToolContext, like every plugin."""

from __future__ import annotations

from octavo.tools.builtin.changes import changes_tool
from octavo.tools.builtin.editing import edit_tool
from octavo.tools.builtin.facts import info_tool
from octavo.tools.builtin.listing import list_tool
from octavo.tools.builtin.moving import moving_tools
from octavo.tools.builtin.reading import read_tool
from octavo.tools.builtin.room import Budget
from octavo.tools.builtin.searching import search_tool
from octavo.tools.builtin.writing import writing_tools
from octavo.tools.registry import Tool

__all__ = ["file_tools"]


def file_tools(*, write: bool, answer_bytes: int = 64_000, answer_tokens: int = 20_000) -> list[Tool]:
    """The toolset `files`. No answer holds more text than the budget says."""
    budget = Budget(answer_bytes, answer_tokens)
    reading = [list_tool(budget), read_tool(budget), info_tool(), search_tool(budget), changes_tool(budget)]
    if not write:
        return reading
    making, *others = writing_tools()
    return [*reading, making, edit_tool(budget), *moving_tools(), *others]
