"""Ids, names and addresses mean the same everywhere (O16), and an id tells nobody more than the name does."""

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
from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError
from octavo.core.glob import Glob
from octavo.core.ref import Ref
from octavo.ops.explain import AccessQuestion, explain
from octavo.ops.unmatched import unmatched
from octavo.pipeline.policy.hiding.delays import Ticks

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O16")]

SOURCES = """
version: 1
sources:
  handbook: {kind: file, roots: [./handbook], expose: false}
  sops: {kind: sop, store: handbook}
  docs: {kind: doc, store: handbook}
  skills: {kind: skill, store: handbook}
  agents: {kind: agent, store: handbook}
  org: {kind: org, store: handbook}
agents:
  agent-brand: {}
  agent-ops: {}
"""
POLICY = """
policy:
  - {who: agent-brand, may: [list, read, watch, search, invoke, complete], what: "**"}
  - {who: agent-ops, may: [list, read, watch], what: ["sop://brand/*", "skill://*", "agent://ops", "tool://read"]}
  - {who: agent-brand, may: "*", what: ["sop://hr/*", "agent://hr"], effect: deny, hide: true}
  - {who: agent-brand, may: "*", what: ["doc://policies/pay", "org://function/func-secret"], effect: deny}
  - {who: "*", may: invoke, what: "tool://search", effect: deny}
"""
HEAD = "---\nid: {0}\ntitle: {0}\nversion: 1.0.0\nstatus: active\n"
FILES = {
    "sops/brand/brief.md": HEAD.format("sop-brand-brief") + "function: func-brand\nagent: agent-brand\n---\nbody\n",
    "sops/hr/salary.md": HEAD.format("sop-hr-salary") + "function: func-hr\nagent: agent://hr\n---\nbody\n",
    "docs/policies/expense.md": HEAD.format("doc-policies-expense") + "category: policies\nowner: func-brand\n---\nx\n",
    "docs/policies/pay.md": HEAD.format("doc-policies-pay") + "category: policies\n---\nx\n",
    "skills/brand/writing.yml": "id: skill-brand-writing\nname: writing\nfunction: func-brand\n"
    "agents: [agent-brand, ops]\ntriggers: [brief]\nrequired_tools: [search]\n",
    "skills/brand/reading.yml": "id: SK-7\nname: reading a brief\nagents: ['agent://ops', agent-brand]\n"
    "triggers: [read]\n",
    "agents/brand.yml": "id: agent-brand\nname: brand\nskills: [skill-brand-writing, 'skill://brand/reading']\n",
    "agents/ops.yml": "id: agent-ops\nname: ops\nskills: [brand/reading]\n",
    "agents/hr.yml": "id: agent-hr\nname: hr\n",
    "org/functions/brand.yml": "id: func-brand\nname: Brand\nlead: role-brand-lead\nagent: agent://brand\n",
    "org/functions/secret.yml": "id: func-secret\nname: Secret\n",
    "org/value-streams/launch.yml": "id: vs-launch\nname: Launch\nfunctions: [brand]\nowner: org://role/brand-lead\n",
    "org/roles/brand-lead.yml": "id: role-brand-lead\nname: lead\nfunction: org://function/brand\n",
}
# The name, and the other spellings of it.
TABLE = {
    "sop://brand/brief": ["sop://sop-brand-brief", "sop://brand/sop-brand-brief", "sop://func-brand/brief"],
    "sop://brand": ["sop://func-brand"],
    "doc://policies/expense": ["doc://doc-policies-expense", "doc://policies/doc-policies-expense"],
    "skill://brand/writing": ["skill://skill-brand-writing", "skill://func-brand/writing"],
    "skill://brand/reading": ["skill://SK-7", "skill://brand/sk-7", "skill://brand/skill-reading"],
    "agent://brand": ["agent://agent-brand"],
    "org://function/brand": ["org://function/func-brand", "org://func-brand"],
    "org://value-stream/launch": ["org://value_stream/launch", "org://value-stream/vs-launch", "org://vs-launch"],
    "org://value-stream": ["org://value_stream"],
    "org://role/brand-lead": ["org://role/role-brand-lead", "org://role-brand-lead"],
}
SPELLINGS = [(name, other) for name, others in TABLE.items() for other in others]
# Each row is one question, in the spellings that must be one.
FILTERS = [
    [
        "sop://?agent=brand",
        "sop://?agent=agent-brand",
        "sop://?agent=agent://brand",
        "sop://?agent=agent://agent-brand",
    ],
    ["sop://?function=brand", "sop://?function=func-brand", "sop://?function=org://function/brand"],
    ["doc://?owner=brand", "doc://?owner=func-brand", "doc://?owner=org://function/func-brand"],
    ["skill://?agent=ops", "skill://?agent=agent-ops", "skill://?agent=agent://ops"],
    ["agent://?skill=brand/writing", "agent://?skill=skill-brand-writing", "agent://?skill=skill://brand/writing"],
    ["agent://?skill=brand/reading", "agent://?skill=skill://brand/reading"],
    ["org://?lead=brand-lead", "org://?lead=role-brand-lead", "org://?lead=org://role/brand-lead"],
    ["org://?agent=brand", "org://?agent=agent-brand", "org://?agent=agent://brand"],
    ["org://?owner=brand-lead", "org://?owner=role-brand-lead", "org://?owner=org://role/brand-lead"],
    ["org://?type=value-stream", "org://?type=value_stream"],
]
MATCHES = [f"skill://?match=brief&agent={one}" for one in ("ops", "agent-ops", "agent://ops", "agent://agent-ops")]


