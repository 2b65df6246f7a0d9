"""A small count of `python -m tests.sources.file.replacements`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources.file.replacements import WAYS, run


@pytest.mark.slow
@pytest.mark.seed("F12")
def test_what_stands_in_the_place_of_a_root_is_served_and_told_and_nothing_is_written_beside_it(tmp_path: Path) -> None:
    figures = run(tmp_path.resolve(), len(WAYS), seed=3)
    assert figures.faults == []
    assert figures.ways.total() == len(WAYS) and figures.reads and figures.writes and figures.events, str(figures)
