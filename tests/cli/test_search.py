"""`octavo search` and `octavo index rebuild`, with the rights of whom they are asked as (B6)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from octavo.stores.places import Place

if TYPE_CHECKING:
    from conftest import Run


@pytest.mark.seed("B6")
def test_a_search_finds_what_its_agent_may_read(run: Run, folder: Path) -> None:
    (folder / "handbook" / "sops" / "hr" / "raises.md").write_text("# 연봉 인상\n", encoding="utf-8")
    found = json.loads(run("search", "연봉 인상", "--as", "agent-orchestrator", "--json").stdout)["results"]
    assert found[0]["uri"] == "sop://hr/raises"
    hidden = run("search", '"연봉 인상"', "--as", "agent-brand")
    assert (hidden.exit_code, hidden.stdout) == (0, "")
    assert "nothing was found" in hidden.stderr


def test_a_search_can_be_narrowed(run: Run, folder: Path) -> None:
    for place in ("sops/brand", "sops/ops"):
        (folder / "handbook" / place).mkdir(parents=True, exist_ok=True)
        (folder / "handbook" / place / "raffle.md").write_text("추첨\n", encoding="utf-8")
    said = run("search", "추첨", "--in", "sop://ops", "--as", "agent-orchestrator").stdout
    assert said.startswith("sop://ops/raffle") and "brand" not in said
    assert run("search", "추첨", "--where", "status=active", "--as", "agent-orchestrator").stdout == ""
    assert run("search", "추첨", "--where", "status").exit_code == 2


def test_the_index_is_made_anew_unless_a_server_uses_it(run: Run, folder: Path) -> None:
    first = run("index", "rebuild")
    assert first.exit_code == 0 and int(first.stdout.split()[-1]) > 3
    place = Place.take(folder / ".octavo" / "search")
    assert place is not None
    used = run("index", "rebuild")
    assert used.exit_code == 1 and "stop it first" in used.stderr
    place.leave()
