"""`resources/directory/read`, behind the whole pipeline: what stands directly in a folder or a collection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.errors import InvalidParams, NotFound
from octavo.core.ref import Ref
from octavo.core.values import Call, Entry, Page, Trail

pytestmark = pytest.mark.anyio

CONFIGURATION = """
version: 1
sources:
  handbook: {kind: file, roots: [./handbook], expose: false}
  sops: {kind: sop, store: handbook}
  skills: {kind: skill, store: handbook}
  notes: {kind: catalog, scheme: note, store: handbook, path: notes, files: "{+path}.md"}
  work: {kind: file, uris: relative, roots: [./work]}
  kept: {kind: memory, scheme: memory, resources: {a/one: {text: "1"}, a/two: {text: "2"}, b: {text: "3"}}}
agents: {agent-all: {}, agent-brand: {}}
policy:
  - {who: agent-all, may: [list, read], what: "**"}
  - {who: agent-brand, may: [list, read], what: ["sop://*", "skill://brand/letters", "file://*"]}
  - {who: agent-brand, may: "*", what: ["sop://hr/*", "sop://brand/secret", "file://docs/hr/*"], effect: deny}
"""
SOP = "---\nid: {0}\ntitle: 제목 {0}\nversion: 1.0.0\nstatus: active\n---\n"
FILES = {
    "handbook/sops/brand/brief.md": SOP.format("brief"),
    "handbook/sops/brand/secret.md": SOP.format("secret"),
    "handbook/sops/hr/pay.md": SOP.format("pay"),
    "handbook/skills/brand/letters/SKILL.md": "---\nname: letters\ndescription: Letters.\n---\n",
    "handbook/skills/brand/letters/Annex.md": "x",
    "handbook/skills/brand/letters/templates/eu/refund.md": "x",
    "handbook/skills/brand/brief.yml": "id: s\nname: Brief\n",
    "handbook/skills/brand/한글.yml": "id: k\nname: 한글\n",
    "handbook/notes/a.md": "---\ntitle: A\n---\n",
    "handbook/notes/a/b.md": "---\ntitle: B\n---\n",
    "work/docs/guide.md": "x",
    "work/docs/hr/pay.md": "x",
    "work/docs/한국/소개.md": "x",
    "work/docs/zebra/deep/er.md": "x",
    "work/plan.md": "x",
}
FOLDER = "inode/directory"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Octavo]:
    for path, text in FILES.items():
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    (tmp_path / "work/docs/empty").mkdir()
    (tmp_path / "octavo.yaml").write_text(CONFIGURATION, encoding="utf-8")
    async with Octavo(load(tmp_path / "octavo.yaml", environ={})) as octavo:
        yield octavo


async def entries(house: Octavo, who: str, uri: str, limit: int = 100) -> list[Entry]:
    found: list[Entry] = []
    cursor: str | None = None
    principal = house.works.identity.launched(who)
    with anyio.fail_after(30):
        while True:
            call = Call("directory", Ref.parse(uri), principal, Trail(), uri, cursor=cursor, limit=limit)
            page: Page[Entry] = await house.works.ask(call)
            found += page.items
            cursor = page.cursor
            if cursor is None:
                return found


async def children(house: Octavo, who: str, uri: str, limit: int = 100) -> dict[str, str]:
    return {str(entry.ref): entry.mime_type for entry in await entries(house, who, uri, limit)}


ALL: dict[str, Any] = {
    "sop://": {"sop://brand": FOLDER, "sop://hr": FOLDER},
    "sop://brand": {"sop://brand/brief": "text/markdown", "sop://brand/secret": "text/markdown"},
    "skill://brand": {
        "skill://brand/brief": FOLDER,
        "skill://brand/letters": FOLDER,
        "skill://brand/한글": "application/yaml",
    },
    "skill://brand/brief": {"skill://brand/brief/SKILL.md": "text/markdown"},
    "skill://brand/letters": {
        "skill://brand/letters/Annex.md": "text/markdown",
        "skill://brand/letters/SKILL.md": "text/markdown",
        "skill://brand/letters/templates": FOLDER,
    },
    "skill://brand/letters/templates": {"skill://brand/letters/templates/eu": FOLDER},
    "note://": {"note://a": FOLDER},
    "note://a": {"note://a/b": "text/markdown"},
    "file://": {"file://docs": FOLDER, "file://plan.md": "text/markdown"},
    "file://docs": {
        "file://docs/empty": FOLDER,
        "file://docs/guide.md": "text/markdown",
        "file://docs/hr": FOLDER,
        "file://docs/zebra": FOLDER,
        "file://docs/한국": FOLDER,
    },
    "file://docs/empty": {},
    "memory://": {"memory://a": FOLDER, "memory://b": "text/plain"},
    "memory://a": {"memory://a/one": "text/plain", "memory://a/two": "text/plain"},
}


@pytest.mark.seed("O2", "O4", "F6")
@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize("uri", ALL)
async def test_a_directory_gives_its_children_whatever_the_page_size(house: Octavo, uri: str, limit: int) -> None:
    found = await entries(house, "agent-all", uri, limit)
    assert [(str(entry.ref), entry.mime_type) for entry in found] == [*ALL[uri].items()]


async def test_children_are_described_as_in_a_list(house: Octavo) -> None:
    (brief, _) = await entries(house, "agent-all", "sop://brand")
    assert (brief.name, brief.metadata["version"]) == ("제목 brief", "1.0.0")
    (skill, *_) = await entries(house, "agent-all", "skill://brand")
    assert (skill.name, skill.metadata["id"]) == ("Brief", "s")


@pytest.mark.seed("O14")
async def test_each_caller_has_its_own(house: Octavo) -> None:
    assert await children(house, "agent-brand", "sop://") == {"sop://brand": FOLDER}
    assert await children(house, "agent-brand", "sop://brand") == {"sop://brand/brief": "text/markdown"}
    assert await children(house, "agent-brand", "skill://brand") == {"skill://brand/letters": FOLDER}
    assert await children(house, "agent-brand", "skill://brand/letters") == ALL["skill://brand/letters"]
    below = "skill://brand/letters/templates"
    assert await children(house, "agent-brand", below) == ALL[below]
    assert "file://docs/hr" not in await children(house, "agent-brand", "file://docs", 2)
    assert await children(house, "agent-brand", "memory://") == {}
    for uri in ("sop://hr", "skill://brand/brief", "file://docs/hr", "note://a"):
        with pytest.raises(NotFound) as absent:
            await entries(house, "agent-brand", uri)
        assert absent.value.data == {"uri": uri}
        assert str(absent.value) == f"Resource not found: {uri}"


@pytest.mark.parametrize(
    "uri",
    [
        "sop://brand/brief",
        "skill://brand/letters/SKILL.md",
        "skill://brand/brief/SKILL.md",
        "skill://brand/한글",
        "note://a/b",
        "file://plan.md",
        "sop://brand?status=active",
        "tool://",
        "prompt://",
        "changes://",
    ],
)
async def test_what_is_no_directory_is_refused(house: Octavo, uri: str) -> None:
    with pytest.raises((InvalidParams, NotFound)) as refused:
        await entries(house, "agent-all", uri)
    assert refused.value.data == {"uri": uri}


@pytest.mark.parametrize("uri", ["sop://none", "skill://brand/none", "file://docs/none", "memory://c"])
async def test_what_is_not_there_is_not_found(house: Octavo, uri: str) -> None:
    with pytest.raises(NotFound) as absent:
        await entries(house, "agent-all", uri)
    assert absent.value.data == {"uri": uri}


async def test_a_folder_of_the_machine_is_a_directory_under_both_its_names(house: Octavo, tmp_path: Path) -> None:
    absolute = f"file://{tmp_path}/work/docs"
    assert [entry.name for entry in await entries(house, "agent-all", absolute)] == [
        entry.name for entry in await entries(house, "agent-all", "file://docs")
    ]
