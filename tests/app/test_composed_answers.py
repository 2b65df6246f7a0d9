"""Answers that are made of several entries tell nothing of those that the caller may not see."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.app.asking import ask, told

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.errors import InvalidParams, NotFound, TooLarge
from octavo.core.tools import Text, ToolResult
from octavo.core.values import Content
from octavo.sources.catalog import views

pytestmark = pytest.mark.anyio

HEAD = """
version: 1
sources:
  handbook: {kind: file, roots: [./handbook], expose: false}
  sops: {kind: sop, store: handbook}
  skills: {kind: skill, store: handbook}
  agents: {kind: agent, store: handbook}
  reviews:
    kind: catalog
    scheme: review
    store: handbook
    path: reviews
    files: "{name}.md"
    schema: {properties: {score: {}, reasons: {}, links: {type: array}, grade: {type: integer}}}
agents: {a: {}, b: {}}
policy:
"""
RULES = """
  - {who: "*", may: [list, read, invoke], what: ["sop://*", "skill://*", "agent://*", "review://*", "tool://*"]}
  - {who: a, may: "*", what: ["sop://aaa/*", "skill://aaa/*", "agent://secret"], effect: deny}
"""
SOP = "---\nid: {0}\ntitle: {0}\nversion: 1.0.0\nstatus: active\n{1}---\n"
FILES = {
    "sops/aaa/hidden.md": SOP.format("one", "agent: agent-x1\n"),
    "sops/zzz/open.md": SOP.format("one", "agent: agent-x1\n"),
    "skills/aaa/pay.yml": "id: s2\nname: pay\nagents: [b]\ntriggers: [급여]\n",
    "skills/zzz/write.yml": "id: s1\nname: write\nagents: [b]\ntriggers: [급여]\n",
    "agents/secret.yml": "id: agent-x1\nname: secret\n",
    "agents/b.yml": "id: b\nname: b\n",
}

Founded: TypeAlias = Callable[..., Awaitable[Octavo]]


@pytest.fixture
async def founded(tmp_path: Path) -> AsyncIterator[Founded]:
    async with AsyncExitStack() as stack:

        async def found(more: Mapping[str, str] | None = None, rules: str = RULES, further: str = "") -> Octavo:
            for path, text in {**FILES, **(more or {})}.items():
                place = tmp_path / "handbook" / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, encoding="utf-8")
            file = tmp_path / "octavo.yaml"
            file.write_text(HEAD + rules + further, encoding="utf-8")
            return await stack.enter_async_context(Octavo(load(file, environ={})))

        yield found


def uris(told: Any) -> list[str]:
    return [one["uri"] for one in told]


@pytest.mark.parametrize("uri", ["sop://", "sop://?status=active", "skill://?match=급여", "agent://b?view=relations"])
async def test_what_is_known_of_an_answer_before_it_is_read_depends_on_nothing_hidden(
    founded: Founded, uri: str
) -> None:
    house = await founded()
    known = [await ask(house, who, "stat", uri) for who in ("a", "b")]
    assert known[0] == known[1] and (known[0].size, known[0].version) == (None, "")
    seen: list[Content] = [await ask(house, who, "read", uri) for who in ("a", "b")]
    assert seen[0].entry.version != seen[1].entry.version and seen[0].entry.size == seen[0].size


async def test_a_collection_of_which_nothing_may_be_seen_is_not_known_either(founded: Founded) -> None:
    rules = '  - {who: a, may: "*", what: "sop://*"}\n'
    hidden = '  - {who: a, may: "*", what: "sop://aaa/hidden", effect: deny, hide: true}\n'
    house = await founded(rules=rules + hidden)
    for uri in ("sop://aaa", "sop://none"):
        with pytest.raises(NotFound):
            await ask(house, "a", "stat", uri)
    assert (await ask(house, "a", "stat", "sop://zzz")).name == "zzz"


async def test_what_is_hidden_takes_no_room_in_a_collection(founded: Founded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MAX_LISTED", 4)
    many = {f"sops/{place}/{n}.md": SOP.format(f"{place}-{n}", "") for place in ("aaa", "zzz") for n in range(6)}
    skills = {f"skills/aaa/{n}.yml": f"id: t{n}\nname: t{n}\nagents: [b]\ntriggers: [급여]\n" for n in range(6)}
    house = await founded(many | skills)
    assert uris((await told(house, "a", "sop://"))["entries"]) == [f"sop://zzz/{n}" for n in range(4)]
    assert uris((await told(house, "b", "sop://"))["entries"]) == [f"sop://aaa/{n}" for n in range(4)]
    assert uris((await told(house, "a", "skill://?match=급여"))["matches"]) == ["skill://zzz/write"]


async def test_only_what_is_shown_is_too_large(founded: Founded) -> None:
    long = {f"sops/aaa/{n}.md": SOP.format(f"id-{n}", f"description: {'word ' * 300}\n") for n in range(5)}
    house = await founded(long, further="limits: {read: 1500}\n")
    seen = await ask(house, "a", "read", "sop://")
    assert seen.size < 1500
    with pytest.raises(TooLarge) as large:
        await ask(house, "b", "read", "sop://")
    assert large.value.data["limit"] == 1500
    with pytest.raises(TooLarge) as small:
        await ask(house, "a", "read", "sop://", max_bytes=10)
    assert small.value.data == {"uri": "sop://", "size": seen.size, "limit": 10}


async def test_a_filter_finds_nothing_through_an_entry_that_is_denied(founded: Founded) -> None:
    house = await founded()
    for agent in ("secret", "nosuch", "agent://secret"):
        assert (await told(house, "a", f"sop://?agent={agent}"))["entries"] == []
    for agent in ("agent-x1", "x1", "agent://x1"):
        assert uris((await told(house, "a", f"sop://?agent={agent}"))["entries"]) == ["sop://zzz/open"]


async def test_a_listing_does_not_tell_that_a_hidden_file_has_the_same_id(founded: Founded) -> None:
    house = await founded()
    (entry,) = (await ask(house, "a", "list", "sop://")).items
    assert "problems" not in entry.metadata
    assert "problems" not in (await told(house, "a", "sop://"))["entries"][0]["metadata"]


async def test_patterns_of_rules_are_told_to_whoever_sees_what_they_cover_or_has_them(founded: Founded) -> None:
    further = """
  - {who: b, may: read, what: ["*://aaa/*", "sop://aaa/*", "sop://z*/*", "sop://zzz/*", "review://*", "**"]}
  - {who: b, may: read, what: "sop://aaa/hidden"}
  - {who: b, may: write, what: "sop://zzz/open"}
