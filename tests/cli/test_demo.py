"""`octavo demo` makes a folder of the user's own, with keys that nobody else has."""

from __future__ import annotations

import json
import shlex
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from octavo.app.configuration import load
from octavo.cli.demo import ConnectionDetails, ready_lines
from octavo.config.load import Loaded
from octavo.config.units import Bind

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
    checked = run("check", "--config", made / "octavo.yaml")
    assert (checked.exit_code, checked.stderr) == (0, ""), "no problem, and nothing odd"
    assert len(list((made / "handbook").rglob("*.*"))) >= 80
    assert f"Made {made}" in result.stdout


def test_every_agent_has_a_key_that_only_its_owner_can_read(run: Run, empty: Path) -> None:
    result = run("demo", "--no-serve", "--dir", "one")
    run("demo", "--no-serve", "--dir", "two")
    one, two = keys(empty / "one"), keys(empty / "two")
    assert list(one) == list(load(empty / "one" / "octavo.yaml").config.agents)
    assert len({*one.values(), *two.values()}) == 10
    assert not any(key in result.stdout for key in one.values()), "keys are shown by file, never in clear"
    assert all(str(empty / "one/.keys" / name) in result.stdout for name in one)
    assert stat.S_IMODE((empty / "one/.keys").stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in (empty / "one/.keys").iterdir()} == {0o600}
    assert (empty / "one/.gitignore").read_text(encoding="utf-8") == ".keys/\n.octavo/\n"


def test_a_second_run_keeps_what_was_changed(run: Run, empty: Path) -> None:
    run("demo", "--no-serve")
    made = empty / "octavo-demo"
    (made / "README.md").write_text("mine\n", encoding="utf-8")
    before = keys(made)
    result = run("demo", "--no-serve")
    assert (result.exit_code, f"Found {made}" in result.stdout) == (0, True)
    assert ((made / "README.md").read_text(encoding="utf-8"), keys(made)) == ("mine\n", before)


def test_a_folder_that_holds_something_else_is_left_alone(run: Run, empty: Path) -> None:
    (empty / "other").mkdir()
    (empty / "other/notes.txt").write_text("x", encoding="utf-8")
    (empty / "own").mkdir()
    (empty / "own/octavo.yaml").write_text("version: 1\n", encoding="utf-8")
    for name in ("other", "own"):
        result = run("demo", "--no-serve", "--dir", name)
        assert (result.exit_code, "holds something else" in result.stderr) == (2, True)
        assert len(list((empty / name).iterdir())) == 1


def test_the_demo_is_served_where_its_configuration_says(
    run: Run, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[str] = []

    def serve_http(loaded: Loaded, *, bind: Bind, ready: Callable[[str], None], **_: object) -> None:
        served.append(str(bind))
        ready(f"http://{bind}/mcp")

    monkeypatch.setattr("octavo.app.serve.serve_http", serve_http)
    run("demo", "--no-serve")
    file = empty / "octavo-demo/octavo.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("127.0.0.1:8321", "127.0.0.1:8455"), encoding="utf-8")
    assert "http://127.0.0.1:8455/mcp" in run("demo").stdout
    assert "http://127.0.0.1:8500/mcp" in run("demo", "--port", 8500).stdout
    assert served == ["127.0.0.1:8455", "127.0.0.1:8500"]
    file.write_text(file.read_text(encoding="utf-8").replace("127.0.0.1:8455", '"unix:/run/x"'), encoding="utf-8")
    refused = run("demo")
    assert (refused.exit_code, "not at unix:/run/x: give --port" in refused.stderr) == (2, True), refused.stderr


def test_the_ready_lines_are_commands_and_json() -> None:
    url = "http://127.0.0.1:8321/mcp"
    connection = ConnectionDetails(url, ("octavo", "serve", "--as", "agent-brand"), "agent-brand", "/tmp/a b/key")
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


def test_the_demo_serves_a_checkout_where_it_is(run: Run, empty: Path) -> None:
    """As `make demo` does: the example itself, and the keys beside it."""
    run("demo", "--no-serve", "--dir", "checkout")
    shutil.rmtree(empty / "checkout/.keys")
    result = run("demo", "--no-serve", "--dir", "checkout")
    assert (result.exit_code, f"Found {empty / 'checkout'}" in result.stdout) == (0, True)
    assert len(keys(empty / "checkout")) == 5


def test_what_a_server_left_in_the_example_is_not_copied(
    run: Run, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("demo", "--no-serve", "--dir", "one")
    (empty / "one/.octavo").mkdir()
    monkeypatch.setattr("octavo.cli.demo._example", lambda: empty / "one")
    run("demo", "--no-serve", "--dir", "two")
    assert not (empty / "two/.octavo").exists()
    assert set(keys(empty / "one").values()).isdisjoint(keys(empty / "two").values())


@pytest.mark.slow
def test_the_wheel_holds_the_example_and_no_key(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=Path(__file__).parents[2], check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    held = zipfile.ZipFile(wheel).namelist()
    example = Path(__file__).parents[2] / "examples/maison-haru"
    files = {file.relative_to(example).as_posix() for file in example.rglob("*.*") if file.is_file()}
    expected = {name for name in files if not name.startswith((".keys/", ".octavo/"))}
    assert {name.removeprefix("octavo/examples/maison-haru/") for name in held if "/examples/" in name} == expected
    assert {"octavo/messages/en.toml", "octavo/messages/ko.toml"} <= set(held)
