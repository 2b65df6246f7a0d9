"""The judged questions of `bench/quality.py`, over fewer documents (B6)."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.mark.seed("B6")
def test_the_judged_questions_are_answered_and_better_than_by_plain_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    quality = importlib.import_module("quality")
    documents, asked = quality.generated(others=400)
    assert len(asked) >= 120

    def result(way: str) -> tuple[float, float]:
        recall, mrr, _ = quality.measured(getattr(quality, way)(documents), asked)["all"]
        return recall, mrr

    recall, mrr = result("octavo")
    assert recall >= quality.RECALL and mrr >= quality.MRR
    for plain in ("trigram", "substring"):
        assert recall > result(plain)[0] and mrr > result(plain)[1]
