"""Lines that connect common MCP clients, ready to be pasted."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import NamedTuple

KEY = "OCTAVO_KEY"  # the variable that the lines for a shell use
PROTOCOL = "2026-07-28"


class ConnectionDetails(NamedTuple):
    url: str
    command: tuple[str, ...]  # what a client starts that speaks stdio
    agent: str
    key_file: str


def ready_lines(to: ConnectionDetails) -> Iterator[tuple[str, str]]:
    """Client by client: its name, and what to run or where to paste."""
    bearer = f'"Authorization: Bearer ${KEY}"'
    header = {"Authorization": f"Bearer ${{env:{KEY}}}"}
    stdio = {"command": to.command[0], "args": list(to.command[1:])}
    yield "first, in the shell", f"export {KEY}=$(cat {shlex.quote(to.key_file)})   # you are {to.agent}"
    yield "Claude Code", f"claude mcp add --transport http octavo {to.url} --header {bearer}"
    yield "Claude Desktop, claude_desktop_config.json", _json({"mcpServers": {"octavo": stdio}})
    yield (
        "VS Code, .vscode/mcp.json",
        _json({"servers": {"octavo": {"type": "http", "url": to.url, "headers": header}}}),
    )
    yield "Cursor, ~/.cursor/mcp.json", _json({"mcpServers": {"octavo": {"url": to.url, "headers": header}}})
    yield "Codex", f"codex mcp add octavo --url {to.url} --bearer-token-env-var {KEY}"
    yield "Gemini CLI", f"gemini mcp add --transport http --header {bearer} octavo {to.url}"
    yield (
        "Inspector",
        f"npx @modelcontextprotocol/inspector --cli {to.url} --transport http --header {bearer}"
        " --method resources/list",
    )
    yield "curl", _curl(to.url, bearer)


def _curl(url: str, bearer: str) -> str:
    meta: dict[str, object] = {
        "io.modelcontextprotocol/protocolVersion": PROTOCOL,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = _json({"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {"_meta": meta}})
    headers = (
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {PROTOCOL}",
        "Mcp-Method: resources/list",
    )
    return f"curl -s {url} -H {bearer} {' '.join(f'-H {shlex.quote(one)}' for one in headers)} -d {shlex.quote(body)}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
