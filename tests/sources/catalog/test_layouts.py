"""An organisation's files as they are: flat, deep, without front matter, in other formats, with other endings."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import InvalidParams, NotFound
from octavo.core.ref import Ref
from octavo.core.values import Entry
from octavo.sources.catalog import DECLARATIONS, CatalogSource, chosen, doc_with, with_options
from octavo.sources.file import FileRoot, FileSource

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O17")]

Served = Callable[..., Awaitable[CatalogSource]]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    """A catalog over a folder of files, with nothing said but the kind, or with these options."""
    async with AsyncExitStack() as stack:

        async def serve(kind: str, there: Mapping[str, str], /, *, alone: bool = True, **options: Any) -> CatalogSource:
            root = tmp_path / "store"
            for path, text in there.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            root.mkdir(exist_ok=True)
            store = await stack.enter_async_context(FileSource([FileRoot(root)], secret=b"secret"))
            said = with_options(DECLARATIONS[kind], **options)
            return CatalogSource(await chosen(said, store, path=None, alone=alone, files="files" in options), store)

        yield serve


async def entries(catalog: CatalogSource) -> dict[str, Entry]:
    page = await catalog.list(Ref(catalog.scheme), cursor=None, limit=1000)
    return {str(entry.ref): entry for entry in page.items}


async def told(catalog: CatalogSource) -> list[str]:
    return [str(problem) for problem in await catalog.problems()]


@pytest.mark.parametrize("kind", ["doc", "sop"])
async def test_files_of_every_depth_are_served_under_their_whole_path(served: Served, kind: str) -> None:
    files = {
        "severance.md": "# Severance\n\nText.\n",
        "team/index.md": "Welcome.\n",
        "team/process/on boarding.md": "---\ntitle: Onboarding\nweight: 3\n---\nText\n",
        "team/process/deeper/still/지침.mdx": "import X from 'x'\n\n# 지침\n",
        "notes/plan.rst": "Plan\n====\n",
        "notes/story.adoc": "= Story\n",
        "notes/list.txt": "one\ntwo\n",
    }
    catalog = await served(kind, files)
    found = await entries(catalog)
    assert {entry.ref.path: entry.name for entry in found.values()} == {
        "severance": "Severance",
        "team/index": "team",
        "team/process/on boarding": "Onboarding",
        "team/process/deeper/still/지침": "지침",
        "notes/plan": "Plan",
        "notes/story": "Story",
        "notes/list": "list",
    }
    for entry in found.values():
        body = (await catalog.read(entry.ref, max_bytes=1 << 20)).body
        assert body in files.values() and await catalog.stat(entry.ref) == entry
    assert await told(catalog) == []
    assert not any("problems" in entry.metadata for entry in found.values())


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("=====\nModel\n=====\n\n.. module:: x\n", "Model"),
        (".. _label:\n\nThe :class:`~x.Field` of ``x``\n=============================\n", "The x.Field of x"),
        ("경비 규정\n=========\n", "경비 규정"),
        ("one\ntwo\n-----\nthree\n", None),
        ("Hello,\n\nnote\n----------------------------------------\nmore\n", None),
        ("--------\n", None),
    ],
)  # fmt: skip
async def test_plain_text_with_an_underlined_heading_is_called_by_it(
    served: Served, text: str, title: str | None
) -> None:
    (entry,) = (await entries(await served("doc", {"a.txt": text}))).values()
    assert entry.title == title


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("# [Deprecated] VirtControllerDown\n", "[Deprecated] VirtControllerDown"),
        ("# Array [0] of [the guide](a.md) and [notes][n]\n", "Array [0] of the guide and notes"),
        ("# See [the guide]\n\n[the guide]: a.md\n", "See the guide"),
        ("# [ ] To do\n", "[ ] To do"),
    ],
)
async def test_brackets_of_a_heading_that_lead_nowhere_stay(served: Served, heading: str, title: str) -> None:
    (entry,) = (await entries(await served("doc", {"a.md": heading}))).values()
    assert entry.title == title


async def test_what_nobody_wrote_is_taken_from_path_and_file_and_other_keys_are_kept(served: Served) -> None:
    catalog = await served("doc", {"team/process/x.md": "---\nweight: 3\nauthors: [kim]\n---\n# Title of x\n"})
    (entry,) = (await entries(catalog)).values()
    day = entry.metadata["last_updated"]
    assert (entry.name, entry.title) == ("Title of x", "Title of x")
    assert dict(entry.metadata) == {
        "id": "team/process/x", "category": "team", "last_updated": day, "weight": 3, "authors": ["kim"],
    }  # fmt: skip
    assert len(day) == 10 and await catalog.stat(entry.ref) == entry


@pytest.mark.parametrize(
    ("files", "folder"),
    [
        ({"docs/a.md": "a", "README.md": "r"}, ["doc://README", "doc://a"]),
        ({"docs/a/b.md": "a", "docs/c.md": "c", "team/d/e.md": "e"}, ["doc://a/b", "doc://c", "doc://team/d/e"]),
        ({"content/a.md": "a", "README.md": "r"}, ["doc://README", "doc://content/a"]),
    ],
)
async def test_the_usual_folder_is_taken_where_it_is_and_the_whole_store_elsewhere(
    served: Served, files: Mapping[str, str], folder: list[str]
) -> None:
    assert sorted(await entries(await served("doc", files))) == folder


@pytest.mark.parametrize("kind", ["doc", "sop"])
async def test_a_usual_folder_of_fewer_documents_than_stand_beside_it_is_not_theirs(served: Served, kind: str) -> None:
    usual = DECLARATIONS[kind].path
    files = {f"{usual}/fonts/LICENSE.txt": "x", f"{usual}/index.html": "x", f"{usual}/a.md": "a"}
    catalog = await served(kind, {**files, "src/one.md": "1", "src/two.md": "2"})
    assert {ref.partition("://")[2] for ref in await entries(catalog)} == {
        f"{usual}/fonts/LICENSE", f"{usual}/a", "src/one", "src/two",
    }  # fmt: skip
    assert await told(catalog) == [] and catalog.serves_little() == ""


async def test_papers_tests_and_what_was_built_are_no_documents_beside_the_folder(served: Served) -> None:
    beside = ["README.md", "LICENSE.txt", "pkg/README.ko.md", "node_modules/x/guide.md", "tests/data/case.txt"]
    catalog = await served("doc", {"docs/a.md": "a", "docs/b.md": "b", **dict.fromkeys(beside, "x")})
    assert {"doc://a", "doc://b"} < (await entries(catalog)).keys(), "so the folder is theirs"


async def test_what_stands_beside_the_usual_folder_is_served_under_its_whole_path(
    served: Served, tmp_path: Path
) -> None:
    files = {"docs/hr/pay.md": "# Pay\n", "docs/start.md": "s", "README.md": "[pay](docs/hr/pay.md)\n", "a/b/c.md": "c"}
    catalog = await served("doc", files)
    assert sorted(await entries(catalog)) == ["doc://README", "doc://a/b/c", "doc://hr/pay", "doc://start"]
    for uri, body in (("doc://README", files["README.md"]), ("doc://a/b/c.md", "c"), ("doc://docs/start.md", "s")):
        [meant] = (await catalog.meanings(Ref.parse(uri)))[0]
        assert (await catalog.read(meant, max_bytes=100)).body == body
    linked = (await catalog.read(Ref.parse("doc://README?view=relations"), max_bytes=9999)).body
    assert "doc://hr/pay" in str(linked)
    assert await told(catalog) == []
    (tmp_path / "store/CONTRIBUTING.md").write_text("how\n", "utf-8")
    (tmp_path / "store/docs/a").mkdir()
    (tmp_path / "store/docs/a/d.md").write_text("d", "utf-8")
    assert {"doc://CONTRIBUTING", "doc://a/d", "doc://a/b/c"} < (await entries(catalog)).keys()


async def test_of_a_file_in_the_usual_folder_and_one_beside_it_that_one_is_served_whose_folder_it_is(
    served: Served, tmp_path: Path
) -> None:
    catalog = await served("doc", {"docs/README.mdx": "inner", "docs/a.md": "a", "README.md": "outer"})
    assert sorted(await entries(catalog)) == ["doc://README", "doc://a"]
    assert (await catalog.read(Ref.parse("doc://README"), max_bytes=100)).body == "inner"
    assert await told(catalog) == ["README.md:1: is not served: another file has its address"]
    (tmp_path / "store/docs/README.mdx").unlink()
    assert (await catalog.read(Ref.parse("doc://README"), max_bytes=100)).body == "outer"
    with pytest.raises(NotFound):
        await catalog.read(Ref.parse("doc://docs/a"), max_bytes=100)


async def test_folders_of_programs_beside_the_usual_folder_are_said_and_not_served(
    served: Served, tmp_path: Path
) -> None:
    programs = [".github/BUG.md", "web/node_modules/x/README.md", "vendor/y/guide.md", "pkg/testdata/case.md"]
    inside = {f"docs/{number}.md": "x" for number in range(5)}
    catalog = await served("doc", {**inside, "docs/vendor/deal.md": "d", **dict.fromkeys(programs, "x")})
    assert sorted(await entries(catalog)) == [*sorted(f"doc://{number}" for number in range(5)), "doc://vendor/deal"]
    [said] = await told(catalog)
    assert said.startswith("docs:1: files in folders of programs that are not served: 4 (.github, ")
    assert said.endswith("; path: '' would serve all files, under their whole path")
    assert not any(problem.serious for problem in await catalog.problems())
    (tmp_path / "store/docs/link.md").symlink_to("../.github/BUG.md")
    assert "doc://link" not in await entries(catalog), "nor under another name"


@pytest.mark.parametrize("beside", [1, 9])
async def test_a_folder_in_which_every_file_must_have_a_key_is_kept_to_itself_and_that_is_said(
    served: Served, beside: int
) -> None:
    inside = {f"docs/{number}.md": "---\nowner: a\n---\n" for number in range(30)}
    files = {**inside, **{f"guides/{number}.md": "x" for number in range(beside)}}
    catalog = await served("doc", files, required=("owner",))
    said = f"files beside this folder that are not served: {beside}; path: '' would serve them as well"
    said += ", path: docs says that this is meant"
    assert await told(catalog) == [f"docs:1: {said}"]
    assert not any(problem.serious for problem in await catalog.problems())
    assert catalog.serves_little() == (f"docs: {said}" if beside > 3 else ""), "at the start, where it is much"


@pytest.mark.parametrize("kind", ["agent", "org"])
async def test_a_store_of_other_things_is_no_folder_of_agents(served: Served, kind: str) -> None:
    assert await entries(await served(kind, {"README.md": "x", "settings.yml": "key: x\n"})) == {}


async def test_a_store_of_several_catalogs_is_never_one_of_them_as_a_whole(served: Served) -> None:
    assert await entries(await served("doc", {"content/a.md": "a"}, alone=False)) == {}


async def test_an_address_follows_from_the_path_whatever_lies_beside_it(served: Served, tmp_path: Path) -> None:
    catalog = await served("doc", {"team/index.md": "# Team\n", "team/a.md": "a"})
    assert sorted(await entries(catalog)) == ["doc://team/a", "doc://team/index"]
    (tmp_path / "store/team.md").write_text("# The team\n", "utf-8")
    (tmp_path / "store/team/index").mkdir()
    (tmp_path / "store/team/index/b.md").write_text("b", "utf-8")
    assert sorted(await entries(catalog)) == ["doc://team", "doc://team/a", "doc://team/index", "doc://team/index/b"]
    assert (await catalog.read(Ref.parse("doc://team"), max_bytes=1 << 20)).body == "# The team\n"


async def test_a_folder_is_read_as_its_list_with_its_own_page_named(served: Served) -> None:
    catalog = await served("doc", {"team/_index.md": "# The team\n", "team/a.md": "a", "team/deep/b.md": "b"})
    content = await catalog.read(Ref.parse("doc://team"), max_bytes=1 << 20)
    told = json.loads(content.body)
    assert content.composed and [one["uri"] for one in told["entries"]] == [
        "doc://team/_index", "doc://team/a", "doc://team/deep/b",
    ]  # fmt: skip
    assert told["page"] == {"uri": "doc://team/_index", "name": "The team", "quoted": "name"}


async def test_of_two_files_with_one_address_the_first_by_ending_is_served_and_the_other_said(
    served: Served, tmp_path: Path
) -> None:
    catalog = await served(
        "doc", {"team/index.mdx": "mdx", "team/index.md": "md", "team/INDEX.md": "other", "a.MD": "x"}
    )
    found = await entries(catalog)
    assert sorted(found) == ["doc://a", "doc://team/INDEX", "doc://team/index"]
    assert (await catalog.read(Ref.parse("doc://team/index"), max_bytes=100)).body == "md"
    assert (await catalog.read(Ref.parse("doc://a"), max_bytes=100)).body == "x", "whatever the case of its ending"
    assert await told(catalog) == ["team/index.mdx:1: is not served: another file has its address"]
    (tmp_path / "store/team/index.md").unlink()
    assert (await catalog.read(Ref.parse("doc://team/index"), max_bytes=100)).body == "mdx"
    assert sorted(await entries(catalog)) == ["doc://a", "doc://team/INDEX", "doc://team/index"]


async def test_a_file_has_one_address_whichever_patterns_it_fits(served: Served) -> None:
    catalog = await served(
        "org", {"org/functions/brand.yml": "id: func-brand\nname: Brand\n", "org/x/y.yml": "name: y\n"}
    )
    assert sorted(await entries(catalog)) == ["org://function/brand", "org://x/y"]
    with pytest.raises(NotFound):
        await catalog.read(Ref.parse("org://functions/brand"), max_bytes=100)


RULE = "begins with a rule ---, so that it looks like front matter"
END = "the front matter does not end with a line ---; it is taken to end here"
SLIPS = [
    ("---\n\nA text under a rule.\n\n---\n\nMore.\n", {}, f"1: {RULE}"),
    ("---\nA text: under a rule that nothing ends.\n\nMore\n", {"A text": "under a rule that nothing ends."}, None),
    ("---\ntitle: T\n----\n# H\n", {}, f"3: {END}"),
    ("---\ntitle: T\nowner: ops\n\n# H\n", {"owner": "ops"}, f"4: {END}"),
    ("---\nowner: ops: first\ntitle: T\n---\n", {"owner": "ops: first"}, "2: owner needs quotes; it is read as text"),
    ("---\ntitle: T\nteam: *all*\n---\n", {"team": "*all*"}, "3: team needs quotes; it is read as text"),
    ("---\ntitle: T\nteam: [Draft] ops\n---\n", {"team": "[Draft] ops"}, "3: team needs quotes; it is read as text"),
    ("---\ntitle: T\nteam: 'Ops' all\n---\n", {"team": "'Ops' all"}, "3: team needs quotes; it is read as text"),
    ("---\ntitle: T\nteam: [가] - 나\n---\n", {"team": "[가] - 나"}, "3: team needs quotes; it is read as text"),
    ("---\ntitle: T\nteam: [a\nowner: ops\n---\n", {}, None),
    ("---\ntitle: T\nteam: {{ .Name }}\n---\n", {"team": None}, "3: team is no YAML and left out"),
    ("---\ntitle: T\nowner: ops\nowner: dev\n---\n", {"owner": "ops"}, "4: owner is given twice"),
]


@pytest.mark.parametrize(("text", "kept", "said"), SLIPS)
async def test_a_slip_in_front_matter_costs_a_remark_and_never_the_document(
    served: Served, text: str, kept: Mapping[str, str], said: str | None
) -> None:
    catalog = await served("doc", {"a/x.md": text})
    (entry,) = (await entries(catalog)).values()
    assert {key: entry.metadata.get(key) for key in kept} == dict(kept) and "problems" not in entry.metadata
    problems = await catalog.problems()
    assert problems and not any(problem.serious for problem in problems)
    assert said is None or [str(problem) for problem in problems] == [f"a/x.md:{said}"]
    assert (await catalog.read(entry.ref, max_bytes=1 << 20)).body == text


@pytest.mark.parametrize(
    "text",
    [
        '+++\ntitle = "T"\nowner = "ops"\ndate = 2024-05-01\n+++\n# H\n',
        '{\n  "title": "T",\n  "owner": "ops",\n  "date": "2024-05-01"\n}\n\n# H\n',
    ],
)
async def test_front_matter_in_toml_and_json_is_read(served: Served, text: str) -> None:
    catalog = await served("doc", {"a/x.md": text})
    (entry,) = (await entries(catalog)).values()
    assert (entry.name, entry.metadata["owner"], entry.metadata["date"]) == ("T", "ops", "2024-05-01")
    assert await told(catalog) == []


async def test_values_of_another_model_are_no_faults_and_those_of_ours_are(served: Served) -> None:
    ours = "---\nid: sop-x\ntitle: T\nversion: 1.0.0\nstatus: actve\n---\n"
    catalog = await served("sop", {"a/x.md": ours, "a/y.md": "---\ntitle: Y\nstatus: published\ntags: one\n---\n"})
    assert await told(catalog) == ["a/x.md:5: status must be one of: draft, active, deprecated"]
    found = await entries(catalog)
    assert found["sop://a/y"].metadata["status"] == "published"
    assert found["sop://a/x"].metadata["problems"] == ["line 5: status must be one of: draft, active, deprecated"]


async def test_a_required_key_that_is_missing_is_a_fault(served: Served) -> None:
    catalog = await served("doc", {"a/x.md": "# No keys\n", "a/y.md": "---\nowner: ops\n---\n"}, required=("owner",))
    assert await told(catalog) == ["a/x.md:1: has no front matter: owner is missing"]
    said = "line 1: has no front matter: owner is missing"
    assert (await entries(catalog))["doc://a/x"].metadata["problems"] == [said]


async def test_a_schema_holds_for_every_file(served: Served) -> None:
    schema = {"properties": {"level": {"enum": ["low", "high"]}}}
    catalog = await served("doc", {"a/x.md": "---\nlevel: middle\n---\n", "a/y.md": "# Y\n"}, schema=schema)
    assert await told(catalog) == ["a/x.md:2: level must be one of: low, high"]


async def test_known_categories_are_checked_and_others_are_not(served: Served, tmp_path: Path) -> None:
    catalog = await served("doc", {"misc/x.md": "---\nid: d\ntitle: T\n---\n"})
    assert await told(catalog) == []
    async with FileSource([FileRoot(tmp_path / "store")], secret=b"s") as store:
        known = CatalogSource(doc_with(("policies", "brand")), store, path="")
        assert await told(known) == ["misc/x.md:2: category must be one of: policies, brand"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (("guides/**/*.md",), ["doc://guides/a", "doc://guides/deep/b"]),
        (("guides/{+path}.md", "faq/{name}.mdx"), ["doc://faq/c", "doc://guides/a", "doc://guides/deep/b"]),
        (("*/*.md",), ["doc://guides/a"]),
        (("*.yml",), ["doc://data"]),
        (("**",), ["doc://faq/c", "doc://guides/a", "doc://guides/deep/b", "doc://top"]),
    ],
)
async def test_patterns_say_which_files_are_served(served: Served, files: tuple[str, ...], expected: list[str]) -> None:
    there = {"guides/a.md": "a", "guides/deep/b.md": "b", "faq/c.mdx": "c", "top.md": "t", "data.yml": "name: d\n"}
    assert sorted(await entries(await served("doc", there, files=files))) == expected


async def test_ids_and_titles_follow_a_rule(served: Served) -> None:
    catalog = await served(
        "sop",
        {"brand/brief.md": "---\nslug: the-brief\nheadline: How to brief\n---\n# H\n", "hr/pay.md": "# Pay\n"},
        files=("{function}/{name}.md",),
        ids="sop-{function}-{name}",
        titles="headline",
    )
    found = await entries(catalog)
    assert [(entry.metadata["id"], entry.name) for entry in found.values()] == [
        ("sop-brand-brief", "How to brief"),
        ("sop-hr-pay", "Pay"),
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"files": ("{name}.png",)},
        {"files": ("a*b.md",)},
        {"files": ("{+a}/{+b}.md",)},
        {"endings": (".exe",)},
        {"ids": "sop-{nobody}"},
        {"schema": {"type": "array"}},
        {"schema": {"properties": {"problems": {}}}},
    ],
)
def test_a_layout_that_cannot_be_used_is_refused(options: Any) -> None:
    with pytest.raises(InvalidParams):
        with_options(DECLARATIONS["doc"], **options)


async def test_a_name_of_255_bytes_is_served(served: Served) -> None:
    name = "가" * 84  # of three bytes each, and the ending
    catalog = await served("doc", {f"{name}.md": "# Long\n"})
    (entry,) = (await entries(catalog)).values()
    assert entry.ref.path == name and (await catalog.read(entry.ref, max_bytes=100)).body == "# Long\n"


async def test_folders_that_are_left_out_are_not_served_and_no_link_leads_into_them(
    served: Served, tmp_path: Path
) -> None:
    (tmp_path / "store" / "guides").mkdir(parents=True)
    (tmp_path / "store" / "guides" / "linked.md").symlink_to("../skills/pdf/SKILL.md")
    files = {"guides/a.md": "# A\n", "skills/pdf/SKILL.md": "# Pdf\n", "skills-guide.md": "# Skills\n"}
    catalog = await served("doc", files, without=("skills",))
    assert [*await entries(catalog)] == ["doc://guides/a", "doc://skills-guide"]
    for address in ("doc://skills/pdf/SKILL", "doc://skills", "doc://guides/linked"):
        with pytest.raises(NotFound):
            await catalog.stat(Ref.parse(address))


async def test_what_is_written_into_a_folder_that_is_left_out_is_told_to_nobody(served: Served, tmp_path: Path) -> None:
    catalog = await served("doc", {"a.md": "# A\n", "skills/x.md": "# X\n"}, without=("skills",))
    watched = catalog.watch(Ref("doc"))
    first = asyncio.ensure_future(anext(watched))
    await asyncio.sleep(0)
    await catalog.armed()
    (tmp_path / "store" / "skills" / "x.md").write_text("# Y\n", encoding="utf-8")
    (tmp_path / "store" / "b.md").write_text("# B\n", encoding="utf-8")
    change = await asyncio.wait_for(first, 30)
    assert str(change.ref) == "doc://b"
    await watched.aclose()


@pytest.mark.parametrize(
    ("rule", "id", "text"), [("tb-{topic}", "tb-rails", "Text.\n"), ("code", "A-1", "---\ncode: A-1\n---\n")]
)
async def test_a_rule_that_gives_several_files_one_id_is_told_of_each(
    served: Served, rule: str, id: str, text: str
) -> None:
    files = {"rails/a.md": text, "rails/deep/b.md": text, "ruby/c.md": "---\ncode: A-2\n---\n"}
    catalog = await served("doc", files, files=("{topic}/{+path}.md",), ids=rule)
    problems = await catalog.problems()
    assert all(problem.serious for problem in problems)
    made = f"the id: of the catalog makes {id} of both"
    assert [str(problem) for problem in problems] == [
        f"rails/a.md:1: its id is also that of rails/deep/b.md: {made}",
        f"rails/deep/b.md:1: its id is also that of rails/a.md: {made}",
    ]


async def test_files_have_ids_of_their_own_where_the_rule_tells_them_apart(served: Served) -> None:
    files = {"rails/a.md": "Text.\n", "ruby/a.md": "Text.\n"}
    assert await told(await served("doc", files, files=("{topic}/{+path}.md",), ids="tb-{topic}-{path}")) == []
