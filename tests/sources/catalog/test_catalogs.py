"""What seed 003 asks of SOPs, documents, skills, agents and the organisation."""

import json
from typing import Any

import pytest

from octavo.core.errors import InvalidParams, NotFound, TooLarge
from octavo.core.ref import Ref
from octavo.sources.catalog import own

pytestmark = pytest.mark.anyio


@pytest.mark.seed("O2", "O9")
async def test_a_sop_is_named_and_described_by_its_front_matter(organisation: Any) -> None:
    content = await organisation.read("sop://brand/campaign-brief")
    entry = content.entry
    assert (str(entry.ref), entry.name, entry.mime_type) == (
        "sop://brand/campaign-brief",
        "캠페인 브리프 작성",
        "text/markdown",
    )
    assert dict(entry.metadata) == {
        "id": "sop-brand-campaign-brief",
        "version": "1.2.0",
        "status": "active",
        "function": "func-brand",
        "agent": "agent-brand",
        "tags": ["brand", "campaign", "creative"],
    }
    assert content.body.startswith('---\nschema_version: "1.0"\n')
    listed = {entry.ref: entry for entry in await organisation.entries("sop://")}
    assert listed[entry.ref] == entry


@pytest.mark.seed("O15")
@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("sop://brand/campaign-brief", "sops/brand/campaign-brief.md"),
        ("sop://hr/onboarding", "sops/hr/onboarding.md"),
        ("sop://ops/incident-response", "sops/ops/incident-response.md"),
        ("doc://policies/expense", "docs/policies/expense.md"),
        ("doc://brand/guidelines", "docs/brand/guidelines.md"),
        ("skill://brand/brief-writing", "skills/brand/brief-writing.yml"),
        ("skill://finance/budget-check", "skills/finance/budget-check.yml"),
        ("agent://brand", "agents/brand.yml"),
        ("agent://orchestrator", "agents/orchestrator.yml"),
        ("org://function/brand", "org/functions/brand.yml"),
        ("org://value-stream/collection-launch", "org/value-streams/collection-launch.yml"),
    ],
)
async def test_every_address_of_the_seed_is_the_file_that_the_seed_says(organisation: Any, uri: str, path: str) -> None:
    text = (organisation.root / path).read_text(encoding="utf-8")
    assert (await organisation.read(uri)).body == text
    assert uri in await organisation.uris(uri.partition("://")[0] + "://")


@pytest.mark.seed("O3", "O4", "O5", "O6")
@pytest.mark.parametrize(
    ("uri", "name", "metadata"),
    [
        (
            "doc://policies/expense",
            "경비 규정",
            {
                "id": "doc-expense",
                "version": "1.2.0",
                "category": "policies",
                "last_updated": "2025-01-25",
                "owner": "func-finance",
            },
        ),
        (
            "skill://brand/brief-writing",
            "브리프 작성",
            {
                "id": "skill-brand-brief-writing",
                "name": "brief-writing",
                "function": "func-brand",
                "agents": ["agent-brand"],
                "triggers": {"keywords": ["브리프", "campaign brief"], "examples": ["브리프 써 줘"]},
                "required_tools": ["read", "search"],
            },
        ),
        (
            "agent://brand",
            "brand",
            {
                "id": "agent-brand",
                "name": "brand",
                "function": "func-brand",
                "capabilities": ["briefs"],
                "skills": ["skill-brand-brief-writing"],
                "permissions": {"read": ["sop://brand/*"]},
            },
        ),
        (
            "org://value-stream/collection-launch",
            "Launch",
            {
                "type": "value-stream",
                "id": "vs-collection-launch",
                "name": "Launch",
                "functions": ["func-brand", "func-finance"],
            },
        ),
    ],
)
async def test_the_metadata_are_those_that_the_seed_names(
    organisation: Any, uri: str, name: str, metadata: dict[str, Any]
) -> None:
    entry = (await organisation.read(uri)).entry
    assert (entry.name, dict(entry.metadata)) == (name, metadata)


