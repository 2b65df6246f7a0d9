"""Seed 003 over the example organisation: every address, filter, operation and answer, through both transports in both
eras."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.e2e.harness import Place
from tests.e2e.maison_haru import (
    BRAND,
    DOORS,
    FILTER,
    METADATA,
    ORCHESTRATOR,
    Door,
    Doors,
    Front,
    maison_haru,
    opened,
    uris,
)

pytestmark = pytest.mark.slow

ADDRESSES = {
    "sop://brand/campaign-brief": "sops/brand/campaign-brief.md",
    "sop://hr/onboarding": "sops/hr/onboarding.md",
    "sop://ops/incident-response": "sops/ops/incident-response.md",
    "doc://policies/expense": "docs/policies/expense.md",
    "doc://brand/guidelines": "docs/brand/guidelines.md",
    "skill://brand/brief-writing": "skills/brand/brief-writing.yml",
    "skill://finance/budget-check": "skills/finance/budget-check.yml",
    "agent://brand": "agents/brand.yml",
    "agent://orchestrator": "agents/orchestrator.yml",
    "org://function/brand": "org/functions/brand.yml",
    "org://value-stream/collection-launch": "org/value-streams/collection-launch.yml",
}
BRIEF, SALARY = "sop://brand/campaign-brief", "sop://hr/salary-policy"
CONFIDENTIAL = {SALARY, "sop://hr/performance-review", "sop://hr/grievance", "doc://policies/pay-bands"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return maison_haru(tmp_path_factory.mktemp("maison-haru"))


@pytest.fixture(scope="module")
def front(place: Place) -> Front:
    return Front(place.root)


@pytest.fixture(scope="module")
def doors(place: Place) -> Iterator[Doors]:
    yield from opened(place)


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest, doors: Doors) -> Callable[[str], Door]:
    return lambda agent: doors(request.param, agent)


@pytest.fixture
def all_but_hr(door: Callable[[str], Door]) -> Door:
    return door(ORCHESTRATOR)


@pytest.fixture
def brand(door: Callable[[str], Door]) -> Door:
    return door(BRAND)


@pytest.mark.seed("O1", "O2", "O3", "O4", "O5", "O6", "O9", "O15")
def test_every_address_of_the_seed_is_the_file_that_it_names(all_but_hr: Door, place: Place, front: Front) -> None:
    for uri, path in ADDRESSES.items():
        content = all_but_hr.read(uri)
        assert content["text"] == (place.root / path).read_text(encoding="utf-8"), "whole, with its front matter"
        assert content["mimeType"] == ("text/markdown" if path.endswith(".md") else "application/yaml")
        said, metadata = front.said[uri], content["_meta"][METADATA]
        assert metadata["id"] == said["id"]
        assert {key: said.get(key) for key in metadata if key not in ("type", "category", "last_updated")} == {
            key: value for key, value in metadata.items() if key not in ("type", "category", "last_updated")
        }


@pytest.mark.seed("O2", "O3", "O4", "O5", "O6")
def test_the_metadata_of_each_namespace_are_those_of_the_seed(all_but_hr: Door) -> None:
    named = {
        BRIEF: {"id", "version", "status", "function", "agent", "tags"},
        "doc://policies/expense": {"id", "category", "last_updated", "owner"},
        "skill://finance/budget-check": {"id", "name", "function", "agents", "triggers", "required_tools"},
        "agent://brand": {"id", "name", "function", "capabilities", "skills", "permissions"},
        "org://function/brand": {"id", "name"},
    }
    for uri, keys in named.items():
        assert keys <= set(all_but_hr.read(uri)["_meta"][METADATA]), uri


@pytest.mark.seed("O9")
def test_the_standard_response_is_the_object_of_the_seed(brand: Door, place: Place) -> None:
    text = (place.root / ADDRESSES[BRIEF]).read_text(encoding="utf-8")
    assert text.startswith('---\nschema_version: "1.0"\n')
    result = brand.tool("read", target=BRIEF, shape="resource")
    assert result["structuredContent"] == {
        "uri": "sop://brand/campaign-brief",
        "name": "캠페인 브리프 작성",
        "mimeType": "text/markdown",
        "metadata": {
            "id": "sop-brand-campaign-brief",
            "version": "1.2.0",
            "status": "active",
            "function": "func-brand",
            "agent": "agent-brand",
            "tags": ["brand", "campaign", "creative"],
        },
        "contents": [{"uri": "sop://brand/campaign-brief", "mimeType": "text/markdown", "text": text}],
    }
    assert "schema_version" not in json.dumps(result["content"]), "no text travels twice"
    plain = brand.tool("read", target=BRIEF)
    assert "structuredContent" not in plain and plain["content"][0]["text"].startswith(text[:100])


# The filter, and the same question put to the front matter itself. Names and ids mean the same.
FILTERED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("sop", {"function": "brand"}, {"function": "func-brand"}),
    ("sop", {"function": "func-brand"}, {"function": "func-brand"}),
    ("sop", {"function": "org://function/hr"}, {"function": "func-hr"}),
    ("sop", {"status": "draft"}, {"status": "draft"}),
    ("sop", {"tags": "campaign"}, {"tags": "campaign"}),
    ("sop", {"function": "brand", "status": "active", "tags": "brand"},
     {"function": "func-brand", "status": "active", "tags": "brand"}),
    ("sop", {"agent": "finance"}, {"agent": "agent-finance"}),
    ("doc", {"category": "policies"}, {"category": "policies"}),
    ("doc", {"category": "onboarding"}, {"category": "onboarding"}),
    ("skill", {"function": "finance"}, {"function": "func-finance"}),
    ("skill", {"agent": "agent-brand"}, {"agents": "agent-brand"}),
    ("skill", {"agent": "brand", "function": "finance"}, {"agents": "agent-brand", "function": "func-finance"}),
    ("skill", {"agent": "agent://orchestrator"}, {"agents": "agent-orchestrator"}),
    ("agent", {}, {}),
    ("agent", {"function": "ops"}, {"function": "func-ops"}),
    ("org", {"type": "function"}, {"type": "function"}),
    ("org", {"type": "value_stream"}, {"type": "value_stream"}),
    ("org", {"type": "value-stream"}, {"type": "value_stream"}),
    ("org", {"type": "role"}, {"type": "role"}),
]  # fmt: skip


@pytest.mark.seed("O2", "O3", "O4", "O5", "O6", "O16")
def test_each_filter_gives_the_same_as_list_as_tool_and_as_collection(all_but_hr: Door, front: Front) -> None:
    for scheme, asked, said in FILTERED:
        expected = sorted(set(front.uris(scheme, **said)) - CONFIDENTIAL)
        assert expected, (scheme, said)
        query = "&".join(f"{name}={value}" for name, value in asked.items())
        collection = f"{scheme}://?{query}" if query else f"{scheme}://"
        narrowed = {"under": f"{scheme}://", **asked}
        answers = {
            "params.filter": uris(all_but_hr.listed(filter=narrowed)),
            "_meta": uris(all_but_hr.listed(_meta={FILTER: narrowed})),
            "tool": uris(_entries(all_but_hr, target=f"{scheme}://", filter=asked, depth=0)),
            "tool, target": uris(_entries(all_but_hr, target=collection, depth=0)),
            "collection": uris(all_but_hr.told(collection)["entries"]),
        }
        for way, found in answers.items():
            assert sorted(found) == expected, (way, scheme, asked)


def _entries(door: Door, **asked: Any) -> list[Any]:
    entries = door.tool("list", limit=1000, **asked)["structuredContent"]["entries"]
    return [entry for entry in entries if entry["type"] == "file"]


@pytest.mark.seed("O2", "O16")
def test_a_filter_over_all_namespaces_finds_what_has_the_key(brand: Door) -> None:
    found = uris(brand.listed(filter={"function": "brand"}))
    assert {BRIEF, "skill://brand/brief-writing", "agent://brand", "org://role/brand-lead"} <= set(found)
    assert {uri.partition(":")[0] for uri in found} == {"sop", "skill", "agent", "org"}
    assert found == uris(brand.listed(filter={"function": ["func-brand"]}))
    assert uris(_entries(brand, filter={"function": "brand"})) == found
    answer = brand.result("resources/list", filter={"tags": ["campaign"]})
    assert [entry["name"] for entry in answer["resources"] if entry["uri"] == BRIEF] == ["캠페인 브리프 작성"]
    if brand.era == "modern":
        assert (answer["ttlMs"], answer["cacheScope"]) == (0, "private"), "clients keep lists by method alone"


@pytest.mark.seed("O1")
def test_collections_are_resources(brand: Door, front: Front) -> None:
    for uri in ("sop://brand", "sop://brand?status=active", "sop://"):
        content = brand.read(uri)
        assert content["mimeType"] == "inode/directory"
        (entry,) = [one for one in json.loads(content["text"])["entries"] if one["uri"] == BRIEF]
        assert (entry["name"], entry["metadata"]["version"]) == ("캠페인 브리프 작성", "1.2.0")
    assert uris(brand.told("sop://brand")["entries"]) == sorted(front.uris("sop", function="func-brand"))
    assert not any(uri.startswith("sop://hr") for uri in uris(brand.told("sop://")["entries"]))


@pytest.mark.seed("O1")
def test_query_keys_that_are_unknown_or_twice_there_are_refused(brand: Door) -> None:
    for uri in (
        "sop://?colour=red",
        "sop://brand?category=policies",
        f"{BRIEF}?colour=red",
        f"{BRIEF}?status=active",
        f"{BRIEF}?view=parsed&view=relations",
        f"{BRIEF}?view=upside-down",
        "sop://?status=",
    ):
        refused = brand.error("resources/read", uri=uri)
        assert (refused["code"], refused["data"]["reason"]) == (-32602, "invalid_params"), uri
        if "colour" in uri:
            assert "colour" in refused["message"]
    refused = brand.error("resources/list", filter={"under": "sop://?colour=red"})
    assert refused["code"] == -32602
    assert brand.tool_error("list", target="sop://?colour=red")["code"] == -32602


@pytest.mark.seed("O1", "O3")
def test_a_version_is_a_query_of_the_address(brand: Door, front: Front) -> None:
    current = str(front.said["doc://policies/expense"]["version"])
    assert (
        brand.read(f"doc://policies/expense?version={current}")["text"] == brand.read("doc://policies/expense")["text"]
    )
    absent = brand.error("resources/read", uri="doc://policies/expense?version=99.0.0")
    assert (absent["code"], absent["message"]) == (
        -32602,
        f"doc://policies/expense has no such version; it tells {current}",
    )


@pytest.mark.seed("O4", "O5", "O6", "O9")
def test_a_definition_is_given_whole_and_parsed(all_but_hr: Door, front: Front) -> None:
    for uri in ("skill://finance/budget-check", "agent://brand", "org://value-stream/collection-launch", BRIEF):
        parsed = all_but_hr.read(f"{uri}?view=parsed")
        assert parsed["mimeType"] == "application/json"
        assert json.loads(parsed["text"]) == json.loads(json.dumps(front.said[uri], default=str))
        shaped = all_but_hr.tool("read", target=f"{uri}?view=parsed", shape="resource")["structuredContent"]
        assert shaped["contents"][0]["text"] == parsed["text"]


@pytest.mark.seed("O4", "O5", "O9")
def test_the_standard_response_of_a_definition_holds_it_parsed(all_but_hr: Door, front: Front) -> None:
    for uri in ("skill://finance/budget-check", "agent://brand"):
        shaped = all_but_hr.tool("read", target=uri, shape="resource")["structuredContent"]
        assert shaped["metadata"]["parsed"] == json.loads(json.dumps(front.said[uri], default=str))


SPELLINGS = [
    ("sop://brand/campaign-brief", "sop://sop-brand-campaign-brief"),
    ("sop://brand/campaign-brief", "sop://func-brand/campaign-brief"),
    ("doc://policies/expense", "doc://doc-policies-expense"),
    ("skill://finance/budget-check", "skill://skill-finance-budget-check"),
    ("agent://brand", "agent://agent-brand"),
    ("agent://brand?view=capabilities", "agent://agent-brand?view=capabilities"),
    ("org://function/brand", "org://function/func-brand"),
    ("org://value-stream/collection-launch", "org://value_stream/collection-launch"),
    ("org://role/people-lead", "org://role/role-people-lead"),
]


@pytest.mark.seed("O16")
def test_an_address_with_an_id_is_answered_with_the_name(brand: Door) -> None:
    for name, other in SPELLINGS:
        for _ in range(2):  # also when it is known already
            assert brand.result("resources/read", uri=other) == brand.result("resources/read", uri=name), other
        told = [brand.tool("read", target=uri, shape="resource")["structuredContent"] for uri in (name, other)]
        assert "?" in name or told[0] == told[1]
    errors = [brand.error("resources/read", uri=f"sop://sop-hr-{one}") for one in ("salary-policy", "nothing-here")]
    plainly = [json.dumps(one).replace("salary-policy", "…").replace("nothing-here", "…") for one in errors]
    assert plainly[0] == plainly[1]


@pytest.mark.seed("O16", "O4")
def test_a_match_means_the_same_agent_in_every_spelling(brand: Door) -> None:
    spellings = ("ops", "agent-ops", "agent://ops", "agent://agent-ops")
    told = [brand.told(f"skill://?match=재고 확인&agent={one}")["matches"] for one in spellings]
    assert told[0] and all(one == told[0] for one in told)
    usable = [one["usable"] for one in told[0]]
    assert usable == sorted(usable, reverse=True) and all(one["usable"] or one["why"] for one in told[0])


@pytest.mark.seed("O4")
def test_a_request_finds_skills_by_score_with_reasons(brand: Door) -> None:
    asked = "촬영 예산이 남았는지 확인해 줘"
    matches = brand.told(f"skill://?match={asked}")["matches"]
    assert matches[0]["uri"] == "skill://finance/budget-check" and "예산" in json.dumps(
        matches[0]["reasons"], ensure_ascii=False
    )
    scores = [one["score"] for one in matches]
    assert scores == sorted(scores, reverse=True) and 0 < scores[-1] <= scores[0] <= 1
    listed = _entries(brand, target="skill://", filter={"match": asked})
    assert uris(listed) == uris(matches)
    assert [one["metadata"]["score"] for one in listed] == scores
    for request in ("연차가 며칠 남았나요", "job post for a store assistant"):
        assert not any("://hr/" in uri for uri in uris(brand.told(f"skill://?match={request}")["matches"]))
    usable = brand.told(f"skill://?match={asked}&agent=agent-brand")["matches"][0]
    assert usable["uri"] == "skill://finance/budget-check" and usable["usable"] is True


@pytest.mark.seed("O5", "O14")
def test_capabilities_are_what_the_agent_can_do_now(door: Callable[[str], Door], front: Front) -> None:
    seen = {agent: door(agent).told("agent://brand?view=capabilities") for agent in (BRAND, ORCHESTRATOR)}
    for told in seen.values():
        assert set(told) >= {"skills", "tools", "permissions"}
        assert told["capabilities"] == front.said["agent://brand"]["capabilities"]
        assert set(front.said["agent://brand"]["skills"]) <= set(uris(told["skills"]))
    offered = {tool["name"] for tool in door(BRAND).result("tools/list")["tools"]}
    assert {tool["name"] for tool in seen[BRAND]["tools"]} >= offered
    live = {one["what"]: one["effect"] for one in seen[ORCHESTRATOR]["permissions"]["live"]}
    assert live["sop://brand/*"] == "allow"
    for told in seen.values():  # neither may see all of it
        assert "sop://hr" not in json.dumps(told["permissions"]["live"])


@pytest.mark.seed("O6", "O14")
def test_relations_are_told_in_both_directions(door: Callable[[str], Door], front: Front) -> None:
    function = door(ORCHESTRATOR).told("org://function/brand?view=relations")["relations"]
    assert set(uris(function["sops"])) >= set(front.uris("sop", function="func-brand"))
    assert set(uris(function["skills"])) >= set(front.uris("skill", function="func-brand"))
    assert "agent://brand" in uris(function["agents"]) and "org://role/brand-lead" in uris(function["roles"])
    stream = door(ORCHESTRATOR).told("org://value-stream/collection-launch?view=relations")["relations"]
    assert {"org://function/brand", "org://function/finance"} <= set(uris(stream["functions"]))
    assert "org://value-stream/collection-launch" in uris(function["value_streams"])
    for uri in ("org://function/hr", "agent://hr", "org://value-stream/hire-to-farewell"):
        seen = json.dumps(door(BRAND).told(f"{uri}?view=relations"))
        assert "sop://hr" not in seen and "skill://hr" not in seen
        assert "sop://hr/onboarding" in json.dumps(door(ORCHESTRATOR).told(f"{uri}?view=relations"))


@pytest.mark.seed("O2", "O14")
def test_list_without_a_target_tells_the_namespaces_and_their_collections(brand: Door, front: Front) -> None:
    entries = brand.tool("list")["structuredContent"]["entries"]
    assert [one["uri"] for one in entries if one["uri"].endswith("://")] == [
        "sop://", "doc://", "skill://", "agent://", "org://"
    ]  # fmt: skip
    assert {"sop://brand", "doc://policies", "skill://finance", "org://value-stream"} <= set(uris(entries))
    assert set(front.uris("agent")) <= set(uris(entries)), "there are no collections of agents"
    assert "sop://hr" not in uris(entries) and "sop://ops" not in uris(entries)
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = brand.tool("list", limit=4, **cursor)["structuredContent"]
        found += uris(page["entries"])
        if "cursor" not in page:
            break
        cursor = {"cursor": page["cursor"]}
    assert found == uris(entries)


@pytest.mark.seed("A3", "O1")
def test_templates_describe_their_parameters(brand: Door) -> None:
    offered = {one["uriTemplate"]: one for one in brand.result("resources/templates/list")["resourceTemplates"]}
    assert {template.partition("{?")[0] for template in offered} == {
        "sop://{function}/{name}",
        "doc://{category}/{name}",
        "skill://{function}/{name}",
        "skill://{function}/{name}/{+file}",
        "agent://{name}",
        "org://function/{name}",
        "org://value-stream/{name}",
        "org://role/{name}",
        *(f"{scheme}://" for scheme in ("sop", "doc", "skill", "agent", "org")),
    }
    for template, one in offered.items():
        parameters = one["_meta"]["dev.octavo/parameters"]
        named = {name for part in template.split("{")[1:] for name in part.partition("}")[0].strip("?+").split(",")}
        assert set(parameters["properties"]) == named
        assert all(schema["description"] for schema in parameters["properties"].values())


@pytest.mark.seed("A3", "O14", "B2")
def test_variables_are_completed_with_what_the_caller_may_see(door: Callable[[str], Door], front: Front) -> None:
    templates = [one["uriTemplate"] for one in door(BRAND).result("resources/templates/list")["resourceTemplates"]]
    sop, role = (next(t for t in templates if t.startswith(f"{name}{{")) for name in ("sop://", "org://role/"))
    by_filter = next(t for t in templates if t.startswith("sop://{?"))
    assert door(BRAND).completed(sop, "function") == ["brand", "finance", "product"]
    assert door(BRAND).completed(by_filter, "function") == ["brand", "finance", "product"]
    assert "hr" in door(ORCHESTRATOR).completed(sop, "function")
    assert door(BRAND).completed(sop, "function", "h") == []
    assert door(BRAND).completed(sop, "name", function="hr") == []
    assert door(BRAND).completed(sop, "name", function="finance") == ["budget-request", "expense-claim"]
    assert door(BRAND).completed(sop, "name", "camp", function="brand") == ["campaign-brief"]
    names = door(ORCHESTRATOR).completed(sop, "name", function="hr")
    assert "onboarding" in names and not {"salary-policy", "performance-review", "grievance"} & set(names)
    roles = sorted(uri.rpartition("/")[2] for uri in front.uris("org", type="role"))
    assert door(BRAND).completed(role, "name") == roles, "of roles, and not of functions"
    assert door(BRAND).completed(by_filter, "status", "d") == ["draft", "deprecated"]
    made_up = {"ref": {"type": "ref/resource", "uri": "sop://hr/{name}"}, "argument": {"name": "name", "value": ""}}
    for who in (BRAND, ORCHESTRATOR):  # the same for whoever may see what is there
        refused = door(who).send("completion/complete", **made_up)["error"]
        assert (refused["code"], refused["data"]["reason"]) == (-32602, "unknown_template")


@pytest.mark.seed("O13", "O14")
def test_the_error_of_the_seed_comes_word_for_word(brand: Door) -> None:
    answer = brand.send("resources/read", uri=SALARY)
    ours = {key: answer["error"]["data"].pop(key) for key in ("reason", "why")}
    assert ours["reason"] == "forbidden" and "HR" in ours["why"], "beside what the seed has"
    assert answer["error"] == {
        "code": -32003,
        "message": "Access denied to resource: sop://hr/salary-policy",
        "data": {"agent": "agent-brand", "required_permission": "read", "resource": "sop://hr/*"},
    }
    told = brand.tool_error("read", target=SALARY)
    assert (told["code"], told["message"]) == (-32003, f"Access denied to resource: {SALARY}")
    assert told["data"]["resource"] == "sop://hr/*"


@pytest.mark.seed("O13")
def test_what_is_not_there_is_not_found_in_the_code_of_the_era(brand: Door) -> None:
    uri = "sop://brand/no-such-thing"
    code = -32602 if brand.era == "modern" else -32002
    assert brand.error("resources/read", uri=uri) == {
        "code": code,
        "message": f"Resource not found: {uri}",
        "data": {"uri": uri},
    }
    assert brand.tool_error("read", target=uri)["code"] == code


@pytest.mark.seed("B6")
def test_the_tools_cost_a_client_less_than_2500_tokens(brand: Door) -> None:
    tools = brand.result("tools/list")["tools"]
    assert len(json.dumps({"tools": tools}, ensure_ascii=False).encode()) / 4 < 2500


DOWN = """\
from octavo.core.values import Content, Entry, Page


