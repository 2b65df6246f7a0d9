"""Catalogs from the configuration, behind the whole pipeline: each caller sees what it may see, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.app.asking import ask, told

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.arguments import ListArguments
from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError
from octavo.core.ref import Ref
from octavo.core.values import EVERYTHING, Call, Change, Trail

pytestmark = pytest.mark.anyio

CONFIGURATION = """
version: 1
sources:
  handbook: {kind: file, roots: [./handbook], expose: false}
  sops: {kind: sop, store: handbook}
  skills: {kind: skill, store: handbook}
  agents: {kind: agent, store: handbook}
  org: {kind: org, store: handbook}
  decisions: {kind: catalog, scheme: decision, store: handbook, path: decisions, files: "{year}/{name}.md"}
agents:
  agent-brand: {roles: [marketing]}
  agent-hr: {}
policy:
  - {who: "*", may: [list, read, watch, invoke], what: ["org://*", "agent://*", "skill://*", "tool://*", "decision://*"]}
  - {who: agent-brand, may: [list, read, watch], what: "sop://*"}
  - {who: agent-hr, may: [list, read, watch], what: "sop://hr/*"}
  - {who: agent-brand, may: "*", what: ["sop://hr/*", "skill://hr/*"], effect: deny, why: "not for brand"}
"""
SOP = "---\nid: {0}\ntitle: {0}\nversion: 1.0.0\nstatus: active\nfunction: func-{1}\n---\n"
FILES = {
    "sops/brand/brief.md": SOP.format("brief", "brand"),
    "sops/hr/salary.md": SOP.format("salary", "hr"),
    "sops/hr/secret-brand.md": SOP.format("secret", "brand"),
    "skills/brand/writing.yml": "id: s1\nname: writing\nagents: [agent-brand]\ntriggers: [급여 brief]\n",
    "skills/hr/pay.yml": "id: s2\nname: pay\nagents: [agent-brand, agent-hr]\ntriggers: [급여 salary]\n",
    "agents/brand.yml": "id: agent-brand\nname: brand\nskills: [s1]\n",
    "agents/hr.yml": "id: agent-hr\nname: hr\n",
    "org/functions/brand.yml": "id: func-brand\nname: Brand\n",
    "org/functions/hr.yml": "id: func-hr\nname: HR\n",
    "decisions/2025/logo.md": "---\ntitle: Logo\n---\n주민등록번호 900101-1234568\n",
}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Octavo]:
    for path, text in FILES.items():
        place = tmp_path / "handbook" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    file = tmp_path / "octavo.yaml"
    file.write_text(CONFIGURATION, encoding="utf-8")
    async with Octavo(load(file, environ={})) as octavo:
        yield octavo


@pytest.mark.seed("O14", "O6")
async def test_relations_leave_out_what_the_caller_may_not_list(house: Octavo) -> None:
    brand = await told(house, "agent-brand", "org://function/brand?view=relations")
    hr = await told(house, "agent-hr", "org://function/brand?view=relations")
    assert [one["uri"] for one in brand["relations"]["sops"]] == ["sop://brand/brief"]
    assert [one["uri"] for one in hr["relations"]["sops"]] == ["sop://hr/secret-brand"]
    for who, uri in (("agent-brand", "org://function/hr"), ("agent-brand", "agent://hr")):
        assert "sop://hr" not in json.dumps(await told(house, who, f"{uri}?view=relations"))


@pytest.mark.seed("O4", "O14")
async def test_matches_and_collections_leave_out_what_the_caller_may_not_list(house: Octavo) -> None:
    for uri, key in (("skill://?match=급여", "matches"), ("skill://", "entries")):
        assert [one["uri"] for one in (await told(house, "agent-brand", uri))[key]] == ["skill://brand/writing"]
        assert "skill://hr/pay" in [one["uri"] for one in (await told(house, "agent-hr", uri))[key]]
        page = await ask(house, "agent-brand", "list", uri)
        assert [str(entry.ref) for entry in page.items] == ["skill://brand/writing"]


async def test_a_collection_is_read_by_whoever_may_list_something_in_it(house: Octavo) -> None:
    """agent-hr may list sop://hr/* alone, and no rule speaks of sop:// itself."""
    seen = await told(house, "agent-hr", "sop://?status=active")
    assert [one["uri"] for one in seen["entries"]] == ["sop://hr/salary", "sop://hr/secret-brand"]
    for uri in ("sop://brand", "sop://brand/brief", "sop://nothing", "sop://nothing/at-all"):
        with pytest.raises(Forbidden):
            await ask(house, "agent-hr", "read", uri)
    with pytest.raises(Forbidden):
        await ask(house, "agent-brand", "read", "sop://hr?status=active")
    assert (await told(house, "agent-brand", "sop://?function=hr"))["entries"] == []


