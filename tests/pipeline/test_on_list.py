"""Listings: filtered by the policy, over one source or all (house.md, sections 2 and 6; A2, F6, B2)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.core.arguments import PLAIN
from octavo.core.clock import FrozenClock
from octavo.core.errors import InvalidParams, NotFound, OctavoError, RateLimited, SourceUnavailable, Timeout
from octavo.core.glob import Glob
from octavo.core.operations import arguments_of
from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.values import EVERYTHING, Call, Entry, Page, Principal, Trail
from octavo.pipeline.dispatch import Dispatch
from octavo.pipeline.mask import Mask
from octavo.pipeline.policy import on_list
from octavo.pipeline.policy.fold import Policy, Rule
from octavo.prompts.registry import PromptRegistry
from octavo.sources.memory import MemoryEntry, MemorySource
from octavo.tools.registry import ToolRegistry
from octavo.tools.schema import compile_schema

pytestmark = pytest.mark.anyio

BRAND = Principal("agent-brand")


def rule(*what: str, deny: bool = False) -> Rule:
    return Rule(("*",), None, tuple(map(Glob, what)), not deny)


class House:
    """Sources behind a policy and a mask; counts what reaches the sources."""

    def __init__(self, sources: Sequence[MemorySource], rules: Sequence[Rule] = (), *, page: int = 100) -> None:
        tools, prompts = ToolRegistry(), PromptRegistry(compile_schema)
        self.clock = FrozenClock()
        self.sources = {source.scheme: source for source in sources}
        self._desk = Dispatch(
            {**self.sources, "tool": tools, "prompt": prompts},
            tools=tools,
            prompts=prompts,
            exposed=list(self.sources),
        )
        self.policy = Policy(rules, self._desk, page=page, clock=self.clock)
        self._mask = Mask(max_bytes=1, timeout=10.0, page=page)
        self.down: dict[str, Exception] = {}
        self.asked: list[str] = []
        self.before: Any = None

    async def page(
        self,
        cursor: str | None = None,
        *,
        scope: Ref = EVERYTHING,
        limit: int = 100,
        wanted: Mapping[str, Any] | None = None,
        who: Principal = BRAND,
        timeout: float = 10.0,
    ) -> Page[Entry]:
        arguments = {"filter": wanted} if wanted is not None else {}
        call = Call(
            "list", scope, who, Trail(), str(scope), arguments_of("list", arguments), cursor, limit, timeout=timeout
        )
        page: Page[Entry] = await self.policy(call, self._next)
        return page

    async def walk(self, **asked: Any) -> list[Page[Entry]]:
        pages = [await self.page(**asked)]
        while pages[-1].cursor is not None:
            pages.append(await self.page(pages[-1].cursor, **asked))
        return pages

    async def _next(self, call: Call) -> Reply:
        self.asked.append(call.ref.scheme)
        if self.before is not None:
            await self.before(call)
        if call.ref.scheme in self.down:
            raise self.down[call.ref.scheme]
        return await self._mask(call, self._desk)


def names(pages: Page[Entry] | Sequence[Page[Entry]]) -> list[str]:
    several = [pages] if isinstance(pages, Page) else pages
    return [str(entry.ref) for page in several for entry in page.items]


def source(scheme: str, *paths: str) -> MemorySource:
    return MemorySource(scheme, dict.fromkeys(paths, ""), secret=b"k")


# -- everything once, page by page


@settings(max_examples=300)
@given(
    shape=st.lists(st.lists(st.booleans(), max_size=12), min_size=1, max_size=4),
    limit=st.integers(1, 7),
    scoped=st.booleans(),
)
@pytest.mark.seed("A2", "F6", "B2")
async def test_each_visible_entry_comes_exactly_once_and_pages_tell_nothing_of_the_others(
    shape: list[list[bool]], limit: int, scoped: bool
) -> None:
    """Against a naive reading: all entries, source by source, without the hidden ones, cut into full pages.

    Only the last page is shorter than asked, none is empty but a first one, and there is no cursor
    where nothing visible follows: so a listing looks as if the hidden entries were not there.
    """
    schemes = [f"s{number}" for number in range(len(shape))]
    sources = [
        source(scheme, *(f"{'open' if seen else 'hidden'}/{n:02}" if n % 2 else f"{n:02}{'' if seen else 'x'}"
                         for n, seen in enumerate(entries)))
        for scheme, entries in zip(schemes, shape, strict=True)
    ]  # fmt: skip
    house = House(sources, [rule("**"), rule("*://hidden/*", "*://*x", deny=True)])
    scope = Ref("s0") if scoped else EVERYTHING
    expected = [
        str(entry.ref)
        for one in sources[: 1 if scoped else None]
        for entry in (await one.list(Ref(one.scheme), cursor=None, limit=1000)).items
        if entry.ref.segments[0] != "hidden" and not entry.ref.name.endswith("x")
    ]
    pages = await house.walk(scope=scope, limit=limit)
    assert names(pages) == expected
    assert [len(page.items) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    assert len(pages) == max(1, -(-len(expected) // limit))


@pytest.mark.seed("A2", "F6")
async def test_sources_come_in_the_order_of_the_configuration() -> None:
    """house.md section 6: exposed sources in the order of the configuration, inside by segment tuple."""
    house = House([source("z", "b", "a"), source("a", "x/y", "x")])
    for limit in (1, 2, 3, 100):
        assert names(await house.walk(limit=limit)) == ["z://a", "z://b", "a://x", "a://x/y"]


@pytest.mark.seed("A2")
async def test_cursors_survive_inserts_and_deletes() -> None:
    """What is there all the time comes exactly once, whatever happens between two pages."""
    one = source("sop", *(f"n{number:02}" for number in range(10)), "hidden")
    house = House([one], [rule("**"), rule("sop://hidden", deny=True)])
    pages = [await house.page(limit=3)]
    await one.write(Ref.parse("sop://a-new"), "", if_match=None)  # before the place: not seen any more
    await one.delete(Ref.parse("sop://n02"), if_match=None)  # the last one that was given
    await one.write(Ref.parse("sop://n05x"), "", if_match=None)
    while pages[-1].cursor is not None:
        pages.append(await house.page(pages[-1].cursor, limit=3))
    kept = [f"sop://n{number:02}" for number in range(10)]
    assert sorted([*kept, "sop://n05x"]) == names(pages)


@pytest.mark.seed("A2")
@pytest.mark.parametrize("change", ["insert", "delete"])
async def test_a_change_between_two_looks_of_one_page_loses_and_doubles_nothing(change: str) -> None:
    """A page that is cut asks its source twice; the source may change in between."""
    one = source("sop", *(f"n{number}" for number in range(6)), "m-hidden")
    house = House([one], [rule("**"), rule("sop://m-hidden", deny=True)])
    asked = 0

    async def change_before_the_second(call: Call) -> None:
        nonlocal asked
        asked += 1
        if asked == 3 and change == "insert":
            await one.write(Ref.parse("sop://n0a"), "", if_match=None)
        if asked == 3 and change == "delete":
            await one.delete(Ref.parse("sop://n1"), if_match=None)

    house.before = change_before_the_second
    found = names(await house.walk(limit=2))
    there = ["n0", "n0a", "n1", "n2", "n3", "n4", "n5"] if change == "insert" else ["n0", "n2", "n3", "n4", "n5"]
    assert found == [f"sop://{name}" for name in there]


@pytest.mark.seed("B2")
async def test_a_page_stays_within_the_operators_ceiling_hidden_entries_or_not() -> None:
    """Else the size of a page would tell whether something in it was left out."""
    one = source("sop", *(f"n{number:02}" for number in range(20)))
    for rules in ([], [rule("sop://*")], [rule("sop://*"), rule("sop://n03", deny=True)]):
        pages = await House([one], rules, page=5).walk(limit=1000)
        assert [len(page.items) for page in pages] == [5, 5, 5, 4 if len(rules) == 2 else 5]


async def test_a_page_of_nothing_is_refused() -> None:
    """A limit below one has no next page."""
    with pytest.raises(InvalidParams):
        await House([source("sop", "a")]).page(limit=0)


@pytest.mark.parametrize(
    "cursor", ["", "x", "5", "null", "{}", "[]", '["sop"]', '["gone",null]', '["sop",5]', '["sop",null,1]', "[" * 5000]
)
async def test_a_cursor_that_is_not_of_this_listing_is_refused(cursor: str) -> None:
    """A source that a reload took away takes its cursors along; nonsense never crashes."""
    with pytest.raises(InvalidParams) as refused:
        await House([source("sop", "a")]).page(cursor)
    assert refused.value.data["reason"] == "invalid_cursor"


async def test_a_cursor_continues_in_a_new_order_of_the_sources() -> None:
    """A reload may add and move sources; the place is named by the source, not by a number."""
    before, after = (
        [source("a", "1", "2"), source("b", "1")],
        [source("new", "1"), source("b", "1"), source("a", "1", "2")],
    )
    cursor = (await House(before).page(limit=1)).cursor
    assert names(await House(after).page(cursor)) == ["a://2"]


# -- sources that are down


@pytest.mark.seed("O13", "F6")
@pytest.mark.parametrize("fault", [SourceUnavailable("x"), Timeout("x"), RateLimited(retry_after=1.0), NotFound("x")])
async def test_a_source_that_is_down_is_named_and_the_others_are_listed(fault: OctavoError) -> None:
    """house.md section 6: named in `_meta` and never fatal."""
    house = House([source("a", "1"), source("b", "1"), source("c", "1")])
    house.down["b"] = fault
    page = await house.page()
    assert (names(page), page.unavailable, page.cursor) == (["a://1", "c://1"], ("b",), None)
    paged = await house.walk(limit=1)
    assert names(paged) == ["a://1", "c://1"]
    assert {scheme for one in paged for scheme in one.unavailable} == {"b"}


@pytest.mark.seed("O13")
async def test_a_source_that_is_down_is_an_error_when_it_was_the_scope() -> None:
    """An empty page would say that there is nothing."""
    house = House([source("a", "1"), source("b", "1")])
    house.down["b"] = SourceUnavailable("connection refused", retry_after=3.0)
    with pytest.raises(SourceUnavailable, match=r"^Source unavailable: b$") as refused:
        await house.page(scope=Ref("b"))
    assert refused.value.retry_after == 3.0


async def test_all_sources_down_is_an_empty_page_that_says_so() -> None:
    """Nothing is left to list, and that is no error either."""
    house = House([source("a", "1"), source("b", "1")])
    house.down = {"a": SourceUnavailable("x"), "b": SourceUnavailable("x")}
    assert await house.page() == Page((), None, ("a", "b"))


@pytest.mark.seed("B2", "O14")
async def test_a_source_of_which_nothing_may_be_seen_is_neither_asked_nor_named() -> None:
    """That it is down would tell that it is there; and asking it costs."""
    house = House([source("secret", "1"), source("a", "1")], [rule("a://*")])
    house.down["secret"] = SourceUnavailable("x")
    assert (names(await house.page()), (await house.page()).unavailable) == (["a://1"], ())
    assert await house.page(scope=Ref("secret")) == Page(())
    assert set(house.asked) == {"a"}


# -- filters


CATALOG = {
    "a.md": MemoryEntry(body="", mime_type="text/markdown", metadata={"status": "active", "tags": ["x", "y"]}),
    "b.txt": MemoryEntry(body="", metadata={"status": "draft", "public": True}),
    "c.md": MemoryEntry(body="", mime_type="text/markdown", name="100% [ok]/two.md", metadata={"n": 3}),
    "d.md": MemoryEntry(body="", name=unicodedata.normalize("NFD", "정책.md"), metadata={"tags": ("z",)}),
}


@pytest.mark.seed("A11", "O2", "O4")
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, "abcd"),
        ({"mimeType": "text/markdown"}, "ac"),
        ({"mimeType": "text/*"}, "abcd"),
        ({"mimeType": "*"}, "abcd"),
        ({"mimeType": "image/*"}, ""),
        ({"name": "*.md"}, "acd"),
        ({"name": "a.md"}, "a"),
        ({"name": "A.md"}, ""),
        ({"name": "100% [ok]/two.md"}, "c"),
        ({"name": "100%*two*"}, "c"),
        ({"name": "정책*"}, "d"),
        ({"name": "**"}, "abcd"),
        ({"status": "active"}, "a"),
        ({"status": ["active", "draft"]}, "ab"),
        ({"tags": "y"}, "a"),
        ({"tags": "z"}, "d"),
        ({"tags": ["y", "z"]}, "ad"),
        ({"public": True}, "b"),
        ({"public": "true"}, "b"),
        ({"n": "3"}, "c"),
        ({"n": 3}, "c"),
        ({"status": "active", "mimeType": "text/plain"}, ""),
        ({"status": "active", "name": "a*"}, "a"),
    ],
)
async def test_filters_by_media_type_name_and_metadata(wanted: dict[str, Any], found: str) -> None:
    """A11: list, then filter; all conditions hold at once, lists mean one of them."""
    house = House([MemorySource("sop", CATALOG)])
    for limit in (1, 2, 100):
        assert [entry.ref.name[0] for page in await house.walk(wanted=wanted, limit=limit) for entry in page.items] == [
            *found
        ]


@pytest.mark.parametrize("wanted", [{"name": 3}, {"mimeType": ["text/plain"]}, {"name": None}, {"name": ""}])
async def test_a_filter_that_is_no_text_is_refused(wanted: dict[str, Any]) -> None:
    """Better than a list that is silently empty."""
    with pytest.raises(InvalidParams):
        await House([source("sop", "a")]).page(wanted=wanted)


@pytest.mark.seed("A11", "B2")
async def test_filtered_pages_are_full_and_know_their_end() -> None:
    """The same promise as for hidden entries."""
    entries = {f"n{n:02}": MemoryEntry(body="", metadata={"even": n % 2 == 0}) for n in range(20)}
    pages = await House([MemorySource("sop", entries)]).walk(limit=4, wanted={"even": True})
    assert [len(page.items) for page in pages] == [4, 4, 2]
    pages = await House([MemorySource("sop", entries)]).walk(limit=5, wanted={"even": True})
    assert [len(page.items) for page in pages] == [5, 5]


# -- cost


async def test_one_whole_page_is_one_look_and_carries_its_encoded_form() -> None:
    """The common case: the memo of the source's page goes on, so that its bytes are made once."""
    house = House([source("sop", *"abcdef")])
    given: list[Page[Entry]] = []

    async def remembering(call: Call) -> Reply:
        given.append(await house.sources["sop"].list(call.ref, cursor=call.cursor, limit=call.limit))
        return given[-1]

    call = Call("list", EVERYTHING, BRAND, Trail(), "", PLAIN, None, 3)
    for rules in ([], [rule("sop://*")], [rule("sop://*"), rule("doc://*", deny=True)]):
        given.clear()
        page = await Policy(rules, house._desk)(call, remembering)  # pyright: ignore[reportPrivateUsage]
        assert (len(given), page.memo is given[0].memo) == (1, True)


