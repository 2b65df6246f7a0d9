"""The judged requests of `bench/matching.py`, through the whole product (O4)."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[3] / "bench"


@pytest.fixture
def matching(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("matching")


@pytest.mark.anyio
@pytest.mark.seed("O4")
async def test_the_skill_that_a_request_means_comes_first(matching: ModuleType) -> None:
    asked = matching.requests(matching.JUDGED)
    assert len(asked) >= 60 and {one.lang for one in asked} == {"ko", "en", "mixed"}
    results = await matching.judged(asked)
    assert matching.share(results) >= matching.TOP_1, [one for one in results if not one.first]


@pytest.mark.anyio
@pytest.mark.seed("O4", "O14")
async def test_a_skill_that_a_caller_may_not_read_is_never_among_its_matches(matching: ModuleType) -> None:
    results = await matching.judged(matching.requests(matching.JUDGED), who="agent-hr")
    assert {uri.split("/")[2] for one in results for uri in one.found} == {"hr"}
