"""The feed is durable: a number from before a reload, a restart or a kill goes on where it was (B3, O10, A4)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.app.once import request
from octavo.config.load import Loaded
from octavo.core.arguments import ChangesArguments
from octavo.core.errors import OctavoError, SourceUnavailable
from octavo.core.ports.chain import expected
from octavo.core.ref import Ref
from octavo.core.values import Change, Entry, News
from octavo.feed import storing
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("B3", "O10", "A4")]

WORK = "sources: {work: {kind: file, uris: relative, roots: [./work]%s}}\n"
SERVED = """
import asyncio, sys
from pathlib import Path
from octavo.app import Octavo
from octavo.app.configuration import load_text

async def main():
    file = Path(sys.argv[1]) / "octavo.yaml"
    async with Octavo(load_text(sys.argv[2], file=file, environ={}), lasting=True) as octavo:
        await octavo.feed.followed(["file"])
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def loaded(folder: Path, more: str = "", of_source: str = "") -> Loaded:
    return load_text(WORK % of_source + more, file=folder / "octavo.yaml", environ={})


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    for name in "ab":
        put(tmp_path / "work", name, "one")
    return tmp_path / "work"


def put(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.md").write_text(text, encoding="utf-8")


def serving(folder: Path, more: str = "", of_source: str = "") -> Octavo:
    return Octavo(loaded(folder, more, of_source), lasting=True)


async def news(octavo: Octavo, after: int | None = None, who: str | None = None, uri: str | None = "file://") -> News:
    """When it is no gap because a comparison is still under way."""
    given = ChangesArguments(after)
    return expected(await request(octavo, who, "changes", uri, arguments=given, limit=1000), News)


def told(found: News) -> list[str]:
    assert not found.gap, "a gap"
    return [f"{one.kind} {one.ref.path.removesuffix('.md')}" for one in found.changes]


async def told_until(octavo: Octavo, after: int, wanted: list[str], who: str | None = None) -> None:
    found: list[str] = []
    with anyio.move_on_after(30):
        while len(found) < len(wanted):
            found = told(await news(octavo, after, who))
    assert sorted(found) == sorted(wanted)


async def test_a_number_from_before_a_restart_goes_on_with_what_changed_meanwhile(tmp_path: Path, work: Path) -> None:
    async with serving(tmp_path) as octavo:
        number = (await news(octavo)).next
        assert told(await news(octavo, number)) == []
        put(work, "c", "new")
        await told_until(octavo, number, ["created c"])
        later = (await news(octavo, number)).next
    put(work, "a", "longer")
    (work / "b.md").unlink()
    async with serving(tmp_path) as octavo:
        await told_until(octavo, number, ["created c", "updated a", "deleted b"])
        found = await news(octavo, later)
        assert told(found) == ["deleted b", "updated a"]
        gone = found.changes[0].old
        assert gone is not None and gone.name == "b.md"
        put(work, "d", "new")
        await told_until(octavo, found.next, ["created d"])
    async with serving(tmp_path) as octavo:
        assert told(await news(octavo, number)) == ["created c", "deleted b", "updated a", "created d"], "and only once"


async def test_a_reload_that_leaves_a_source_as_it_is_is_no_gap(tmp_path: Path, work: Path) -> None:
    async with serving(tmp_path) as octavo:
        number = (await news(octavo)).next
        put(work, "a", "longer")
        await told_until(octavo, number, ["updated a"])
        for turn, more in enumerate(("limits: {page: 500}\n", "redact: {rules: 'off'}\n", ""), 2):
            await octavo.reload(loaded(tmp_path, more, ", cache: {ttl: 5s}"))
            put(work, "a", "longer" * turn)
            await told_until(octavo, number, ["updated a"] * turn)


async def test_of_a_source_that_is_not_served_nothing_is_told_and_when_it_is_again_everything(
    tmp_path: Path, work: Path
) -> None:
    other = "  notes: {kind: memory, scheme: note, resources: {a: {text: one}}}\n"
    both = "sources:\n  work: {kind: file, uris: relative, roots: [./work]%s}\n" + other
    hidden = load_text(both % ", expose: false", file=tmp_path / "octavo.yaml", environ={})
    removed = load_text("sources:\n" + other, file=tmp_path / "octavo.yaml", environ={})
    async with Octavo(load_text(both % "", file=tmp_path / "octavo.yaml", environ={}), lasting=True) as octavo:
        number = (await news(octavo, uri=None)).next
        put(work, "a", "longer")
        wanted = ["updated a"]
        await told_until(octavo, number, wanted)
        for turn, without in enumerate((removed, hidden)):
            await octavo.reload(without)
            assert told(await news(octavo, number, uri="note://")) == []
            with pytest.raises(OctavoError):
                await news(octavo, number)
            everything = await request(octavo, None, "changes", None, arguments=ChangesArguments(number))
            assert expected(everything, News).changes == (), "what is not served is not told"
            put(work, "b", "longer" * (turn + 2))
            await octavo.reload(load_text(both % "", file=tmp_path / "octavo.yaml", environ={}))
            wanted.append("updated b")
            await told_until(octavo, number, wanted)


async def test_while_the_store_is_away_subscribers_are_told_and_nothing_is_lost(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "PAUSE", 0.01)
    async with serving(tmp_path) as octavo:
        number = (await news(octavo)).next
        assert told(await news(octavo, number)) == []
    file = tmp_path / ".octavo" / "store.db"
    file.rename(tmp_path / "aside")
    file.mkdir()
    async with serving(tmp_path) as octavo:
        heard, first = list[Change](), asyncio.Event()
        octavo.feed.subscribe(lambda change: (heard.append(change), first.set()))
        await octavo.feed.followed(["file"])
        with pytest.raises(SourceUnavailable):
            await news(octavo, number)
        put(work, "a", "longer")
        with anyio.fail_after(30):
            await first.wait()
        assert [one.ref.path for one in heard] == ["a.md"]
        with pytest.raises(SourceUnavailable):
            await news(octavo, number)
        file.rmdir()
        (tmp_path / "aside").rename(file)
        await told_until(octavo, number, ["updated a"])


async def test_a_rule_that_forbids_cuts_what_was_stored(tmp_path: Path, work: Path) -> None:
    who = "agents: {a: {}}\npolicy:\n  - {who: a, may: '*', what: '**'}\n"
    async with serving(tmp_path, who) as octavo:
        number = (await news(octavo, who="a")).next
        put(work, "a", "longer")
        put(work, "b", "longer")
        await told_until(octavo, number, ["updated a", "updated b"], "a")
    denied = who + "  - {who: a, may: '*', what: 'file://b.md', effect: deny}\n"
    async with serving(tmp_path, denied) as octavo:
        assert told(await news(octavo, number, "a")) == ["updated a"]


async def test_what_a_source_hides_now_is_cut_and_the_number_goes_on(tmp_path: Path, work: Path) -> None:
    async with serving(tmp_path) as octavo:
        number = (await news(octavo)).next
        put(work, "a", "longer")
        put(work, "b", "longer")
        await told_until(octavo, number, ["updated a", "updated b"])
        (work / "b.md").rename(work / "c.md")
        await told_until(octavo, number, ["updated a", "updated b", "renamed c"])
        await octavo.reload(loaded(tmp_path, of_source=", hide: ['b.md']"))
        assert told(await news(octavo, number)) == ["updated a", "created c"]
        assert told(await news(octavo, None)) == ["updated a", "created c"]
        put(work, "b", "hidden")
        (work / "c.md").unlink()
        await told_until(octavo, number, ["updated a", "created c", "deleted c"])
    async with serving(tmp_path, of_source=", extensions: [.txt]") as octavo:
        assert told(await news(octavo, number)) == []
    async with serving(tmp_path) as octavo:
        found = await news(octavo, number)
        assert found.gap, "b was made while it was hidden, or before: nobody can say"
        assert told(await news(octavo, found.next)) == []


async def test_a_source_with_other_folders_begins_anew(tmp_path: Path, work: Path) -> None:
    (tmp_path / "other").mkdir()
    async with serving(tmp_path) as octavo:
        number = (await news(octavo)).next
        put(work, "a", "longer")
        await told_until(octavo, number, ["updated a"])
        other = (WORK % "").replace("./work", "./other")
        await octavo.reload(load_text(other, file=tmp_path / "octavo.yaml", environ={}))
        found = await news(octavo, number)
        assert found.gap and found.changes == () and not (await news(octavo, found.next)).gap
        await octavo.reload(loaded(tmp_path))
        assert told(await news(octavo, number)) == ["updated a"], "as it was served before, it goes on"


async def test_two_processes_tell_a_change_once_and_each_others_numbers_hold(tmp_path: Path, work: Path) -> None:
    async with serving(tmp_path) as one, serving(tmp_path) as other:
        number = (await news(one)).next
        assert told(await news(other, number)) == []
        for text in ("two", "three!", "four!!!"):
            before = (await news(one)).next
            put(work, "a", text)
            for octavo in (one, other):
                await told_until(octavo, before, ["updated a"])
        assert told(await news(one, number)) == told(await news(other, number)) == ["updated a"] * 3


@pytest.mark.parametrize("number", [0, 10**15, 2**62])
async def test_a_number_that_was_never_given_is_a_gap(tmp_path: Path, work: Path, number: int) -> None:
    async with serving(tmp_path) as octavo:
        found = await news(octavo, number)
        assert found.gap and not (await news(octavo, found.next)).gap


@pytest.mark.parametrize("root", [".", "work", "work/sub"])
async def test_a_client_that_narrows_what_it_sees_goes_on_and_takes_nothing_from_others(
    tmp_path: Path, work: Path, root: str
) -> None:
    """Editors give their roots: what one has open may be all that is served, or a part of it."""
    (work / "sub").mkdir()
    put(work / "sub", "d", "one")
    async with serving(tmp_path) as octavo:
        number = (await news(octavo)).next
        assert told(await news(octavo, number)) == []
    for turn in (1, 2):
        async with serving(tmp_path) as octavo:
            local = octavo.works.identity.launched(None)
            await octavo.narrow_to_roots(local, [(tmp_path / root).as_uri()])
            seen = ["updated sub/d"] * (turn - 1)
            await told_until(octavo, number, seen)
            put(work / "sub", "d", "longer" * turn)
            await told_until(octavo, number, [*seen, "updated sub/d"])
    async with serving(tmp_path) as octavo:
        assert told(await news(octavo, number)) == ["updated sub/d"] * 2
        put(work, "a", "longer")
        await told_until(octavo, number, ["updated sub/d", "updated sub/d", "updated a"])


async def test_the_latest_changes_are_there_when_older_ones_are_dropped(tmp_path: Path, work: Path) -> None:
    async with serving(tmp_path, "feed: {keep: 2}\n") as octavo:
        number = (await news(octavo)).next
        assert told(await news(octavo, number)) == []
        for place in range(1_100):
            octavo.feed.publish(_moved(place))
        found = await news(octavo, number)
        while not found.gap:
            found = await news(octavo, number)
        latest = await news(octavo, None)
        assert latest.changes and latest.changes[-1].new is not None and latest.changes[-1].new.version == "1099"


async def test_what_is_told_in_one_turn_is_stored_in_one_transaction(tmp_path: Path, work: Path) -> None:
    """However much it is: whoever reads meanwhile sees all of it or nothing."""
    async with serving(tmp_path) as octavo:
        number = (await news(octavo)).next
        assert told(await news(octavo, number)) == []
        journal = (await octavo.home.store()).journal
        for place in range(2_500):
            octavo.feed.publish(_moved(place))
        seen = {0}
        with anyio.fail_after(60):
            while max(seen) < 2_500:
                seen.add(len(await journal.read(number, limit=10_000)))
                await asyncio.sleep(0)
        assert seen == {0, 2_500}
        found, after = 0, number
        while found < 2_500:
            page = await news(octavo, after)
            assert 0 < len(page.changes) <= 1_000 and (page.more or found + len(page.changes) == 2_500)
            found, after = found + len(page.changes), page.next


def _moved(place: int) -> Change:
    ref = Ref("file", ("n.md",))
    return Change(kind="updated", ref=ref, at=1.0, new=Entry(ref=ref, name="n.md", version=str(place)))


async def test_without_a_state_folder_a_number_of_another_process_is_a_gap(tmp_path: Path, work: Path) -> None:
    numbers: list[int] = []
    for _ in range(2):
        async with Octavo(loaded(tmp_path), state=StateDirectory.in_memory(), lasting=True) as octavo:
            found = [(await news(octavo, number)).gap for number in numbers]
            numbers.append((await news(octavo)).next)
            put(work, "a", f"longer {numbers}")
            await told_until(octavo, numbers[-1], ["updated a"])
    assert found == [True]


async def test_whoever_may_see_little_is_told_it_wherever_it_stands(tmp_path: Path, work: Path) -> None:
    """Behind thousands of changes that he may not know of, and no number of them is told."""
    rules = "agents: {a: {}, b: {}}\npolicy:\n  - {who: '*', may: '*', what: '**'}\n"
    rules += "  - {who: b, may: '*', what: 'file://n.md', effect: deny}\nlimits: {page: 1000}\n"
    async with serving(tmp_path, rules) as octavo:
        number = (await news(octavo, who="b")).next
        assert told(await news(octavo, number, "b")) == []
        for place in range(2_500):
            octavo.feed.publish(_moved(place))
        await told_until(octavo, number, [], "b")
        put(work, "a", "longer")
        await told_until(octavo, number, ["updated a"], "b")
        found = await news(octavo, number, "b")
        assert not found.more
        all_numbers = {one.number for one in await (await octavo.home.store()).journal.read(number, limit=10_000)}
        assert len(all_numbers) == 2_501 and found.next not in all_numbers


async def test_after_kills_a_reader_goes_on_and_misses_nothing(tmp_path: Path, work: Path) -> None:
    async with serving(tmp_path) as octavo:
        number = (await news(octavo)).next
        assert told(await news(octavo, number)) == []
    text = WORK % ""
    for turn in range(3):
        command = [sys.executable, "-c", SERVED, str(tmp_path), text]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        with anyio.fail_after(60):
            assert await process.stdout.readline() == b"ready\n"
        for step in range(10):
            put(work, f"n{turn}-{step}", "new")
            await asyncio.sleep(0)
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        put(work, f"n{turn}-0", "changed while nobody watched")
    async with serving(tmp_path) as octavo:
        found = told(await news(octavo, number))
    names = {f"n{turn}-{step}" for turn in range(3) for step in range(10)}
    assert {one.partition(" ")[2] for one in found} == names, "none is lost"
    assert len(found) == len(set(found)), "and none is told twice"
