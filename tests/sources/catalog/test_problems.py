"""A file with a problem is served, says so in its metadata, and is named with its line; the rest keeps working."""

from typing import Any

import pytest
from msgspec.structs import replace

from octavo.core.errors import InvalidParams, TooLarge
from octavo.sources.catalog import own

pytestmark = pytest.mark.anyio

GOOD = "---\nid: sop-{0}\ntitle: T\nversion: 1.0.0\nstatus: active\n---\n"
YAML = "id: {0}\nname: n\n"


def sop(old: str, new: str) -> str:
    return GOOD.format("x").replace(old, new)


WRONG = [
    ("sops/a/x.md", sop("status: active\n", ""), "2: status is missing"),
    ("sops/a/x.md", sop("active", "actve"), "5: status must be one of: draft, active, deprecated"),
    ("sops/a/x.md", sop("T\n", "[T]\n"), "3: title must be text"),
    ("sops/a/x.md", sop("T\n", "\n"), "3: title must be text"),
    ("sops/a/x.md", sop("T\n", "''\n"), "3: title must not be empty"),
    ("sops/a/x.md", sop("T\n", "T\ntags: [a, [b]]\n"), "4: tags[1] must be text"),
    ("sops/a/x.md", sop("T\n", "T\ntags: a\n"), "4: tags must be a list"),
    ("sops/a/x.md", sop("T\n", "T\nid: y\n"), "4: id is given twice"),
    ("sops/a/x.md", sop("T\n", "*t\n"), "3: title needs quotes; it is read as text"),
    ("sops/a/x.md", sop("T\n", "T\nfunction: b\n"), "4: function is not the folder that the file stands in"),
    ("sops/a/x.md", sop("T\n", "T\nagent: agent-none\n"), "4: agent: there is no such agent"),
    (
        "docs/brand/x.md",
        "---\nid: d\ntitle: T\nlast_updated: soon\n---\n",
        "4: last_updated does not fit its schema (pattern)",
    ),
    ("skills/a/x.yml", "id: s\nname: n\nagents:\n  - b\n  - none\n", "5: agents[1]: there is no such agent"),
    ("skills/a/x.yml", "id: s\nname: n\ntriggers: now\n", "3: triggers must be a list or keys and values"),
    ("skills/a/x.yml", "- a list\n", "1: must be keys and values, as in title: Expenses"),
    ("agents/x.yml", "id: a\nname: n\npermissions: [all]\n", "3: permissions must be keys and values"),
    ("org/functions/x.yml", "id: f\nname: n\nparent: f\n", "3: parent leads in a circle back to this entry"),
    ("org/roles/x.yml", "id: r\nname: n\nreports_to: nobody\n", "3: reports_to: there is no such role"),
    (
        "org/value-streams/x.yml",
        "id: v\nname: n\nstages:\n  - {name: s, sops: [sop://none/x]}\n",
        "4: stages[0].sops[0]: there is no such sop",
    ),
]


@pytest.mark.parametrize(("path", "text", "expected"), WRONG)
async def test_a_problem_is_told_with_file_and_line(founded: Any, path: str, text: str, expected: str) -> None:
    scheme = path.split("/")[0].rstrip("s") if not path.startswith("org") else "org"
    base = {"org/functions/a.yml": YAML.format("func-a"), "org/functions/b.yml": YAML.format("func-b")}
    organisation = await founded({**base, "agents/b.yml": YAML.format("agent-b"), "sops/a/good.md": GOOD.format("g")})
    organisation.write(path, text)
    assert await organisation.problems(scheme) == [f"{path}:{expected}"]
    line, _, message = expected.partition(": ")
    flagged = {
        str(e.ref): e.metadata["problems"]
        for e in await organisation.entries(f"{scheme}://")
        if "problems" in e.metadata
    }
    of_others = "there is no such" in message or "circle" in message  # which may be hidden: it is not told in lists
    assert [*flagged.values()] == ([] if of_others else [[f"line {line}: {message}"]])
    for uri in flagged:
        assert (await organisation.read(uri)).body == text
    for other in ("sop", "doc", "skill", "agent", "org"):
        assert other == scheme or await organisation.problems(other) == []


