"""What a command does not need it does not import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = """
import json, sys
from octavo.cli.group import octavo
try:
    octavo(sys.argv[1:], prog_name="octavo")
except SystemExit:
    pass
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""

WHOLE = PROBE.replace('name.partition(".")[0]', "name")
PROTOCOL = {"mcp", "mcp_types", "starlette", "uvicorn"}


def modules(folder: Path, *args: str, probe: str = PROBE, given: str = "") -> set[str]:
    command = [sys.executable, "-c", probe, *args]
    done = subprocess.run(
        command, cwd=folder, input=given, capture_output=True, text=True, encoding="utf-8", timeout=60, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    "args",
    [
        ("--help",),
        ("check",),
        ("schema",),
        ("explain", "agent-brand", "read", "file://README.md"),
        ("ls",),
        ("audit", "verify"),
        ("audit", "query"),
        ("serve", "--help"),
        ("keys", "list"),
    ],
    ids=" ".join,
)
def test_these_do_not_import_the_protocol(args: tuple[str, ...], folder: Path) -> None:
    assert not modules(folder, *args) & PROTOCOL


@pytest.mark.parametrize("args", [("--help",), ("--version",), ("serve", "--help")], ids=" ".join)
def test_help_imports_next_to_nothing(args: tuple[str, ...], folder: Path) -> None:
    assert not modules(folder, *args) & {*PROTOCOL, "pydantic", "ruamel", "asyncio"}


@pytest.mark.parametrize("args", [("check",), ("ls",), ("keys", "list")], ids=" ".join)
def test_without_an_issuer_nothing_of_cryptography_is_imported(args: tuple[str, ...], folder: Path) -> None:
    assert not modules(folder, *args) & {"jwt", "cryptography", "httpx2", "httpcore2"}


@pytest.mark.parametrize("args", [("ls",), ("audit", "verify"), ("audit", "export")], ids=" ".join)
def test_without_checkpoints_nothing_signs(args: tuple[str, ...], folder: Path) -> None:
    assert "cryptography" not in modules(folder, *args)


def test_a_server_that_a_client_starts_loads_neither_a_second_reader_of_YAML_nor_one_of_TOML(empty: Path) -> None:
    """Both compile expressions when they are imported, and the client waits."""
    (empty / "octavo.yaml").write_text("sources: {f: {kind: file, roots: [./f]}}\n", encoding="utf-8")
    (empty / "f").mkdir()
    (empty / "f" / "README.md").write_text("# plain\n", encoding="utf-8")
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    found = modules(empty, "serve", "--config", "octavo.yaml", given=json.dumps(hello) + "\n")
    assert "mcp_types" in found
    assert found & {"yaml", "tomllib", "uvicorn", "cryptography"} == set()


def of_prompts(folder: Path) -> set[str]:
    found = modules(folder, "ls", probe=WHOLE)
    return {name for name in found if name.startswith(("octavo.prompts.", "octavo.core.languages", "minijinja"))}


def test_without_prompts_nothing_of_them_is_imported_but_their_registry(empty: Path) -> None:
    (empty / "octavo.yaml").write_text("sources: {f: {kind: file, roots: [./f]}}\n", encoding="utf-8")
    (empty / "f").mkdir()
    assert of_prompts(empty) == {"octavo.prompts.registry"}


def test_the_engine_is_imported_for_texts_that_need_it(empty: Path) -> None:
    (empty / "octavo.yaml").write_text("sources: {f: {kind: file, roots: [./f]}}\n", encoding="utf-8")
    (empty / "f").mkdir()
    (empty / "prompts").mkdir()
    body = "id: p\ndescription: d\nmessages: [{role: user, content: [{type: text, text: %s}]}]\n"
    (empty / "prompts" / "p.yaml").write_text(body % "hello", encoding="utf-8")
    assert not {name for name in of_prompts(empty) if "minijinja" in name or "engine" in name}
    (empty / "prompts" / "p.yaml").write_text(body % "'{% if true %}{% endif %}'", encoding="utf-8")
    assert "minijinja" in of_prompts(empty)
