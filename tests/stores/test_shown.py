"""Who was shown untrusted content: every server on the store knows, for the longest time that one of them wants."""

from __future__ import annotations

import pytest
from tests.stores.stored import made, opens

from octavo.core.clock import FrozenClock
from octavo.core.ports.stores import LOST, Opens
from octavo.stores.shown import StoredShown

__all__ = ["made", "opens"]

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T5")]


async def test_it_is_known_to_others_for_the_longest_time_that_anybody_wants(opens: Opens) -> None:
    clock = FrozenClock()
    shown, other = StoredShown(opens, clock=clock), StoredShown(opens, clock=clock)
    await shown.note("kim", 3600.0)
    await other.note("kim", 4.0)
    assert await other.left("kim", 4.0) == 3600.0 and await other.left("lee", 3600.0) == 0.0
    clock.advance(3601)
    assert await shown.left("kim", 3600.0) == 0.0


async def test_of_a_store_that_was_lost_nobody_can_say_so_it_is_everybody(opens: Opens) -> None:
    clock = FrozenClock()
    shown = StoredShown(opens, clock=clock)
    await (await opens()).keys.set(LOST, repr(clock.wall()).encode())
    clock.advance(100)
    assert await shown.left("anybody", 3600.0) == 3500.0
    clock.advance(3501)
    assert await shown.left("anybody", 3600.0) == 0.0
