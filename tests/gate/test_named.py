"""The named differences: each of these once told lane and SDK apart, or would without one of the lane's checks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.gate import tricky
from tests.gate.corpus import ERAS
from tests.gate.twins import houses, stdio_twins, web_twins
from tests.gate.world import KEYS

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("clock")]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.seed("A2", "A7")
async def test_named_lines(folder: Path, era: str) -> None:
    async with houses(folder) as pair, stdio_twins(pair, "brand") as twins:
        await twins.open(era)
        await twins.script(tricky.lines(era))


@pytest.mark.seed("A2", "A7", "B2")
async def test_named_exchanges(folder: Path) -> None:
    async with houses(folder) as pair, web_twins(pair) as twins:
        for body, headers in tricky.exchanges(KEYS["BRAND_KEY"], KEYS["NOBODY_KEY"]):
            await twins.same(body, headers)
        assert twins.hits > 5
