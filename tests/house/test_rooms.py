"""The rooms as import contracts: who may know whom."""

import ast
import itertools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.sources.kinds import Registry

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "octavo"


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


KINDS = frozenset(Registry().names)
PLACES_OF_KINDS = ("sources/kinds.py", "sources/file/", "sources/git/", "sources/memory/", "sources/catalog/")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SRC.rglob("*.py")):
        yield path.relative_to(SRC).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_core_imports_the_standard_library_and_msgspec_alone() -> None:
    """From the other side: whatever else is installed one day is none of them."""
    foreign = {
        (place, name)
        for place, tree in modules()
        if place.startswith("core/")
        for name in imported(tree)
        if name.split(".")[0] not in {*sys.stdlib_module_names, "msgspec"} and not name.startswith("octavo.core")
    }
    assert foreign == set()


def test_the_contract_of_core_names_all_that_is_installed_with_octavo() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    [contract] = [one for one in contracts if one["name"].startswith("core is made of")]
    called = {
        "google-re2": "re2",
        "pyjwt": "jwt",
        "pyyaml": "yaml",
        "ruamel.yaml": "ruamel",
        "pillow": "PIL",
        "opentelemetry-sdk": "opentelemetry",
        "opentelemetry-exporter-otlp-proto-http": "opentelemetry",
    }
    wanted = [
        *project["project"]["dependencies"],
        *itertools.chain(*project["project"]["optional-dependencies"].values()),
    ]
    names = {re.split(r"[<>=;\[ ]", one)[0] for one in wanted} - {"msgspec"}
    assert {called.get(name, name.replace("-", "_")) for name in names} <= {*contract["forbidden_modules"]}


def test_every_kind_is_among_those_that_know_no_other() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    [contract] = [one for one in contracts if one["name"] == "Kinds know no other kind"]
    folders = {path.parent.name for path in (SRC / "sources").glob("*/kind.py")}
    assert {*contract["modules"]} == {f"octavo.sources.{name}" for name in folders}
    assert {place.split("/")[1] for place in PLACES_OF_KINDS if place.endswith("/")} == folders


def names_a_kind(node: ast.AST) -> bool:
    """`one.kind == "sop"`, `{"kind": "file"}`, `kind: file` in a text, `DECLARATIONS["doc"]`."""
    if isinstance(node, ast.Compare):
        asked = ast.unparse(node.left).rpartition(".")[2] == "kind"
        return asked and any(is_kind(one) for other in node.comparators for one in ast.walk(other))
    if isinstance(node, ast.Dict):
        return any(ast.unparse(key) == "'kind'" and is_kind(one) for key, one in zip(node.keys, node.values) if key)
    if isinstance(node, ast.Subscript):
        return ast.unparse(node.value).endswith(("KINDS", "DECLARATIONS")) and is_kind(node.slice)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.search(rf"[{{ ]kind: ({'|'.join(KINDS)})[,}}]", node.value) is not None
    return False


def is_kind(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in KINDS


def test_only_the_registry_names_kinds() -> None:
    naming = {
        f"{place}:{getattr(node, 'lineno', 0)}"
        for place, tree in modules()
        if not place.startswith(PLACES_OF_KINDS)
        for node in ast.walk(tree)
        if names_a_kind(node)
    }
    assert naming == set()


@pytest.mark.parametrize(
    "code",
    ['part.kind == "sop"', 'kind in ("agent", "x")', 'made = {"kind": "file", "roots": []}', 'DECLARATIONS["doc"]',
     'text = f"  {name}: {{kind: file, roots: {roots}}}"'],
)  # fmt: skip
def test_a_kind_that_is_named_elsewhere_is_noticed(code: str) -> None:
    assert any(map(names_a_kind, ast.walk(ast.parse(code))))


BREACHES = {
    "sources/other.py": ("import octavo.pipeline", "octavo.sources.other ->"),
    "sources/wire.py": ("import mcp", "octavo.sources.wire ->"),
    "pipeline/limits.py": ("import octavo.config", "octavo.pipeline.limits ->"),
    "config/rules.py": ("import octavo.pipeline", "octavo.config.rules ->"),
    "sources/git/borrows.py": ("import octavo.sources.file", "octavo.sources.git.borrows ->"),
    "sources/file/reads.py": ("import octavo.config.load", "octavo.sources.file.reads ->"),
    "app/looks.py": ("import octavo.sources.file.options", "octavo.app.looks ->"),
    "cli/looks.py": ("import octavo.sources.git", "octavo.cli.looks ->"),
    "core/values.py": ("import pydantic", "octavo.core.values ->"),
    "config/texts.py": ("import octavo.text", "octavo.config.texts ->"),
    "config/adapted.py": ("import octavo.sources.kinds", "octavo.config.adapted ->"),
    "app/speaks.py": ("import mcp", "octavo.app.speaks ->"),
    "cli/serves.py": ("import uvicorn", "octavo.cli.serves ->"),
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
