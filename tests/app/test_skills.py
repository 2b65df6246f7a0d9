"""Skills of the protocol's extension, behind the whole pipeline: each caller has its own, digests and all."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.e2e.harness import audit_records

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.errors import Forbidden, NotFound, OctavoError
from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.skill import Skill
from octavo.core.values import EVERYTHING, Call, Op, Page, Trail
from octavo.text.frontmatter import of_markdown

pytestmark = pytest.mark.anyio

CONFIGURATION = """
version: 1
sources:
  handbook: {kind: file, roots: [./handbook], expose: false}
  skills: {kind: skill, store: handbook}
  plays: {kind: skill, scheme: play, store: handbook, path: plays}
agents: {agent-brand: {}, agent-one: {}, agent-lists: {}, agent-all: {}, nobody: {}}
policy:
  - {who: agent-brand, may: [list, read], what: ["skill://*"]}
  - {who: agent-brand, may: "*", what: "skill://hr/*", effect: deny}
  - {who: agent-brand, may: "*", what: ["skill://brand/secret", "skill://brand/letters/internal/*"], effect: deny}
  - {who: agent-one, may: [list, read], what: "skill://brand/letters"}
  - {who: agent-lists, may: [list], what: "skill://*"}
  - {who: agent-all, may: [list, read], what: ["skill://*", "play://*"]}
