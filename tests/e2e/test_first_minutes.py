"""The first minutes of three people, and the README in both languages, as scripts play them: no surprise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.mark.slow
@pytest.mark.parametrize("person", ["editor", "team", "author"])
def test_a_newcomer_meets_no_surprise(person: str) -> None:
    assert "no surprise" in played("first_minutes.py", "--agents", "2", "--only", person)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "README.ko.md"])
def test_every_command_of_the_readme_does_what_it_says(page: str) -> None:
    assert "commands, no surprise" in played("readme.py", "--only", page)


def played(script: str, *arguments: str) -> str:
    command = [sys.executable, str(BENCH / script), *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
