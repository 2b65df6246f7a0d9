"""A tool that tells of its failure in words of its own is as easy to recognise as one that raises. Demand: T3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Web, modern_headers
from tests.gate.twins import META
from tests.gate.world import house

from octavo.app.configuration import load_text
from octavo.transport.http.front import Authentication

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T3")]

CONFIG = """
version: 1
sources: {docs: {kind: file, roots: [./docs]}}
tools: {dirs: [./tools]}
commands: {programs: {cat: {run: cat}}}
policy: [{who: local, may: "*", what: "**", approve: never}]
"""
SHOWS = """
name: shows
description: Shows a file.
arguments: {file: {type: string}}
command: [cat, --, "{file}"]
read_only: true
"""


@pytest.mark.parametrize("lane", [True, False])
@pytest.mark.parametrize(
    ("tool", "arguments"), [("shows", {"file": "none.md"}), ("read", {"targets": ["none.md", "no.md"]})]
)
async def test_a_failure_in_words_has_the_error_object_beside_it(
    tmp_path: Path, tool: str, arguments: dict[str, Any], lane: bool
) -> None:
    for name in ("docs", "tools"):
        (tmp_path / name).mkdir()
    (tmp_path / "tools/shows.yaml").write_text(SHOWS, encoding="utf-8")
    params = {"name": tool, "arguments": arguments, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    loaded = load_text(CONFIG, file=tmp_path / "octavo.yaml", environ={})
    async with house(loaded) as octavo, Web(octavo, lane=lane, access=Authentication(everybody="local")) as web:
        for _ in range(2):  # the lane takes the second
            result = (await web.ask(json.dumps(body).encode(), modern_headers(body, None))).json["result"]
            assert result["isError"] is True and "no" in result["content"][0]["text"]
            error = result["_meta"]["dev.octavo/error"]
            assert error["message"] == f"The tool {tool} failed; its content says why"
            assert error["data"] == {"reason": "tool_failed", "toolName": tool}
