"""Small counts of what the commands beside this file do at large."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.audit import changes, kills, tampers


@pytest.mark.slow
@pytest.mark.seed("A7", "B7")
def test_after_kills_every_answered_request_has_one_record_and_every_other_at_most_one(tmp_path: Path) -> None:
    figures = kills.run(tmp_path, requests=900, kills=2, seed=7)
    assert figures.good, figures
    assert (figures.requests, figures.kills) == (900, 2)


@pytest.mark.slow
@pytest.mark.seed("A7")
def test_a_kill_at_any_point_of_a_change_leaves_its_intent_and_verify_names_it(tmp_path: Path) -> None:
    figures = changes.run(tmp_path, kills=6)
    assert figures.good, figures
    assert (figures.kills, figures.unfinished) == (6, 3), "announced, half recorded, and made without its outcome"


@pytest.mark.seed("B7")
def test_every_random_tamper_is_found_and_these_need_the_checkpoint() -> None:
    counts = tampers.run(300, seed=7)
    assert [kind for kind, found in counts.items() if found["missed"]] == []
    always = {kind for kind, found in counts.items() if found["checkpoint"] and not found["chain"]}
    assert always == {
        "cut behind a batch, head removed",
        "remove the chain",
        "edit a record, sealed with the key",
        "delete a record, sealed with the key",
        "swap records, sealed with the key",
        "truncate, sealed with the key",
        "edit a checkpoint",
        "delete a checkpoint",
        "swap checkpoints",
    }