"""
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
FILES = {
    "skills/brand/brief.yml": "id: s1\nname: Brief\ndescription: 브리프를 쓴다.\nsteps: [Ask., Write.]\n",
    "skills/brand/letters/SKILL.md": "---\nname: letters\ndescription: Answers letters.\nlicense: MIT\n---\n# L\n",
    "skills/brand/letters/references/tone.md": f"Use the token {TOKEN} here.\n",
    "skills/brand/letters/internal/notes.md": "For us.\n",
    "skills/brand/letters/pixel.png": "\x00\x01",
    "skills/brand/secret.yml": "id: s2\nname: Secret\n",
    "skills/brand/한글.yml": "id: s3\nname: 한글\n",
    "skills/brand/wrong/SKILL.md": "---\nname: another\ndescription: Not the folder.\n---\n",
    "skills/brand/broken/SKILL.md": "---\nname: broken\ndescription: [\n---\n",
    "skills/hr/pay.yml": "id: s4\nname: Pay\n",
    "plays/desk/opening.yml": "id: p1\nname: Opening\n",
}
LETTERS = "skill://brand/letters"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Octavo]:
    for path, text in FILES.items():
        place = tmp_path / "handbook" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    (tmp_path / "octavo.yaml").write_text(CONFIGURATION, encoding="utf-8")
    async with Octavo(load(tmp_path / "octavo.yaml", environ={})) as octavo:
        yield octavo


async def ask(house: Octavo, who: str, op: Op, uri: str, **more: Any) -> Reply:
    ref = EVERYTHING if uri == "*" else Ref.parse(uri)
    call = Call(op, ref, house.works.identity.launched(who), Trail(), uri, **more)
    with anyio.fail_after(30):
        return await house.works.ask(call)


async def skills(house: Octavo, who: str, limit: int = 100) -> dict[str, Skill]:
    """All of them, page by page; each once."""
    found: list[Skill] = []
    cursor: str | None = None
    while True:
        page: Page[Skill] = await ask(house, who, "skills", "*", limit=limit, cursor=cursor)
        assert page.items or page.cursor is None, "only the last page can be empty"
        found += page.items
        cursor = page.cursor
        if cursor is None:
            assert len({skill.ref for skill in found}) == len(found)
            return {str(skill.ref): skill for skill in found}


async def refused(house: Octavo, who: str, uri: str) -> OctavoError:
    with pytest.raises(OctavoError) as raised:
        await ask(house, who, "skills", uri)
    return raised.value


@pytest.mark.seed("O4", "O14")
async def test_a_skill_that_the_caller_may_not_have_is_not_there(house: Octavo) -> None:
    brief, letters = "skill://brand/brief/SKILL.md", f"{LETTERS}/SKILL.md"
    everything = {brief, letters, "skill://brand/secret/SKILL.md", "skill://hr/pay/SKILL.md"}
    assert set(await skills(house, "agent-all")) == {*everything, "play://desk/opening/SKILL.md"}
    assert set(await skills(house, "agent-brand")) == {brief, letters}
    assert set(await skills(house, "agent-one")) == {letters}
    assert await skills(house, "agent-lists") == {}, "a digest tells of a content that it may not read"
    assert await skills(house, "nobody") == {}
    for uri in ("skill://hr/pay/SKILL.md", "skill://brand/secret/SKILL.md", "play://desk/opening/SKILL.md"):
        absent = await refused(house, "agent-brand", uri)
        assert isinstance(absent, NotFound) and absent.data == {"uri": uri}
        assert str(absent) == f"Resource not found: {uri}"


@pytest.mark.seed("O4")
async def test_every_file_is_told_with_the_digest_and_the_size_of_what_a_read_gives(house: Octavo) -> None:
    for skill in (await skills(house, "agent-all")).values():
        assert (await ask(house, "agent-all", "skills", str(skill.ref))).items == (skill,)
        assert skill.files[0].ref == skill.ref
        for file in skill.files:
            body = (await ask(house, "agent-all", "read", str(file.ref))).body
            raw = body if isinstance(body, bytes) else body.encode()
            assert (file.digest, file.size) == (f"sha256:{hashlib.sha256(raw).hexdigest()}", len(raw))
        text = (await ask(house, "agent-all", "read", str(skill.ref))).body
        assert skill.front_matter == of_markdown(text).data
        assert skill.front_matter["name"] == skill.ref.segments[-2]
    letters = (await skills(house, "agent-all"))[f"{LETTERS}/SKILL.md"]
    assert [file.ref.path.removeprefix("brand/letters/") for file in letters.files] == [
        "SKILL.md", "internal/notes.md", "pixel.png", "references/tone.md",
    ]  # fmt: skip
    assert letters.front_matter == {"name": "letters", "description": "Answers letters.", "license": "MIT"}


async def test_what_is_redacted_is_redacted_before_it_is_digested(house: Octavo) -> None:
    tone = next(
        file for file in (await skills(house, "agent-all"))[f"{LETTERS}/SKILL.md"].files if file.ref.name == "tone.md"
    )
    assert (
        tone.digest != f"sha256:{hashlib.sha256(FILES['skills/brand/letters/references/tone.md'].encode()).hexdigest()}"
    )
    assert TOKEN not in (await ask(house, "agent-all", "read", str(tone.ref))).body


@pytest.mark.seed("O14")
async def test_what_a_rule_says_of_a_skill_it_says_of_its_files(house: Octavo) -> None:
    assert (await ask(house, "agent-one", "read", f"{LETTERS}/references/tone.md")).body
    page = await ask(house, "agent-one", "list", f"{LETTERS}/references")
    assert [str(entry.ref) for entry in page.items] == [f"{LETTERS}/references/tone.md"]
    for who, uri in (
        ("agent-brand", "skill://brand/secret/SKILL.md"),
        ("agent-brand", f"{LETTERS}/internal/notes.md"),
        ("agent-one", "skill://brand/brief/SKILL.md"),
    ):
        with pytest.raises(Forbidden):
            await ask(house, who, "read", uri)
    files = (await skills(house, "agent-brand"))[f"{LETTERS}/SKILL.md"].files
    assert "internal" not in str(files), "a file that is denied is no part of the skill"


@pytest.mark.parametrize(
    "uri",
    [
        LETTERS,
        f"{LETTERS}/references/tone.md",
        f"{LETTERS}/SKILL.md?view=parsed",
        f"{LETTERS}/references/SKILL.md",
        "skill://SKILL.md",
        "skill://brand/한글/SKILL.md",
        "skill://brand/wrong/SKILL.md",
        "skill://brand/broken/SKILL.md",
        "skill://brand/none/SKILL.md",
        "skill://",
    ],
)
async def test_what_is_no_skill_is_not_found(house: Octavo, uri: str) -> None:
    absent = await refused(house, "agent-all", uri)
    assert isinstance(absent, NotFound) and absent.data == {"uri": uri}


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_pages_hold_each_skill_once_and_whole(house: Octavo, limit: int) -> None:
    whole = await skills(house, "agent-all")
    assert [*(await skills(house, "agent-all", limit)).values()] == [*whole.values()]


async def test_a_skill_with_too_much_in_it_is_none(house: Octavo, tmp_path: Path) -> None:
    folder = tmp_path / "handbook/skills/brand/letters/many"
    folder.mkdir()
    for number in range(508):
        (folder / f"{number:03}.txt").write_text("x", encoding="utf-8")
    uri = f"{LETTERS}/SKILL.md"
    (skill,) = (await ask(house, "agent-all", "skills", uri)).items
    assert len(skill.files) == 512
    (folder / "more.txt").write_text("x", encoding="utf-8")
    assert isinstance(await refused(house, "agent-all", uri), NotFound)
    assert uri not in await skills(house, "agent-all")


async def test_changes_are_seen_at_once(house: Octavo, tmp_path: Path) -> None:
    (before,) = (await ask(house, "agent-all", "skills", "skill://brand/brief/SKILL.md")).items
    place = tmp_path / "handbook/skills/brand/brief.yml"
    staged = tmp_path / "staged"
    staged.write_text(place.read_text(encoding="utf-8").replace("Write.", "Write one page."), encoding="utf-8")
    staged.replace(place)
    (after,) = (await ask(house, "agent-all", "skills", "skill://brand/brief/SKILL.md")).items
    assert after.files[0].digest != before.files[0].digest
    assert "one page" in (await ask(house, "agent-all", "read", "skill://brand/brief/SKILL.md")).body


@pytest.mark.seed("F9")
async def test_the_audit_shows_what_a_list_of_skills_has_read(house: Octavo, tmp_path: Path) -> None:
    await ask(house, "agent-one", "skills", "*")
    house.ledger.flush()
    lines = audit_records(tmp_path)
    (root,) = [line for line in lines if line.get("op") == "skills"]
    assert (root["who"], root["outcome"], "parent" in root) == ("agent-one", "ok", False)
    children = [line for line in lines if line.get("parent") == root["id"]]
    assert {line["op"] for line in children} == {"list", "read"}
    assert {line["uri"] for line in children if line["op"] == "read"} == {
        f"{LETTERS}/{path}" for path in ("SKILL.md", "internal/notes.md", "pixel.png", "references/tone.md")
    }