@pytest.mark.seed("O2", "O3", "O4", "O6", "O16")
@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (
            "sop://",
            ["sop://brand/campaign-brief", "sop://brand/press", "sop://hr/onboarding", "sop://ops/incident-response"],
        ),
        ("sop://brand", ["sop://brand/campaign-brief", "sop://brand/press"]),
        ("sop://?function=brand", ["sop://brand/campaign-brief", "sop://brand/press"]),
        ("sop://?function=func-brand", ["sop://brand/campaign-brief", "sop://brand/press"]),
        ("sop://?function=org://function/brand", ["sop://brand/campaign-brief", "sop://brand/press"]),
        ("sop://?status=active", ["sop://brand/campaign-brief", "sop://hr/onboarding"]),
        ("sop://brand?status=active&tags=campaign", ["sop://brand/campaign-brief"]),
        ("sop://?tags=people,creative", ["sop://brand/campaign-brief", "sop://hr/onboarding"]),
        ("sop://?agent=brand", ["sop://brand/campaign-brief"]),
        ("sop://?agent=agent-brand", ["sop://brand/campaign-brief"]),
        ("sop://?agent=agent://brand", ["sop://brand/campaign-brief"]),
        ("sop://hr?status=draft", []),
        ("doc://?category=policies", ["doc://policies/expense"]),
        ("doc://?category=brand", ["doc://brand/guidelines"]),
        ("doc://?category=product", []),
        ("skill://?function=finance", ["skill://finance/budget-check"]),
        ("skill://?agent=brand", ["skill://brand/brief-writing", "skill://finance/budget-check"]),
        ("agent://", ["agent://brand", "agent://finance", "agent://hr", "agent://orchestrator"]),
        ("org://?type=value_stream", ["org://value-stream/collection-launch"]),
        ("org://?type=value-stream", ["org://value-stream/collection-launch"]),
        ("org://?type=role", ["org://role/brand-lead"]),
        ("org://function", ["org://function/brand", "org://function/finance", "org://function/hr"]),
    ],
)
async def test_collections_are_filtered_by_their_parameters(organisation: Any, scope: str, expected: list[str]) -> None:
    assert await organisation.uris(scope) == expected
    told = json.loads((await organisation.read(scope)).body)
    assert [one["uri"] for one in told["entries"]] == expected


@pytest.mark.seed("O1")
@pytest.mark.parametrize(
    "uri",
    ["sop://?colour=red", "sop://?match=x", "doc://?function=brand", "sop://?status=", "sop://?view=parsed&status=x"],
)
async def test_parameters_that_a_collection_does_not_know_are_refused(organisation: Any, uri: str) -> None:
    with pytest.raises(InvalidParams):
        await organisation.read(uri)
    with pytest.raises(InvalidParams):
        await organisation.entries(uri)


@pytest.mark.parametrize(
    "uri", ["sop://brand/press?status=draft", "sop://brand/press?view=capabilities", "sop://brand/press?colour=red"]
)
async def test_parameters_that_an_entry_does_not_know_are_refused(organisation: Any, uri: str) -> None:
    with pytest.raises(InvalidParams):
        await organisation.read(uri)


@pytest.mark.seed("O1")
async def test_a_version_is_the_current_file_or_one_that_is_named_so(organisation: Any) -> None:
    current = await organisation.read("doc://policies/expense?version=1.2.0")
    old = await organisation.read("doc://policies/expense?version=1.1.0")
    assert (current.body.endswith("new\n"), old.body.endswith("old\n")) == (True, True)
    assert (str(old.entry.ref), old.entry.metadata["version"]) == ("doc://policies/expense?version=1.1.0", "1.1.0")
    assert await organisation.catalogs["doc"].stat(old.entry.ref) == old.entry
    for version in ("1.0.0", "9", "../1", "*", "x" * 300):
        with pytest.raises(InvalidParams, match=r"it tells 1\.2\.0, 1\.1\.0$"):
            await organisation.read(f"doc://policies/expense?version={version}")
    with pytest.raises(NotFound):
        await organisation.read("doc://policies/nothing?version=1.0.0")
    assert await organisation.uris("doc://policies") == ["doc://policies/expense"], "a version is no entry of its own"
    with pytest.raises(NotFound):
        await organisation.read("doc://policies/expense@1.1.0")


@pytest.mark.seed("O4", "O9")
async def test_a_definition_is_given_as_it_is_and_parsed(organisation: Any) -> None:
    whole = await organisation.read("skill://finance/budget-check")
    parsed = await organisation.read("skill://finance/budget-check?view=parsed")
    assert (whole.entry.mime_type, parsed.entry.mime_type) == ("application/yaml", "application/json")
    assert whole.body.startswith("id: skill-finance-budget-check\n")
    assert json.loads(parsed.body) == {
        "id": "skill-finance-budget-check",
        "name": "budget-check",
        "title": "예산 점검",
        "function": "func-finance",
        "agents": ["agent-finance", "agent-brand"],
        "triggers": {"keywords": ["예산", "budget"]},
    }
    assert await organisation.catalogs["skill"].stat(parsed.entry.ref) == parsed.entry
    with pytest.raises(TooLarge):
        await organisation.catalogs["skill"].read(parsed.entry.ref, max_bytes=10)


async def test_both_endings_of_yaml_are_one_address(organisation: Any) -> None:
    organisation.write("agents/ops.yaml", "id: agent-ops\nname: ops\n")
    organisation.write("agents/brand.yaml", "id: another\nname: another\n")
    assert "agent://ops" in await organisation.uris("agent://")
    assert (await organisation.read("agent://ops")).body == "id: agent-ops\nname: ops\n"
    assert (await organisation.read("agent://brand")).entry.metadata["id"] == "agent-brand"
    assert "agents/brand.yaml:1: is not served: another file has its address" in await organisation.problems("agent")


