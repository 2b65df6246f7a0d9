"""Seed 001 with tools that an operator wrote: the class of the seed, its errors, prompts and resources."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
OFFICE = """
sources:
  files: {kind: file, uris: relative, roots: [./test-workspace/allowed], extensions: [.txt, .md], write: true}
prompts: {dirs: [./prompts]}
tools: {dirs: [./tools]}
"""
PROMPT = {
    "id": "brief",
    "description": "Begins a brief.",
    "inputSchema": {"type": "object", "properties": {"source": {"type": "string"}}, "required": ["source"]},
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Write a brief."}]},
        {"role": "user", "content": [{"type": "resource", "uri": "{{source}}"}]},
    ],
}
# Seed 001, 2.2 and 4.2, in Python.
TOOLS = '''
from octavo.core.errors import InternalError, InvalidParams
from octavo.tools import ToolContext, tool


@tool(name="file-reader-2", read_only=True, open_world=True)
async def file_reader(ctx: ToolContext, path: str) -> str:
    """허용된 경로의 파일 내용을 읽는 도구

    Args:
        path: 읽을 파일의 상대 경로 (allowedDirectories 기준)
    """
    return str((await ctx.read(path)).body)


@tool(read_only=True)
async def some_tool(requiredField: str) -> str:
    """Of section 4.2.

    Args:
        requiredField: What it needs.
    """
    if not requiredField:
        raise InvalidParams("Missing required parameter: requiredField", toolName="some_tool")
    if requiredField == "external":
        raise InternalError(
            "Operation failed: External service returned an error", toolName="some_tool", externalErrorCode=500
        )
    if requiredField == "crash":
        raise RuntimeError("the database password is hunter2")
    return "Success"


@tool(destructive=False, idempotent=True)
async def brief(ctx: ToolContext, source: str, result: str) -> str:
    """Renders a prompt and keeps what came out as a resource.

    Args:
        source: What the brief is about.
        result: Where to write it.
    """
    rendered = await ctx.render("brief", {"source": source})
    texts = [getattr(one.content, "text", "") or str(one.content.content.body) for one in rendered.messages]
    entry = await ctx.write(result, "\\n".join(texts))
    return f"Wrote {entry.ref}"
'''


async def _call(wire: Any, name: str, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = await wire.ask("tools/call", name=name, arguments=arguments)
    return result


def _error(result: dict[str, Any]) -> dict[str, Any]:
    assert result["isError"] is True
    error: dict[str, Any] = json.loads(result["content"][0]["text"])
    return error


@pytest.fixture
def office(put: Any) -> str:
    put("test-workspace/allowed/test.txt", "integration test content")
    put("prompts/brief.json", json.dumps(PROMPT))
    put("tools/mine.py", TOOLS)
    return OFFICE


@ERAS
@pytest.mark.seed("T1", "T10")
async def test_a_function_is_described_and_answers_like_the_class_of_the_seed(
    serve: Any, office: str, modern: bool
) -> None:
    async with serve(office, modern=modern) as wire:
        tools = {one["name"]: one for one in (await wire.ask("tools/list"))["tools"]}
        reader = tools["file-reader-2"]
        assert reader["description"] == "허용된 경로의 파일 내용을 읽는 도구"
        assert reader["inputSchema"]["properties"] == {
            "path": {"type": "string", "description": "읽을 파일의 상대 경로 (allowedDirectories 기준)"}
        }
        assert reader["inputSchema"]["required"] == ["path"]
        assert reader["annotations"]["readOnlyHint"] is True and reader["annotations"]["openWorldHint"] is True
        result = await _call(wire, "file-reader-2", path="file://test.txt")
        assert (result["content"], result["isError"]) == (
            [{"type": "text", "text": "integration test content"}],
            False,
        )
        assert _error(await _call(wire, "file-reader-2", path="file://nonexistent.txt"))["message"].startswith(
            "Resource"
        )


@ERAS
@pytest.mark.seed("T3")
async def test_errors_of_a_tool_carry_its_name_and_the_code_of_the_service(
    serve: Any, office: str, modern: bool
) -> None:
    async with serve(office, modern=modern) as wire:
        missing = _error(await _call(wire, "some_tool", requiredField=""))
        assert (missing["code"], missing["message"]) == (-32602, "Missing required parameter: requiredField")
        assert missing["data"]["toolName"] == "some_tool"
        external = _error(await _call(wire, "some_tool", requiredField="external"))
        assert external["code"] == -32603 and external["data"]["externalErrorCode"] == 500
        assert external["data"]["toolName"] == "some_tool"
        crashed = await _call(wire, "some_tool", requiredField="crash")
        assert "hunter2" not in json.dumps(crashed) and _error(crashed)["data"]["toolName"] == "some_tool"
        assert (await _call(wire, "some_tool", requiredField="x"))["content"] == [{"type": "text", "text": "Success"}]


@ERAS
@pytest.mark.seed("T11", "F11")
async def test_a_tool_uses_a_prompt_writes_its_result_as_a_resource_and_a_prompt_uses_that(
    serve: Any, office: str, modern: bool
) -> None:
    async with serve(office, modern=modern, keeps=True) as wire:
        done = await _call(wire, "brief", source="file://test.txt", result="file://briefs/one.md")
        assert done["content"] == [{"type": "text", "text": "Wrote file://briefs/one.md"}]
        written = await wire.read("file://briefs/one.md")
        assert written["text"] == "Write a brief.\nintegration test content"
        again = await wire.ask("prompts/get", name="brief", arguments={"source": "file://briefs/one.md"})
        assert again["messages"][1]["content"]["resource"]["text"] == written["text"]
        outside = await _call(wire, "brief", source="file://test.txt", result="file://../forbidden.txt")
        assert _error(outside)["code"] == -32003
