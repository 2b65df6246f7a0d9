"""The small count of `python -m tests.security.slow_sockets`."""

import pytest
from tests.security.slow_sockets import run


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.seed("T7")
async def test_slow_sockets_are_closed_while_a_good_client_goes_on() -> None:
    figures = await run(60, headers=1, body=1, send=1)
    assert figures.held == 0
    assert sum(figures.closed.values()) == 60
    assert figures.good > 0
    assert figures.failed == 0
