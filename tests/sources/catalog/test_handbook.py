"""Entries that refer to each other: relations in both directions, what an agent can do, which skill fits a request."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from octavo.core.errors import InvalidParams
from octavo.core.glob import Glob
from octavo.core.ref import Ref

pytestmark = pytest.mark.anyio


class Live:
    def tools(self, agent: str) -> Sequence[str]:
        return ["read"] if agent == "agent-brand" else []

    def may_read(self, agent: str, ref: Ref) -> bool:
        return ref.segments[0] == "brand"

    def has_tool(self, name: str) -> bool:
        return name == "read"

    def knows(self, agent: str) -> bool:
        return agent == "agent-brand"

    def rules(self, agent: str) -> bool:
        return agent == "agent-brand"

    def reaches(self, agent: str, verb: str, pattern: Glob) -> bool:
        return pattern.text == "tool://read"

    def permissions(self, agent: str) -> Sequence[Mapping[str, Any]]:
        return [{"what": "sop://brand/*", "may": ["read"], "effect": "allow"}]


async def related(organisation: Any, uri: str) -> dict[str, list[str]]:
    content = await organisation.read(f"{uri}?view=relations")
    assert content.composed, "the policy must know that it tells of others"
    groups = json.loads(content.body)["relations"]
    return {kind: [one["uri"] for one in found] for kind, found in groups.items() if found}


@pytest.mark.seed("O6")
async def test_relations_are_told_in_both_directions(organisation: Any) -> None:
    assert await related(organisation, "org://function/brand") == {
        "sops": ["sop://brand/campaign-brief", "sop://brand/press"],
        "skills": ["skill://brand/brief-writing"],
        "agents": ["agent://brand"],
        "roles": ["org://role/brand-lead"],
        "value_streams": ["org://value-stream/collection-launch"],
    }
    assert await related(organisation, "org://value-stream/collection-launch") == {
        "functions": ["org://function/brand", "org://function/finance"]
    }
    assert await related(organisation, "org://role/brand-lead") == {"functions": ["org://function/brand"]}
    assert await related(organisation, "agent://brand") == {
        "sops": ["sop://brand/campaign-brief"],
        "skills": ["skill://brand/brief-writing", "skill://finance/budget-check"],
        "functions": ["org://function/brand"],
    }


async def test_every_kind_is_told_even_if_there_is_none(organisation: Any) -> None:
    """What the policy leaves out must look like what was never there."""
    told = json.loads((await organisation.read("org://role/brand-lead?view=relations")).body)["relations"]
    assert set(told) == {"sops", "docs", "skills", "agents", "functions", "value_streams", "roles", "org"}


@pytest.mark.seed("O5")
async def test_capabilities_are_computed_from_the_running_house(organisation: Any) -> None:
    organisation.handbook.live = Live()
    content = await organisation.read("agent://brand?view=capabilities")
    assert content.composed
    assert json.loads(content.body) == {
        "agent": "agent-brand",
        "name": "brand",
        "capabilities": ["briefs"],
        "skills": [
            {
                "uri": "skill://brand/brief-writing",
                "name": "브리프 작성",
                "required_tools": ["read", "search"],
                "usable": False,
                "missing_tools": ["search"],
                "why": "tools are missing: search",
            },
            {
                "uri": "skill://finance/budget-check",
                "name": "예산 점검",
                "required_tools": [],
                "usable": False,
                "why": "it may not be read",
            },
        ],
        "tools": [{"uri": "tool://read", "name": "read"}],
        "permissions": {
            "live": [{"what": "sop://brand/*", "may": ["read"], "effect": "allow"}],
            "declared": {"read": ["sop://brand/*"]},
        },
    }
    assert organisation.catalogs["agent"].stamp(content.entry.ref, "read") is None, "rules change without a file"


async def test_without_a_running_house_only_files_are_quoted(organisation: Any) -> None:
    told = json.loads((await organisation.read("agent://brand?view=capabilities")).body)
    assert (told["tools"], told["permissions"]["live"]) == ([], None)
    with pytest.raises(InvalidParams):
        await organisation.read("sop://brand/press?view=capabilities")


@pytest.mark.seed("O5")
async def test_an_agent_file_that_says_other_than_the_policy_is_told(organisation: Any) -> None:
    """Here an agent may read whatever stands in a folder `brand`, and call `read`."""
    organisation.handbook.live = Live()
    lines = [
        "id: agent-brand", "name: brand", "permissions:",
        "  read:", "    - sop://brand/*", "    - doc://*", "    - skill://brand/*",
        "  write: [doc://brand/*]", "  invoke: [tool://read, tool://write]",
        "  deny:", "    - skill://*", "    - doc://policies/*",
        "  reed: [sop://*]", "  list: [':']",
        "tools: [read, dance]",
    ]  # fmt: skip
    organisation.write("agents/brand.yml", "\n".join(lines))
    assert await organisation.problems("agent") == [
        "agents/brand.yml:4: permissions.read: the policy also allows agent-brand to read agent://brand",
        "agents/brand.yml:8: permissions.write[0]: the policy does not allow agent-brand to write doc://brand/*",
        "agents/brand.yml:9: permissions.invoke[1]: the policy does not allow agent-brand to invoke tool://write",
        "agents/brand.yml:11: permissions.deny[0]: the policy allows agent-brand to read skill://brand/brief-writing",
        "agents/brand.yml:13: permissions.reed: there is no such verb; there are list, read, search, watch, write, "
        "delete, invoke, render, complete, approve, admin, and deny",
        "agents/brand.yml:14: permissions.list[0]: is no pattern, such as sop://brand/*",
        "agents/brand.yml:15: tools[1]: there is no such tool on this server",
    ]
    organisation.write("agents/brand.yml", "\n".join([*lines[:9], "tools: [read]"]))
    assert (await organisation.problems("agent"))[1] == (
        "agents/brand.yml:6: permissions.read[1]: the policy does not allow agent-brand to read doc://policies/expense"
    )


async def test_tools_of_other_programs_in_agents_of_theirs_are_no_slips(organisation: Any) -> None:
    organisation.handbook.live = Live()
    head = "---\nname: Tester\ndescription: d\nmodel: m\ntools: [Bash, search/codebase]\n"
    organisation.write("agents/tester.agent.md", f"{head}---\nYou test.\n")
    assert not [one for one in await organisation.problems("agent") if "tester" in one]
    organisation.write("agents/tester.agent.md", f"{head}id: agent-tester\nfunction: func-brand\n---\nYou test.\n")
    assert [one for one in await organisation.problems("agent") if "tester" in one] == [
        "agents/tester.agent.md:5: tools[0]: there is no such tool on this server",
        "agents/tester.agent.md:5: tools[1]: there is no such tool on this server",
    ]


async def test_a_skill_that_needs_an_unknown_tool_is_told_unless_it_is_a_draft(organisation: Any) -> None:
    organisation.handbook.live = Live()
    assert await organisation.problems("skill") == [
        "skills/brand/brief-writing.yml:10: required_tools[1]: there is no such tool on this server"
    ]
    file = organisation.root / "skills/brand/brief-writing.yml"
    organisation.write("skills/brand/brief-writing.yml", file.read_text(encoding="utf-8") + "status: draft\n")
    assert await organisation.problems("skill") == []


@pytest.mark.seed("O4")
@pytest.mark.parametrize(
    ("request_", "first"),
    [
        ("캠페인 브리프를 써 줘", "skill://brand/brief-writing"),
        ("write a brief for the campaign", "skill://brand/brief-writing"),
        ("이번 달 예산이 남았나요?", "skill://finance/budget-check"),
        ("check the budgets", "skill://finance/budget-check"),
    ],
)
async def test_a_request_finds_its_skill_with_score_and_reasons(organisation: Any, request_: str, first: str) -> None:
    uri = f"skill://?match={request_}"
    told = json.loads((await organisation.read(uri)).body)
    best = told["matches"][0]
    assert (told["match"], best["uri"]) == (request_, first)
    assert 0 < best["score"] <= 1 and best["reasons"]
    listed = await organisation.entries(uri, limit=1)
    assert [str(entry.ref) for entry in listed] == [one["uri"] for one in told["matches"]]
    assert (listed[0].metadata["score"], listed[0].metadata["reasons"]) == (best["score"], best["reasons"])


async def test_a_match_can_be_narrowed_and_says_what_an_agent_lacks(organisation: Any) -> None:
    organisation.handbook.live = Live()
    told = json.loads((await organisation.read("skill://?match=brief 예산&agent=agent-brand")).body)["matches"]
    assert {one["uri"]: one["usable"] for one in told} == {
        "skill://brand/brief-writing": False,
        "skill://finance/budget-check": False,
    }
    assert await organisation.uris("skill://finance?match=brief") == []


async def test_the_score_of_a_skill_does_not_depend_on_others(organisation: Any) -> None:
    """Or it would tell of skills that the caller may not see."""
    uri = "skill://brand?match=campaign brief"
    before = json.loads((await organisation.read(uri)).body)
    for number in range(20):
        organisation.write(f"skills/hr/brief{number}.yml", f"id: s{number}\nname: campaign brief {number}\n")
    assert json.loads((await organisation.read(uri)).body) == before


@pytest.mark.parametrize("request_", ["", "?", "the a of", "\u0000x"[1:] * 4000, "[" * 1500, "이" * 1300])
async def test_any_request_is_answered(organisation: Any, request_: str) -> None:
    uri = Ref.of("skill", (), [("match", request_)])
    content = await organisation.catalogs["skill"].read(uri, max_bytes=1 << 20)
    assert json.loads(content.body)["matches"] == []
