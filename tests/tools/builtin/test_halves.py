"""Answers as clients keep them: some have the texts alone, some the structured half alone. Each half of every tool says
what the next call needs: the address, the version, where to go on, the handle."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.tools.builtin.conftest import Serve, Tools

from octavo.core.tools import Text, ToolResult

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F6")]

HOUSE = """
sources:
  work: {kind: file, uris: relative, roots: [./work], extensions: ["*"], write: true}
toolsets: [files, data, people, process]
commands: {programs: {say: {run: cat, args: [], input: true}}}
policy:
  - {who: "*", may: "*", what: "**", approve: never}
"""
FILES: dict[str, str | bytes] = {
    "docs/a.md": "one\ntwo\n",
    "docs/b.md": "one\nthree\n",
    "data.json": '[{"a": 1}, {"a": 2}]',
}
# Of each tool: what is called, what its texts say, and where in its structured half the same stands.
Row = tuple[str, dict[str, Any], tuple[str, ...], tuple[str, ...]]
ROWS: tuple[Row, ...] = (
    ("list", {"target": "docs", "limit": 1}, ("a.md", "cursor: "), ("entries.0.uri", "cursor")),
    ("info", {"target": "docs/a.md"}, ("file://docs/a.md", "version: ", "etag: "), ("uri", "version", "etag")),
    ("search", {"query": "one", "limit": 1}, ("docs/a.md", "1: one", "cursor: "), ("files.0.hits.0.line", "cursor")),
    ("search", {"query": "one", "kind": "ranked"}, ("file://docs/",), ("results.0.uri",)),
    ("changes", {}, ("call again with after: ",), ("next",)),
    ("write", {"target": "n.md", "content": "x\n"}, ("file://n.md", "(version "), ("uri", "version")),
    (
        "edit",
        {"target": "n.md", "edits": [{"old": "x", "new": "y"}]},
        ("file://n.md", "(version ", "+y"),
        ("uri", "version", "diff"),
    ),
    (
        "edit",
        {"target": "n.md", "edits": [{"old": "y", "new": "z"}], "dry_run": True},
        ("Would change",),
        ("diff", "dry_run"),
    ),
    ("copy", {"target": "n.md", "to": "m.md"}, ("file://m.md", "(version "), ("uri", "version")),
    ("move", {"target": "m.md", "to": "l.md"}, ("file://l.md", "(version "), ("uri", "version")),
    ("create_directory", {"target": "made"}, ("file://made",), ("uri",)),
    ("delete", {"target": "l.md"}, ("file://l.md", "undo"), ("uri", "undo")),
    ("undo", {}, ("file://l.md", "restored"), ("undone.0.uri", "undone.0.effect")),
    ("query", {"sql": "select * from data", "target": "data.json", "limit": 1}, ("OFFSET 1",), ("rows.0.0", "more")),
    ("profile", {"target": "data.json", "chart": False}, ("2 rows", "a: integer"), ("rows", "columns.0.name")),
    ("validate", {"target": "data.json", "schema": {"type": "object"}}, ("does not fit",), ("problems.0.message",)),
    ("notify", {"message": "done"}, ("shows nothing",), ("seen",)),
    ("run_command", {"program": "say", "input": "hello"}, ("exit 0", "hello"), ("ended", "output")),
)
# Those that have texts alone: nothing of theirs may be in a half that such a client would keep instead.
TEXTS: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("read", {"target": "docs/a.md"}, ("one\ntwo\n",)),
    ("convert", {"target": "data.json", "to": "yaml"}, ("- a: 1",)),
    ("convert", {"target": "data.json", "to": "yaml", "save_as": "made.yaml"}, ("file://made.yaml", "(version ")),
)


def texts(result: ToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, Text))


def at(structured: Any, path: str) -> Any:
    for step in path.split("."):
        structured = structured[int(step) if isinstance(structured, list) else step]
    return structured


async def house(serve: Serve, until: int) -> Tools:
    tools = await serve(HOUSE, files=FILES)
    for name, arguments, _, _ in ROWS[:until]:
        if name in ("write", "edit", "copy", "move", "delete"):
            await tools(name, **arguments)
    return tools


@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda number: f"{number}-{ROWS[number][0]}")
@pytest.mark.parametrize("half", ["content", "structuredContent"])
async def test_each_half_is_enough_for_the_next_call(serve: Serve, number: int, half: str) -> None:
    name, arguments, says, gives = ROWS[number]
    result = await (await house(serve, number))(name, **arguments)
    if half == "content":
        assert [one for one in says if one not in texts(result)] == []
    else:
        assert result.structured is not None
        assert all(at(json.loads(json.dumps(result.structured)), path) not in (None, "") for path in gives)


@pytest.mark.parametrize(("name", "arguments", "says"), TEXTS)
async def test_a_tool_whose_answer_is_a_text_has_no_other_half(
    serve: Serve, name: str, arguments: dict[str, Any], says: tuple[str, ...]
) -> None:
    tools = await serve(HOUSE, files=FILES)
    result = await tools(name, **arguments)
    info = tools.octavo.works.tools.tool(name)
    assert info is not None and info.output_schema is None and result.structured is None
    assert [one for one in says if one not in texts(result)] == []


async def test_each_half_of_a_process_says_what_it_printed_and_where_to_go_on(serve: Serve) -> None:
    tools = await serve(HOUSE, files=FILES)
    started = await tools("start_process", program="say")
    process = (started.structured or {})["process"]
    assert process in texts(started)
    wrote = await tools("write_input", process=process, text="hello\n")
    assert process in texts(wrote) and (wrote.structured or {})["process"] == process
    read = await tools("read_output", process=process, seconds="20")
    assert texts(read) == "hello\n\n[running; read on with after: 6]"
    assert {key: (read.structured or {})[key] for key in ("text", "next")} == {"text": "hello\n", "next": 6}
    listed = await tools("list_processes")
    assert process in texts(listed) and (listed.structured or {})["processes"][0]["process"] == process
    stopped = await tools("stop_process", process=process)
    assert process in texts(stopped) and (stopped.structured or {})["state"]


async def test_the_table_has_every_tool_with_two_halves(serve: Serve) -> None:
    tools = await serve(HOUSE, files=FILES)
    infos = [tools.octavo.works.tools.tool(name) for name in tools.octavo.works.tools.names]
    both = {info.name for info in infos if info is not None and info.output_schema is not None}
    processes = {"start_process", "write_input", "read_output", "list_processes", "stop_process"}
    asking = {"ask_user", "feedback"}  # what a person says is both, word for word
    assert both == {row[0] for row in ROWS} | processes | asking


async def test_what_may_answer_long_says_how_long(serve: Serve) -> None:
    from octavo.transport.mcp import shapes

    tools = await serve(HOUSE + "limits: {answer: 128KiB}\n", files=FILES)
    registry = tools.octavo.works.tools
    told = {
        name: shapes.tool(info).get("_meta", {}).get("anthropic/maxResultSizeChars")
        for name in registry.names
        if (info := registry.tool(name)) is not None
    }
    assert told["read"] == told["list"] == told["search"] == told["query"] == 128 * 1024
    assert told["write"] is told["delete"] is None