async def test_two_files_with_one_id_are_both_served_and_only_the_check_tells_it(founded: Any) -> None:
    organisation = await founded({"sops/a/x.md": GOOD.format("1"), "sops/b/y.md": GOOD.format("1")})
    assert await organisation.problems("sop") == [
        "sops/a/x.md:2: its id is also that of sops/b/y.md",
        "sops/b/y.md:2: its id is also that of sops/a/x.md",
    ]
    entries = await organisation.entries("sop://")
    assert len(entries) == 2 and not any("problems" in entry.metadata for entry in entries), "one may be hidden"


async def test_every_member_of_a_circle_is_told_and_who_is_below_it_is_not(founded: Any) -> None:
    parents = {"a": "b", "b": "c", "c": "a", "below": "a", "top": ""}
    files = {
        f"org/functions/{name}.yml": f"id: func-{name}\nname: n\n" + (f"parent: func-{above}\n" if above else "")
        for name, above in parents.items()
    }
    organisation = await founded(files)
    assert await organisation.problems("org") == [
        f"org/functions/{name}.yml:3: parent leads in a circle back to this entry" for name in "abc"
    ]


async def test_a_version_of_nothing_is_told(founded: Any) -> None:
    organisation = await founded({"docs/brand/x@1.0.0.md": "---\nid: d\ntitle: T\n---\n"})
    assert await organisation.problems("doc") == ["docs/brand/x@1.0.0.md:1: is a version of what is not there"]


async def test_what_cannot_be_read_as_text_is_listed_and_told(organisation: Any) -> None:
    organisation.write("sops/hr/picture.md", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40)
    organisation.write(
        "sops/hr/korean.md", GOOD.format("cp949").replace("T\n", "한국어로 쓴 절차 문서\n").encode("cp949")
    )
    assert "sops/hr/picture.md:1: is no text that can be read; save it as UTF-8" in await organisation.problems("sop")
    assert (await organisation.read("sop://hr/korean")).entry.name == "한국어로 쓴 절차 문서"
    assert isinstance((await organisation.read("sop://hr/picture")).body, bytes)


async def test_a_document_of_50_mb_is_known_by_its_head(organisation: Any) -> None:
    organisation.write("docs/brand/book.md", "---\nid: doc-book\ntitle: 긴 책\n---\n" + "가나다라 마바사 " * 2_500_000)
    listed = {str(entry.ref): entry for entry in await organisation.entries("doc://")}
    entry = listed["doc://brand/book"]
    assert (entry.name, "problems" in entry.metadata, (entry.size or 0) > 50_000_000) == ("긴 책", False, True)
    assert await organisation.catalogs["doc"].stat(entry.ref) == entry
    with pytest.raises(TooLarge):
        await organisation.read("doc://brand/book")
    organisation.write("skills/hr/huge.yml", "id: x\nname: y\nnotes: " + "z" * 300_000)
    assert await organisation.problems("skill") == [
        "skills/hr/huge.yml:1: is larger than 262144 bytes, too large for a definition"
    ]


async def test_metadata_that_are_too_long_to_be_listed_are_left_out(organisation: Any) -> None:
    organisation.write("skills/hr/wordy.yml", "id: x\nname: y\ntriggers: {keywords: [" + "word, " * 5000 + "end]}\n")
    (entry,) = await organisation.entries("skill://hr")
    assert set(entry.metadata) == {"id", "name", "function", "problems"}
    assert await organisation.problems("skill") == ["skills/hr/wordy.yml:3: triggers is too long to be listed"]


