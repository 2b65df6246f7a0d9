"""What a plugin lets slip into a log line does not leave by any command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.seed("T7")

REPOSITORY = Path(__file__).parents[2]
SECRET = "Zq7!mK2vR9xT4wL"

PLUGIN = f"""
class Broken:
    scheme = "broken"

    async def __aenter__(self):
        raise RuntimeError("password: {SECRET}")

    async def __aexit__(self, *args):
        pass

    async def list(self, scope, cursor=None, limit=100):
        raise RuntimeError("password: {SECRET}")

    async def stat(self, ref):
        raise RuntimeError("password: {SECRET}")

    async def read(self, ref, *, max_bytes):
        raise RuntimeError("password: {SECRET}")


def register(octavo):
    octavo.source(Broken())
"""

CONFIG = "sources: {d: {kind: file, roots: [./docs]}}\nplugins: [{path: ./broken_plugin.py}]\n"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("hello\n", encoding="utf-8")
    (tmp_path / "broken_plugin.py").write_text(PLUGIN, encoding="utf-8")
    (tmp_path / "octavo.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "args",
    [
        ("doctor",),
        ("ls",),
        ("ls", "broken://"),
        ("cat", "file://a.md"),
        ("scan",),
        ("tools",),
        ("explain", "local", "read", "file://a.md"),
    ],
    ids=" ".join,
)
def test_no_command_prints_what_a_broken_plugin_raised(args: tuple[str, ...], broken: Path) -> None:
    done = command(broken, *args)
    assert "RuntimeError" in done.stderr or "broken" in done.stderr + done.stdout
    assert SECRET not in done.stderr + done.stdout


@pytest.mark.seed("F10")
def test_doctor_names_the_page_for_a_plugin_that_is_broken(broken: Path) -> None:
    done = command(broken, "doctor")
    assert done.returncode == 1 and "broken does not answer" in done.stdout
    page = re.search(r"docs/[a-z/-]+\.md", done.stdout.partition("broken does not answer")[2])
    assert page is not None and page[0] == "docs/writing-a-source.md" and (REPOSITORY / page[0]).is_file()


def test_an_error_that_stops_a_plugin_from_loading_is_redacted(broken: Path) -> None:
    text = f"def register(octavo):\n    raise RuntimeError('password: {SECRET}')\n"
    (broken / "broken_plugin.py").write_text(text, encoding="utf-8")
    done = command(broken, "ls")
    assert done.returncode != 0 and "password: " in done.stderr
    assert SECRET not in done.stderr + done.stdout


def test_an_error_that_nobody_caught_is_a_log_line_too(broken: Path) -> None:
    program = f"from octavo.cli._logs import configure; configure(); raise RuntimeError('password: {SECRET}')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "octavo: CRITICAL: " in done.stderr and "RuntimeError" in done.stderr
    assert SECRET not in done.stderr


def command(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "octavo", *args],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
