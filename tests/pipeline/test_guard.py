"""The door of a plugin's source, fault by fault, where a real server would take as long as its limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from octavo.core.clock import FrozenClock
from octavo.core.edit import Revision
from octavo.core.errors import InvalidParams, NotFound, OctavoError, ProtocolError, SourceUnavailable, Timeout
from octavo.core.ports.source import ABILITIES, abilities
from octavo.core.ref import Ref
from octavo.core.values import Change, Content, Edited, EncoderMemo, Entry, Page, Suggestion, Template
from octavo.pipeline.guard import Faults, Guarded, contract, door, guarded, life
from octavo.pipeline.guard import abilities as doors
from octavo.sources.file.addresses import FileRoot
from octavo.sources.file.writable import WritableFileSource
from octavo.sources.memory import MemorySource

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A5")]

ROOT = Ref("own")
A = Ref.of("own", ["a"])
ENTRY = Entry(ref=A, name="a", version="1")


class Sound:
    scheme = "own"

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Any:
        return Page((ENTRY,))

    async def stat(self, ref: Ref) -> Any:
        return ENTRY

    async def read(self, ref: Ref, *, max_bytes: int) -> Any:
        return Content(entry=ENTRY, body="text")


def behind(source: Any, time: float = 10.0) -> tuple[Any, Faults]:
    faults = Faults(FrozenClock())
    return guarded(source, faults, time), faults


async def left_alone(stubborn: asyncio.Event) -> None:
    """Ends when the test does, and not when it is cancelled."""
    while not stubborn.is_set():
        try:
            await stubborn.wait()
        except asyncio.CancelledError:
            pass


@pytest.fixture
async def over() -> AsyncIterator[asyncio.Event]:
    event = asyncio.Event()
    yield event
    event.set()
    await asyncio.sleep(0)


# -- it has the abilities of the source, and no others


def test_a_guarded_source_can_do_what_the_source_can(tmp_path: Path) -> None:
    files = WritableFileSource([FileRoot(tmp_path)], secret=b"s" * 32, scheme="own", journal=None)
    for source in (Sound(), MemorySource("own", {}), files):
        assert abilities(behind(source)[0]) == abilities(source)


def test_every_ability_has_its_door() -> None:
    assert set(ABILITIES.values()) <= set(doors.DOORS)


# -- answers


BAD_ENTRIES = {
    "a name": replace(ENTRY, name=None),  # type: ignore[arg-type]
    "half a character": replace(ENTRY, title="\ud800"),
    "metadata": replace(ENTRY, metadata={"a": {1, 2}}),
    "endless metadata": replace(ENTRY, metadata={"a": [[]] * 20_000}),
    "annotations": replace(ENTRY, annotations=[]),  # type: ignore[arg-type]
    "a size": replace(ENTRY, size=-1),
    "a time": replace(ENTRY, modified=float("nan")),
    "a target": replace(ENTRY, target="own://b"),  # type: ignore[arg-type]
    "an address": replace(ENTRY, ref=Ref("own", ("..",))),
    "an address of another": replace(ENTRY, ref=Ref("note", ("a",))),
    "an address of lists": replace(ENTRY, ref=Ref("own", ["a"])),  # type: ignore[arg-type]
    "another thing": {"ref": A},
}


@pytest.mark.parametrize("what", BAD_ENTRIES)
async def test_an_entry_that_is_none_never_passes(what: str) -> None:
    class Source(Sound):
        async def stat(self, ref: Ref) -> Any:
            return BAD_ENTRIES[what]

        async def read(self, ref: Ref, *, max_bytes: int) -> Any:
            return Content(entry=BAD_ENTRIES[what], body="")  # type: ignore[arg-type]

        async def suggest(self, *_: Any) -> Any:
            return [Suggestion("a", BAD_ENTRIES[what])]  # type: ignore[arg-type]

        async def write(self, ref: Ref, body: Any, **_: Any) -> Any:
            return BAD_ENTRIES[what]

        delete = write

        async def edit(self, ref: Ref, change: Any, **_: Any) -> Any:
            return Edited(BAD_ENTRIES[what], "")  # type: ignore[arg-type]

    source, faults = behind(Source())
    for work in (
        source.stat(A),
        source.read(A, max_bytes=10),
        source.suggest("", "", "", {}),
        source.write(A, "", if_match=None),
        source.edit(A, Revision(), if_match=None),
    ):
        with pytest.raises(SourceUnavailable) as caught:
            await work
        assert caught.value.data["source"] == "own" and caught.value.data["incident"]
        assert not caught.value.telling
    assert "own" in faults.current()


BAD_CONTENTS = {
    "none": None,
    "no body": Content(entry=ENTRY, body=None),  # type: ignore[arg-type]
    "too much": Content(entry=ENTRY, body="x" * 11),
    "too many bytes": Content(entry=ENTRY, body=b"x" * 11),
    "too much, and says less": Content(entry=ENTRY, body="x" * 11, memo=EncoderMemo(size=1)),
    "half a character": Content(entry=ENTRY, body="\ud800"),
    "an etag": Content(entry=ENTRY, body="", etag=7),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", BAD_CONTENTS)
async def test_a_content_that_is_none_never_passes(what: str) -> None:
    class Source(Sound):
        async def read(self, ref: Ref, *, max_bytes: int) -> Any:
            return BAD_CONTENTS[what]

    with pytest.raises(SourceUnavailable):
        await behind(Source())[0].read(A, max_bytes=10)


async def test_what_no_contract_can_bound_is_bounded_anyway() -> None:
    def for_ever(value: Any) -> Iterator[Any]:
        while True:
            yield value

    class Source(Sound):
        async def complete(self, *_: Any) -> Any:
            return for_ever("a")

        async def suggest(self, *_: Any) -> Any:
            return for_ever(Suggestion("a", ENTRY))

        async def folders(self, scope: Ref, *, depth: int | None, limit: int) -> Any:
            return for_ever(A)

        def templates(self) -> Any:
            return for_ever(Template(uri_template="own://{a}", name="a"))

        def stamp(self, ref: Ref, op: str, moment: int = 0) -> Any:
            raise SystemExit

    source, _ = behind(Source())
    for work in (source.complete("", "", {}), source.suggest("", "", "", {}), source.folders(ROOT, depth=1, limit=3)):
        with pytest.raises(SourceUnavailable):
            await work
    assert source.templates() == ()
    assert source.stamp(A, "read") is None


@pytest.mark.parametrize(
    "error",
    [
        ProtocolError("x", code=1),
        OctavoError("x"),
        InvalidParams("\ud800"),
        InvalidParams("x", why=object()),
        SourceUnavailable("x", retry_after="soon"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
async def test_errors_that_are_not_for_sources_do_not_pass(error: OctavoError) -> None:
    class Source(Sound):
        async def stat(self, ref: Ref) -> Any:
            raise error

    with pytest.raises(SourceUnavailable) as caught:
        await behind(Source())[0].stat(A)
    assert caught.value is not error


async def test_its_own_errors_pass_as_they_are() -> None:
    class Source(Sound):
        async def stat(self, ref: Ref) -> Any:
            raise NotFound(f"Resource not found: {ref}", uri=str(ref))

    source, faults = behind(Source())
    with pytest.raises(NotFound):
        await source.stat(A)
    assert faults.current() == {}


# -- pages


async def test_what_was_on_the_page_before_is_not_given_again() -> None:
    every = [Entry(ref=Ref.of("own", [f"{k}"]), name=str(k)) for k in range(6)]

    class Source(Sound):
        async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Any:
            start = int(cursor or 0)
            page = tuple(every[max(0, start - 1) : start + 2])
            return Page(page, str(start + 2) if start + 2 < len(every) else None)

    source, faults = behind(Source())
    found: list[Entry] = []
    cursor = None
    while True:
        page = await source.list(ROOT, cursor=cursor, limit=3)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            break
    assert found == every
    assert "1 of 3 entries were given before" in faults.current()["own"]


async def test_a_listing_that_broke_the_contract_is_left_alone_for_a_while() -> None:
    asked: list[Ref] = []
    clock = FrozenClock()

    class Source(Sound):
        async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Any:
            asked.append(scope)
            return None

    source = Guarded(Source(), Faults(clock), 10.0, clock)
    for _ in range(5):
        with pytest.raises(SourceUnavailable):
            await source.list(ROOT, cursor=None, limit=3)
    assert asked == [ROOT]
    with pytest.raises(SourceUnavailable):
        await source.list(A, cursor=None, limit=3)
    clock.advance(door.RESTING)
    with pytest.raises(SourceUnavailable):
        await source.list(ROOT, cursor=None, limit=3)
    assert asked == [ROOT, A, ROOT]


# -- time


async def test_who_stops_waiting_is_not_held_by_a_call_that_does_not_end(over: asyncio.Event) -> None:
    class Source(Sound):
        async def stat(self, ref: Ref) -> Any:
            await left_alone(over)

    source, _ = behind(Source())
    for _ in range(door.STUCK):
        with anyio.move_on_after(0):
            await source.stat(A)
    with anyio.fail_after(30), pytest.raises(SourceUnavailable):  # and it is asked no more
        await source.stat(A)


async def test_a_deadline_that_passes_is_noted(over: asyncio.Event) -> None:
    class Source(Sound):
        async def stat(self, ref: Ref) -> Any:
            await over.wait()

    source, faults = behind(Source(), time=0.0)
    with anyio.move_on_after(0.001):
        await source.stat(A)
    assert faults.current() == {"own": "stat: it did not answer within 0 s"}


async def test_a_change_that_does_not_end_is_told_as_what_may_still_happen(
    over: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "CHANGING", 0.01)

    class Source(Sound):
        async def write(self, ref: Ref, body: Any, **_: Any) -> Any:
            await over.wait()

        delete = write

    with pytest.raises(Timeout, match="may still be done"):
        await behind(Source())[0].write(A, "", if_match=None)


async def test_opening_and_closing_have_their_time(
    over: asyncio.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(life, "OPENING", 0.01)
    monkeypatch.setattr(life, "CLOSING", 0.01)
    monkeypatch.setattr(door, "ENDING", 0.01)

    class Source(Sound):
        opens = True

        async def __aenter__(self) -> None:
            if not self.opens:
                await left_alone(over)

        async def __aexit__(self, *_: object) -> None:
            await left_alone(over)

        async def stat(self, ref: Ref) -> Any:
            await left_alone(over)

    with anyio.fail_after(30), caplog.at_level(logging.ERROR):
        source, faults = behind(Source())
        async with source:
            with anyio.move_on_after(0):
                await source.stat(A)
        assert "did not close within" in faults.current()["own"]
        assert "1 calls of it do not end" in caplog.text
        never = Source()
        never.opens = False
        source, faults = behind(never)
        async with source:
            with pytest.raises(SourceUnavailable):
                await source.list(ROOT, cursor=None, limit=1)
            assert faults.current() == {"own": "open: it did not open within 0.01 s"}


async def test_a_source_is_opened_and_closed_in_one_task() -> None:
    """What anyio opens must be closed there."""

    class Source(Sound):
        async def __aenter__(self) -> None:
            self.group = await anyio.create_task_group().__aenter__()

        async def __aexit__(self, *raised: Any) -> None:
            await self.group.__aexit__(*raised)

    source, faults = behind(Source())
    await source.__aenter__()
    closing = asyncio.get_running_loop().create_task(source.__aexit__(None, None, None))
    await closing
    assert faults.current() == {}


# -- changes


async def test_a_flood_of_changes_lets_others_have_their_turn() -> None:
    class Source(Sound):
        async def watch(self, scope: Ref) -> AsyncIterator[Any]:
            while True:
                yield Change(kind="updated", ref=A, at=0.0)

    source, _ = behind(Source())
    told = 0

    async def follow() -> None:
        nonlocal told
        async for _ in source.watch(ROOT):
            told += 1

    task = asyncio.get_running_loop().create_task(follow())
    with anyio.fail_after(30):
        while told < 3 * doors.BURST:
            await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait((task,))


@pytest.mark.parametrize(
    "change",
    [
        None,
        Change(kind="moved", ref=A, at=0.0),  # type: ignore[arg-type]
        Change(kind="updated", ref=Ref("note", ("a",)), at=0.0),
        Change(kind="renamed", ref=A, source=Ref("note", ("a",)), at=0.0),
        Change(kind="updated", ref=A, at=0.0, new=replace(ENTRY, name=7)),  # type: ignore[arg-type]
        Change(kind="updated", ref=A, at="now"),  # type: ignore[arg-type]
    ],
    ids=["none", "kind", "foreign", "source", "entry", "time"],
)
async def test_what_is_no_change_of_it_is_left_out(change: Any) -> None:
    good = Change(kind="created", ref=A, at=0.0)

    class Source(Sound):
        async def watch(self, scope: Ref) -> AsyncIterator[Any]:
            yield change
            yield good

    source, faults = behind(Source())
    assert [one async for one in source.watch(ROOT)] == [good]
    assert "no change of it" in faults.current()["own"]


# -- what is said


async def test_one_fault_is_logged_once_and_then_rarely(caplog: pytest.LogCaptureFixture) -> None:
    faults = Faults(FrozenClock())
    with caplog.at_level(logging.ERROR):
        numbers = {faults.note("own", "read", f"{k} bytes too many") for k in range(1000)}
    assert len(numbers) == 1
    assert len(caplog.records) == 4  # the first, the 10th, the 100th and the 1,000th


def test_a_fault_is_forgotten_when_it_has_not_come_again() -> None:
    clock = FrozenClock()
    faults = Faults(clock)
    faults.note("own", "read", "wrong")
    faults.note("other", "open", "closed", lasts=True)
    assert faults.current() == {"own": "read: wrong", "other": "open: closed"}
    clock.advance(601)
    assert faults.current() == {"other": "open: closed"}


def test_a_page_is_checked_as_a_whole() -> None:
    many = tuple(Entry(ref=Ref.of("own", [f"{k}"]), name="x") for k in range(3))
    for items, cursor in ((many, None), (many[:2], "same"), (many[1::-1], None), (list(many[:1]), None), (many[:1], 7)):
        with pytest.raises(contract.Breach):
            contract.page(Page(items, cursor), ROOT, cursor="same", limit=2, after=None)  # type: ignore[arg-type]
