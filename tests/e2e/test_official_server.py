"""The toolset `filesystem` beside the real official server: the same words, and each difference that docs tell.

Demands: B6, T2. Both serve the same folder, made anew for each, and are asked the same.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.e2e.harness import conformance, node_command

pytestmark = pytest.mark.seed("B6", "T2")

ROOT = Path(__file__).resolve().parents[2]
ENTRY = Path("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")


class Said(NamedTuple):
    refused: bool
    text: str

    @property
    def message(self) -> str:
        """Of a refusal: Octavo's stands in an object."""
        try:
            told = json.loads(self.text)
        except ValueError:
            return self.text
        return str(told["message"]) if isinstance(told, dict) and "message" in told else self.text


class Server:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self._number = process, 0

    def ask(self, method: str, params: Any) -> Any:
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self._number:
                return answer
        raise AssertionError("it has ended")

    def send(self, message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def call(self, name: str, **arguments: Any) -> Said:
        answer = self.ask("tools/call", {"name": name, "arguments": arguments})
        if "error" in answer:
            return Said(True, json.dumps(answer["error"]))
        result = answer["result"]
        return Said(bool(result.get("isError")), result["content"][0]["text"])


def laid_out(base: Path) -> Path:
    shutil.rmtree(base, ignore_errors=True)
    work = base / "work"
    (work / "docs").mkdir(parents=True)
    (work / "empty").mkdir()
    (work / "a.md").write_text("x x\nline two\n", encoding="utf-8")
    (work / "docs" / "b.md").write_text("beta", encoding="utf-8")
    (work / ".env").write_text("KEY=1", encoding="utf-8")
    (base / "s.md").write_text("outside", encoding="utf-8")
    (work / "link.md").symlink_to(base / "s.md")
    return work


@contextmanager
def started(command: list[str], base: Path) -> Iterator[Server]:
    environ = {**os.environ, "XDG_STATE_HOME": str(base.parent / "state")}
    process = subprocess.Popen(
        command, cwd=base, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None and process.stdout is not None
    server = Server(process)
    try:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        assert "result" in server.ask("initialize", hello)
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield server
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server, Path]]:
    """The official server, Octavo, and the folder that each of them has for its own, at one path below its base."""
    base = tmp_path_factory.mktemp("both")
    official = conformance().install("official", ROOT / "bench" / "node") / ENTRY
    theirs, ours = laid_out(base / "theirs"), laid_out(base / "ours")
    octavo = [sys.executable, "-m", "octavo", "serve", str(ours), "--write", "--toolsets", "filesystem"]
    with (
        started(node_command(official, theirs), base / "theirs") as their_server,
        started(octavo, base / "ours") as our_server,
    ):
        yield their_server, our_server, base


def asked(both: tuple[Server, Server, Path], tool: str, **arguments: Any) -> tuple[Said, Said]:
    """What both say; `@` stands for the folder, in arguments and in answers."""
    said = []
    for server, name in zip(both[:2], ("theirs", "ours"), strict=True):
        folder = str(both[2] / name / "work")
        given = json.loads(json.dumps(arguments).replace("@", folder))
        answer = server.call(tool, **given)
        said.append(Said(answer.refused, answer.text.replace(folder, "@")))
    return said[0], said[1]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_text_file", {"path": "@/nope.md"}),
        ("read_text_file", {"path": "/etc/passwd"}),
        ("read_text_file", {"path": "@/docs"}),
        ("read_text_file", {"path": "@/a.md", "head": 1, "tail": 1}),
        ("read_media_file", {"path": "@/nope.png"}),
        ("list_directory", {"path": "@/nope"}),
        ("list_directory", {"path": "@/a.md"}),
        ("list_directory", {"path": "/etc"}),
        ("list_directory_with_sizes", {"path": "@/nope"}),
        ("directory_tree", {"path": "@/nope"}),
        ("search_files", {"path": "@/nope", "pattern": "*"}),
        ("get_file_info", {"path": "@/nope"}),
        ("write_file", {"path": "/etc/x", "content": "x"}),
        ("edit_file", {"path": "@/nope.md", "edits": [{"oldText": "a", "newText": "y"}]}),
        ("move_file", {"source": "@/a.md", "destination": "@/docs/b.md"}),
        ("move_file", {"source": "@/nope.md", "destination": "@/n.md"}),
        ("create_directory", {"path": "@/a.md"}),
        ("create_directory", {"path": "/etc/x"}),
    ],
)
def test_a_refusal_begins_with_its_words(
    both: tuple[Server, Server, Path], tool: str, arguments: dict[str, Any]
) -> None:
    theirs, ours = asked(both, tool, **arguments)
    assert theirs.refused and ours.refused
    assert ours.message.startswith(theirs.text), (theirs, ours)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_text_file", {"path": "@/a.md"}),
        ("read_text_file", {"path": "@/a.md", "head": 1}),
        ("read_multiple_files", {"paths": ["@/a.md", "@/nope.md"]}),
        ("list_directory", {"path": "@/docs"}),
        ("list_directory", {"path": "@/empty"}),
        ("list_allowed_directories", {}),
        ("search_files", {"path": "@", "pattern": "**/*.zzz"}),
        ("search_files", {"path": "@", "pattern": "**/b.md"}),
    ],
)
def test_an_answer_is_the_same(both: tuple[Server, Server, Path], tool: str, arguments: dict[str, Any]) -> None:
    theirs, ours = asked(both, tool, **arguments)
    assert ours == theirs


def test_what_remains_different(both: tuple[Server, Server, Path]) -> None:
    """Each line of docs/tools.md: when the official server no longer does otherwise, the page is wrong."""
    theirs, ours = asked(both, "read_text_file", path="@/link.md")
    assert theirs.text.startswith("Access denied - symlink target outside") and ours.message.startswith("ENOENT")
    theirs, ours = asked(both, "read_text_file", path="@/.env")
    assert theirs.text == "KEY=1" and ours.message.startswith("ENOENT")
    theirs, ours = asked(both, "edit_file", path="@/a.md", edits=[{"oldText": "no such", "newText": "y"}])
    assert theirs.text.startswith("Could not find exact match") and "is not in the text" in ours.message
    twice = [{"oldText": "x", "newText": "y"}]
    theirs, ours = asked(both, "edit_file", path="@/a.md", edits=twice, dryRun=True)
    assert not theirs.refused and ours.refused
    theirs, ours = asked(both, "write_file", path="@/new/folder/x.md", content="x")
    assert theirs.text.startswith("ENOENT") and not ours.refused
    theirs, ours = asked(both, "get_file_info", path="@/a.md")
    assert "permissions" in theirs.text and "permissions" not in ours.text
    theirs, ours = asked(both, "read_text_file")
    assert theirs.text.startswith("MCP error -32602: Input validation error") and "required property" in ours.message
    theirs, ours = asked(both, "nope")
    assert theirs.text.startswith("MCP error") and ours.message == "Unknown tool: nope"
