"""The small count of `python -m tests.security.interleaved`."""

from pathlib import Path

import pytest
from tests.security.interleaved import run


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.seed("O14", "T7")
async def test_nobody_gets_a_byte_of_another_with_the_same_id(tmp_path: Path) -> None:
    figures = await run(30, 1500, tmp_path)
    assert figures.foreign == 0
    assert not figures.odd
    assert figures.own and figures.refused
