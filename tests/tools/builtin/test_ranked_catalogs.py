"""Ranked search over catalogs: entries below entries, the files that belong to one, and texts behind front matter."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from octavo.core.errors import InvalidParams, NotFound

pytestmark = pytest.mark.anyio

CONFIGURATION = """
sources:
  store: {kind: file, roots: [./work], extensions: [.md, .yml], expose: false}
  wiki:
    kind: catalog
    scheme: wiki
    store: store
    path: wiki
    files: "{+path}.md"
    schema: {properties: {title: {type: string}}}
  skills: {kind: skill, store: store, path: skills}
"""
RULES = """
agents: {reader: {}, files: {}, partly: {}}
policy:
  - {who: [reader, partly], may: [list, read, search], what: "skill://*"}
  - {who: files, may: [list, read, search], what: ["skill://brand/letters/references/*", "skill://brand/other"]}
  - {who: partly, may: "*", what: "skill://brand/letters/internal/*", effect: deny}
"""
FILES = {
    "wiki/team.md": "---\ntitle: 우리 팀\n---\n당번을 정한다.\n",
    "wiki/team/rota.md": "---\ntitle: 당번표\n---\n이번 주 당번은 비밀이다.\n",
    "skills/brand/letters/SKILL.md": "---\nname: letters\ndescription: Answers letters.\n---\n# 편지\n\n답장을 쓴다.\n",
    "skills/brand/letters/references/tone.md": "말투는 다정하게.\n",
    "skills/brand/letters/internal/notes.md": "말투 메모\n",
    "skills/brand/calls.yml": "id: s1\nname: calls\ndescription: 전화\n",
    "skills/brand/calls/SKILL.md": "---\nname: calls\ndescription: Calls.\n---\n수화기를 든다.\n",
    "skills/brand/other.yml": "id: s2\nname: other\ndescription: 말투 없음\n",
}
LETTERS = "skill://brand/letters"


async def uris(tools: Any, query: str, **asked: Any) -> list[str]:
    return sorted(one["uri"] for one in (await tools.data("search", query=query, kind="ranked", **asked))["results"])


async def until_found(tools: Any, expected: list[str], query: str) -> None:
    with anyio.fail_after(30):
        while await uris(tools, query) != expected:
            pass


async def test_an_entry_that_is_deleted_leaves_those_below_it_in_the_search(serve: Any) -> None:
    tools = await serve(CONFIGURATION, FILES)
    assert await uris(tools, "당번") == ["wiki://team", "wiki://team/rota"]
    (tools.root / "wiki/team.md").unlink()
    await until_found(tools, ["wiki://team/rota"], "당번")
    (tools.root / "wiki/team/rota.md").unlink()
    await until_found(tools, [], "당번")


async def test_a_link_to_the_entry_above_it_is_a_link(serve: Any) -> None:
    tools = await serve(CONFIGURATION, FILES)
    (tools.root / "wiki/team/alias.md").symlink_to("../team.md")
    assert await uris(tools, "우리") == ["wiki://team"]


async def test_files_of_a_skill_are_found_and_its_own_text_once(serve: Any) -> None:
    tools = await serve(CONFIGURATION, FILES)
    files = [f"{LETTERS}/internal/notes.md", f"{LETTERS}/references/tone.md"]
    assert await uris(tools, "말투") == [*files, "skill://brand/other"]
    assert await uris(tools, "답장") == [LETTERS]
    assert await uris(tools, "수화기") == ["skill://brand/calls/SKILL.md"]  # not what the skill is made of
    tools.put("skills/brand/letters/references/greeting.md", "인사말\n")
    await until_found(tools, [f"{LETTERS}/references/greeting.md"], "인사말")
    tools.put("skills/brand/letters/SKILL.md", "---\nname: letters\ndescription: Answers.\n---\n회신을 쓴다.\n")
    await until_found(tools, [LETTERS], "회신")
    (tools.root / "skills/brand/letters/SKILL.md").unlink()
    await until_found(tools, ["skill://brand/other"], "말투")


@pytest.mark.seed("B6")
async def test_a_file_of_a_skill_is_found_by_who_may_have_both_the_file_and_the_skill(serve: Any) -> None:
    tools = await serve(CONFIGURATION + RULES, FILES)
    found = {who: await uris(tools, "말투", who=who) for who in ("reader", "partly", "files")}
    notes, tone, other = f"{LETTERS}/internal/notes.md", f"{LETTERS}/references/tone.md", "skill://brand/other"
    assert found == {"reader": [notes, tone, other], "partly": [tone, other], "files": [other]}


async def test_a_snippet_never_begins_with_front_matter(serve: Any) -> None:
    tools = await serve(CONFIGURATION, FILES)
    (found,) = (await tools.data("search", query="비밀", kind="ranked"))["results"]
    assert (found["title"], found["snippet"]) == ("당번표", "이번 주 당번은 비밀이다.")


async def test_a_parameter_that_a_collection_does_not_know_is_refused_as_a_list_refuses_it(serve: Any) -> None:
    tools = await serve(CONFIGURATION, FILES)
    said: list[str] = []
    for tool, asked in (("list", {}), ("search", {"query": "말투", "kind": "ranked"})):
        with pytest.raises(InvalidParams, match="Unknown query parameter: 'nope'") as refused:
            await tools(tool, target="skill://brand?nope=x", **asked)
        said.append(refused.value.message)
    assert said[0] == said[1]
    assert await uris(tools, "말투", target="skill://brand?function=brand")
    with pytest.raises(NotFound):
        await tools("search", query="말투", kind="ranked", target="skill://nowhere?function=brand")


async def test_a_document_too_large_to_be_searched_is_said_to_whoever_may_find_it(serve: Any) -> None:
    large = {"wiki/large.md": "# Large\n\n" + "many words\n" * 2_000 + "zebracorn\n"}
    limits = "search: {text: 16KB}\n"
    tools = await serve(CONFIGURATION + limits, FILES | large)
    text = await tools.text("search", query="zebracorn", kind="ranked")
    assert text.startswith("Nothing was found\n[1 document is too large to be searched as a whole: search.text;")
    assert (await tools.data("search", query="zebracorn", kind="ranked"))["partial"] == 1
    assert "partial" not in await tools.data("search", query="zebracorn", kind="ranked", target="skill://")
    assert await uris(tools, "large") == ["wiki://large"]


async def test_who_may_not_find_a_document_is_not_told_that_it_is_too_large(serve: Any) -> None:
    large = {"wiki/large.md": "# Large\n\n" + "many words\n" * 2_000}
    tools = await serve(CONFIGURATION + "search: {text: 16KB}\n" + RULES, FILES | large)
    assert await tools.text("search", query="zebracorn", kind="ranked", who="reader") == "Nothing was found"
