"""A handbook in a work tree, from the configuration, behind the whole pipeline."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.app.asking import ask
from tests.sources.git.clones import Clone

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.config.problems import ConfigError
from octavo.core.errors import Forbidden, InvalidParams, OctavoError
from octavo.core.kinds import Needs

pytestmark = pytest.mark.anyio

CONFIGURATION = """
version: 1
sources:
  handbook: {kind: file, roots: [./clone/handbook], expose: false, history: all}
  docs: {kind: doc, store: handbook}
agents:
  agent-brand: {}
policy:
  - {who: agent-brand, may: [list, read, watch], what: "doc://*"}
  - {who: agent-brand, may: "*", what: "doc://hr/*", effect: deny}
"""


def configured(folder: Path, text: str = CONFIGURATION) -> Path:
    file = folder / "octavo.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    clone = Clone(tmp_path / "clone")
    clone.commit(
        {"handbook/docs/hr/pay.md": "# salaries\n", "handbook/docs/brief.md": "# 주민등록번호 900101-1234568\n"}
    )
    clone.git("tag", "v1")
    (clone.path / "handbook/docs/hr/pay.md").rename(clone.path / "handbook/docs/pay.md")
    clone.commit({"handbook/docs/brief.md": "# clean\n"})
    clone.commit({"handbook/docs/hr/secret.md": "# secret\n"})
    clone.git("tag", "v2")
    return clone


@pytest.fixture
async def house(tmp_path: Path, clone: Clone) -> AsyncIterator[Octavo]:
    async with Octavo(load(configured(tmp_path), environ={})) as octavo:
        yield octavo


@pytest.mark.seed("O1")
async def test_an_old_version_is_decided_and_redacted_like_the_present_one(house: Octavo, clone: Clone) -> None:
    old = await ask(house, "agent-brand", "read", "doc://brief?version=v1")
    assert "주민등록번호" in old.body and "1234568" not in old.body
    day = await ask(house, "agent-brand", "read", f"doc://pay?version={clone.git('rev-parse', 'v2')[:9]}")
    assert day.body == "# salaries\n"
    told = set[str]()
    for version in ("v1", "v7"):  # it stood at doc://hr/pay then, and nowhere
        with pytest.raises(InvalidParams) as unknown:
            await ask(house, "agent-brand", "read", f"doc://pay?version={version}")
        told.add(str(unknown.value))
    assert told == {"doc://pay has no such version; it tells none"}
    with pytest.raises(Forbidden):
        await ask(house, "agent-brand", "read", "doc://hr/secret?version=v2")
    for uri in ("file://docs/pay.md", f"file://docs/pay.md?commit={clone.git('rev-parse', 'v2')}"):
        with pytest.raises(OctavoError):
            await ask(house, "agent-brand", "read", uri)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("expose: false", "expose: true", "?version= is asked of catalogs"),
        ("./clone/handbook", "./plain", "it lies in no work tree of git"),
        ("[./clone/handbook]", "[./clone/handbook, ./plain]", "is for a source with one root"),
        ("./clone/handbook", "./linked", "linked work tree or a submodule"),
        ("./clone/handbook", "./borrowing/handbook", "borrows objects of another one"),
    ],
)
async def test_a_history_that_cannot_be_had_is_refused(
    tmp_path: Path, clone: Clone, old: str, new: str, says: str
) -> None:
    for name in ("plain", "linked", "borrowing/handbook"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "linked/.git").write_text(f"gitdir: {clone.git_dir}\n", encoding="utf-8")
    borrowing = Clone(tmp_path / "borrowing")
    (borrowing.git_dir / "objects/info").mkdir(exist_ok=True)
    (borrowing.git_dir / "objects/info/alternates").write_text(f"{clone.git_dir}/objects\n", encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load(configured(tmp_path, CONFIGURATION.replace(old, new)), environ={})
    assert says.casefold() in str(refused.value).casefold()


def test_without_the_extra_the_configuration_says_what_to_install(
    tmp_path: Path, clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pygit2", None)
    with pytest.raises(ConfigError, match="install Octavo with its extra git"):
        load(configured(tmp_path), environ={})
    load(configured(tmp_path, CONFIGURATION.replace(", history: all", "")), environ={})


def test_a_repository_of_somebody_else_is_refused(
    tmp_path: Path, clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:
        os.chown(clone.git_dir, 54_321, 54_321)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    with pytest.raises(ConfigError, match="belongs to another user"):
        load(configured(tmp_path), environ={})


async def test_an_exposed_folder_answers_no_address_of_a_commit(tmp_path: Path, clone: Clone) -> None:
    text = CONFIGURATION.replace("expose: false, history: all", "expose: true").replace(
        "  docs: {kind: doc, store: handbook}\n", ""
    )
    async with Octavo(load(configured(tmp_path, text.replace("doc://", "file://")), environ={})) as house:
        assert (await ask(house, "agent-brand", "read", "file://docs/pay.md")).body == "# salaries\n"
        with pytest.raises(InvalidParams):
            await ask(house, "agent-brand", "read", f"file://docs/pay.md?commit={clone.git('rev-parse', 'v2')}")


async def test_the_wall_opens_the_repository_alone_of_what_stands_above_the_root(tmp_path: Path, clone: Clone) -> None:
    options = load(configured(tmp_path), environ={}).config.sources["handbook"]
    needs: Needs = options.record.needs(options)
    assert [*needs.reads] == [clone.path / ".git"] == [one.path for one in needs.essentials]
    assert [folder.path for folder in needs.folders] == [clone.path / "handbook"]
