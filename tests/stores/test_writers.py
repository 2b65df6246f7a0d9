"""Several processes write the journal of one state, and a reader follows it. `python -m tests.stores.writers` is the
long form."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stores.writers import Crowd

pytestmark = pytest.mark.anyio


@pytest.mark.slow
async def test_writers_that_are_killed_leave_whole_transactions_in_one_order(tmp_path: Path) -> None:
    outcome = await Crowd(f"sqlite:{tmp_path}", schema="", writers=3, turns=40, kills=3, seed=7).run()
    assert outcome.faults == []
    assert outcome.killed == 3
    assert outcome.acknowledged >= 120