def written(folder: Path, policy: str) -> Path:
    """The configuration, with everything that it speaks of."""
    for path, text in FILES.items():
        place = folder / "handbook" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    file = folder / "octavo.yaml"
    file.write_text(SOURCES + policy, encoding="utf-8")
    return file


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Octavo]:
    async with Octavo(load(written(tmp_path, POLICY), environ={})) as octavo:
        yield octavo


async def fault(house: Octavo, who: str, op: Any, uri: str, spelled: str) -> tuple[str, str, Any]:
    """The refusal of an address, with what stands for `spelled` in it taken out."""
    with pytest.raises(OctavoError) as raised:
        await ask(house, who, op, uri)
    error = raised.value
    data = json.loads(json.dumps(error.data, ensure_ascii=False).replace(spelled, "…"))
    return type(error).__name__, error.message.replace(spelled, "…"), data


@pytest.mark.parametrize(("name", "other"), SPELLINGS)
async def test_every_spelling_of_an_address_is_answered_as_its_name(house: Octavo, name: str, other: str) -> None:
    views = ["", "?view=relations", "?view=parsed"] if len(Ref.parse(name).segments) > 1 or "agent:" in name else [""]
    views += ["?view=capabilities"] if name.startswith("agent:") else []
    for view in views:
        by_name = await ask(house, "agent-brand", "read", name + view)
        by_other = await ask(house, "agent-brand", "read", other + view)
        assert by_other == by_name and str(by_other.entry.ref) == name + view
    assert await ask(house, "agent-brand", "stat", other) == await ask(house, "agent-brand", "stat", name)
    listed = [await ask(house, "agent-brand", "list", one) for one in (name, other)]
    assert listed[0].items and listed[0].items == listed[1].items
    question = [await explain(house.works, AccessQuestion("agent-brand", "read", one)) for one in (name, other)]
    assert question[0] == question[1]


@pytest.mark.parametrize("row", FILTERS, ids=lambda row: row[0])
async def test_a_filter_finds_the_same_in_every_spelling(house: Octavo, row: list[str]) -> None:
    listed = [[str(one.ref) for one in (await ask(house, "agent-brand", "list", uri)).items] for uri in row]
    read = [[one["uri"] for one in (await told(house, "agent-brand", uri))["entries"]] for uri in row]
    assert listed[0] and all(one == listed[0] for one in (*listed, *read)), dict(zip(row, listed, strict=True))
    key, _, _ = row[0].partition("?")[2].partition("=")
    for uri in row:  # as a filter of a listing, beside the parameter
        asked = {"filter": {key: uri.partition("=")[2]}}
        page = await ask(house, "agent-brand", "list", row[0].partition("?")[0], arguments=asked)
        assert [str(one.ref) for one in page.items] == listed[0]


