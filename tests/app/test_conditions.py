"""Rules on metadata, before catalogs and behind the whole pipeline: on every way to a document the same answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.errors import Forbidden, NotFound, OctavoError
from octavo.core.glob import Glob
from octavo.core.operations import arguments_of
from octavo.core.ports.chain import Reply
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.core.values import EVERYTHING, Call, Change, Op, Trail

pytestmark = pytest.mark.anyio

CONFIGURATION = """
version: 1
sources:
  handbook: {kind: file, roots: [./handbook], expose: false}
  sops: {kind: sop, store: handbook, path: sops}
  skills: {kind: skill, store: handbook, path: skills}
  org: {kind: org, store: handbook, path: org}
  files: {kind: file, uris: relative, roots: [./files]}
agents: {agent-brand: {}, agent-chief: {}}
"""
OPEN = """
policy:
  - {who: "*", may: "*", what: "**"}
  - {who: agent-brand, may: "*", what: "**", when: {metadata: {confidentiality: [confidential, secret]}}, effect: deny}
"""
HIDING = OPEN.replace("effect: deny", "effect: deny, hide: true")
ACTIVE = """
policy:
  - {who: agent-chief, may: "*", what: "**"}
  - {who: agent-brand, may: "*", what: ["org://*", "tool://*"]}
  - {who: agent-brand, may: "*", what: ["sop://*", "skill://*"], when: {metadata: {status: active}}}
