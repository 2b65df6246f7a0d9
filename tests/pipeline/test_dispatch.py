"""The end of the pipeline: from a call to the source of its scheme, with the operator's words on top (A13)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import Forbidden, InvalidParams
from octavo.core.operations import arguments_of
from octavo.core.ports.chain import Reply
from octavo.core.ports.source import Source
from octavo.core.ref import Ref
from octavo.core.values import Call, Content, Entry, Op, Page, Principal, Template, Trail
from octavo.pipeline.dispatch import UNSTAMPED, Dispatch
from octavo.prompts.registry import PromptRegistry
from octavo.sources.file.addresses import FileRoot
from octavo.sources.file.source import FileSource
from octavo.sources.memory import MemoryEntry, MemorySource
from octavo.tools.registry import ToolRegistry
from octavo.tools.schema import compile_schema

pytestmark = pytest.mark.anyio


def dispatch(*sources: Source, exposed: list[str] | None = None, **more: Any) -> Dispatch:
    tools, prompts = ToolRegistry(), PromptRegistry(compile_schema)
    served: dict[str, Any] = {source.scheme: source for source in sources}
    shown = [source.scheme for source in sources] if exposed is None else exposed
    return Dispatch({**served, "tool": tools, "prompt": prompts}, tools=tools, prompts=prompts, exposed=shown, **more)


async def ask(at: Dispatch, op: Op, uri: str, *, arguments: dict[str, Any] | None = None, **more: Any) -> Reply:
    given = arguments_of(op, arguments or {})
    return await at(Call(op, Ref.parse(uri), Principal("local"), Trail(), uri, given, **more))


SOP = {"a": MemoryEntry(body="text", name="A", description="as told", annotations={"x": 1}), "b": "other"}


@pytest.mark.seed("A2")
async def test_a_call_goes_to_the_source_of_its_scheme_with_its_limits() -> None:
    """Scope, cursor, page size and size limit reach the source as they are."""
    at = dispatch(MemorySource("sop", SOP), MemorySource("doc", {"a": "doc"}))
    assert (await ask(at, "read", "doc://a")).body == "doc"
    assert (await ask(at, "stat", "sop://a")).name == "A"
    page: Page[Entry] = await ask(at, "list", "sop://", limit=1)
    assert [entry.name for entry in page.items] == ["A"]
    following: Page[Entry] = await ask(at, "list", "sop://", limit=1, cursor=page.cursor)
    assert [entry.name for entry in following.items] == ["b"]


@pytest.mark.seed("F8")
@pytest.mark.parametrize("op", ["read", "stat", "list", "complete"])
async def test_a_scheme_that_nobody_serves_is_a_wrong_parameter(op: Op) -> None:
    """F8: InvalidParams is for an unknown scheme."""
    with pytest.raises(InvalidParams, match="No source serves nosuch:// here; the list of resources tells"):
        given = {"argument": "", "prefix": "", "given": {}} if op == "complete" else {}
        await ask(dispatch(), op, "nosuch://x", arguments=given)


@pytest.mark.parametrize("op", ["search", "edit", "move", "undo"])
async def test_what_a_source_cannot_do_is_said(op: Op) -> None:
    """An operation that is not there is no crash."""
    with pytest.raises(InvalidParams, match=f"cannot {op}"):
        await ask(dispatch(MemorySource("sop", SOP), writable=["sop"]), op, "sop://a")


@pytest.mark.seed("A8")
@pytest.mark.parametrize("op", ["write", "edit", "delete", "move", "copy", "make", "undo"])
async def test_nothing_is_changed_that_the_operator_did_not_open(op: Op) -> None:
    """What a source is able to do is not what it may do."""
    with pytest.raises(Forbidden, match="read-only"):
        await ask(dispatch(MemorySource("sop", SOP)), op, "sop://a", arguments={"body": "x"} if op == "write" else {})


WORDS = Entry(
    ref=Ref.parse("sop://a"), name="Named", description="Described", mime_type="text/markdown", annotations={"y": 2}
)


@pytest.mark.seed("A13")
async def test_the_operators_words_are_laid_over_entries_wherever_they_show() -> None:
    """A13: name, description, mimeType, annotations for any source; in lists, stats and reads alike."""
    at = dispatch(MemorySource("sop", SOP), described={WORDS.ref: WORDS})
    stat: Entry = await ask(at, "stat", "sop://a")
    read: Content = await ask(at, "read", "sop://a")
    page: Page[Entry] = await ask(at, "list", "sop://")
    assert read.entry == stat == page.items[0]
    assert (stat.name, stat.description, stat.mime_type, stat.annotations) == (
        "Named",
        "Described",
        "text/markdown",
        {"y": 2},
    )
    assert (read.body, page.items[1].name) == ("text", "b")


@pytest.mark.seed("A13")
async def test_what_the_operator_does_not_say_stays_as_the_source_tells_it() -> None:
    """An empty word is no word."""
    said = Entry(ref=Ref.parse("sop://a"), name="", mime_type="", description="Described")
    entry: Entry = await ask(dispatch(MemorySource("sop", SOP), described={said.ref: said}), "stat", "sop://a")
    assert (entry.name, entry.description, entry.mime_type, entry.annotations) == (
        "A",
        "Described",
        "text/plain",
        {"x": 1},
    )


@pytest.mark.seed("A13")
async def test_a_described_reply_does_not_share_the_memo_of_the_plain_one() -> None:
    """A memo holds encoded bytes; those of the source's own words must not go out under the operator's."""
    plain = Content(entry=Entry(ref=Ref.parse("sop://a"), name="A"), body="text", memo={"wire": b"old"})
    listed = Page((plain.entry,), memo={"wire": b"old"})

    class Remembers(MemorySource):
        async def read(self, ref: Ref, *, max_bytes: int) -> Content:
            return plain

        async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
            return listed

    at = dispatch(Remembers("sop", {}), described={WORDS.ref: WORDS})
    assert "wire" not in (await ask(at, "read", "sop://a")).memo
    assert "wire" not in (await ask(at, "list", "sop://")).memo


@pytest.mark.seed("A13", "F1")
@pytest.mark.parametrize("uris", ["relative", "absolute"])
@pytest.mark.parametrize("spelling", ["file://a.md", "file://{root}/a.md"])
async def test_words_hold_for_both_spellings_of_a_file(tmp_path: Path, uris: Any, spelling: str) -> None:
    """F1: one resource, two spellings; `uris: absolute` changes what lists show and nothing else."""
    (tmp_path / "a.md").write_text("text", encoding="utf-8")
    ref = Ref.parse(spelling.format(root=tmp_path))
    source = FileSource([FileRoot(tmp_path)], secret=b"k", uris=uris)
    async with source:
        at = dispatch(source, described={ref: Entry(ref=ref, name="Named", mime_type="")})
        page: Page[Entry] = await ask(at, "list", "file://")
        assert [entry.name for entry in page.items] == ["Named"]
        assert (await ask(at, "read", "file://a.md")).entry.name == "Named"


async def test_words_about_a_file_outside_every_root_are_refused_at_once(tmp_path: Path) -> None:
    """Better at start-up than never."""
    ref = Ref.parse("file:///etc/passwd")
    with pytest.raises(Forbidden):
        dispatch(FileSource([FileRoot(tmp_path)], secret=b"k"), described={ref: Entry(ref=ref, name="x")})


@pytest.mark.seed("A3")
async def test_templates_come_from_the_operator_and_from_exposed_sources_only() -> None:
    """A store without addresses offers no families of them either."""
    own = Template(uri_template="sop://{x}", name="own")
    shown = MemorySource("sop", {}, templates={"s/{id}": ""})
    store = MemorySource("store", {}, templates={"t/{id}": ""})
    at = dispatch(shown, store, exposed=["sop"], templates=[own])
    offered = await at(Call("templates", Ref("*"), Principal("local"), Trail()))
    assert [template.uri_template for template in offered] == ["sop://{x}", "sop://s/{id}"]


class Plain:
    """A source with nothing but the contract."""

    scheme = "plain"

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        return Page(())

    async def stat(self, ref: Ref) -> Entry:
        return Entry(ref=ref, name=ref.name)

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        return Content(entry=await self.stat(ref), body="")


@pytest.mark.seed("O11")
async def test_a_source_without_stamps_can_be_kept_and_one_that_gives_none_cannot() -> None:
    """TTL and feed bound the first; the second says itself that a reply must not be used again."""

    class Unsure(Plain):
        scheme = "unsure"

        def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
            return None

    at = dispatch(Plain(), Unsure(), MemorySource("sop", SOP))
    assert at.stamp(Ref.parse("plain://x"), "read") == UNSTAMPED
    assert at.stamp(Ref.parse("unsure://x"), "read") is None
    assert at.stamp(Ref.parse("sop://a"), "read") == at.stamp(Ref.parse("sop://a"), "stat") != UNSTAMPED


async def test_a_source_without_the_ability_completes_nothing_and_spells_one_way() -> None:
    """Abilities are found by looking at the methods that are there."""
    at = dispatch(Plain())
    asked = {"argument": "path", "prefix": "", "given": {}}
    assert await ask(at, "complete", "plain://", arguments=asked) == ()
    ref = Ref.parse("plain://x")
    assert at.canonical(ref) == at.spelled(ref) == ref
    assert at.spelled(Ref.parse("nosuch://x")) == Ref.parse("nosuch://x")
