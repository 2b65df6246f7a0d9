"""The policy decides as Cedar, patterns match as wcmatch: a small count of `python -m tests.security.oracle`."""

from __future__ import annotations

import pytest
from tests.security.oracle import against_cedar, against_wcmatch


@pytest.mark.seed("O14", "B2")
def test_rules_roles_conditions_and_denies_decide_as_in_cedar() -> None:
    pytest.importorskip("cedarpy")
    figures = against_cedar(policies=20, requests=100)
    assert figures.disagreements == 0
    assert figures.decisions == 2000
    assert figures.allowed > 100
    assert figures.conditional > 100


def test_patterns_match_as_in_wcmatch() -> None:
    figures = against_wcmatch(patterns=2000)
    assert figures.disagreements == 0
    assert figures.allowed > 20
