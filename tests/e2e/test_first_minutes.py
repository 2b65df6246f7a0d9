"""The first minutes of three people, as `bench/first_minutes.py` plays them: no surprise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "first_minutes.py"


@pytest.mark.slow
@pytest.mark.parametrize("person", ["editor", "team", "author"])
def test_a_newcomer_meets_no_surprise(person: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--agents", "2", "--only", person],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0 and "no surprise" in done.stdout, done.stdout + done.stderr
