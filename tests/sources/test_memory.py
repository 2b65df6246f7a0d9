"""The memory source: the contract, and what only it does."""

from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError, TooLarge
from octavo.core.ports.source import abilities
from octavo.core.ref import Ref
from octavo.core.values import Template
from octavo.sources.memory import MemoryEntry, MemorySource, TemplateBody
from octavo.testing import FrozenClock, SourceSuite

pytestmark = pytest.mark.anyio
DATA = '{"id":"{id}","data":"Data for ID: {id}"}'


class TestMemorySource(SourceSuite):
    """No FaultSuite beside it: nothing stands behind this source that could fail."""

    secrets = ("correct horse battery staple",)

    @pytest.fixture
    def source(self) -> MemorySource:
        return MemorySource("test", self.TREE, secret=self.secrets[0].encode(), clock=FrozenClock())


class TestMemorySourceWithTemplates(SourceSuite):
    """Templates stand beside the entries: they are never listed and take nothing away."""

    @pytest.fixture
    def source(self) -> MemorySource:
        return MemorySource("test", self.TREE, templates={"template/{id}/data": "about {id}"})


def templated(**changes: Any) -> MemorySource:
    body = replace(TemplateBody(text=DATA, mime_type="application/json"), **changes)
    return MemorySource("test", {"template/fixed/data": "declared"}, templates={"template/{id}/data": body})


async def body_of(source: MemorySource, uri: str) -> str | bytes:
    return (await source.read(Ref.parse(uri), max_bytes=1 << 20)).body


def test_it_has_every_ability_but_a_second_spelling() -> None:
    assert abilities(MemorySource("test", {})) == {"watch", "write", "complete", "stamp", "template"}


@pytest.mark.seed("A13")
async def test_an_entry_shows_what_was_declared_of_it() -> None:
    declared = MemoryEntry(
        body=b"\x89PNG",
        name="static-binary",
        title="A picture",
        description="Four bytes",
        mime_type="image/png",
        annotations={"priority": 0.5},
        metadata={"owner": "brand"},
    )
    source = MemorySource("test", {"static-binary": declared, "plain": "text", "raw": b"\x00"})
    entry = await source.stat(Ref.parse("test://static-binary"))
    assert (entry.name, entry.title, entry.description) == ("static-binary", "A picture", "Four bytes")
    assert (entry.mime_type, entry.size, entry.annotations, entry.metadata) == (
        "image/png", 4, {"priority": 0.5}, {"owner": "brand"},
    )  # fmt: skip
    assert (await source.read(entry.ref, max_bytes=4)).body == b"\x89PNG"
    plain, raw = [await source.stat(Ref.parse(f"test://{name}")) for name in ("plain", "raw")]
    assert (plain.name, plain.mime_type, raw.mime_type) == ("plain", "text/plain", "application/octet-stream")


async def test_what_was_declared_of_an_entry_outlives_a_write() -> None:
    source = MemorySource(
        "test", {"a": MemoryEntry(body="one", name="A", mime_type="text/markdown")}, clock=FrozenClock()
    )
    entry = await source.write(Ref.parse("test://a"), "two", if_match=None)
    assert (entry.name, entry.mime_type, entry.modified) == ("A", "text/markdown", FrozenClock().wall())


@pytest.mark.seed("A3")
async def test_a_template_answers_with_its_variable_filled_in_and_is_not_listed() -> None:
    source = templated()
    content = await source.read(Ref.parse("test://template/123/data"), max_bytes=1 << 20)
    assert content.body == '{"id":"123","data":"Data for ID: 123"}'
    assert content.entry == await source.stat(Ref.parse("test://template/123/data"))
    assert content.entry.mime_type == "application/json"
    page = await source.list(Ref("test"), cursor=None, limit=10)
    assert [str(entry.ref) for entry in page.items] == ["test://template/fixed/data"]


async def test_an_entry_comes_before_a_template_that_would_match_it() -> None:
    assert await body_of(templated(), "test://template/fixed/data") == "declared"


async def test_the_values_of_a_template_are_data() -> None:
    """A value is neither a template again nor a way out of its JSON string."""
    assert await body_of(templated(text="{id}", mime_type="text/plain"), "test://template/%7Bid%7D/data") == "{id}"
    text = await body_of(templated(), "test://template/x%22,%22admin%22:%22/data")
    assert text == '{"id":"x\\",\\"admin\\":\\"","data":"Data for ID: x\\",\\"admin\\":\\""}'


async def test_a_variable_can_be_a_part_of_a_segment_and_is_never_empty() -> None:
    source = MemorySource("test", {}, templates={"logs/{date}.log": "log of {date}, not {other}"})
    assert await body_of(source, "test://logs/2025-01-01.log") == "log of 2025-01-01, not {other}"
    for uri in ("test://logs/.log", "test://logs/x", "test://logs/x.log/y", "test://other/x.log"):
        with pytest.raises(NotFound):
            await source.stat(Ref.parse(uri))


async def test_a_template_is_too_large_when_what_it_answers_is() -> None:
    with pytest.raises(TooLarge):
        await templated().read(Ref.parse("test://template/12345/data"), max_bytes=len(DATA))


@pytest.mark.seed("A3")
def test_a_template_describes_its_variables() -> None:
    source = MemorySource(
        "test",
        {},
        templates={
            "a b/{id}": TemplateBody(
                text="{id}", name="By id", description="One", values={"id": ["1", "2"]}, about={"id": "Number"}
            )
        },
    )
    assert source.templates() == (
        Template(
            uri_template="test://a%20b/{id}",
            name="By id",
            description="One",
            mime_type="text/plain",
            parameters={
                "type": "object",
                "properties": {"id": {"type": "string", "description": "Number", "examples": ["1", "2"]}},
                "required": ["id"],
            },
        ),
    )