async def test_verdicts_kept_with_a_page_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page in the cache is seen by many principals; what it remembers of them must not grow for ever."""
    monkeypatch.setattr(on_list, "VERDICTS", 5)
    house = House([source("sop", "a")], [rule("sop://a")])
    page = Page((await house.sources["sop"].stat(Ref.parse("sop://a")),))

    async def cached(call: Call) -> Reply:
        return page

    for number in range(50):
        call = Call("list", EVERYTHING, Principal(f"agent-{number}"), Trail(), "")
        assert names(await house.policy(call, cached)) == ["sop://a"]
    assert len(page.memo) <= 5


@pytest.mark.seed("A5")
async def test_a_listing_that_finds_little_ends_when_the_callers_time_is_up() -> None:
    """Filling up a page must not scan for ever; the page ends early, with the place to continue."""
    house = House([source("sop", *(f"n{number:02}" for number in range(50)))], [rule("sop://n4*")])

    async def slow(call: Call) -> None:
        house.clock.advance(1.0)

    house.before = slow
    page = await house.page(limit=2, timeout=3.0)
    assert (page.items, page.cursor is not None, len(house.asked)) == ((), True, 4)
    house.clock.advance(100.0)
    assert names(await house.walk(limit=2, timeout=3.0)) == [f"sop://n4{number}" for number in range(10)]


async def test_a_listing_on_the_hot_way_never_suspends() -> None:
    """Driven without a task, as the hot lane does."""
    house = House([source("sop", *"abc")], [rule("**"), rule("sop://b", deny=True)])
    work: Any = house.page(limit=1)
    with pytest.raises(StopIteration) as done:
        work.send(None)
    assert names(done.value.value) == ["sop://a"]
