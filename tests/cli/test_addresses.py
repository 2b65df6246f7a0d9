"""A name or a path where an address is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Run


@pytest.fixture
def documents(empty: Path) -> Path:
    """One scheme alone."""
    (empty / "team").mkdir()
    (empty / "team" / "leave.md").write_text("# Leave\n", encoding="utf-8")
    (empty / "50% off.md").write_text("# Sale\n", encoding="utf-8")
    sources = 'sources: {all: {kind: file, roots: [.], expose: false}, docs: {kind: doc, store: all, path: ""}}'
    (empty / "octavo.yaml").write_text(f"version: 1\n{sources}\n", encoding="utf-8")
    return empty


def test_a_path_is_read_below_the_only_scheme(run: Run, documents: Path) -> None:
    assert run("cat", "team/leave").stdout == "# Leave\n"
    assert run("cat", "./50% off").stdout == "# Sale\n"
    assert run("ls", "team").stdout == run("ls", "team/").stdout == "doc://team/leave\n"


def test_what_is_not_there_is_told_with_the_nearest_that_is(run: Run, documents: Path) -> None:
    for text in ("leave", "leaves", "teams/leave.md", "doc://leave", "doc://docs/team/leave.md"):
        told = run("cat", text)
        assert (told.exit_code, told.stdout) == (1, "")
        assert "(did you mean doc://team/leave?)" in told.stderr, text
    assert "did you mean" not in run("cat", "nothing-like-it").stderr
    found = json.loads(run("cat", "leave", "--json").stdout)["error"]
    assert (found["reason"], found["hint"]) == ("not_found", "did you mean doc://team/leave?")


@pytest.mark.parametrize("kind", ["doc", "file"])
def test_a_list_of_nothing_names_the_nearest_that_is_there(run: Run, documents: Path, kind: str) -> None:
    """Folders too."""
    if kind == "file":
        (documents / "octavo.yaml").write_text(
            "version: 1\nsources: {all: {kind: file, roots: [.]}}\n", encoding="utf-8"
        )
    above = f"file:///{documents.name}/" if kind == "file" else "doc://"
    for text in ("teem", "teams"):
        told = run("ls", text)
        assert (told.exit_code, told.stdout) == (0, "")
        assert f"did you mean {above}team?" in told.stderr
    assert f"did you mean {above}team/leave" in run("ls", "leaves").stderr
    assert "did you mean" not in run("ls", "nothing-like-it").stderr
    assert "did you mean" not in run("ls", documents.parent.name[:-1]).stderr


def test_where_there_are_several_schemes_the_nearest_address_is_named(run: Run, folder: Path) -> None:
    told = run("cat", "campaign-brief", "--as", "agent-brand")
    assert (told.exit_code, told.stdout) == (2, "")
    assert "campaign-brief is no address; did you mean sop://brand/campaign-brief?" in told.stderr
    assert "addresses here begin with sop://, " in run("ls", "qqq", "--as", "agent-brand").stderr


def test_what_may_not_be_listed_is_not_named(run: Run, folder: Path) -> None:
    assert "sop://hr/salary-policy" in run("cat", "salary-policy", "--as", "agent-hr").stderr
    assert "sop://hr" not in run("cat", "salary-policy", "--as", "agent-brand").stderr
    assert "sop://hr" not in run("cat", "sop://brand/salary-policy", "--as", "agent-brand").stderr
