"""A demo folder, and the command line on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from click.testing import CliRunner, Result

from octavo.cli.demo import make
from octavo.cli.group import octavo

Run: TypeAlias = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """`run("check", "--json")`: stdout and stderr apart."""

    def invoke(*args: object) -> Result:
        return CliRunner().invoke(octavo, [str(arg) for arg in args], prog_name="octavo", catch_exceptions=False)

    return invoke


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo, as the working directory."""
    made = tmp_path / "demo"
    assert make(made)
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without a configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path