async def test_an_own_namespace_is_declared_without_python(founded: Any) -> None:
    schema = {"properties": {"제목": {"type": "string"}, "단계": {"type": "integer"}, "팀": {"enum": ["a", "b"]}}}
    declared = own("decision", "결정", "{year}/{name}.md", schema, "{year}/{name}")
    files = {
        "결정/2025/로고 변경.md": "---\n제목: 로고\n단계: 2\n팀: a\n---\n",
        "결정/2025/x.md": "---\n단계: 둘\n팀: c\n---\n",
    }
    organisation = await founded(files, declared)
    assert await organisation.uris("decision://2025?단계=2") == ["decision://2025/로고%20변경"]
    assert await organisation.uris("decision://?year=2024") == []
    assert await organisation.uris("decision://?year=2025&팀=a,b") == ["decision://2025/로고%20변경"]
    assert [template.uri_template for template in organisation.catalogs["decision"].templates()] == [
        "decision://{year}/{name}{?version,view,range}",
        "decision://{?year}",
    ]
    assert await organisation.problems("decision") == [
        "결정/2025/x.md:2: 단계 must be a whole number",
        "결정/2025/x.md:3: 팀 must be one of: a, b",
    ]


@pytest.mark.parametrize(
    ("files", "address", "schema"),
    [
        ("{name}.png", None, {}),
        ("name.md", None, {}),
        ("{a}-{b}.md", None, {}),
        ("{+a}/{+b}.md", None, {}),
        ("{a}/{a}.md", None, {}),
        ("{a}/../{b}.md", None, {}),
        ("{a}.md", "{b}", {}),
        ("{a}.md", None, {"type": "array"}),
        ("{a}.md", None, {"properties": {"problems": {"type": "integer"}}}),
        ("{a}.md", None, {"properties": {"x": {"type": "no type"}}}),
        ("{a}.md", None, {"$ref": "https://example.com/schema"}),
        ("{a}.md", None, {"properties": {"x": {"type": "string", "pattern": "(?=x)"}}}),
    ],
)
def test_a_declaration_that_cannot_be_used_is_refused(files: str, address: str | None, schema: Any) -> None:
    from octavo.sources.catalog import check_own

    assert check_own("x", "", files, schema, address)
    assert not check_own("x", "", "{a}/{+b}.md", {}, "{a}/{+b}")


@pytest.mark.seed("A3")
async def test_variables_of_templates_are_completed(organisation: Any) -> None:
    sops, org = organisation.catalogs["sop"], organisation.catalogs["org"]
    assert [template.uri_template for template in org.templates()] == [
        "org://function/{name}{?version,view,range}",
        "org://value-stream/{name}{?version,view,range}",
        "org://role/{name}{?version,view,range}",
        "org://{?type,function}",
    ]
    for template in (*sops.templates(), *org.templates()):
        assert all(one["description"] for one in template.parameters["properties"].values())
    assert await sops.complete("function", "", {}) == ["brand", "hr", "ops"]
    assert await sops.complete("name", "", {"function": "brand"}) == ["campaign-brief", "press"]
    assert await sops.complete("name", "o", {}) == ["onboarding"]
    assert await sops.complete("path", "brand/c", {}) == ["brand/campaign-brief"]
    assert await sops.complete("colour", "", {}) == []


@pytest.mark.seed("O15")
async def test_a_link_is_served_under_both_rules_and_one_that_leads_out_is_not(organisation: Any) -> None:
    (organisation.root / "sops/brand/copy.md").symlink_to("../hr/onboarding.md")
    (organisation.root / "sops/brand/out.md").symlink_to("../../docs/policies/expense.md")
    content = await organisation.read("sop://brand/copy")
    assert content.entry.target == Ref.parse("sop://hr/onboarding")
    assert await organisation.catalogs["sop"].stat(content.entry.ref) == content.entry
    listed = {str(entry.ref): entry for entry in await organisation.entries("sop://brand")}
    assert listed["sop://brand/copy"].target == content.entry.target
    assert "sop://brand/out" not in listed
    with pytest.raises(NotFound):
        await organisation.read("sop://brand/out")


async def test_nothing_of_the_store_shows_in_an_error(organisation: Any) -> None:
    for uri in ("sop://brand/none", "sop://none", "sop://a/b/c/d", "agent://x/y", "org://nothing/here"):
        with pytest.raises(NotFound) as caught:
            await organisation.read(uri)
        assert (str(caught.value), caught.value.data) == (f"Resource not found: {uri}", {"uri": uri})
    with pytest.raises(TooLarge) as large:
        await organisation.catalogs["sop"].read(Ref.parse("sop://brand/press"), max_bytes=3)
    assert "file://" not in str(large.value) and large.value.data["uri"] == "sop://brand/press"