"""


def sop(name: str, status: str = "active", more: str = "") -> str:
    facts = f"id: {name}\ntitle: {name}\nversion: 1.0.0\nstatus: {status}\nfunction: func-brand\n{more}"
    return f"---\n{facts}---\n캠페인 예산 {name}\n"


FILES = {
    "handbook/sops/brand/brief.md": sop("brief"),
    "handbook/sops/brand/plan.md": sop("plan", "draft", "confidentiality: Secret\n"),
    "handbook/skills/brand/writing/SKILL.md": "---\nname: writing\ndescription: Writes.\nstatus: draft\n"
    "confidentiality: secret\n---\nWrites.\n",
    "handbook/skills/brand/writing/more.md": "the secret part",
    "handbook/org/functions/brand.yml": "id: func-brand\nname: Brand\n",
    "files/open.md": "open 예산",
    "files/hr/pay.md": "pay 예산",
}
PLAN = "sop://brand/plan"


@asynccontextmanager
async def served(base: Path, rules: str) -> AsyncIterator[Octavo]:
    for path, text in FILES.items():
        place = base / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    file = base / "octavo.yaml"
    file.write_text(CONFIGURATION + rules, encoding="utf-8")
    async with Octavo(load(file, environ={})) as house:
        yield house


async def ask(house: Octavo, op: Op, uri: str, who: str = "agent-brand", **arguments: Any) -> Reply:
    ref = EVERYTHING if uri == "*" else Ref.parse(uri)
    with anyio.fail_after(20):
        return await house.works.ask(
            Call(op, ref, house.works.identity.launched(who), Trail(), uri, arguments_of(op, arguments))
        )


async def ways_to(house: Octavo, who: str = "agent-brand") -> dict[str, bool]:
    """On which ways somebody learns of the plan."""
    await house.searching.complete()
    reads = []
    for uri in (PLAN, f"{PLAN}?view=parsed", f"{PLAN}?version=1.0.0", f"{PLAN}?range=0-9", f"{PLAN}?view=relations"):
        try:
            await ask(house, "read", uri, who)
            reads.append(True)
        except OctavoError:
            reads.append(False)
    assert len(set(reads)) == 1, reads
    listed = [str(entry.ref) for entry in (await ask(house, "list", "sop://", who)).items]
    everywhere = [str(entry.ref) for entry in (await ask(house, "list", "*", who)).items]
    found = [str(one.ref) for one in (await ask(house, "search", "*", who, query=TextQuery("캠페인 예산"))).items]
    asked = {"argument": "path", "prefix": "", "given": {}}
    related = json.loads((await ask(house, "read", "org://function/brand?view=relations", who)).body)
    collected = json.loads((await ask(house, "read", "sop://brand", who)).body)
    return {
        "read": reads[0],
        "list": PLAN in listed,
        "list everything": PLAN in everywhere,
        "search": PLAN in found,
        "complete": "brand/plan" in await ask(house, "complete", "sop://", who, **asked),
        "relations": PLAN in json.dumps(related),
        "collection": PLAN in json.dumps(collected),
        "count": str(collected).count("uri") == 2,
    }


@pytest.mark.seed("O14", "B2")
@pytest.mark.parametrize("rules", [OPEN, HIDING, ACTIVE])
async def test_metadata_decide_alike_on_every_way_to_a_document(tmp_path: Path, rules: str) -> None:
    async with served(tmp_path, rules) as house:
        assert set((await ways_to(house)).values()) == {False}
        chief = await ways_to(house, "agent-chief")
        assert {way for way, seen in chief.items() if not seen} == set()
        assert (await ask(house, "read", "sop://brand/brief")).body.endswith("brief\n")


@pytest.mark.parametrize(("rules", "fault"), [(OPEN, Forbidden), (HIDING, NotFound)])
async def test_a_part_is_what_its_whole_is(tmp_path: Path, rules: str, fault: type[OctavoError]) -> None:
    async with served(tmp_path, rules) as house:
        uri = "skill://brand/writing/more.md"
        assert (await ask(house, "read", uri, "agent-chief")).body == "the secret part"
        for op in ("read", "stat"):
            with pytest.raises(fault):
                await ask(house, op, uri)


@pytest.mark.seed("O14")
async def test_hidden_by_metadata_is_told_like_absent(tmp_path: Path) -> None:
    async with served(tmp_path, HIDING) as house:
        for suffix in ("", "?view=parsed", "?version=1.0.0"):
            told = []
            for name in ("plan", "plaN"):
                with pytest.raises(NotFound) as caught:
                    await ask(house, "read", f"sop://brand/{name}{suffix}")
                told.append((caught.value.message.replace("plaN", "plan"), str(caught.value.data).lower()))
            assert told[0] == told[1]


async def test_broken_front_matter_does_not_open_a_document(tmp_path: Path) -> None:
    async with served(tmp_path, OPEN) as house:
        broken = FILES["handbook/sops/brand/plan.md"].replace("status: draft", "status: [draft")
        (tmp_path / "handbook/sops/brand/plan.md").write_text(broken, encoding="utf-8")
        with pytest.raises(Forbidden):
            await ask(house, "read", PLAN)


@pytest.mark.seed("O10")
async def test_a_document_that_becomes_public_comes_into_sight(tmp_path: Path) -> None:
    async with served(tmp_path, OPEN) as house:
        heard: list[Change] = []
        there = anyio.Event()

        def hear(change: Change) -> None:
            if str(change.ref) == PLAN:
                heard.append(change)
                there.set()

        leave = house.feed.subscribe(hear)
        await ask(house, "watch", PLAN, glob=Glob(PLAN))
        (tmp_path / "handbook/sops/brand/plan.md").write_text(sop("plan", "draft"), encoding="utf-8")
        with anyio.fail_after(20):
            await there.wait()
        leave()
        who = house.works.identity.launched("agent-brand")
        told = house.works.policy.told(who, "watch", heard[0])
        assert told is not None
        assert (told.kind, told.old) == ("created", None)
        assert (await ask(house, "read", PLAN)).body.endswith("plan\n")


LABELS = """
labels:
  - {what: "file://hr/*", confidentiality: secret, integrity: untrusted}
  - {what: "sop://*", confidentiality: internal}
