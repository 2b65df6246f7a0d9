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


BREACHES = {
    "sources/other.py": ("import octavo.pipeline", "octavo.sources.other ->"),
    "sources/wire.py": ("import mcp", "octavo.sources.wire ->"),
    "pipeline/limits.py": ("import octavo.config", "octavo.pipeline.limits ->"),
    "config/rules.py": ("import octavo.pipeline", "octavo.config.rules ->"),
    "sources/git/borrows.py": ("import octavo.sources.file", "octavo.sources.git.borrows ->"),
    "sources/file/reads.py": ("import octavo.config.load", "octavo.sources.file.reads ->"),
    "app/looks.py": ("import octavo.sources.file.options", "octavo.app.looks ->"),
}


@pytest.mark.parametrize("place", BREACHES)
def test_a_breach_is_noticed(place: str, tmp_path: Path) -> None:
    """The contracts bite: a source that imports another room, a kind that imports another kind, and so on."""
    config = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(config[config.index("[tool.importlinter]") :], encoding="utf-8")
    contracts = tomllib.loads(config)["tool"]["importlinter"]["contracts"]
    rooms = {f"octavo.{room.strip()}" for layer in contracts[0]["layers"] for room in layer.split("|")}
    lists = ("modules", "source_modules", "forbidden_modules")
    named = {name for contract in contracts for key in lists for name in contract.get(key, ())}
    for name in sorted(one for one in rooms | named if one.startswith("octavo.")):
        folder = tmp_path.joinpath(*name.split("."))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
    (tmp_path / "octavo" / "__init__.py").touch()
    breach, told = BREACHES[place]
    (tmp_path / "octavo" / place).write_text(f"{breach}\n", encoding="utf-8")
    run = lint_imports(tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert told in run.stdout
