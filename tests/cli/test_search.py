"""`octavo search` and `octavo index rebuild`, with the rights of whom they are asked as (B6)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.test_terminal import LIMIT, OCTAVO, frame

from octavo.stores.process_files import ProcessFile

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
    place = ProcessFile.take(folder / ".octavo" / "search")
    assert place is not None
    used = run("index", "rebuild")
    assert used.exit_code == 1 and "stop it first" in used.stderr
    place.leave()


def test_a_search_asks_the_index_of_a_server_that_runs_here(run: Run, folder: Path) -> None:
    """Its own policy decides all the same, and the audit log has the record."""
    assert run("index", "rebuild").exit_code == 0
    with subprocess.Popen(
        [*OCTAVO, "serve", "--as", "agent-brand"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin and server.stdout
        call = {"name": "search", "arguments": {"query": "예산", "kind": "ranked"}}
        server.stdin.write(frame("tools/call", 1, **call))
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 1
        before = len(list((folder / ".octavo/search").glob("*.db")))
        asked = ("search", "연봉", "--json")
        seen = json.loads(run(*asked, "--as", "agent-hr").stdout)["results"]
        assert any(one["uri"].startswith("sop://hr/") for one in seen)
        hidden = json.loads(run(*asked, "--as", "agent-brand").stdout)["results"]
        assert not any(one["uri"].startswith("sop://hr/") for one in hidden)
        assert len(list((folder / ".octavo/search").glob("*.db"))) == before == 1, "none was made for it"
        server.stdin.close()
        assert server.wait(LIMIT) == 0
    assert "search" in run("audit", "query", "--who", "agent-hr").stdout


def test_a_kept_index_answers_as_it_was_kept(run: Run, folder: Path) -> None:
    (folder / "handbook/sops/brand/raffle.md").write_text("추첨 행사\n", encoding="utf-8")
    whole = run("search", "추첨", "--kept", "--as", "agent-orchestrator")
    assert "sop://brand/raffle" in whole.stdout, "there was none, so it was made"
    (folder / "handbook/sops/brand/draw.md").write_text("추첨 행사\n", encoding="utf-8")
    (folder / "handbook/sops/brand/raffle.md").unlink()
    assert run("search", "추첨", "--kept", "--as", "agent-orchestrator").stdout == "", "gone, and not looked for"
    assert "sop://brand/draw" in run("search", "추첨", "--as", "agent-orchestrator").stdout


def test_an_index_of_another_configuration_is_not_borrowed(run: Run, folder: Path) -> None:
    run("index", "rebuild")
    config = folder / "octavo.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(f"{text}\nsearch: {{text: 1MB}}\n" if "search:" not in text else text, encoding="utf-8")
    (folder / "handbook/sops/brand/raffle.md").write_text("추첨 행사\n", encoding="utf-8")
    assert "sop://brand/raffle" in run("search", "추첨", "--kept", "--as", "agent-orchestrator").stdout
