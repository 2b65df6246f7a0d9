"""`octavo serve` as a client meets it: a process, on HTTP with a key and on stdio."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.fixture
def port(folder: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "octavo", "serve", "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        try:
            assert process.stderr is not None
            ready = re.fullmatch(
                r"octavo: serving MCP at http://127\.0\.0\.1:(\d+)/mcp\n", line := process.stderr.readline()
            )
            assert ready, line
            yield int(ready[1])
        finally:
            process.terminate()
            process.wait(timeout=30)


def listed(port: int, key: str | None) -> tuple[int, Any]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "resources/list",
        **({"Authorization": f"Bearer {key}"} if key else {}),
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        body = {"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {"_meta": META}}
        connection.request("POST", "/mcp", json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_over_http_the_key_says_who_asks(folder: Path, port: int) -> None:
    seen: dict[str, set[str]] = {}
    for agent in ("agent-brand", "agent-orchestrator"):
        status, answer = listed(port, (folder / ".keys" / agent).read_text(encoding="utf-8").strip())
        assert status == 200
        seen[agent] = {resource["uri"] for resource in answer["result"]["resources"]}
    assert {uri for uri in seen["agent-orchestrator"] if uri.startswith("sop://hr/")} == {
        "sop://hr/hiring",
        "sop://hr/offboarding",
        "sop://hr/onboarding",
    }
    assert not any(uri.startswith("sop://hr/") for uri in seen["agent-brand"])
    assert listed(port, None)[0] == 401
    assert listed(port, "octavo_guess")[0] == 401


def test_on_stdio_as_selects_the_agent(folder: Path) -> None:
    asked = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": "sop://hr/hiring"}},
    ]
    command = [sys.executable, "-m", "octavo", "serve", "--as", "agent-brand"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for message in asked:
            process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        answers = {answer["id"]: answer for answer in (json.loads(process.stdout.readline()) for _ in range(2))}
        process.stdin.close()
        assert process.wait(timeout=30) == 0
    assert answers[1]["result"]["serverInfo"]["name"] == "octavo"
    assert answers[2]["error"]["data"]["why"].startswith("HR procedures are not for the brand agent")