COMPLETED = [
    ("sop://{function}/{name}", "name", "b", "function", ["brand", "func-brand", "org://function/brand"], ["brief"]),
    ("sop://{function}/{name}", "function", "", "name", ["brief", "sop-brief", "sop-brand-brief"], ["brand"]),
    ("skill://{function}/{name}", "name", "r", "function", ["brand", "func-brand", "org://func-brand"], ["reading"]),
    ("skill://{function}/{name}", "function", "", "name", ["reading", "SK-7", "sk-7"], ["brand"]),
]


@pytest.mark.parametrize(("template", "argument", "prefix", "given", "spellings", "values"), COMPLETED)
async def test_a_completion_is_the_same_in_every_spelling_of_what_is_given(
    house: Octavo, template: str, argument: str, prefix: str, given: str, spellings: list[str], values: list[str]
) -> None:
    for one in spellings:
        asked = {"template": template, "argument": argument, "prefix": prefix, "given": {given: one}}
        scheme = template.partition("{")[0]
        assert await ask(house, "agent-brand", "complete", scheme, arguments=asked) == values, one


async def test_a_completion_offers_nothing_of_another_folder(house: Octavo) -> None:
    asked = {"template": "sop://{function}/{name}", "argument": "name", "prefix": ""}
    for one in ("hr", "func-hr", "org://function/hr", "bran", "func-", ""):
        assert (
            await ask(house, "agent-brand", "complete", "sop://", arguments={**asked, "given": {"function": one}}) == []
        )


@pytest.mark.seed("O4")
async def test_a_match_says_the_same_of_an_agent_in_every_spelling(house: Octavo) -> None:
    found = [(await told(house, "agent-brand", uri))["matches"] for uri in MATCHES]
    assert all(one == found[0] for one in found)
    assert {one["uri"]: one["usable"] for one in found[0]} == {
        "skill://brand/reading": True,
        "skill://brand/writing": False,
    }
    assert [one["usable"] for one in found[0]] == [True, False], "what it cannot use comes last"
    assert found[0][1]["why"] == "tools are missing: search"


@pytest.mark.seed("O4")
async def test_a_match_without_an_agent_is_for_its_caller(house: Octavo) -> None:
    for who in ("agent-brand", "agent-ops"):
        found = (await told(house, who, "skill://?match=brief"))["matches"]
        assert [(one["uri"], one["usable"]) for one in found] == [
            ("skill://brand/reading", True),
            ("skill://brand/writing", False),
        ]
        assert found[1]["missing_tools"] == ["search"]


async def test_a_rule_on_a_name_holds_for_the_id_and_the_other_way_round(house: Octavo) -> None:
    for uri in ("doc://policies/pay", "org://function/secret", "org://function/func-secret"):
        with pytest.raises(Forbidden):
            await ask(house, "agent-brand", "read", uri)
    for uri in ("doc://doc-policies-pay", "org://func-secret"):
        with pytest.raises(NotFound):
            await ask(house, "agent-brand", "read", uri)
    assert "org://function/secret" not in json.dumps(await told(house, "agent-brand", "org://function"))
    assert (await ask(house, "agent-ops", "read", "agent://agent-ops")).entry.ref == Ref.parse("agent://ops")


async def test_a_deny_on_the_other_spelling_of_a_folder_holds_for_its_name(tmp_path: Path) -> None:
    deny = '  - {who: "*", may: "*", what: "org://value_stream/*", effect: deny}\n'
    async with Octavo(load(written(tmp_path, POLICY + deny), environ={})) as octavo:
        for uri in ("org://value-stream/launch", "org://value_stream/launch"):
            with pytest.raises(Forbidden):
                await ask(octavo, "agent-brand", "read", uri)
        with pytest.raises(NotFound):
            await ask(octavo, "agent-brand", "read", "org://vs-launch")


