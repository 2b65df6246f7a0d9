"""F1: what a tool says of one address is in the caller's words; what it lists is as lists give it."""

from __future__ import annotations

import anyio
import pytest
from tests.tools.builtin.conftest import Serve

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F1", "T4")]

ABSOLUTE = 'sources: {work: {kind: file, roots: [./work], extensions: ["*"], write: true}}'


@pytest.mark.parametrize("prefix", ["file://", "file:///work/", "MACHINE"])
async def test_a_change_is_answered_in_the_words_in_which_it_was_asked_for(serve: Serve, prefix: str) -> None:
    tools = await serve(ABSOLUTE)
    prefix = f"file://{tools.root}/" if prefix == "MACHINE" else prefix
    one, two = f"{prefix}Docs/one.txt", f"{prefix}Docs/two.txt"
    told = [
        await tools("write", target=one, content="one\n"),
        await tools("edit", target=one, edits=[{"old": "one", "new": "1"}]),
        await tools("info", target=one),
        await tools("copy", target=one, to=two),
        await tools("move", target=two, to=f"{prefix}three.txt"),
        await tools("read", target=one, shape="resource"),
        await tools("delete", target=one),
    ]
    assert [(result.structured or {})["uri"] for result in told] == [one, one, one, two, f"{prefix}three.txt", one, one]


@pytest.mark.parametrize("lists", ["absolute", "relative"])
async def test_facts_of_a_file_of_a_later_root_are_told_in_the_words_of_the_question(serve: Serve, lists: str) -> None:
    tools = await serve(
        f"sources: {{work: {{kind: file, roots: [./work/one, ./work/two], uris: {lists}}}}}",
        {"one/a.md": "a", "two/a.md": "shadowed", "two/only2.md": "b"},
    )
    for uri in (
        "file:///two/only2.md",
        "file:///two/a.md",
        "file:///one/a.md",
        "file://only2.md",
        "file://a.md?root=2",
    ):
        assert (await tools.data("info", target=uri))["uri"] == uri


async def test_lists_searches_and_changes_give_absolute_addresses_that_are_read_back(serve: Serve) -> None:
    tools = await serve(ABSOLUTE, {"Docs/Read Me.md": "needle\n", "50%.txt": "needle\n"})
    uris = ["file:///work/50%25.txt", "file:///work/Docs/Read%20Me.md"]
    listed = (await tools.data("list", depth=0))["entries"]
    assert [one["uri"] for one in listed if one["type"] == "file"] == uris
    for query in ({"query": "needle", "kind": "content"}, {"query": "*", "kind": "names"}):
        assert [one["uri"] for one in (await tools.data("search", **query))["files"]] == uris
    for uri in uris:
        assert await tools.text("read", target=uri) == "needle\n"
    begun, heard = (await tools.data("changes"))["next"], anyio.Event()
    tools.octavo.feed.subscribe(lambda _: heard.set())
    await tools("write", target="Docs/New.txt", content="x")
    with anyio.fail_after(30):
        await heard.wait()
    for target in ("Docs", "file:///work/Docs", "file:///work/Docs/New.txt"):
        (told,) = (await tools.data("changes", target=target, after=begun))["changes"]
        assert (told["type"], told["uri"]) == ("resource/created", "file:///work/Docs/New.txt")