async def test_a_parsed_view_of_what_is_no_yaml_is_refused(organisation: Any) -> None:
    organisation.write("agents/bad.yml", "a: [\n")
    with pytest.raises(InvalidParams):
        await organisation.read("agent://bad?view=parsed")


async def test_a_handbook_with_everything_wrong_keeps_the_rest(organisation: Any) -> None:
    before = await organisation.uris("sop://")
    for number in range(50):
        organisation.write(f"sops/zz/bad{number}.md", f"---\nid: {'[' * number}\n---\n")
    assert (await organisation.uris("sop://"))[: len(before)] == before
    assert len(await organisation.uris("sop://zz")) == 50


async def test_an_address_in_a_text_that_leads_nowhere_is_a_warning(organisation: Any) -> None:
    text = (
        GOOD.format("links")
        + "see sop://brand/press를 읽고, [x](sop://hr/none), doc://policies/expense?version=1.1.0.\n"
        + "`sop://brand/*` and sop://{function}/{name} are patterns; https://example.com/x; org://function: **agent://no**\n"
    )
    organisation.write("sops/hr/links.md", text)
    problems = [one for one in await organisation.catalogs["sop"].problems() if one.file == "sops/hr/links.md"]
    assert [(one.line, one.message, one.serious) for one in problems] == [
        (7, "sop://hr/none leads nowhere", False),
        (8, "agent://no leads nowhere", False),
    ]


async def test_a_relative_link_to_a_file_of_the_handbook_that_is_not_there_is_a_warning(organisation: Any) -> None:
    text = (
        GOOD.format("relative")
        + "[a](../brand/press.md#steps) [b](press.md) [c](../../docs/policies/none.md) [d](../../README.md)\n"
        + "[e](../../docs/policies/expense@1.1.0.md) [f](https://x.org/x.md) [g](../../%64ocs/brand/guidelines.md)\n"
        + "sop://brand/press#steps\n"
    )
    organisation.write("sops/hr/relative.md", text)
    problems = [one for one in await organisation.problems("sop") if "sops/hr/relative.md" in one]
    assert problems == [
        "sops/hr/relative.md:7: press.md leads nowhere",
        "sops/hr/relative.md:7: ../../docs/policies/none.md leads nowhere",
    ]


async def test_a_long_circle_is_found(founded: Any) -> None:
    roles = {f"org/roles/r{n}.yml": f"id: role-r{n}\nname: r{n}\nreports_to: r{(n + 1) % 300}\n" for n in range(300)}
    below = {"org/roles/below.yml": "id: role-below\nname: below\nreports_to: r0\n"}
    problems = await (await founded({**roles, **below})).problems("org")
    assert len(problems) == 300 and not any("below" in one for one in problems)


async def test_a_document_of_fifty_megabytes_is_said_and_the_rest_is_served(organisation: Any) -> None:
    organisation.write("docs/brand/huge.md", "---\nid: huge\ntitle: Huge\n---\n" + "길다 " * (50 << 20 >> 3))
    assert await organisation.problems("doc") == [
        f"docs/brand/huge.md:1: has {(organisation.root / 'docs/brand/huge.md').stat().st_size} bytes: it is read in "
        "parts only, and its links were not looked at"
    ]
    assert [entry.name for entry in await organisation.entries("doc://brand")] == ["브랜드 가이드", "Huge"]


async def test_no_key_of_a_file_keeps_a_catalog_from_being_served(founded: Any) -> None:
    declared = own("x", "x", "{name}.md", {"properties": {"n": {"type": "integer"}}})
    properties = {**declared.properties, "problems": {"type": "integer"}, "agent": {"type": "string"}}
    declared = replace(declared, schema={"properties": properties}, links={"agent": ("agent",)})
    organisation = await founded({"x/a.md": "---\nproblems: 5\nn: many\nagent: none\n---\n"}, declared)
    (entry,) = await organisation.entries("x://")
    assert entry.metadata["problems"] == ["line 3: n must be a whole number"]
