"""Random rules and questions (B2, B6): `python -m tests.security.leaks` is the long form."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.security.leaks import leaks

from octavo.pipeline.policy.fold import Policy

pytestmark = pytest.mark.anyio


@pytest.mark.seed("B2", "B6")
async def test_no_search_list_completion_or_count_tells_of_a_denied_document(tmp_path: Path) -> None:
    assert await leaks(tmp_path, principals=12, documents=40) == []


async def test_a_search_that_forgot_the_policy_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Policy, "finder", lambda *_: lambda _: True)
    assert await leaks(tmp_path, principals=3, documents=24)
