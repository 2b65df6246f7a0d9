"""What a reader by number has heard is what has happened, however often the server is killed. `python -m
tests.feed.truth` is the long form."""

from __future__ import annotations

import pytest
from tests.feed.truth import of_postgres, of_sqlite
from tests.services.engines import Absent
from tests.services.fixtures import absent

pytestmark = [pytest.mark.anyio, pytest.mark.seed("B3", "A4"), pytest.mark.slow]


async def test_the_history_is_the_log_though_the_server_is_killed() -> None:
    outcome = await of_sqlite(changes=2_000, kills=3, seed=3)
    assert outcome.holds and (outcome.changes, outcome.kills) == (2_000, 3), outcome


async def test_two_servers_on_one_database_tell_the_log_once_though_it_is_restarted() -> None:
    try:
        outcome = await of_postgres(changes=400, kills=1, restarts=1, seed=3, servers=2)
    except Absent as why:
        absent(str(why))
    assert outcome.holds and (outcome.kills, outcome.restarts) == (1, 1), outcome
