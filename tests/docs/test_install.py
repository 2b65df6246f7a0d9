"""Nothing presumes a published package, and what is built holds everything that it needs."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from octavo.cli.client_files.records import CLIENTS

PUBLISHED = re.compile(
    r"(?:pip|pipx|uv tool|uv pip|uv)\s+(?:install|inject|add|run)\s+(?:-\S+\s+)*"
    r"['\"]?octavo(?![\w-]*[.@/])(?!\[[^\]]*\] @)"
    r"|uvx\s+octavo\b|pipx run octavo\b|npx\s+octavo\b"
)


@pytest.mark.parametrize(
    ("line", "presumes"),
    [
        ("pip install octavo", True),
        ("pip install 'octavo[git]'", True),
        ("pipx install octavo[pdf]", True),
        ("uvx octavo serve DIR", True),
        ("uv tool install octavo", True),
        ("uvx --from ./octavo-0.1.0.whl octavo serve DIR", False),
        ("pipx install ./octavo-0.1.0-py3-none-any.whl", False),
        ('uv tool install "octavo[pdf] @ ./octavo-0.1.0-py3-none-any.whl"', False),
    ],
)
def test_the_rule_bites(line: str, presumes: bool) -> None:
    assert bool(PUBLISHED.search(line)) is presumes


def test_no_page_and_no_message_presumes_a_published_package(root: Path) -> None:
    found = []
    for folder in ("docs", "src", "examples", "bench", "conformance", "schema"):
        found += [
            path for path in (root / folder).rglob("*") if path.suffix in (".md", ".py", ".toml", ".yaml", ".json")
        ]
    found = [path for path in (*found, *root.glob("*.md"), root / "Makefile") if "node_modules" not in path.parts]
    assert len(found) > 100
    assert [
        f"{path.relative_to(root)}: {match[0]}"
        for path in found
        for match in PUBLISHED.finditer(path.read_text(encoding="utf-8"))
    ] == []


def test_every_client_and_every_extra_has_its_row(book: Any, root: Path) -> None:
    page = book["docs/install.md"]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [name for name in (*CLIENTS, *project["optional-dependencies"]) if f"| `{name}` |" not in page] == []
    for client in CLIENTS.values():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{client.name}` |"))
        assert all(f"`{place}`" in row for place in client.project[:1]), row


def test_the_wheel_holds_the_whole_package_and_the_sdist_nothing_that_was_left_behind(
    root: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        held = {name: wheel.read(name) for name in wheel.namelist() if name.startswith("octavo/")}
    package = {
        path.relative_to(root / "src").as_posix(): path.read_bytes()
        for path in (root / "src" / "octavo").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    example = {
        f"octavo/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in (root / "examples" / "maison-haru").rglob("*")
        if path.is_file() and not {".keys", ".octavo"} & {*path.parts}
    }
    assert {name for name, data in {**package, **example}.items() if held.get(name) != data} == set()
    assert {"octavo/messages/en.toml", "octavo/messages/ko.toml", "octavo/py.typed"} <= set(held)
    assert "octavo/examples/maison-haru/octavo.yaml" in held
    assert set(held) - set(package) - set(example) == set(), "nothing else"
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as sdist:
        parts = {part for name in sdist.getnames() for part in Path(name).parts}
    assert {"src", "tests", "docs", "Makefile"} <= parts
    assert parts & {".venv", ".build", "node_modules", ".keys", ".octavo", ".tools", "__pycache__"} == set()