async def test_completion_gives_declared_values_and_listed_paths() -> None:
    body = TemplateBody(text="{id}", values={"id": ["가나", "12", "123"]})
    source = MemorySource("test", {"a/x": "", "a/y": "", "b": ""}, templates={"t/{id}": body, "u/{id}/x": body})
    assert await source.complete("id", "1", {}) == ("12", "123")
    assert await source.complete("id", "\u1100\u1161", {}) == ("가나",)  # typed in decomposed form
    assert await source.complete("path", "a/", {}) == ("a/x", "a/y")
    assert await source.complete("other", "", {}) == ()


@pytest.mark.parametrize("path", ["t/{a}{b}", "t/{a}/{a}", "t/{", "t/{a}}", "t/fixed", "t//{a}", "t/{a", "t/{1}"])
def test_a_template_that_would_be_ambiguous_is_refused(path: str) -> None:
    with pytest.raises(InvalidParams):
        MemorySource("test", {}, templates={path: "x"})


def test_values_for_a_variable_that_is_not_there_are_refused() -> None:
    with pytest.raises(InvalidParams, match="b"):
        MemorySource("test", {}, templates={"t/{a}": TemplateBody(text="", values={"b": ["1"]})})


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "a/../b", "./a", "a\\b", "a\x00"])
def test_a_path_that_can_be_no_address_is_refused(path: str) -> None:
    with pytest.raises((InvalidParams, Forbidden)):
        MemorySource("test", {path: "x"})


def test_two_spellings_of_one_path_are_refused() -> None:
    with pytest.raises(InvalidParams, match="twice"):
        MemorySource("test", {"\u00e9": "", "e\u0301": ""})


def test_a_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(InvalidParams):
        MemorySource("test", {"a": "\ud800"})


async def test_a_read_only_source_refuses_writes() -> None:
    source = MemorySource("test", {"a": "x"}, writable=False)
    with pytest.raises(Forbidden):
        await source.write(Ref.parse("test://a"), "y", if_match=None)
    with pytest.raises(Forbidden):
        await source.delete(Ref.parse("test://a"), if_match=None)
    assert await body_of(source, "test://a") == "x"


async def test_parameters_are_refused_everywhere() -> None:
    source, ref = MemorySource("test", {"a": "x"}), Ref.parse("test://a?view=x")
    for work in (
        source.list(ref, cursor=None, limit=1),
        source.stat(ref),
        source.read(ref, max_bytes=9),
        source.write(ref, "y", if_match=None),
        source.delete(ref, if_match=None),
    ):
        with pytest.raises(InvalidParams):
            await work


async def test_versions_last_beyond_the_process_only_with_a_secret() -> None:
    ref = Ref.parse("test://a")
    kept = [(await MemorySource("test", {"a": "x"}, secret=b"s").stat(ref)).version for _ in range(2)]
    fresh = [(await MemorySource("test", {"a": "x"}).stat(ref)).version for _ in range(2)]
    assert kept[0] == kept[1]
    assert len({*kept, *fresh}) == 3


async def test_a_text_that_comes_back_has_a_new_version_and_its_old_etag() -> None:
    source, ref = MemorySource("test", {"a": "x"}), Ref.parse("test://a")
    first = await source.read(ref, max_bytes=9)
    await source.write(ref, "y", if_match=None)
    await source.write(ref, "x", if_match=None)
    again = await source.read(ref, max_bytes=9)
    assert (again.entry.version == first.entry.version, again.etag == first.etag) == (False, True)


async def test_a_change_carries_what_was_and_what_is() -> None:
    clock = FrozenClock()
    source, ref = MemorySource("test", {"a": "x"}, clock=clock), Ref.parse("test://a")
    before = await source.stat(ref)
    changes = source.watch(Ref("test"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writes_later, source, ref)
        with anyio.fail_after(30):
            change = await anext(changes)
    assert (change.kind, change.ref, change.at, change.old) == ("updated", ref, clock.wall(), before)
    assert change.new == await source.stat(ref)
    assert change.changes["size"] == [1, 2]
    await changes.aclose()  # type: ignore[attr-defined]
    assert source._watchers == {}, "a watch that ended is forgotten"


async def writes_later(source: MemorySource, ref: Ref) -> None:
    await anyio.lowlevel.checkpoint()
    await source.write(ref, "xy", if_match=None)


async def test_listing_a_leaf_gives_that_leaf() -> None:
    source = MemorySource("test", {"a": "", "a/b": "", "ab": ""})
    page = await source.list(Ref.parse("test://a"), cursor=None, limit=10)
    assert [entry.ref.path for entry in page.items] == ["a", "a/b"]


async def test_a_cursor_from_before_the_scope_begins_at_the_scope() -> None:
    source = MemorySource("test", {"a": "", "b": "", "c/x": ""})
    cursor = (await source.list(Ref("test"), cursor=None, limit=1)).cursor
    page = await source.list(Ref.parse("test://c"), cursor=cursor, limit=10)
    assert [entry.ref.path for entry in page.items] == ["c/x"]


async def test_a_foreign_address_is_not_found_and_lists_nothing() -> None:
    source = MemorySource("file", {"a": "x"})
    for uri in ("other://a", "file:///a"):
        ref = Ref.parse(uri)
        assert (await source.list(ref, cursor=None, limit=1)).items == ()
        for work in (source.stat(ref), source.write(ref, "y", if_match=None)):
            with pytest.raises(OctavoError, match=f"Resource not found: {uri}"):
                await work
