"""The rooms as import contracts: who may know whom."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint_imports(project: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        "import sys; from importlinter.cli import lint_imports_command as run; sys.exit(run())",
    ]
    return subprocess.run(
        [*command, "--no-cache", "--config", str(project / "pyproject.toml")],
        cwd=project, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip


def test_the_import_contracts_hold() -> None:
    run = lint_imports(ROOT)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_room_has_said_where_it_stands() -> None:
    """`exhaustive` makes a new room an error; this says so in words, and that no room was forgotten."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ][0]
    assert contract["exhaustive"] is True
    named = {room.strip() for layer in contract["layers"] for room in layer.split("|")}
    named |= {name.rpartition(".")[2] for name in contract.get("exhaustive_ignores", ())}
    package = ROOT / "src" / "octavo"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")} | {path.stem for path in package.glob("*.py")}
    assert rooms - named <= {"__init__"}


@pytest.mark.parametrize("breach", ["import octavo.pipeline.chain", "import mcp"])
def test_a_breach_is_noticed(breach: str, tmp_path: Path) -> None:
    """The contracts bite: a source that imports another room, or the SDK, is refused."""
    config = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(config[config.index("[tool.importlinter]") :], encoding="utf-8")
    rooms = tomllib.loads(config)["tool"]["importlinter"]["contracts"][0]["layers"]
    for room in (room.strip() for layer in rooms for room in layer.split("|")):
        (tmp_path / "octavo" / room).mkdir(parents=True)
        (tmp_path / "octavo" / room / "__init__.py").touch()
    (tmp_path / "octavo" / "__init__.py").touch()
    (tmp_path / "octavo" / "pipeline" / "chain.py").touch()
    (tmp_path / "octavo" / "sources" / "__init__.py").write_text(f"{breach}\n", encoding="utf-8")
    run = lint_imports(tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "octavo.sources ->" in run.stdout
