"""Swapping directories and files for links while they are read gives nothing from outside.

`OCTAVO_RACE_READS=1000000` makes it long; `python -m tests.security.race` prints the figures.
"""

import os
from pathlib import Path

import pytest
from tests.security.race import run

pytestmark = pytest.mark.anyio
READS = int(os.environ.get("OCTAVO_RACE_READS", "20000"))


@pytest.mark.slow
@pytest.mark.seed("F3")
@pytest.mark.parametrize("mode", ["openat2", "walk"])
async def test_no_read_in_a_race_gives_a_byte_from_outside(tmp_path: Path, mode: str) -> None:
    """Demand S2 of the security notes. Served and refused both happen, or there was no race."""
    figures = await run(mode, READS, tmp_path)
    assert figures.leaks == 0, figures
    assert figures.served and figures.refused and figures.swaps, figures


@pytest.mark.slow
async def test_the_race_is_won_against_a_reader_that_checks_and_then_opens(tmp_path: Path) -> None:
    """A race that nobody loses would prove nothing."""
    for turn in range(10):
        figures = await run("naive", 20_000, tmp_path / str(turn))
        if figures.leaks:
            return
    raise AssertionError(f"the racer never won: {figures}")
