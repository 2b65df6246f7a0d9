"""`octavo new` writes a file that holds, where the catalog keeps its files, and never over or beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Run

NEW = [
    ("sop", "brand/press-kit", "Press kit", "handbook/sops/brand/press-kit.md"),
    ("sop", "sop://brand/보도자료", "보도자료: \"새벽 시장\" #1 & 'more'", "handbook/sops/brand/보도자료.md"),
    ("sop", "legal/contracts", "- [계약] {검토}", "handbook/sops/legal/contracts.md"),
    ("doc", "policies/gifts.md", "선물 규정", "handbook/docs/policies/gifts.md"),
    ("skill", "hr/interview", "면접 질문 만들기", "handbook/skills/hr/interview.yml"),
    ("agent", "legal", "yes", "handbook/agents/legal.yml"),
]


@pytest.mark.seed("O2", "O3", "O4", "O5")
def test_what_is_begun_holds_and_is_served(run: Run, folder: Path) -> None:
    for kind, name, title, path in NEW:
        result = run("new", kind, name, "--title", title)
        assert (result.exit_code, result.stderr) == (0, ""), name
        assert result.stdout.endswith(f"  {folder / path}\n")
        assert (folder / path).is_file()
    checked = run("check")
    assert (checked.exit_code, checked.stderr) == (0, "")
    listed = run("ls", "sop://").stdout.splitlines()
    assert "sop://legal/contracts" in listed and "sop://brand/보도자료" in listed
    parsed = json.loads(run("cat", "sop://brand/보도자료?view=parsed").stdout)
    assert parsed["title"] == "보도자료: \"새벽 시장\" #1 & 'more'"
    assert json.loads(run("cat", "agent://legal?view=parsed").stdout)["title"] == "yes"


def test_what_is_known_of_the_function_is_filled_in(run: Run, folder: Path) -> None:
    run("new", "sop", "brand/press-kit", "--title", "Press kit")
    begun = (folder / "handbook/sops/brand/press-kit.md").read_text(encoding="utf-8")
    assert "id: sop-brand-press-kit\n" in begun and "\nfunction: func-brand\nagent: agent-brand\n" in begun


def test_nothing_is_overwritten(run: Run, folder: Path) -> None:
    file = folder / "handbook/sops/brand/campaign-brief.md"
    before = file.read_bytes()
    result = run("new", "sop", "brand/campaign-brief", "--title", "Mine")
    assert (result.exit_code, "is there already" in result.stderr) == (1, True)
    config = folder / "octavo.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace(".yml,", ".yml, .yaml,"), encoding="utf-8")
    twin = folder / "handbook/skills/brand/mine.yaml"
    twin.write_text("id: x\nname: x\n", encoding="utf-8")
    assert run("new", "skill", "brand/mine", "--title", "Mine").exit_code == 1
    assert file.read_bytes() == before and not twin.with_suffix(".yml").exists()


def test_an_id_that_is_taken_is_refused(run: Run, folder: Path) -> None:
    (folder / "handbook/agents/odd.yml").write_text("id: agent-legal\nname: odd\n", encoding="utf-8")
    result = run("new", "agent", "legal", "--title", "Legal")
    assert (result.exit_code, "already that of another file" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("sop", "../outside/x", "may not contain '..'"),
        ("sop", "brand/../../x", "may not contain '..'"),
        ("sop", "/etc/passwd", "empty or '.' segment"),
        ("sop", "brand\\x/y", "backslash"),
        ("sop", "brand", "is named {function}/{name}"),
        ("sop", "brand/deep/er", "is named {function}/{name}"),
        ("sop", "brand/brief@1.0.0", "without a version"),
        ("sop", "doc://brand/x", "no source of kind: sop for doc://"),
        ("doc", "misc/x", "category must be one of: policies, brand, product, onboarding"),
        ("agent", ".env", "the store serves no file of that name"),
    ],
)
def test_a_name_that_cannot_be_one_is_refused(run: Run, folder: Path, kind: str, name: str, said: str) -> None:
    before = {file for file in folder.parent.rglob("*") if ".octavo" not in file.parts}
    result = run("new", kind, name, "--title", "T")
    assert (result.exit_code, said in result.stderr) == (1, True), result.stderr
    assert {file for file in folder.parent.rglob("*") if ".octavo" not in file.parts} == before


@pytest.mark.parametrize("title", ["", "  ", "a\x07b", "\u202egnp"])
def test_a_title_that_nobody_could_read_is_refused(run: Run, folder: Path, title: str) -> None:
    assert run("new", "sop", "brand/x", "--title", title).exit_code == 1
    assert not (folder / "handbook/sops/brand/x.md").exists()


def test_a_link_does_not_lead_out_of_the_store(run: Run, folder: Path) -> None:
    (folder.parent / "outside").mkdir()
    (folder / "handbook/sops/away").symlink_to(folder.parent / "outside")
    assert run("new", "sop", "away/x", "--title", "T").exit_code == 1
    assert [*(folder.parent / "outside").iterdir()] == []


def test_the_configuration_says_where_the_files_are(run: Run, empty: Path) -> None:
    (empty / "pages").mkdir()
    (empty / "octavo.yaml").write_text(
        "version: 1\nsources:\n  pages: {kind: file, roots: [./pages], expose: false}\n"
        "  guides: {kind: sop, scheme: guide, store: pages, path: hand/guides}\n"
        "  others: {kind: sop, store: pages, path: others}\n",
        encoding="utf-8",
    )
    several = run("new", "sop", "a/b", "--title", "T")
    assert (several.exit_code, "Begin the name with one of guide://, sop://" in several.stderr) == (1, True)
    assert run("new", "sop", "guide://a/b", "--title", "T").exit_code == 0
    assert (empty / "pages/hand/guides/a/b.md").is_file()
    assert run("new", "doc", "brand/b", "--title", "T").exit_code == 1


@pytest.mark.seed("O17")
def test_a_skill_is_begun_as_the_others_are(run: Run, empty: Path) -> None:
    folder = empty / "book/skills/pdf"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: pdf\ndescription: Reads PDF.\n---\n", encoding="utf-8")
    (empty / "octavo.yaml").write_text(
        "sources:\n  book: {kind: file, roots: [./book], expose: false}\n  it: {kind: skill, store: book}\n",
        encoding="utf-8",
    )
    result = run("new", "skill", "docx", "--title", "Writes documents")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"skill://docx  {empty}/book/skills/docx/SKILL.md\n"
    assert run("check").stderr == ""


@pytest.mark.seed("O17")
def test_the_first_file_of_a_store_stands_in_the_usual_folder(run: Run, empty: Path) -> None:
    (empty / "book").mkdir()
    (empty / "octavo.yaml").write_text(
        "sources:\n  book: {kind: file, roots: [./book], expose: false}\n  it: {kind: doc, store: book}\n",
        encoding="utf-8",
    )
    assert run("new", "doc", "policies/gifts", "--title", "Gifts").exit_code == 0
    assert (empty / "book/docs/policies/gifts.md").exists()
