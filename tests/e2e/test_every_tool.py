"""Every built-in tool, called by three real clients over a real stdio server, from one table (tool_calls.py).

The clients list the tools first, so each checks structured content against the schema that the tool declares.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import fastmcp
import mcp
import pytest
from fastmcp.client.transports import StdioTransport
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.e2e.harness import LIMIT, ROOT, Place, conformance, node_command, octavo
from tests.e2e.test_inspector import inspect
from tests.e2e.tool_calls import PIXEL, TOOLSETS, Answered, calls_of, check, check_disk

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
every_toolset = pytest.mark.parametrize("toolset", TOOLSETS)

CALL = ROOT / "conformance" / "clients" / "call.mjs"


@pytest.fixture
def served(place: Place) -> Place:
    (place.root / "pixel.png").write_bytes(PIXEL)
    return place


def command(place: Place, toolset: str) -> list[str]:
    return octavo("serve", place.root, "--write", "--toolsets", toolset)


def answered(blocks: Iterable[Any], structured: Any, is_error: bool) -> Answered:
    shown = list(blocks)
    text = "\n".join(block.text for block in shown if block.type == "text")
    return Answered(text, structured, [block.type for block in shown], is_error)


@every_toolset
@pytest.mark.parametrize("era", ("auto", "legacy"))
async def test_the_python_client_calls_every_tool(served: Place, toolset: str, era: str) -> None:
    program, *arguments = command(served, toolset)
    server = StdioServerParameters(command=program, args=arguments, env=served.environment)
    calls = calls_of(toolset, served.root)
    with (served.base / "stderr.log").open("w+", encoding="utf-8") as log:
        streams: Any = stdio_client(server, errlog=log)
        async with mcp.Client(streams, mode=era, read_timeout_seconds=LIMIT) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            answers = []
            for call in calls:
                got = await client.call_tool(call.tool, dict(call.arguments))
                answers.append(answered(got.content, got.structured_content, bool(got.is_error)))
    check(calls, answers, listed)
    check_disk(toolset, served.root)


@every_toolset
async def test_the_fastmcp_client_calls_every_tool(served: Place, toolset: str) -> None:
    program, *arguments = command(served, toolset)
    log = served.base / "stderr.log"
    transport = StdioTransport(program, arguments, env=served.environment, keep_alive=False, log_file=log)
    calls = calls_of(toolset, served.root)
    async with fastmcp.Client(transport, timeout=LIMIT) as client:
        listed = [tool.name for tool in await client.list_tools()]
        answers = []
        for call in calls:
            got = await client.call_tool(call.tool, dict(call.arguments), raise_on_error=False)
            answers.append(answered(got.content, got.structured_content, got.is_error))
    check(calls, answers, listed)
    check_disk(toolset, served.root)


@every_toolset
@pytest.mark.parametrize("era", ("auto", "legacy"))
def test_the_typescript_client_calls_every_tool(served: Place, clients: Path, toolset: str, era: str) -> None:
    calls = calls_of(toolset, served.root)
    options = {
        "clients": str(clients),
        "era": era,
        "command": command(served, toolset),
        "env": dict(served.environment),
        "calls": [{"name": call.tool, "arguments": dict(call.arguments)} for call in calls],
    }
    served.environment |= {"PATH": conformance().environment()["PATH"]}
    with served.start(*node_command(CALL, json.dumps(options))) as program:
        listed = json.loads(program.out.wait_for(r'^\{"what":"listed".*')[0])["names"]
        assert program.process.wait(3 * LIMIT) == 0, program.log.text
        program.out.end()
        lines = [json.loads(line) for line in program.out.text.splitlines()]
    answers = [
        Answered(
            "\n".join(block["text"] for block in one["content"] if block["type"] == "text"),
            one.get("structuredContent"),
            [block["type"] for block in one["content"]],
            one.get("isError", False),
        )
        for one in lines
        if one["what"] == "called"
    ]
    check(calls, answers, listed)
    check_disk(toolset, served.root)


def test_the_inspector_lists_the_tools_and_calls_one(served: Place, clients: Path) -> None:
    given = [flag for name, value in served.environment.items() for flag in ("-e", f"{name}={value}")]
    target = [*given, *command(served, "files")]
    listed = inspect(served, clients, target, "legacy", "tools/list")
    assert sorted(tool["name"] for tool in listed["tools"]) == sorted({call.tool for call in TOOLSETS["files"][0]})
    asked = ("tools/call", "--tool-name", "write", "--tool-arg", "target=a.txt", "--tool-arg", "content=hello")
    wrote = inspect(served, clients, target, "legacy", *asked)
    assert wrote["structuredContent"]["uri"] == "file://a.txt"
    assert (served.root / "a.txt").read_text(encoding="utf-8") == "hello"
