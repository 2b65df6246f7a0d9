"""`octavo demo` makes a folder of the user's own, with keys that nobody else has."""

from __future__ import annotations

import json
import re
import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from octavo.cli.clients import Connection, ready_lines
from octavo.config.load import load

if TYPE_CHECKING:
    from conftest import Run


def keys(directory: Path) -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8").strip() for file in sorted((directory / ".keys").iterdir())}


def test_the_demo_is_a_copy_that_loads_without_warnings(run: Run, empty: Path) -> None:
    result = run("demo", "--no-serve")
    assert result.exit_code == 0
    made = empty / "octavo-demo"
    loaded = load(made / "octavo.yaml")
    assert loaded.warnings == ()
    assert len(list((made / "handbook").rglob("*.*"))) >= 12
    assert f"Made {made}" in result.stdout


def test_every_agent_has_a_key_that_only_its_owner_can_read(run: Run, empty: Path) -> None:
    result = run("demo", "--no-serve", "--dir", "one")
    run("demo", "--no-serve", "--dir", "two")
    one, two = keys(empty / "one"), keys(empty / "two")
    assert list(one) == list(load(empty / "one" / "octavo.yaml").config.agents)
    assert len({*one.values(), *two.values()}) == 4
    assert all(key in result.stdout for key in one.values())
    assert stat.S_IMODE((empty / "one/.keys").stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in (empty / "one/.keys").iterdir()} == {0o600}
    assert (empty / "one/.gitignore").read_text(encoding="utf-8") == ".keys/\n.octavo/\n"


def test_a_second_run_keeps_what_was_changed(run: Run, empty: Path) -> None:
    run("demo", "--no-serve")
    made = empty / "octavo-demo"
    (made / "handbook/README.md").write_text("mine\n", encoding="utf-8")
    before = keys(made)
    result = run("demo", "--no-serve")
    assert (result.exit_code, f"Found {made}" in result.stdout) == (0, True)
    assert ((made / "handbook/README.md").read_text(encoding="utf-8"), keys(made)) == ("mine\n", before)


def test_a_folder_that_holds_something_else_is_left_alone(run: Run, empty: Path) -> None:
    (empty / "other").mkdir()
    (empty / "other/notes.txt").write_text("x", encoding="utf-8")
    (empty / "own").mkdir()
    (empty / "own/octavo.yaml").write_text("version: 1\n", encoding="utf-8")
    for name in ("other", "own"):
        result = run("demo", "--no-serve", "--dir", name)
        assert (result.exit_code, "holds something else" in result.stderr) == (2, True)
        assert len(list((empty / name).iterdir())) == 1


def test_the_ready_lines_are_commands_and_json() -> None:
    url = "http://127.0.0.1:8321/mcp"
    connection = Connection(url, ("octavo", "serve", "--as", "agent-brand"), "agent-brand", "/tmp/a b/key")
    lines = dict(ready_lines(connection))
    assert set(lines) == {
        "first, in the shell", "Claude Code", "Claude Desktop, claude_desktop_config.json", "VS Code, .vscode/mcp.json",
        "Cursor, ~/.cursor/mcp.json", "Codex", "Gemini CLI", "Inspector", "curl",
    }  # fmt: skip
    for name, line in lines.items():
        if line.startswith("{"):
            assert json.loads(line), name
        else:
            assert shlex.split(line), name
    body = shlex.split(lines["curl"])[-1]
    assert json.loads(body)["method"] == "resources/list"


def test_the_handbook_speaks_both_languages(empty: Path, run: Run) -> None:
    run("demo", "--no-serve")
    for file in (empty / "octavo-demo/handbook").rglob("*.md"):
        text = file.read_text(encoding="utf-8")
        assert re.search("[가-힣]", text) and re.search("[A-Za-z]{4}", text), file
