"""No file has two addresses: a rule on one would not hold for the other. That is settled before a store is looked at,
since what is found by looking may be another the next time."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Final, Literal, TypeAlias

import pytest

from octavo.app.configuration import load_text
from octavo.config.problems import ConfigError

Form: TypeAlias = Literal["NFC", "NFD"]
FORMS: Final[tuple[Form, ...]] = ("NFC", "NFD")
STORE = "s: {kind: file, roots: [./hb], expose: false}, "
BESIDE = "f: {kind: file, roots: [./hb], extensions: [.csv]}"
SKILL = "---\nname: pay\ndescription: d\n---\nS"


def handbook(base: Path, *names: str) -> Path:
    for name in names:
        file = base / "hb" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SKILL, encoding="utf-8")
    (base / "hb/notes").mkdir(parents=True, exist_ok=True)
    return base / "octavo.yaml"


def refused(file: Path, sources: str) -> str:
    """What is said of two addresses, or nothing."""
    try:
        load_text(f"version: 1\nsources: {{{sources}}}\n", file=file, environ={})
    except ConfigError as error:
        said = str(error)
        assert "two addresses" in said, said
        return said
    return ""


@pytest.mark.parametrize("place", ["pay", "teams/hr/pay", "skills/pay", ".claude/skills/pay", ".github/skills/pay"])
def test_a_catalog_that_is_found_by_looking_takes_all_that_it_could_find(tmp_path: Path, place: str) -> None:
    file = handbook(tmp_path, f"{place}/SKILL.md", f"{place}/ref.csv")
    said = refused(file, f"{STORE}k: {{kind: skill, store: s}}, {BESIDE}")
    assert "write its path:" in said
    where = place.rpartition("/")[0] or place
    assert refused(file, f"{STORE}k: {{kind: skill, store: s, path: {where}}}, {BESIDE}")
    apart = BESIDE.replace("[.csv]", f"[.csv], hide: [{where.split('/')[0]}]")
    assert not refused(file, f"{STORE}k: {{kind: skill, store: s, path: {where}}}, {apart}")


def test_folders_that_are_not_there_yet_count(tmp_path: Path) -> None:
    """Whoever brings them later asks nobody."""
    file = handbook(tmp_path, "a.md")
    assert refused(file, f"{STORE}k: {{kind: skill, store: s, path: skills}}, {BESIDE}")
    assert refused(file, f"{STORE}d: {{kind: doc, store: s, path: docs}}, f: {{kind: file, roots: [./hb]}}")
    two = "k: {kind: skill, store: s}, d: {kind: doc, store: s}, "
    assert refused(file, f"{STORE}{two}{BESIDE}")
    assert not refused(file, f"{STORE}{two}{BESIDE.replace('[.csv]', '[.csv], hide: [skills]')}")


@pytest.mark.parametrize("kind", ["doc", "sop"])
def test_documents_that_are_found_by_looking_may_stand_anywhere(tmp_path: Path, kind: str) -> None:
    for names in (("a.md",), (f"{kind}s/a.md",)):
        file = handbook(tmp_path, *names)
        looked, said = f"c: {{kind: {kind}, store: s}}", f"c: {{kind: {kind}, store: s, path: {kind}s}}"
        notes = "n: {kind: file, roots: [./hb/notes]}"
        assert refused(file, f"{STORE}{looked}, {notes}")
        assert not refused(file, f"{STORE}{said}, {notes}")
        assert not refused(file, f"{STORE}{looked}, {BESIDE}")
        assert refused(file, f"{STORE}{looked}, {BESIDE.replace('.csv', '.MD')}")


def test_what_is_left_out_is_left_out_of_every_folder_that_it_could_be(tmp_path: Path) -> None:
    file = handbook(tmp_path, "docs/private/a.md", "docs/b.md")
    private = "p: {kind: file, roots: [./hb/docs/private]}"
    assert refused(file, f"{STORE}d: {{kind: doc, store: s, without: [docs/private]}}, {private}")
    assert not refused(file, f"{STORE}d: {{kind: doc, store: s, path: docs, without: [private]}}, {private}")


def test_agents_are_looked_for_in_their_own_folders_alone(tmp_path: Path) -> None:
    file = handbook(tmp_path, "a.md")
    looked = "a: {kind: agent, store: s}"
    assert not refused(file, f"{STORE}{looked}, n: {{kind: file, roots: [./hb/notes]}}")
    (tmp_path / "hb/.github").mkdir()
    assert refused(file, f"{STORE}{looked}, g: {{kind: file, roots: [./hb/.github]}}")


def test_a_link_that_is_left_out_says_nothing_of_where_it_leads(tmp_path: Path) -> None:
    file = handbook(tmp_path, "real/a.md")
    (tmp_path / "hb/link").symlink_to("real")
    real = "r: {kind: file, roots: [./hb/real]}"
    assert refused(file, f"{STORE}d: {{kind: doc, store: s, path: '', without: [link]}}, {real}")
    assert not refused(file, f"{STORE}d: {{kind: doc, store: s, path: '', without: [real]}}, {real}")


@pytest.mark.parametrize("on_disk", FORMS)
@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_a_name_makes_two_addresses_of_one_file(tmp_path: Path, form: Form, on_disk: Form) -> None:
    there = unicodedata.normalize(on_disk, "문서")
    file = handbook(tmp_path, f"{there}/a.md")
    store = f"{STORE}d: {{kind: doc, store: s, path: 문서}}"
    for other, holds in (
        ("f: {kind: file, roots: [./hb], hide: [문서]}", True),
        ("f: {kind: file, roots: [./hb], hide: [문]}", False),
        ("e: {kind: sop, store: s, path: '', without: [문서]}", True),
        ("e: {kind: sop, store: s, path: 문서/비밀}", False),
    ):
        assert (not refused(file, unicodedata.normalize(form, f"{store}, {other}"))) is holds, other
    root = f"f: {{kind: file, roots: ['./hb/{there}']}}"  # a path of the disk, in its form
    assert refused(file, f"{unicodedata.normalize(form, store)}, {root}")