class Customers:
    scheme = "crm"

    async def list(self, scope, *, cursor, limit):
        raise ConnectionRefusedError("10.0.0.7 is down")

    async def stat(self, ref):
        raise ConnectionRefusedError("10.0.0.7 is down")

    async def read(self, ref, *, max_bytes):
        raise ConnectionRefusedError("10.0.0.7 is down")


def register(octavo):
    octavo.source(Customers())
"""


@pytest.fixture(scope="module")
def strained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """Few requests are allowed, and the customers' system is down."""
    place = maison_haru(tmp_path_factory.mktemp("strained"))
    config = place.base / "octavo.yaml"
    text = config.read_text(encoding="utf-8").replace("100000/s", "5/m")
    rule = 'policy:\n  - {who: "*", may: "*", what: "crm://*"}\n'
    config.write_text(text.replace("policy:\n", rule, 1) + "plugins: [{path: ./crm.py}]\n", "utf-8")
    (place.base / "crm.py").write_text(DOWN, encoding="utf-8")
    yield from opened(place)


@pytest.mark.seed("O13")
@pytest.mark.parametrize(("era", "agent"), [("modern", "agent-brand"), ("legacy", "agent-finance")])
def test_who_asks_too_often_is_told_so(strained: Doors, era: str, agent: str) -> None:
    door = strained(f"http {era}", agent)
    answers = [door.send("resources/read", uri=BRIEF) for _ in range(12)]
    assert era == "legacy" or "result" in answers[0]  # a handshake is counted too
    refused = [answer["error"] for answer in answers if "error" in answer]
    assert refused and {(one["code"], one["message"]) for one in refused} == {(-32004, "Rate limit exceeded")}
    assert all(one["data"]["reason"] == "rate_limited" and one["data"]["retryAfterMs"] > 0 for one in refused)


@pytest.mark.seed("O13")
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_source_that_is_down_says_so_and_the_rest_is_served(strained: Doors, era: str) -> None:
    door = strained(f"stdio {era}", BRAND)
    down = door.error("resources/read", uri="crm://customers/1")
    assert (down["code"], down["message"]) == (-32005, "Source unavailable: crm")
    assert (down["data"]["reason"], down["data"]["source"]) == ("source_unavailable", "crm")
    listed = door.result("resources/list", filter={"name": "캠페인*"})
    assert listed["_meta"]["dev.octavo/unavailable"] == ["crm"] and BRIEF in uris(listed["resources"])
    told = door.tool("list")["content"][0]["text"]
    assert "[not available now: crm://]" in told and "sop://brand/" in told and "10.0.0.7" not in told
