"""The first five minutes: `octavo demo`, and every line that it prints taken at its word."""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import ERAS, LIMIT, Place, Server, octavo
from tests.e2e.python_client import linked, over_http

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

VOICE, SALARY = "file://sops/brand/voice.md", "file://sops/hr/salary-review.md"


class Demo:
    """A running demo, and what it printed."""

    def __init__(self, place: Place, server: Server, folder: Path) -> None:
        self.place, self.server, self.folder = place, server, folder

    @property
    def printed(self) -> str:
        return self.server.out.text

    def key(self, agent: str) -> str:
        found = re.search(rf"^  {agent} +(octavo_\S+)$", self.printed, re.MULTILINE)
        assert found, self.printed
        return found[1]

    def line(self, client: str) -> str:
        """What stands below the name of a client."""
        found = re.search(rf"^  {re.escape(client)}\n    (.+)$", self.printed, re.MULTILINE)
        assert found, self.printed
        return found[1]

    def commands(self) -> list[str]:
        block = self.printed.partition("In another terminal")[2].partition("Connect a client")[0]
        return [line.strip() for line in block.splitlines()[1:] if line.startswith("  ")]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    place, folder = Place(tmp_path), tmp_path / "demo"
    with place.start(*octavo("demo", "--dir", folder, "--port", str(free_port()))) as server:
        server.ready()
        yield Demo(place, server, folder)
    assert "Traceback" not in server.log.text


def free_port() -> int:
    """The demo prints its address before it listens, so it wants to know its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def shell(demo: Demo, *lines: str) -> str:
    """As somebody would who pastes the lines; `octavo` is the one under test."""
    program = shlex.join(octavo())
    done = subprocess.run(
        ["bash", "-c", "\n".join(["octavo() { " + program + ' "$@"; }', *lines])],
        cwd=demo.folder,
        env=demo.place.environment,
        capture_output=True,
        encoding="utf-8",
        timeout=2 * LIMIT,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.seed("O13", "O14")
def test_the_demo_prints_address_keys_and_lines(demo: Demo) -> None:
    assert f"Made {demo.folder}" in demo.printed
    assert demo.key("agent-brand") != demo.key("agent-orchestrator")
    for client in ("Claude Code", "VS Code, .vscode/mcp.json", "Cursor, ~/.cursor/mcp.json", "Codex", "Gemini CLI"):
        assert demo.server.url in demo.line(client), client
    desktop = json.loads(demo.line("Claude Desktop, claude_desktop_config.json"))["mcpServers"]["octavo"]
    assert desktop["args"][-2:] == ["--as", "agent-brand"]


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.seed("O13", "O14", "A4", "O9")
async def test_a_client_with_a_printed_key_reads_is_refused_and_hears_of_an_edit(demo: Demo, era: str) -> None:
    async with linked(over_http(demo.server.url, demo.key("agent-brand")), era) as link:
        uris = await link.uris()
        assert VOICE in uris and SALARY not in uris
        assert "#" in await link.text(VOICE)
        with pytest.raises(Exception, match="Access denied") as refused:
            await link.text(SALARY)
        told: Any = refused.value
        assert (told.error.code, told.error.data["agent"]) == (-32003, "agent-brand")
        assert told.error.data["why"].startswith("HR records are not for the brand agent")
        async with link.subscribed("file://sops/*"):
            file = demo.folder / "handbook/sops/brand/voice.md"
            file.write_text(file.read_text(encoding="utf-8") + "\nEdited.\n", encoding="utf-8")
            assert (await link.heard.updated(VOICE))["type"] == "resource/updated"
            assert "Edited." in await link.text(VOICE)
    async with linked(over_http(demo.server.url, demo.key("agent-orchestrator")), era) as link:
        assert "#" in await link.text(SALARY)


@pytest.mark.seed("O14")
def test_the_commands_to_try_do_what_they_say(demo: Demo) -> None:
    ls, cat, explain, watch, verify = demo.commands()
    assert VOICE in shell(demo, ls)
    assert "#" in shell(demo, cat)
    said = shell(demo, explain)
    assert "may not read" in said and "HR records are not for the brand agent" in said
    assert watch.startswith("octavo watch") or " watch " in watch
    assert "BROKEN" not in shell(demo, verify) and "ok " in shell(demo, verify)


@pytest.mark.seed("B10")
def test_the_curl_line_works_as_it_is_printed(demo: Demo) -> None:
    answer = json.loads(shell(demo, demo.line("first, in the shell"), demo.line("curl")))
    assert VOICE in [one["uri"] for one in answer["result"]["resources"]]


@pytest.mark.seed("B10")
def test_the_desktop_entry_starts_a_server_that_answers(demo: Demo) -> None:
    entry = json.loads(demo.line("Claude Desktop, claude_desktop_config.json"))["mcpServers"]["octavo"]
    arguments = entry["args"][entry["args"].index("serve") + 1 :]
    with demo.place.pipe(*arguments, era="legacy") as pipe:
        assert VOICE in [one["uri"] for one in pipe.ask("resources/list")["result"]["resources"]]
        assert pipe.ask("resources/read", {"uri": SALARY})["error"]["code"] == -32003


def test_a_port_that_is_taken_is_said_in_one_line(demo: Demo, tmp_path: Path) -> None:
    port = demo.server.url.split(":")[2].partition("/")[0]
    done = demo.place.run("demo", "--dir", tmp_path / "second", "--port", port)
    assert done.returncode == 1
    assert done.stderr == f"octavo: error: Cannot listen on 127.0.0.1:{port}: Address already in use\n"
