"""The first five minutes: `octavo demo`, and every line that it prints taken at its word."""

from __future__ import annotations

import contextlib
import json
import random
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

BRIEF, SALARY = "sop://brand/campaign-brief", "sop://hr/salary-policy"
AGENTS = ("agent-brand", "agent-finance", "agent-hr", "agent-ops", "agent-orchestrator")


class Demo:
    """A running demo, and what it printed."""

    def __init__(self, place: Place, server: Server, folder: Path) -> None:
        self.place, self.server, self.folder = place, server, folder

    @property
    def printed(self) -> str:
        return self.server.out.text

    def key(self, agent: str) -> str:
        """What stands in the file that was printed."""
        found = re.search(rf"^  {agent} +(/.+)$", self.printed, re.MULTILINE)
        assert found, self.printed
        return Path(found[1]).read_text(encoding="utf-8").strip()

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
        server.out.wait_for(r"^    curl ")  # the last of what is printed, which comes by another way than readiness
        yield Demo(place, server, folder)
    assert "Traceback" not in server.log.text


def free_port() -> int:
    """The demo takes no port 0: one of those that the system does not give to whoever asks for any."""
    while True:
        port = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
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
    assert len({demo.key(agent) for agent in AGENTS}) == len(AGENTS)
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
        assert BRIEF in uris and SALARY not in uris
        assert "#" in await link.text(BRIEF)
        with pytest.raises(Exception, match="Access denied") as refused:
            await link.text(SALARY)
        told: Any = refused.value
        assert (told.error.code, told.error.data["agent"]) == (-32003, "agent-brand")
        assert told.error.data["why"].startswith("HR procedures are not for the brand agent")
        async with link.subscribed("sop://brand/*"):
            text = (demo.folder / "handbook/sops/brand/campaign-brief.md").read_text(encoding="utf-8")
            edited = text.replace("\nversion: 1.2.0\n", "\nversion: 1.3.0\n") + "\nEdited.\n"
            (demo.folder / "new").write_text(edited, encoding="utf-8")
            (demo.folder / "new").replace(demo.folder / "handbook/sops/brand/campaign-brief.md")
            event = await link.heard.updated(BRIEF)
            assert (event["type"], event["changes"]["version"]) == ("resource/updated", ["1.2.0", "1.3.0"])
            assert "Edited." in await link.text(BRIEF)
    async with linked(over_http(demo.server.url, demo.key("agent-hr")), era) as link:
        assert "#" in await link.text(SALARY)
    async with linked(over_http(demo.server.url, demo.key("agent-orchestrator")), era) as link:
        assert "#" in await link.text("sop://hr/onboarding")
        with pytest.raises(Exception, match="Access denied"):
            await link.text(SALARY)


@pytest.mark.seed("O14")
def test_the_commands_to_try_do_what_they_say(demo: Demo) -> None:
    ls, cat, refused, explain, match, watch, check, verify = demo.commands()
    assert BRIEF in shell(demo, ls)
    assert "# 캠페인 브리프 작성" in shell(demo, cat)
    assert "Access denied to resource: sop://hr/salary-policy (HR procedures are not" in shell(demo, refused)
    said = shell(demo, explain)
    assert "may not read" in said and "HR procedures are not for the brand agent" in said
    assert json.loads(shell(demo, match))["matches"][0]["uri"] == "skill://finance/budget-check"
    assert watch.startswith("octavo watch") or " watch " in watch
    assert "warning" not in shell(demo, check) and "error" not in shell(demo, check)
    assert "BROKEN" not in shell(demo, verify) and "ok " in shell(demo, verify)


@pytest.mark.seed("B10")
def test_the_curl_line_works_as_it_is_printed(demo: Demo) -> None:
    answer = json.loads(shell(demo, demo.line("first, in the shell"), demo.line("curl")))
    assert BRIEF in [one["uri"] for one in answer["result"]["resources"]]


@pytest.mark.seed("B10")
def test_the_desktop_entry_starts_a_server_that_answers(demo: Demo) -> None:
    entry = json.loads(demo.line("Claude Desktop, claude_desktop_config.json"))["mcpServers"]["octavo"]
    arguments = entry["args"][entry["args"].index("serve") + 1 :]
    with demo.place.pipe(*arguments, era="legacy") as pipe:
        assert BRIEF in [one["uri"] for one in pipe.ask("resources/list")["result"]["resources"]]
        assert pipe.ask("resources/read", {"uri": SALARY})["error"]["code"] == -32003


def test_a_port_that_is_taken_is_said_in_one_line(demo: Demo, tmp_path: Path) -> None:
    port = demo.server.url.split(":")[2].partition("/")[0]
    done = demo.place.run("demo", "--dir", tmp_path / "second", "--port", port)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"octavo: error: Cannot listen on 127.0.0.1:{port}: Address already in use (")
    assert len(done.stderr.splitlines()) == 1
