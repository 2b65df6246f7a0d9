"""The file tools of seed 001 can be called without their toolset, in both eras; they are listed only with it."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T12")]

ALLOWED = """
sources:
  files: {kind: file, roots: [./test-workspace/allowed], extensions: [.txt, .js], write: true}
"""
ERAS = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])


async def _call(wire: Any, name: str, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = await wire.ask("tools/call", name=name, arguments=arguments)
    return result


def _code(result: dict[str, Any]) -> Any:
    return json.loads(result["content"][0]["text"])["code"]


@ERAS
async def test_the_reader_gives_one_text_block_equal_to_the_file(serve: Any, put: Any, modern: bool) -> None:
    put("test-workspace/allowed/test.txt", "integration test content")
    put("test-workspace/allowed/documents/report.txt", "report")
    async with serve(ALLOWED, modern=modern) as wire:
        result = await _call(wire, "file-reader", path="test.txt")
        assert result["content"] == [{"type": "text", "text": "integration test content"}]
        assert result["isError"] is False
        for path in ("file://documents/report.txt", "documents/report.txt"):
            for name in ("file-reader", "readFile"):
                assert (await _call(wire, name, path=path))["content"] == [{"type": "text", "text": "report"}]


@ERAS
async def test_the_writers_write_what_the_readers_read(serve: Any, put: Any, modern: bool) -> None:
    put("test-workspace/allowed/a.txt", "")
    async with serve(ALLOWED, modern=modern) as wire:
        await _call(wire, "createDirectory", path="src")
        assert (await _call(wire, "writeFile", path="file://src/utils.js", content="1;\n"))["isError"] is False
        assert (await _call(wire, "readFile", path="file://src/utils.js"))["content"][0]["text"] == "1;\n"


@ERAS
async def test_what_the_reader_cannot_read_is_an_error_the_model_sees(serve: Any, put: Any, modern: bool) -> None:
    put("test-workspace/allowed/image.png", "png")
    put("test-workspace/forbidden.txt", "no")
    async with serve(ALLOWED, modern=modern) as wire:
        for path, code in (("nonexistent.txt", -32002), ("../forbidden.txt", -32003), ("image.png", -32003)):
            result = await _call(wire, "file-reader", path=path)
            assert result["isError"] is True
            assert _code(result) == code or (modern and path == "nonexistent.txt")
        without = await wire.send(
            {"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": {"name": "file-reader", "arguments": {}}}
        )
        assert "path" in json.dumps(without)
        assert without.get("error") or without["result"]["isError"]


@ERAS
async def test_the_names_are_listed_with_their_toolset_only(serve: Any, put: Any, modern: bool) -> None:
    put("test-workspace/allowed/a.txt", "")

    async def listed(configuration: str) -> dict[str, Any]:
        async with serve(configuration, modern=modern) as wire:
            return {tool["name"]: tool for tool in (await wire.ask("tools/list"))["tools"]}

    assert "file-reader" not in await listed(ALLOWED)
    reader = (await listed(f"{ALLOWED}toolsets: [files, seed]\n"))["file-reader"]
    assert reader["annotations"]["readOnlyHint"] is True and reader["annotations"]["openWorldHint"] is True
    assert reader["inputSchema"]["required"] == ["path"]
