"""A state of changes, tasks and approvals is moved and brought back whole. `python -m tests.stores.moving` is the long
form."""

from __future__ import annotations

from pathlib import Path

from tests.services.fixtures import first_postgres
from tests.stores.moving import APPROVALS, run


def test_nothing_is_lost_on_the_way_to_another_store_and_back(tmp_path: Path) -> None:
    service = first_postgres()
    result = run(tmp_path, service.url, service.schema, changes=2_500, tasks=20)
    assert (result.lost, result.strange) == (0, 0)
    assert result.records == 2_500
    assert result.pairs > 2_500 + 20 + APPROVALS