async def test_a_collection_of_which_nothing_may_be_seen_is_like_one_that_is_not_there(
    house: Octavo, tmp_path: Path
) -> None:
    file = tmp_path / "octavo.yaml"
    rules = '  - {who: agent-hr, may: [list, read], what: ["sop://*/public", "sop://*"]}\n'
    hidden = '  - {who: agent-hr, may: "*", what: "sop://brand/brief", effect: deny, hide: true}\n'
    file.write_text(CONFIGURATION.partition("policy:\n")[0] + "policy:\n" + rules + hidden, encoding="utf-8")
    await house.reload(load(file, environ={}))
    for uri in ("sop://brand", "sop://nothing", "sop://brand?status=active"):
        with pytest.raises(NotFound) as absent:
            await ask(house, "agent-hr", "read", uri)
        assert absent.value.data == {"uri": uri}


@pytest.mark.seed("O5")
async def test_capabilities_are_those_of_the_live_policy_and_registry(house: Octavo) -> None:
    own = await told(house, "agent-brand", "agent://brand?view=capabilities")
    assert [one["uri"] for one in own["skills"]] == ["skill://brand/writing"]
    assert {"name": "read", "uri": "tool://read"} in own["tools"]
    live = {one["what"]: one["effect"] for one in own["permissions"]["live"]}
    assert live["sop://*"] == "allow" and "sop://hr/*" not in live, "of what is denied to it, it hears nothing"
    seen_by_hr = await told(house, "agent-hr", "agent://brand?view=capabilities")
    assert {one["uri"]: one["usable"] for one in seen_by_hr["skills"]} == {
        "skill://brand/writing": True,
        "skill://hr/pay": False,
    }


@pytest.mark.seed("O5", "O14")
async def test_capabilities_follow_a_rule_that_changes(house: Octavo, tmp_path: Path) -> None:
    before = await told(house, "agent-hr", "agent://brand?view=capabilities")
    file = tmp_path / "octavo.yaml"
    rule = '  - {who: agent-brand, may: invoke, what: "tool://search", effect: deny}\n'
    file.write_text(CONFIGURATION.replace('"skill://hr/*"]', '"skill://brand/*"]') + rule, encoding="utf-8")
    await house.reload(load(file, environ={}))
    after = await told(house, "agent-hr", "agent://brand?view=capabilities")
    tools = [{tool["name"] for tool in one["tools"]} for one in (before, after)]
    assert tools[0] - tools[1] == {"search"}
    usable = [{skill["uri"]: skill["usable"] for skill in one["skills"]} for one in (before, after)]
    assert usable == [
        {"skill://brand/writing": True, "skill://hr/pay": False},
        {"skill://brand/writing": False, "skill://hr/pay": True},
    ]


@pytest.mark.seed("O2", "O16")
async def test_a_list_is_narrowed_by_what_the_source_knows_and_by_metadata(house: Octavo) -> None:
    async def found(who: str, scope: Ref = EVERYTHING, **wanted: Any) -> list[str]:
        call = Call("list", scope, house.works.identity.launched(who), Trail(), "", ListArguments(filter=wanted))
        return [str(entry.ref) for entry in (await house.works.ask(call)).items]

    assert await found("agent-brand", Ref("sop"), function="brand") == ["sop://brand/brief"]
    assert await found("agent-hr", Ref("sop"), function=["func-brand"]) == ["sop://hr/secret-brand"]
    assert await found("agent-hr", agent="brand") == ["skill://brand/writing", "skill://hr/pay"]
    assert await found("agent-hr", id="s2", agent="agent://hr") == ["skill://hr/pay"]
    assert await found("agent-hr", Ref("sop", (), (("status", "active"),)), id="salary") == ["sop://hr/salary"]
    for wanted in ({"function": ""}, {"status": []}, {"function": "x" * 5000}):
        with pytest.raises(InvalidParams):
            await found("agent-hr", **wanted)
    with pytest.raises(InvalidParams):
        await found("agent-hr", Ref("sop", (), (("status", "active"),)), status="draft")


