"""What a rule hides cannot be told from what is not there: not by code, not by words, not by length (B2, O13)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.security.absent import ERAS, WAYS, client, timing

pytestmark = [pytest.mark.anyio, pytest.mark.seed("B2", "O13")]


@pytest.mark.parametrize("era", ERAS)
async def test_every_way_to_ask_gives_the_same_answer(tmp_path: Path, era: str) -> None:
    async with client(tmp_path, era) as asking:
        for name, way in WAYS.items():
            for _ in range(3):  # also when caches are warm
                hidden, absent = await asking.ask(way, way.hidden), await asking.ask(way, way.absent)
                assert hidden == absent, name


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_open_is_answered_otherwise(tmp_path: Path, era: str) -> None:
    """Or the ways would ask for nothing."""
    told = {
        "complete": "open/plan",
        "a tool": "list",
        "a tool of the lane": "list",
        "a prompt": "secret",
        "list below": "open/plan",
    }
    async with client(tmp_path, era) as asking:
        for name, way in WAYS.items():
            there = told.get(name, "brand/plain" if "sop" in name or "metadata" in name else "open/plan")
            if (
                name in ("read, below", "tool delete", "tool move", "tool copy", "a prompt", "subscribe")
                or "vers" in name
                or "view" in name
            ):
                continue
            assert await asking.ask(way, there) != await asking.ask(way, way.absent), name


async def test_the_times_can_be_compared(tmp_path: Path) -> None:
    async with client(tmp_path, "modern") as asking:
        told = await timing(asking, WAYS["read file"], 3)
    assert told.hidden > 0 < told.absent and 0 <= told.longer <= 1
