"""The ranked search of a real server (B6): behind the second wall, over both eras, and after a kill."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from tests.e2e.harness import ERAS, LIMIT, Pipe, Place

pytestmark = [pytest.mark.slow, pytest.mark.seed("B6")]

CONFIGURATION = """\
version: 1
sources: {work: {kind: file, roots: [./root]}}
agents: {agent-brand: {}}
policy:
  - {who: agent-brand, may: [list, read, search], what: "file://*"}
  - {who: agent-brand, may: "*", what: "file://hr/*", effect: deny}
"""


def search(pipe: Pipe, query: str, **asked: Any) -> list[str]:
    arguments = {"query": query, "kind": "ranked", **asked}
    answer = pipe.ask("tools/call", {"name": "search", "arguments": arguments})
    result = answer["result"]
    assert not result.get("isError"), result
    assert json.loads(json.dumps(result["structuredContent"])) == result["structuredContent"]
    return [one["uri"] for one in result["structuredContent"]["results"]]


def until_found(pipe: Pipe, query: str, expected: list[str]) -> None:
    end = time.monotonic() + LIMIT
    while search(pipe, query) != expected:
        assert time.monotonic() < end


@pytest.mark.parametrize("era", ERAS)
def test_words_of_all_documents_are_found_and_changes_and_denied_ones_are_not(place: Place, era: str) -> None:
    place.edit("hr/salary.md", "급여와 예산\n")
    place.edit("docs/budget.md", "# 예산\n")
    (place.base / "octavo.yaml").write_text(CONFIGURATION, encoding="utf-8")
    with place.pipe("--config", place.base / "octavo.yaml", "--as", "agent-brand", era=era) as pipe:
        until_found(pipe, "예산", [place.listed("docs/budget.md")])
        assert search(pipe, "급여") == []
        place.edit("notes/raffle.md", "추첨 절차\n")
        until_found(pipe, "추첨", [place.listed("notes/raffle.md")])


def test_a_killed_server_finds_everything_when_it_is_back(place: Place) -> None:
    for number in range(200):
        place.edit(f"many/{number}.md", f"예산 문서{number}번\n")
    with place.pipe(place.root) as pipe:
        until_found(pipe, '"문서7번"', [place.listed("many/7.md", "stdio")])
        place.edit("many/new.md", "막 쓴 글\n")
        pipe.process.kill()
        pipe.process.wait(LIMIT)
    (place.root / "many" / "7.md").unlink()
    with place.pipe(place.root) as pipe:
        until_found(pipe, '"막 쓴 글"', [place.listed("many/new.md", "stdio")])
        until_found(pipe, '"문서7번"', [])
        until_found(pipe, '"문서8번"', [place.listed("many/8.md", "stdio")])


def test_two_servers_over_one_folder_do_not_disturb_each_other(place: Place) -> None:
    with place.pipe(place.root) as first, place.pipe(place.root) as second:
        for pipe in (first, second, first):
            until_found(pipe, "옥타보", [place.listed("docs/한국/소개.md", "stdio")])
        place.edit("both.md", "둘 다 본다\n")
        for pipe in (first, second):
            until_found(pipe, '"둘 다 본다"', [place.listed("both.md", "stdio")])