async def test_no_part_of_a_file_shows_what_the_whole_would_not(house: Octavo) -> None:
    whole = (await ask(house, "agent-hr", "read", "decision://2025/logo")).body
    for end in range(20, 62):
        part = await ask(house, "agent-hr", "read", f"decision://2025/logo?range=0-{end}")
        assert "900101" not in part.body or "1234568" not in part.body
        assert not any(digits in part.body for digits in ("0101-1", "234568"))
    assert "[redacted:" in whole
    with pytest.raises(InvalidParams):
        await ask(house, "agent-hr", "read", "decision://2025/logo?range=0-9&view=parsed")


async def test_without_rules_everything_is_told(house: Octavo, tmp_path: Path) -> None:
    file = tmp_path / "octavo.yaml"
    file.write_text(CONFIGURATION.partition("agents:\n  agent-brand")[0], encoding="utf-8")
    await house.reload(load(file, environ={}))
    told_to_all = await told(house, "local", "org://function/brand?view=relations")
    assert len(told_to_all["relations"]["sops"]) == 2


@pytest.mark.seed("O13", "O14")
async def test_a_denied_sop_is_refused_under_every_spelling(house: Octavo) -> None:
    for uri in ("sop://hr/salary", "sop://hr/salary?view=parsed", "sop://hr/salary?version=1.0.0", "sop://hr"):
        with pytest.raises(Forbidden) as refused:
            await ask(house, "agent-brand", "read", uri)
        assert str(refused.value) == f"Access denied to resource: {uri}"
    with pytest.raises(OctavoError):
        await ask(house, "agent-brand", "read", "file://sops/hr/salary.md")


async def test_a_link_to_what_is_denied_is_one_to_nothing_in_every_view(house: Octavo, tmp_path: Path) -> None:
    (tmp_path / "handbook/sops/brand/link.md").symlink_to("../hr/salary.md")
    for query in ("", "?view=parsed", "?view=relations"):
        with pytest.raises(NotFound):
            await ask(house, "agent-brand", "read", f"sop://brand/link{query}")
    for version in ("1.0.0", "7"):  # one that it has, and one that it has not
        with pytest.raises(NotFound):
            await ask(house, "agent-brand", "read", f"sop://brand/link?version={version}")
    page = await ask(house, "agent-brand", "list", "sop://brand")
    assert [str(entry.ref) for entry in page.items] == ["sop://brand/brief"]
    for uri in ("sop://brand", "sop://?status=active", "org://function/hr?view=relations"):
        assert "brand/link" not in (await ask(house, "agent-brand", "read", uri)).body


@pytest.mark.seed("O18")
async def test_an_address_with_the_ending_of_the_file_passes_no_rule(house: Octavo) -> None:
    assert (await ask(house, "agent-brand", "read", "sop://brand/brief.md")).body == FILES["sops/brand/brief.md"]
    for uri in ("sop://hr/salary", "sop://hr/salary.md"):
        with pytest.raises(Forbidden):
            await ask(house, "agent-brand", "read", uri)
        with pytest.raises(Forbidden):
            await ask(house, "agent-brand", "stat", uri)


async def test_a_namespace_of_ones_own_is_served_and_redacted(house: Octavo) -> None:
    content = await ask(house, "agent-hr", "read", "decision://2025/logo")
    assert (content.entry.name, "1234568" in content.body) == ("Logo", False)
    with pytest.raises(NotFound):
        await ask(house, "agent-hr", "read", "decision://2025/none")


@pytest.mark.seed("O10")
async def test_a_change_reaches_the_feed_and_what_was_kept_is_forgotten(house: Octavo, tmp_path: Path) -> None:
    heard: asyncio.Queue[Change] = asyncio.Queue()
    house.feed.subscribe(heard.put_nowait)
    await ask(house, "agent-hr", "list", "sop://hr")
    for uri in ("sop://hr", "sop://hr/salary"):
        await ask(house, "agent-hr", "read", uri)
    for source in house.works.sources:
        await source.armed()  # type: ignore[attr-defined]
    place = tmp_path / "handbook/sops/hr/salary.md"
    staged = tmp_path / "staged"
    staged.write_text(place.read_text(encoding="utf-8").replace("1.0.0", "1.1.0"), encoding="utf-8")
    staged.replace(place)
    with anyio.fail_after(30):
        change = await heard.get()
    assert (change.kind, str(change.ref), change.changes["version"]) == (
        "updated",
        "sop://hr/salary",
        ["1.0.0", "1.1.0"],
    )
    assert "1.1.0" in (await ask(house, "agent-hr", "read", "sop://hr/salary")).body
    page = await ask(house, "agent-hr", "list", "sop://hr")
    assert [entry.metadata["version"] for entry in page.items] == ["1.1.0", "1.0.0"]
    assert "1.1.0" in (await ask(house, "agent-hr", "read", "sop://hr")).body
