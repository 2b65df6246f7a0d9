"""A handbook with hundreds of faults: `octavo check` finds each by file and line, and the rest is served."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.e2e.harness import Place
from tests.handbook.faults import KINDS, Fault, seed

from octavo.cli.group import octavo

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Fault]]:
    directory = tmp_path_factory.mktemp("faults") / "organisation"
    return directory, seed(directory)


@pytest.mark.seed("O2", "O3", "O4", "O5", "O6", "P5")
def test_check_finds_every_fault_by_file_and_line_and_nothing_else(seeded: tuple[Path, list[Fault]]) -> None:
    directory, faults = seeded
    assert len(faults) >= 200 and len({fault.kind for fault in faults}) == len(KINDS) >= 20
    config = directory / "octavo.yaml"
    result = CliRunner().invoke(octavo, ["check", "--json", "--config", str(config)], catch_exceptions=False)
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    found = [
        (Path(one["file"]).relative_to(directory / "handbook").as_posix(), one["line"], one["message"])
        for one in (*told["problems"], *told["warnings"])
        if one["file"] != str(config)  # where agents with few rights are shown tools that they can never use
    ]
    missed = [
        fault
        for fault in faults
        if not any((file, line) == fault[1:3] and fault.says in message for file, line, message in found)
    ]
    assert missed == []
    seeded_at = Counter((fault.file, fault.line) for fault in faults)
    assert Counter((file, line) for file, line, _ in found) == seeded_at, "something else was found too"


@pytest.mark.seed("O2", "O3", "O4", "O5", "O6")
def test_everything_without_a_fault_is_served(seeded: tuple[Path, list[Fault]], tmp_path: Path) -> None:
    directory, _ = seeded
    handbook = directory / "handbook"
    clean = {
        f"{scheme}://{file.relative_to(handbook / folder).with_suffix('').as_posix()}": file
        for scheme, folder in (("sop", "sops"), ("doc", "docs"), ("skill", "skills"), ("agent", "agents"))
        for file in (handbook / folder).rglob("*.*")
        if "fault-" not in file.as_posix().removeprefix(handbook.as_posix())
    }
    assert len(clean) > 50
    with Place(tmp_path).pipe("--config", directory / "octavo.yaml", era="legacy") as pipe:
        listed: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = pipe.ask("resources/list", cursor)["result"]
            listed += [one["uri"] for one in page["resources"]]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert set(clean) <= set(listed)
        answers = [pipe.ask("resources/read", {"uri": uri}) for uri in clean]
        texts = [answer["result"]["contents"][0]["text"] for answer in answers]
        assert texts == [file.read_text(encoding="utf-8") for file in clean.values()]
        matched = pipe.ask("resources/read", {"uri": "skill://?match=예산이 남았나요"})["result"]["contents"][0]["text"]
        assert json.loads(matched)["matches"][0]["uri"] == "skill://finance/budget-check"
        relations = pipe.ask("resources/read", {"uri": "org://function/brand?view=relations"})
        assert "sop://brand/campaign-brief" in relations["result"]["contents"][0]["text"]


def test_the_faults_are_always_the_same(seeded: tuple[Path, list[Fault]], tmp_path: Path) -> None:
    assert seed(tmp_path / "again") == seeded[1]