"""


@pytest.mark.seed("O14")
async def test_labels_of_the_operator_are_metadata_and_never_made_weaker(tmp_path: Path) -> None:
    async with served(tmp_path, OPEN + LABELS) as house:
        pay = await ask(house, "stat", "file://hr/pay.md", "agent-chief")
        assert pay.metadata == {"confidentiality": "secret", "integrity": "untrusted"}
        assert (await ask(house, "stat", PLAN, "agent-chief")).metadata["confidentiality"] == "secret"
        assert (await ask(house, "stat", "sop://brand/brief")).metadata["confidentiality"] == "internal"
        (tmp_path / "files/link.md").symlink_to("hr/pay.md")
        for uri in ("file://hr/pay.md", f"file://{tmp_path}/files/hr/pay.md", "file://hr/%70ay.md", "file://link.md"):
            with pytest.raises(Forbidden):
                await ask(house, "read", uri)
        listed = {str(entry.ref) for entry in (await ask(house, "list", "file://")).items}
        assert listed == {"file://open.md"}
        await house.searching.complete()
        found = await ask(house, "search", "*", query=TextQuery("예산"))
        assert {str(one.ref) for one in found.items} == {"sop://brand/brief", "file://open.md"}
        brief = next(one for one in found.items if one.ref.scheme == "sop")
        assert brief.metadata["confidentiality"] == "internal"


ODD = """
labels:
  - {what: "sop://*", confidentiality: secret}
"""


@pytest.mark.seed("O14")
@pytest.mark.parametrize("said", ["nothing special", "[public, whatever]", "{level: public}", "7", "public"])
async def test_a_document_does_not_talk_itself_out_of_the_label_of_the_operator(tmp_path: Path, said: str) -> None:
    async with served(tmp_path, OPEN + ODD) as house:
        place = tmp_path / "handbook/sops/brand/brief.md"
        place.write_text(sop("brief", more=f"confidentiality: {said}\n"), encoding="utf-8")
        for op in ("read", "stat"):
            with pytest.raises(Forbidden):
                await ask(house, op, "sop://brand/brief")
        assert (await ask(house, "list", "sop://")).items == ()
        entry = await ask(house, "stat", "sop://brand/brief", "agent-chief")
        assert "secret" in entry.metadata["confidentiality"]


FURTHER = """
policy:
  - {who: "*", may: "*", what: "**"}
  - {who: agent-brand, may: "*", what: "sop://*", when: {metadata: {owner: ceo}}, effect: deny}
  - {who: agent-brand, may: "*", what: "sop://*", when: {metadata: {department: hr}}, effect: deny}
  - {who: agent-brand, may: "*", what: "sop://*", when: {metadata: {confidentiality: secret}}, effect: deny}
"""


@pytest.mark.seed("O14")
@pytest.mark.parametrize("more", ["owner: CEO", "department: [it, hr]", "Department: hr", "Confidentiality: secret"])
async def test_a_rule_may_ask_for_metadata_that_a_catalog_does_not_declare(tmp_path: Path, more: str) -> None:
    async with served(tmp_path, FURTHER) as house:
        assert (await ask(house, "read", "sop://brand/brief")).body
        (tmp_path / "handbook/sops/brand/brief.md").write_text(sop("brief", more=f"{more}\n"), encoding="utf-8")
        with pytest.raises(Forbidden):
            await ask(house, "read", "sop://brand/brief")
        assert "sop://brand/brief" not in {str(entry.ref) for entry in (await ask(house, "list", "sop://")).items}
        await house.searching.complete()
        found = (await ask(house, "search", "*", query=TextQuery("예산"))).items
        assert "sop://brand/brief" not in {str(one.ref) for one in found}


@pytest.mark.parametrize("rules", [OPEN, HIDING, ACTIVE])
async def test_a_part_is_as_open_as_its_whole_is_now(tmp_path: Path, rules: str) -> None:
    async with served(tmp_path, rules) as house:
        whole = tmp_path / "handbook/skills/brand/writing/SKILL.md"
        said = "---\nname: writing\ndescription: W.\nstatus: {}\n{}---\nW\n"
        whole.write_text(said.format("active", ""), encoding="utf-8")
        assert (await ask(house, "read", "skill://brand/writing/more.md")).body == "the secret part"
        whole.write_text(said.format("draft", "confidentiality: secret\n"), encoding="utf-8")
        with pytest.raises(OctavoError):
            await ask(house, "read", "skill://brand/writing/more.md")