"""
    house = await founded(rules=RULES + further)

    async def live(who: str) -> set[str]:
        return {one["what"] for one in (await told(house, who, "agent://b?view=capabilities"))["permissions"]["live"]}

    shared = {"sop://*", "skill://*", "agent://*", "review://*", "tool://*", "sop://zzz/*", "sop://zzz/open"}
    assert await live("a") == shared
    assert await live("b") == shared | {"*://aaa/*", "sop://aaa/*", "sop://z*/*", "**", "sop://aaa/hidden"}


async def test_keys_of_an_author_cannot_break_a_listing(founded: Founded) -> None:
    house = await founded(
        {
            "reviews/one.md": "---\nscore: 5\nreasons: 7\n---\n",
            "reviews/two.md": "---\nscore: high\ngrade: none\nproblems: 5\n---\n",
            "reviews/three.md": "---\nlinks: [{uri: https://example.com, title: x}]\n---\n",
        }
    )
    result: ToolResult = await ask(house, "a", "invoke", "tool://list", arguments={"target": "review://"})
    (text,) = [block.text for block in result.content if isinstance(block, Text)]
    assert not result.is_error and "one" in text and "[problem: line 3: grade must be a whole number]" in text
    entries = (await told(house, "a", "review://"))["entries"]
    assert entries[1]["metadata"]["links"] == [{"uri": "https://example.com", "title": "x"}]


async def test_a_filter_by_a_name_that_is_none_is_refused_in_its_own_words(founded: Founded) -> None:
    house = await founded()
    for name in ("..", ".", "x" * 5000):
        with pytest.raises(InvalidParams, match=r"^The filter 'name' cannot be"):
            await ask(house, "a", "list", "sop://", arguments={"filter": {"name": name}})
