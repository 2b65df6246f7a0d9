"""The changes in the journal: readers go on by number after a restart and from another process (B3, O10, A4)."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest
from msgspec.structs import replace
from tests.feed.reading import since
from tests.feed.recorder import numbered

from octavo.core.clock import FrozenClock
from octavo.core.errors import SourceUnavailable
from octavo.core.ports.stores import STORE_FILE as NAME
from octavo.core.ref import Ref
from octavo.core.values import Change, ChangeKind, Entry
from octavo.feed.journal import PAGE, ChangeJournal
from octavo.pipeline.policy.conditions import Metadata
from octavo.stores.memory import MemoryStore
from octavo.stores.sqlite import SQLiteStore

pytestmark = [pytest.mark.anyio, pytest.mark.seed("B3", "O10")]

Opened: TypeAlias = MemoryStore | SQLiteStore
SECRET = "sk-correct-horse-battery"


def change(name: str, version: str = "1", kind: ChangeKind = "updated", **known: Any) -> Change:
    ref = Ref("note", (name,))
    entry = Entry(ref=ref, name=name, version=version, **known)
    gone = kind == "deleted"
    return Change(kind=kind, ref=ref, at=1.0, old=entry if gone else None, new=None if gone else entry)


def over(store: Opened, **options: Any) -> ChangeJournal:
    """As another process on the state would have it."""

    async def opened() -> Opened:
        return store

    return ChangeJournal(opened, **options)


def told(changes: list[Change] | None) -> list[str]:
    assert changes is not None, "a gap"
    return [f"{one.kind} {one.ref.path} {'' if one.new is None else one.new.version}".strip() for one in changes]


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FrozenClock) -> AsyncIterator[Opened]:
    made = MemoryStore(clock=clock) if request.param == "memory" else SQLiteStore(tmp_path, clock=clock)
    async with made as opened:
        yield opened


# -- going on by number


async def test_a_reader_goes_on_where_it_was_in_another_process(store: Opened) -> None:
    first = over(store)
    await first.record([change("a")])
    number = await first.mark()
    await first.record([change("b"), change("c")])
    later = await since(over(store), number)
    assert told(later) == ["updated b 1", "updated c 1"]
    assert later is not None and number < later[0].seq < later[1].seq
    assert told(await since(over(store), later[0].seq)) == ["updated c 1"]
    assert await since(over(store), await first.mark()) == []


async def test_a_change_is_told_as_it_was_with_what_differs(store: Opened) -> None:
    journal = over(store)
    number = await journal.mark()
    ref, there = Ref("file", ("docs", "한글.md"), (("root", "2"),)), Ref("file", ("x.md",))
    old = Entry(ref=ref, name="a", version="1", size=3, metadata={"owner": "kim"}, target=there, etag="e")
    new = replace(old, version="2", size=4, metadata={"owner": "lee", "tags": ["x", "y"]}, quoted=True, title="T")
    wanted = Change(kind="renamed", ref=ref, source=there, at=2.5, old=old, new=new, unmoved=(there,))
    await journal.record([wanted])
    (found,) = await since(journal, number) or ()
    assert replace(found, seq=0) == wanted and found.changes == wanted.changes
    assert found.new is not None and (found.new.title, found.new.etag) == ("T", "e")


async def test_more_than_one_page_is_read_in_order(store: Opened) -> None:
    journal = over(store)
    number = await journal.mark()
    for part in range(3):
        await journal.record([change("n", str(part * PAGE + place)) for place in range(PAGE)])
    found = await since(journal, number) or []
    assert [one.new.version for one in found if one.new is not None] == [str(place) for place in range(3 * PAGE)]


async def test_a_clock_that_goes_back_makes_no_number_smaller(store: Opened, clock: FrozenClock) -> None:
    journal = over(store)
    await journal.record([change("a")])
    number = await journal.mark()
    clock.advance(-86_400.0)
    assert await journal.mark() > number
    await journal.record([change("b")])
    assert told(await since(over(store), number)) == ["updated b 1"]


@pytest.mark.parametrize("number", [-1, 0, 2**63, 2**70, 10**399, -(10**399)], ids=lambda one: f"{one:x}"[:9])
async def test_a_number_that_was_never_given_is_a_gap(store: Opened, number: int) -> None:
    journal = over(store)
    await journal.record([change("a")])
    assert await since(journal, number) is None


async def test_what_is_dropped_by_count_or_by_age_is_a_gap_and_the_rest_is_told(
    store: Opened, clock: FrozenClock
) -> None:
    journal = over(store, keep=2, age=60.0)
    before = await journal.mark()
    await journal.record([change("a"), change("b"), change("c")])
    await journal.tidy()
    assert await since(over(store), before) is None
    found = await journal.latest(before, {"note": ""}, most=10)
    assert told([*found]) == ["updated b 1", "updated c 1"], "whoever asks for the latest has missed nothing"
    latest = await journal.mark()
    clock.advance(30.0)
    await journal.record([change("d")])
    clock.advance(31.0)
    assert told(await since(journal, latest)) == ["updated d 1"]
    await journal.tidy()
    assert told(await since(journal, latest)) == ["updated d 1"], "c was too old, d is not"
    clock.advance(30.0)
    await journal.trim()
    assert await since(journal, latest) is None


# -- what is stored


async def test_what_a_source_tells_together_is_stored_together_or_not_at_all(store: Opened) -> None:
    def broken(one: Change) -> Change:
        if one.ref.path == "b":
            raise RuntimeError("the rules")
        return one

    journal = over(store)
    number = await journal.mark()
    journal.redact = broken
    with pytest.raises(RuntimeError):
        await journal.record([change("a"), change("b")])
    assert await since(journal, number) == []
    await over(store).record([change("a"), change("b")])
    assert told(await since(journal, number)) == ["updated a 1", "updated b 1"], "nothing was known of them"


async def test_two_processes_that_see_a_change_store_it_once(store: Opened) -> None:
    one, other = over(store), over(store)
    number = await one.mark()
    moved = replace(change("c", "2"), kind="renamed", source=Ref("note", ("a",)))
    for seen in (change("a"), change("a", "2"), change("b", kind="created"), change("b", kind="deleted"), moved):
        await one.record([seen])
        await other.record([seen])
    await asyncio.gather(*(each.record([change("d")]) for each in (one, other, one, other)))
    found = told(await since(one, number))
    assert found[:5] == ["updated a 1", "updated a 2", "created b 1", "deleted b", "renamed c 2"]
    assert 1 <= found.count("updated d 1") <= 4 and len(set(found)) == 6


async def test_a_process_that_is_slower_repeats_nothing(store: Opened, clock: FrozenClock) -> None:
    quick, slow = over(store, clock=clock), over(store, clock=clock)
    number = await quick.mark()
    seen = [change("a", "1", "created"), change("a", "2"), change("a", kind="deleted"), change("b", "1", "created"),
            replace(change("c"), kind="renamed", source=Ref("note", ("b",))), change("a", "3", "created")]  # fmt: skip
    await quick.record(seen)
    for one in seen:
        await slow.record([one])
    clock.advance(60.0)
    assert await slow.late() is None
    wanted = ["created a 1", "updated a 2", "deleted a", "created b 1", "renamed c 1", "created a 3"]
    assert told(await since(quick, number)) == wanted


async def test_of_a_move_of_which_another_has_told_one_end_the_other_end_is_told(store: Opened) -> None:
    one, other = over(store), over(store)
    number = await one.mark()
    await one.record([change("a"), change("b")])
    for journal, seen in (
        (one, change("a", kind="deleted")),
        (other, replace(change("c", "2"), kind="renamed", source=Ref("note", ("a",)))),
        (one, change("d", "2", "created")),
        (other, replace(change("d", "2"), kind="renamed", source=Ref("note", ("b",)))),
    ):
        await journal.record([seen])
    wanted = ["updated a 1", "updated b 1", "deleted a", "created c 2", "created d 2", "deleted b"]
    assert told(await since(one, number)) == wanted


async def test_what_only_one_process_sees_is_told_though_it_looks_like_what_another_told_before(
    store: Opened, clock: FrozenClock
) -> None:
    """The other one was killed when the file was there again, and it is gone once more."""
    killed, stays = over(store, clock=clock), over(store, clock=clock)
    number = await stays.mark()
    await killed.record([change("a", kind="deleted"), change("a", "2", "created")])
    await stays.record([change("a", kind="deleted")])
    wait = await stays.late()
    assert wait is not None and told(await since(stays, number)) == ["deleted a", "created a 2"]
    clock.advance(wait)
    assert await stays.late() is None
    assert told(await since(stays, number)) == ["deleted a", "created a 2", "deleted a"]


@pytest.mark.seed("A4")
async def test_what_was_stored_though_its_answer_was_lost_is_not_stored_again(store: Opened) -> None:
    journal = over(store)
    number = await journal.mark()
    together = [change("a"), change("b")]
    await journal.record(together, turn=1)
    again = await journal.record(together, turn=1, again=True)
    assert again.done == 2
    await journal.record([change("a"), change("c")], turn=2)
    assert told(await since(journal, number)) == ["updated a 1", "updated b 1", "updated a 1", "updated c 1"]


async def test_a_version_that_comes_back_is_news_when_something_was_between(store: Opened) -> None:
    one, other = over(store), over(store)
    number = await one.mark()
    for journal, seen in ((one, change("a")), (other, change("a", kind="deleted")), (one, change("a"))):
        await journal.record([seen])
    assert told(await since(one, number)) == ["updated a 1", "deleted a", "updated a 1"]


async def test_what_one_process_tells_twice_is_never_left_out(store: Opened) -> None:
    """A catalog tells of a document whose links mean something else now: its version is what it was."""
    journal = over(store)
    number = await journal.mark()
    await journal.record([change("a", title="one")])
    await journal.record([change("a", title="two")])
    await over(store).record([change("b", version="")])
    await journal.record([change("b", version="")])
    assert len(await since(journal, number) or ()) == 4, "and without a version nobody can say"


async def test_nothing_rests_that_is_redacted(tmp_path: Path) -> None:
    def redacted(one: Change) -> Change:
        return replace(one, new=None if one.new is None else replace(one.new, metadata={"key": "[redacted]"}))

    folder = anyio.Path(tmp_path)
    async with SQLiteStore(tmp_path) as store:
        journal = over(store, redact=redacted)
        number = await journal.mark()
        await journal.record([change("a", metadata={"key": SECRET})])
        (found,) = await since(journal, number) or ()
        assert found.new is not None and found.new.metadata == {"key": "[redacted]"}
        assert not [file async for file in folder.iterdir() if SECRET.encode() in await file.read_bytes()]


@pytest.mark.parametrize(
    "value",
    [date(2026, 1, 2), datetime(2026, 1, 2, 3, tzinfo=UTC), True, 7, 2**80, 1.5, math.nan, b"x", "Kim ", ["a", "Kim"],
     ("kim",), {"kim"}, {"kim": 1}, None, "\ud800"],
    ids=repr,
)  # fmt: skip
async def test_a_rule_on_metadata_decides_of_what_is_gone_as_it_did(store: Opened, value: Any) -> None:
    journal = over(store)
    number = await journal.mark()
    metadata = {"who": value, 3: {None: "odd keys"}}
    await journal.record([change("a", kind="deleted", metadata=metadata)])
    (found,) = await since(journal, number) or ()
    assert found.old is not None
    for asked in ("kim", "2026-01-02", "2026-01-02 03:00:00+00:00", True, 7, 1.5, "nan", str(2**80), str(b"x")):
        rule = Metadata((("who", (asked,)),))
        assert rule.holds(found.old.metadata) is rule.holds(metadata), asked


async def test_records_of_another_kind_are_passed_over(store: Opened) -> None:
    journal = over(store)
    number = await journal.mark()
    await store.journal.append(b'{"type":"hook"}', b'{"type":"changes","change":1}')
    await journal.record([change("a")])
    assert told(await since(journal, number)) == ["updated a 1"]


# -- what goes wrong


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"{}", b'{"type":"change"}', b'{"type":"change","change":{"kind":"melted"}}', b'{"type":"ch']
)
async def test_a_record_that_cannot_be_read_is_a_gap_for_those_who_would_pass_it(store: Opened, body: bytes) -> None:
    journal = over(store)
    before = await journal.mark()
    await store.journal.append(body)
    after = await journal.mark()
    await journal.record([change("a")])
    assert await since(journal, before) is None
    assert told(await since(journal, after)) == ["updated a 1"]


@pytest.mark.parametrize("cut", [lambda size: 0, lambda size: 99, lambda size: size // 2, lambda size: size - 1])
async def test_a_journal_that_was_cut_is_begun_anew_or_read_and_never_tells_less_in_silence(
    tmp_path: Path, cut: Callable[[int], int], caplog: pytest.LogCaptureFixture
) -> None:
    async with SQLiteStore(tmp_path) as store:
        journal = over(store)
        number = await journal.mark()
        await journal.record([change(f"n{place}", metadata={"x": "y" * 500}) for place in range(200)])
    file = anyio.Path(tmp_path / NAME)
    await file.write_bytes((raw := await file.read_bytes())[: cut(len(raw))])
    with caplog.at_level(logging.WARNING):
        async with SQLiteStore(tmp_path) as store:
            journal = over(store)
            try:
                found = await since(journal, number)
            except SourceUnavailable:  # whoever notices it first
                found = await since(journal, number)
            assert found is None or len(found) == 200
            await journal.record([change("later")])
    said = "damaged" in caplog.text or "cannot be read" in caplog.text
    assert found is not None or said or cut(len(raw)) == 0, "an empty file is a new one"


@pytest.mark.seed("A4")
async def test_of_processes_that_are_killed_a_reader_misses_nothing_that_was_stored(tmp_path: Path) -> None:
    """In the order in which it happened, and what was stored together is there together."""
    next_, stored = 0, list[int]()
    async with SQLiteStore(tmp_path) as store:
        number = await over(store).mark()
    with anyio.fail_after(120):
        for turn in range(3):
            command = [sys.executable, "-m", "tests.feed.recorder", str(tmp_path), str(next_)]
            process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            assert process.stdout is not None
            for _ in range(20 + 7 * turn):
                stored.append(int(await process.stdout.readline()))
            process.kill()
            rest = await process.stdout.read()
            await process.wait()
            stored += map(int, rest[: rest.rfind(b"\n") + 1].split())
            next_ = stored[-1] + 1
    found: list[int] = []
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(SQLiteStore(tmp_path))
        for _ in range(2):  # the second from a number in the middle
            part = await since(over(store), number) or []
            found = [*found[: len(found) - len(part)], *(int(one.new.version) for one in part if one.new is not None)]
            number = part[len(part) // 2].seq
    assert set(found) == set(range(max(found) + 1)), "none is lost"
    assert max(found) in (stored[-1], stored[-1] + 2) and len(found) - len(set(found)) <= 2 * 3
    assert all(one + 1 in found[place : place + 2] for place, one in enumerate(found) if not one % 2)
    assert numbered(8).ref == numbered(1).ref
