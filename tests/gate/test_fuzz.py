"""The hot lane against the SDK on requests that go wrong (performance.md §6).

`OCTAVO_GATE_CASES` sets how many (10 000 unless told, a million at night), `OCTAVO_GATE_SEED` repeats a run.
A difference that is found becomes a named case in `corpus.py` or in `test_named.py`.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random, SystemRandom

import pytest
from tests.gate import fuzz
from tests.gate.corpus import ERAS, WITH_LANE
from tests.gate.twins import Differs, houses, stdio_twins, web_twins
from tests.gate.world import KEYS

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("clock"), pytest.mark.slow]

CASES = int(os.environ.get("OCTAVO_GATE_CASES", "10000"))
SEED = int(os.environ.get("OCTAVO_GATE_SEED", SystemRandom().randrange(1 << 32)))
A_CONNECTION = 100  # cases on one connection


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.seed("A2", "A7", "B2")
async def test_no_line_on_stdio_tells_lane_and_SDK_apart(folder: Path, era: str) -> None:
    random = Random(f"{SEED} {era}")
    print(f"OCTAVO_GATE_SEED={SEED}")
    cases = CASES * (16 if era in WITH_LANE else 2) // 100
    hits = 0
    async with houses(folder) as pair:
        for first in range(0, cases, A_CONNECTION):
            who = random.choice(("brand", "hr", "nobody"))
            async with stdio_twins(pair, who) as twins:
                await twins.open(era)
                for number in range(first, min(first + A_CONNECTION, cases)):
                    try:
                        await twins.script(fuzz.steps(random, era))
                    except Differs as difference:
                        raise Differs(f"OCTAVO_GATE_SEED={SEED}, {era}, case {number}: {difference}") from None
                hits += twins.hits
    assert hits > cases / 20 or cases < 500 or era not in WITH_LANE


@pytest.mark.seed("A2", "A7", "B2")
async def test_no_beginning_of_a_connection_tells_lane_and_SDK_apart(folder: Path) -> None:
    random = Random(f"{SEED} opening")
    print(f"OCTAVO_GATE_SEED={SEED}")
    hits = 0
    async with houses(folder) as pair:
        for number in range(CASES * 3 // 100):
            async with stdio_twins(pair, "brand") as twins:
                for lines in fuzz.opening(random):
                    try:
                        await twins.same(*lines)
                    except Differs as difference:
                        raise Differs(f"OCTAVO_GATE_SEED={SEED}, opening {number}: {difference}") from None
                hits += twins.hits
    assert hits or CASES < 1000


@pytest.mark.seed("A2", "A7", "B2")
async def test_no_exchange_over_HTTP_tells_lane_and_SDK_apart(folder: Path) -> None:
    random = Random(f"{SEED} http")
    print(f"OCTAVO_GATE_SEED={SEED}")
    cases = CASES * 45 // 100
    async with houses(folder) as pair, web_twins(pair) as twins:
        for number in range(cases):
            body, headers, how = fuzz.exchange(random, random.choice([*KEYS.values()]))
            try:
                await twins.same(body, headers, **how)
            except Differs as difference:
                raise Differs(f"OCTAVO_GATE_SEED={SEED}, http, case {number}: {difference}") from None
        assert twins.hits > cases / 20 or cases < 500
