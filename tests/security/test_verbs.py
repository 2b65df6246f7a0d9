"""Random rules with their verbs split (F5, B2, B4): `python -m tests.security.verbs` is the long form."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from tests.security.verbs import leaks

from octavo.core import operations
from octavo.core.operations import ACTS, OPERATIONS, VERB_OF
from octavo.core.values import VERBS, Op

pytestmark = pytest.mark.seed("F5", "B2", "B4")


@pytest.mark.anyio
async def test_no_split_of_verbs_lets_out_what_may_not_be_read(tmp_path: Path) -> None:
    seen = await leaks(tmp_path, policies=4)
    assert seen.leaks == []
    assert min(seen.answers["given"], seen.answers["refused"], seen.answers["told"]) > 20, seen.answers


@pytest.mark.anyio
async def test_an_edit_that_needed_no_read_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blind = {**ACTS, "edit": ACTS["edit"]._replace(needs=("write",))}
    monkeypatch.setattr(operations, "ACTS", blind)
    assert (await leaks(tmp_path, policies=4, seed=1)).leaks


def test_every_operation_has_a_row_that_says_what_it_reveals_and_needs() -> None:
    assert {row.op for row in ACTS.values()} == set(get_args(Op)) == set(OPERATIONS)
    for name, row in ACTS.items():
        assert row.reveals and set(row.needs) | set(row.there) <= set(VERBS), name
        assert row.needs[0] == VERB_OF[row.op], "the verb of the act comes first"
    assert {row.op for row in ACTS.values() if "content" in row.reveals and "read" not in row.needs} == set()