async def test_a_deny_on_an_id_is_no_rule_that_never_matches(house: Octavo) -> None:
    assert [one async for one in unmatched(house.works)] == []


@pytest.mark.seed("O13")
@pytest.mark.parametrize(
    ("hidden", "nothing"),
    [
        ("sop://sop-hr-salary", "sop://sop-hr-nothing"),
        ("sop://func-hr/salary", "sop://func-no/salary"),
        ("agent://agent-hr", "agent://agent-no"),
        ("agent://agent-hr?view=capabilities", "agent://agent-no?view=capabilities"),
        ("doc://doc-policies-pay", "doc://doc-policies-no"),
        ("org://func-secret", "org://func-nothing"),
    ],
)
async def test_the_id_of_what_is_kept_from_somebody_is_like_one_that_there_is_not(
    house: Octavo, hidden: str, nothing: str
) -> None:
    for who in ("agent-brand", "agent-ops"):
        for op in ("read", "stat"):
            answers = [await fault(house, who, op, uri, uri) for uri in (hidden, nothing)]
            assert answers[0] == answers[1], (who, op)
        if "?" not in hidden:
            pages = [await ask(house, who, "list", uri) for uri in (hidden, nothing)]
            assert pages[0] == pages[1]


@pytest.mark.seed("O13")
async def test_the_id_of_what_is_hidden_waits_for_the_same_tick(house: Octavo) -> None:
    """Once, as what is not there does, however many addresses were looked at."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    policy = house.works.policy
    policy._ticks = Ticks(policy.rules, sleep=sleep)
    waits: dict[str, int] = {}
    for uri in ("sop://sop-hr-salary", "sop://sop-hr-nothing", "sop://hr/salary", "sop://hr/nothing"):
        slept.clear()
        await fault(house, "agent-brand", "read", uri, uri)
        waits[uri] = len(slept)
    assert set(waits.values()) == {1}, waits


async def test_a_name_is_meant_before_an_id(house: Octavo, tmp_path: Path) -> None:
    (tmp_path / "handbook/agents/agent-ops.yml").write_text("id: agent-brand2\nname: x\n", encoding="utf-8")
    (tmp_path / "handbook/agents/other.yml").write_text("id: brand\nname: y\n", encoding="utf-8")
    assert (await ask(house, "agent-brand", "read", "agent://agent-ops")).entry.ref == Ref.parse("agent://agent-ops")
    assert (await ask(house, "agent-brand", "read", "agent://brand")).entry.ref == Ref.parse("agent://brand")
    catalog = next(one for one in house.works.catalogs.by_name.values() if one.scheme == "agent")
    said = {one.file: one.message for one in await catalog.problems() if one.file.startswith("agents/")}
    assert said["agents/ops.yml"] == "its id is the name of agent://agent-ops: in an address it means that one"
    assert said["agents/other.yml"] == "its id is the name of agent://brand: in an address it means that one"


async def test_an_id_that_two_entries_have_is_no_address(house: Octavo, tmp_path: Path) -> None:
    (tmp_path / "handbook/sops/brand/second.md").write_text(FILES["sops/brand/brief.md"], encoding="utf-8")
    with pytest.raises(NotFound):
        await ask(house, "agent-brand", "read", "sop://sop-brand-brief")


async def test_a_rule_on_an_id_follows_the_id(house: Octavo, tmp_path: Path) -> None:
    assert await ask(house, "agent-brand", "read", "org://function/brand")
    (tmp_path / "handbook/org/functions/brand.yml").write_text("id: func-secret\nname: B\n", encoding="utf-8")
    (tmp_path / "handbook/org/functions/secret.yml").unlink()
    await ask(house, "agent-brand", "list", "org://")
    with pytest.raises(Forbidden):
        await ask(house, "agent-brand", "read", "org://function/brand")


@pytest.mark.parametrize(
    ("name", "other"), [("agent://brand", "agent://agent-brand"), ("sop://brand", "sop://func-brand")]
)
async def test_changes_are_told_of_the_name(house: Octavo, tmp_path: Path, name: str, other: str) -> None:
    for uri in (other, "agent://agent-hr", "agent://agent-no"):
        await ask(house, "agent-brand", "watch", uri, arguments={"glob": Glob.at(Ref.parse(uri))})
    after = (await ask(house, "agent-brand", "changes", name)).next
    for path in ("agents/brand.yml", "sops/brand/brief.md"):
        (tmp_path / "handbook" / path).write_text(FILES[path] + "# more\n", encoding="utf-8")
    with anyio.fail_after(30):
        while not (news := await ask(house, "agent-brand", "changes", other, arguments={"after": after})).changes:
            await asyncio.sleep(0)
    again = await ask(house, "agent-brand", "changes", name, arguments={"after": after})
    assert [str(one.ref) for one in news.changes] == [str(one.ref) for one in again.changes[: len(news.changes)]]
    assert all(one.ref.within(Ref.parse(name)) for one in news.changes)


@pytest.mark.seed("A13")
async def test_words_of_the_operator_hold_in_every_spelling(house: Octavo, tmp_path: Path) -> None:
    words = ["sop://sop-brand-brief", "agent://agent-ops", "org://value_stream/launch", "skill://brand/reading"]
    told = "resources:\n" + "".join(f'  - {{uri: "{uri}", name: Named, description: Told}}\n' for uri in words)
    file = tmp_path / "octavo.yaml"
    file.write_text(SOURCES + POLICY + told, encoding="utf-8")
    await house.reload(load(file, environ={}))
    names = {"sop://brand/brief", "agent://ops", "org://value-stream/launch", "skill://brand/reading"}
    for uri in (*words, *names, "skill://SK-7"):
        read, stat = [await ask(house, "agent-brand", op, uri) for op in ("read", "stat")]
        for entry in (read.entry, stat):
            assert (entry.name, entry.description) == ("Named", "Told"), uri
    listed = [
        entry
        for scheme in ("sop", "agent", "org", "skill")
        for entry in (await ask(house, "agent-brand", "list", f"{scheme}://")).items
    ]
    assert {str(entry.ref) for entry in listed if entry.name == "Named"} == names


@pytest.mark.seed("O1")
async def test_the_body_of_a_text_is_given_without_its_front_matter(house: Octavo) -> None:
    content = await ask(house, "agent-brand", "read", "sop://brand/brief?view=body")
    assert (content.body, content.entry.mime_type, content.entry.size) == ("body\n", "text/markdown", 5)
    assert (await ask(house, "agent-brand", "read", "sop://sop-brand-brief?view=body")).body == "body\n"
    with pytest.raises(InvalidParams, match="has no body"):
        await ask(house, "agent-brand", "read", "agent://brand?view=body")
    assert (await fault(house, "agent-brand", "read", "sop://hr/salary?view=body", "salary"))[0] == "NotFound"


LATE = "  - {who: agent-brand, may: '*', what: ['sop://sop-late*', 'agent://agent-ops'], effect: deny}\n"


@pytest.mark.seed("O14", "B2")
@pytest.mark.parametrize("op", ["read", "stat"])
async def test_a_deny_by_an_id_holds_from_the_first_request_on(tmp_path: Path, op: Any) -> None:
    """Also where nothing was looked at yet, for a file that has just come, and for an id that has just changed."""
    file = written(tmp_path, POLICY + LATE)
    async with Octavo(load(file, environ={})) as fresh:
        with pytest.raises(Forbidden):
            await ask(fresh, "agent-brand", op, "agent://ops")
        for source in fresh.works.sources:
            await source.armed()  # type: ignore[attr-defined]
        for number in range(5):
            new = tmp_path / f"handbook/sops/brand/n{number}.md"
            new.write_text(HEAD.format(f"sop-late-{number}") + "function: brand\n---\nlate\n", encoding="utf-8")
            with pytest.raises(Forbidden):
                await ask(fresh, "agent-brand", op, f"sop://brand/n{number}")
        new.write_text(HEAD.format("sop-early") + "function: brand\n---\nearly\n", encoding="utf-8")
        assert await ask(fresh, "agent-brand", op, "sop://brand/n4")
        new.write_text(HEAD.format("sop-late-again") + "function: brand\n---\nlate\n", encoding="utf-8")
        with pytest.raises(Forbidden):
            await ask(fresh, "agent-brand", op, "sop://brand/n4")
        listed = await ask(fresh, "agent-brand", "list", "sop://brand")
        assert [str(entry.ref) for entry in listed.items] == ["sop://brand/brief"]


# What a rule says of an id, the entry of that id, and a newcomer that has the id for its name.
NEWCOMERS = [
    ("sop://sop-brand-brief", "sop://brand/brief", "sops/sop-brand-brief/x.md"),
    ("sop://brand/sop-brand-brief", "sop://brand/brief", "sops/brand/sop-brand-brief.md"),
    ("sop://func-brand/brief", "sop://brand/brief", "sops/func-brand/brief.md"),
    ("agent://agent-ops", "agent://ops", "agents/agent-ops.yml"),
    ("org://function/func-brand", "org://function/brand", "org/functions/func-brand.yml"),
]


def come(folder: Path, path: str, id: str = "zz-1") -> None:
    place = folder / "handbook" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    text = f"id: {id}\nname: z\n" if path.endswith(".yml") else HEAD.format(id) + "function: brand\n---\nz\n"
    place.write_text(text, encoding="utf-8")


@pytest.mark.seed("O14", "B2")
@pytest.mark.parametrize("hide", ["", ", hide: true"])
@pytest.mark.parametrize(("what", "name", "newcomer"), NEWCOMERS)
async def test_a_deny_by_an_id_still_holds_when_something_else_gets_that_name(
    tmp_path: Path, what: str, name: str, newcomer: str, hide: str
) -> None:
    deny = f'  - {{who: agent-brand, may: "*", what: "{what}", effect: deny{hide}}}\n'
    file = written(tmp_path, POLICY + deny)
    scheme = name.partition("/")[0] + "//"
    for _ in range(2):  # while it runs, and after a start
        async with Octavo(load(file, environ={})) as fresh:
            for come_first in (False, True):
                if come_first:
                    come(tmp_path, newcomer)
                for op in ("read", "stat"):
                    with pytest.raises(NotFound if hide else Forbidden):
                        await ask(fresh, "agent-brand", op, name)  # type: ignore[arg-type]
                listed = await ask(fresh, "agent-brand", "list", scheme)
                assert name not in [str(entry.ref) for entry in listed.items]


@pytest.mark.parametrize(("what", "name", "newcomer"), NEWCOMERS)
async def test_an_allow_of_a_name_does_not_open_the_entry_that_has_it_for_an_id(
    tmp_path: Path, what: str, name: str, newcomer: str
) -> None:
    file = written(tmp_path, f'policy:\n  - {{who: agent-brand, may: [list, read], what: "{what}/*"}}\n')
    come(tmp_path, newcomer)
    async with Octavo(load(file, environ={})) as fresh:
        listed = await ask(fresh, "agent-brand", "list", name.partition("/")[0] + "//")
        assert [one.ref.name for one in listed.items] == [Path(newcomer).stem]
        with pytest.raises(Forbidden):
            await ask(fresh, "agent-brand", "read", name)


async def test_a_deny_by_an_id_holds_for_every_entry_of_that_id(tmp_path: Path) -> None:
    deny = '  - {who: agent-brand, may: "*", what: "sop://sop-brand-brief", effect: deny}\n'
    file = written(tmp_path, POLICY + deny)
    for path in ("sops/brand/second.md", "sops/other/third.md"):
        come(tmp_path, path, "sop-brand-brief")
    async with Octavo(load(file, environ={})) as fresh:
        assert not (await ask(fresh, "agent-brand", "list", "sop://")).items
        for uri in ("sop://brand/brief", "sop://brand/second", "sop://other/third"):
            with pytest.raises(Forbidden):
                await ask(fresh, "agent-brand", "read", uri)


@pytest.mark.seed("O13")
@pytest.mark.parametrize("op", ["read", "stat", "list"])
@pytest.mark.parametrize(
    ("seen", "id", "uri", "hidden"),
    [
        ("sops/brand/dup.md", "sop-hr-layoff", "sop://sop-hr-layoff", ["sops/hr/layoff.md"]),
        ("sops/brand/dup.md", "sop-hr-layoff", "sop://sop-hr-layoff", ["sops/hr/a.md", "sops/hr/b.md"]),
        ("sops/brand/dup.md", "sop-hr-layoff", "sop://brand/sop-hr-layoff", ["sops/hr/layoff.md"]),
        # What has the id comes before what has it for another form of its name.
        ("agents/x.yml", "other", "agent://agent-x", ["agents/hr.yml"]),
    ],
)
async def test_an_id_means_the_same_whether_or_not_something_hidden_has_it(
    tmp_path: Path, op: Any, seen: str, id: str, uri: str, hidden: list[str]
) -> None:
    file = written(tmp_path, POLICY)
    come(tmp_path, seen, id)
    answers: list[Any] = []
    for there in (False, True):
        for path in hidden if there else ():
            come(tmp_path, path, Ref.parse(uri).name)
        async with Octavo(load(file, environ={})) as fresh:
            reply = await ask(fresh, "agent-brand", op, uri)
            answers.append(
                [str(one.ref) for one in reply.items] if op == "list" else str(getattr(reply, "entry", reply).ref)
            )
    assert answers[0] and answers[0] == answers[1]


@pytest.mark.seed("O13")
async def test_an_id_means_the_same_whether_or_not_something_closed_has_it_for_its_name(tmp_path: Path) -> None:
    file = written(tmp_path, 'policy:\n  - {who: agent-brand, may: [list, read], what: "agent://seen"}\n')
    come(tmp_path, "agents/seen.yml", "quiet")
    for there in (False, True):
        if there:
            come(tmp_path, "agents/quiet.yml", "agent-quiet")
        async with Octavo(load(file, environ={})) as fresh:
            assert str((await ask(fresh, "agent-brand", "read", "agent://quiet")).entry.ref) == "agent://seen"


@pytest.mark.seed("O13")
async def test_what_an_entry_refers_to_is_told_alike_whether_or_not_it_is_there(tmp_path: Path) -> None:
    file = written(tmp_path, POLICY)
    refers = "id: agent-ref\nname: ref\nskills: [skill-brand-quiet]\nsops: [sop-hr-salary]\nfunction: func-none\n"
    (tmp_path / "handbook/agents/ref.yml").write_text(refers, encoding="utf-8")
    boss = tmp_path / "handbook/org/roles/ref.yml"
    boss.write_text("id: role-ref\nname: ref\nreports_to: role-quiet\n", encoding="utf-8")
    hidden = tmp_path / "handbook/org/roles/quiet.yml"
    deny = '  - {who: agent-brand, may: "*", what: "org://role/quiet", effect: deny, hide: true}\n'
    file.write_text(SOURCES + POLICY + deny, encoding="utf-8")
    answers: list[Any] = []
    for there in (True, False):
        if there:
            hidden.write_text("id: role-quiet\nname: q\nreports_to: role-ref\n", encoding="utf-8")
        else:
            hidden.unlink()
            (tmp_path / "handbook/sops/hr/salary.md").unlink()
        async with Octavo(load(file, environ={})) as fresh:
            listed = [await ask(fresh, "agent-brand", "list", uri) for uri in ("agent://", "org://role")]
            read = [await ask(fresh, "agent-brand", "read", uri) for uri in ("agent://ref", "org://role/ref")]
            whole = [await told(fresh, "agent-brand", uri) for uri in ("agent://", "org://role")]
            answers.append(([page.items for page in listed], [one.entry for one in read], whole))
            catalog = next(one for one in fresh.works.catalogs.by_name.values() if one.scheme == "org")
            said = [one.message for one in await catalog.problems() if one.file == "org/roles/ref.yml"]
            circle = "reports_to leads in a circle back to this entry"
            assert said == [circle if there else "reports_to: there is no such role"]
    assert answers[0] == answers[1]
    assert "problems" not in json.dumps(answers[0][2])
