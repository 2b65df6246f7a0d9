"""A suite that cannot fail is decoration: tools that do not do what they say are caught, each by its test."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import Forbidden, InternalError
from octavo.testing import ToolSuite
from octavo.tools import ToolContext, tool
from octavo.tools.functions import tool_of

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T1")]


@tool(read_only=True)
async def honest(ctx: ToolContext, uri: str) -> int:
    """Counts words.

    Args:
        uri: Where.
    """
    return len(str((await ctx.read(uri)).body).split())


class TestHonest(ToolSuite):
    RESOURCES = {"file://a.md": "one two"}
    CASES = [{"uri": "file://a.md"}]

    @pytest.fixture
    def tool(self) -> Any:
        return honest


@tool(read_only=False, destructive=False, idempotent=False, open_world=False)
async def adding(ctx: ToolContext, uri: str) -> str:
    """Adds a line.

    Args:
        uri: Where.
    """
    await ctx.write(uri, "more\n", mode="append")
    return "done"


class TestAdding(ToolSuite):
    RESOURCES = {"file://a.md": "one\n"}
    CASES = [{"uri": "file://a.md"}]

    @pytest.fixture
    def tool(self) -> Any:
        return adding


@tool(read_only=True)
async def writes(ctx: ToolContext, uri: str) -> str:
    """Says that it reads, and writes."""
    await ctx.write(uri, "")
    return ""


@tool(read_only=True)
async def writes_the_same(ctx: ToolContext, uri: str) -> str:
    """Writes what is there already."""
    await ctx.write(uri, "one\n")
    return ""


@tool(read_only=True)
def writes_past_the_context(uri: str) -> str:
    """Opens a file by itself."""
    with Path(PLACE[0]).open("w", encoding="utf-8") as file:
        file.write("x")
    return ""


@tool(read_only=True)
def starts(uri: str) -> str:
    """Starts a program."""
    import subprocess

    subprocess.run(["true"], check=True)
    return ""


@tool(read_only=True)
def connects(uri: str) -> str:
    """Connects somewhere."""
    with socket.socket() as one:
        one.connect_ex(("127.0.0.1", 9))
    return ""


@tool(destructive=False)
async def deletes(ctx: ToolContext, uri: str) -> str:
    """Says that it destroys nothing."""
    await ctx.delete(uri)
    return ""


@tool(destructive=False, idempotent=True)
async def appends(ctx: ToolContext, uri: str) -> str:
    """Says that twice is once."""
    await ctx.write(uri, "x", mode="append")
    return ""


@tool(read_only=True, destructive=True)
def contradicts(uri: str) -> str:
    """Says that it destroys by reading."""
    return ""


@tool(read_only=True)
def breaks_its_word(uri: str) -> int:
    """Gives no number."""
    return "none"  # type: ignore[return-value]


PLACE = [""]


class Suite(ToolSuite):
    RESOURCES = {"file://a.md": "one\n"}
    CASES = [{"uri": "file://a.md"}]


@pytest.mark.parametrize(
    ("function", "test"),
    [
        (writes, "test_a_read_only_tool_changes_nothing"),
        (writes_the_same, "test_a_read_only_tool_changes_nothing"),
        (writes_past_the_context, "test_a_read_only_tool_changes_nothing"),
        (starts, "test_a_read_only_tool_changes_nothing"),
        (starts, "test_a_tool_of_a_closed_world_connects_to_nothing"),
        (connects, "test_a_tool_of_a_closed_world_connects_to_nothing"),
        (deletes, "test_what_is_not_destructive_keeps_what_was_there"),
        (appends, "test_what_is_idempotent_changes_nothing_the_second_time"),
        (contradicts, "test_its_hints_do_not_contradict_each_other"),
        (honest, "test_every_case_is_answered_as_announced"),
        (breaks_its_word, "test_every_case_is_answered_as_announced"),
        (writes, "test_it_is_described_for_a_model"),
    ],
)
async def test_the_suite_bites(function: Any, test: str, tmp_path: Path) -> None:
    PLACE[0] = str(tmp_path / "written")
    suite = Suite()
    if function is honest:
        suite.CASES = ()  # type: ignore[misc]
    outcome = None
    with pytest.raises((AssertionError, InternalError, Forbidden)):
        outcome = getattr(suite, test)(tool_of(function))
        if outcome is not None:
            await outcome
