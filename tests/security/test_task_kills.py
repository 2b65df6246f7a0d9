"""A small count of what the command beside this file does at large."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.security import task_kills


@pytest.mark.slow
@pytest.mark.seed("T9")
def test_after_kills_every_handle_is_known_to_its_owner_and_to_nobody_else(tmp_path: Path) -> None:
    figures = task_kills.run(tmp_path, kills=1, seed=3)
    assert figures.good, figures
    assert figures.tasks and figures.handles_tried_by_others == figures.tasks
