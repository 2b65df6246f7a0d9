"""Seeds 000 and 001: the tools on files, called over the protocol as the documents write them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.anyio

# 001:520: allowedDirectories ./test-workspace/allowed, allowedExtensions .txt and .js.
ALLOWED = """
sources:
  files: {kind: file, roots: [./test-workspace/allowed], extensions: [.txt, .js], write: true}
toolsets: [files, seed]
"""
MEDIA = """
sources:
  files: {kind: file, roots: [./media], extensions: ["*"]}
toolsets: [files, filesystem]
"""


async def called(wire: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer of a call that succeeds."""
    answer = await answered(wire, tool, **arguments)
    assert answer.get("isError", False) is False, answer
    return answer


async def answered(wire: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await wire.ask("tools/call", name=tool, arguments=arguments)
    return answer


async def failed(wire: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error that a failed call carries."""
    answer = await answered(wire, tool, **arguments)
    assert answer["isError"] is True
    (block,) = answer["content"]
    error: dict[str, Any] = json.loads(block["text"])
    return error


async def tool_named(wire: Any, name: str) -> dict[str, Any]:
    return next(tool for tool in (await wire.ask("tools/list"))["tools"] if tool["name"] == name)


@pytest.mark.seed("T12", "T1")
async def test_file_reader_is_described_as_in_the_seed(serve: Any, put: Any) -> None:
    put("test-workspace/allowed/test.txt", "x")
    async with serve(ALLOWED) as wire:
        tool = await tool_named(wire, "file-reader")
    assert tool["description"]
    assert tool["inputSchema"]["type"] == "object"
    assert tool["inputSchema"]["required"] == ["path"]
    assert tool["inputSchema"]["properties"]["path"]["type"] == "string"
    assert tool["inputSchema"]["properties"]["path"]["description"]
    assert (tool["annotations"]["readOnlyHint"], tool["annotations"]["openWorldHint"]) == (True, True)


@pytest.mark.seed("T12", "T2")
@pytest.mark.parametrize("tool", ["file-reader", "readFile"])
@pytest.mark.parametrize("path", ["test.txt", "file://test.txt", "documents/report.txt", "file://documents/report.txt"])
async def test_a_file_is_read_by_address_or_path_as_one_text_block(serve: Any, put: Any, tool: str, path: str) -> None:
    put("test-workspace/allowed/test.txt", "Hello, world!")
    put("test-workspace/allowed/documents/report.txt", "Hello, world!")
    async with serve(ALLOWED) as wire:
        answer = await called(wire, tool, path=path)
    assert [(block["type"], block["text"]) for block in answer["content"]] == [("text", "Hello, world!")]


@pytest.mark.seed("T12", "F8")
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("nonexistent.txt", -32002),
        ("../forbidden.txt", -32003),
        ("file://../forbidden.txt", -32003),
        ("image.png", -32003),
    ],
)
async def test_what_file_reader_may_not_give_is_a_distinct_error(serve: Any, put: Any, path: str, code: int) -> None:
    put("test-workspace/allowed/image.png", b"dummy")
    put("test-workspace/forbidden.txt", "secret")
    async with serve(ALLOWED) as wire:
        error = await failed(wire, "file-reader", path=path)
    assert error["code"] == code
    assert "secret" not in json.dumps(error)


@pytest.mark.seed("T12", "T3")
async def test_file_reader_without_its_path_is_invalid(serve: Any, put: Any) -> None:
    put("test-workspace/allowed/test.txt", "x")
    async with serve(ALLOWED) as wire:
        error = await failed(wire, "file-reader")
    assert error["code"] == -32602
    assert "path" in error["message"]


@pytest.mark.seed("F5", "T12")
async def test_files_and_directories_are_made_changed_and_deleted(serve: Any, put: Any, tmp_path: Path) -> None:
    put("test-workspace/allowed/src/utils.js", "let a = 1\n")
    root = tmp_path / "test-workspace" / "allowed"
    async with serve(ALLOWED, keeps=True) as wire:
        assert (await called(wire, "readFile", path="file://src/utils.js"))["content"][0]["text"] == "let a = 1\n"
        await called(wire, "writeFile", path="file://src/utils.js", content="let a = 2\n")
        assert (await wire.read("file://src/utils.js"))["text"] == "let a = 2\n"
        await called(wire, "createDirectory", path="new/inner")
        await called(wire, "writeFile", path="new/inner/note.txt", content="note\n")
        assert (root / "new/inner/note.txt").read_text(encoding="utf-8") == "note\n"
        await called(wire, "deleteFile", path="new/inner/note.txt")
        assert (await failed(wire, "readFile", path="new/inner/note.txt"))["code"] == -32002
    assert list((root / "new/inner").iterdir()) == []


@pytest.mark.seed("F5", "T4", "F3")
@pytest.mark.parametrize(
    ("tool", "more"), [("writeFile", {"content": "x"}), ("createDirectory", {}), ("deleteFile", {})]
)
@pytest.mark.parametrize("path", ["../forbidden.txt", "file://../forbidden.txt", "file:///etc/forbidden.txt"])
async def test_no_tool_changes_anything_outside(
    serve: Any, put: Any, tmp_path: Path, tool: str, more: dict[str, str], path: str
) -> None:
    put("test-workspace/allowed/test.txt", "x")
    kept = put("test-workspace/forbidden.txt", "secret")
    async with serve(ALLOWED, keeps=True) as wire:
        error = await failed(wire, tool, path=path, **more)
    assert error["code"] == -32003
    assert kept.read_text(encoding="utf-8") == "secret"
    assert sorted(one.name for one in (tmp_path / "test-workspace").iterdir()) == ["allowed", "forbidden.txt"]


@pytest.mark.seed("F5", "F2")
async def test_a_file_whose_extension_is_not_allowed_is_not_written(serve: Any, put: Any, tmp_path: Path) -> None:
    put("test-workspace/allowed/test.txt", "x")
    async with serve(ALLOWED) as wire:
        assert (await failed(wire, "writeFile", path="run.exe", content="x"))["code"] == -32003
    assert [one.name for one in (tmp_path / "test-workspace/allowed").iterdir()] == ["test.txt"]


@pytest.mark.seed("F5")
async def test_a_source_without_write_has_no_tool_that_changes_it(serve: Any, put: Any) -> None:
    put("test-workspace/allowed/test.txt", "x")
    async with serve(ALLOWED.replace(", write: true", "")) as wire:
        tools = (await wire.ask("tools/list"))["tools"]
    assert {tool["name"] for tool in tools} >= {"read", "file-reader", "readFile"}
    assert [tool["name"] for tool in tools if not tool["annotations"]["readOnlyHint"]] == []


@pytest.mark.seed("T1")
async def test_every_tool_has_the_four_hints_and_a_schema_of_its_own(serve: Any, put: Any) -> None:
    put("test-workspace/allowed/test.txt", "x")
    async with serve(ALLOWED) as wire:
        tools = (await wire.ask("tools/list"))["tools"]
    for tool in tools:
        hints = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert hints <= set(tool["annotations"]), tool["name"]
        assert tool.get("title") or tool["annotations"].get("title"), tool["name"]
        for name, schema in tool["inputSchema"]["properties"].items():
            assert {"type", "enum", "anyOf"} & set(schema), f"{tool['name']}.{name}"


@pytest.mark.seed("T2")
@pytest.mark.parametrize(
    ("name", "kind", "mime", "body"),
    [
        ("image.png", "image", "image/png", b"\x89PNG\r\n\x1a\n\x00\xff"),
        ("sound.wav", "audio", "audio/wav", b"RIFF\x04\x00\x00\x00WAVE\xff"),
    ],
)
async def test_images_and_audio_come_as_blocks_with_base64_and_type(
    serve: Any, put: Any, name: str, kind: str, mime: str, body: bytes
) -> None:
    put(f"media/{name}", body)
    async with serve(MEDIA) as wire:
        for tool, arguments in (("read", {"target": name}), ("read_media_file", {"path": name})):
            (block,) = (await called(wire, tool, **arguments))["content"]
            assert (block["type"], block["mimeType"]) == (kind, mime)
            assert base64.b64decode(block["data"]) == body


@pytest.mark.seed("T2")
async def test_a_resource_comes_as_a_block_with_address_type_and_content(serve: Any, put: Any) -> None:
    put("media/data.pdf", b"%PDF-1.7 \xff\x00")
    async with serve(MEDIA) as wire:
        (block,) = (await called(wire, "read_media_file", path="data.pdf"))["content"]
    assert (block["type"], block["resource"]["uri"]) == ("resource", "file://data.pdf")
    assert block["resource"]["mimeType"] == "application/pdf"
    assert base64.b64decode(block["resource"]["blob"]) == b"%PDF-1.7 \xff\x00"
