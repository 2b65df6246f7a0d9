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
from octavo.core.errors import OctavoError
from octavo.core.ports.chain import expected
from octavo.core.values import News

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


async def test_a_reload_is_no_gap_and_a_source_that_comes_back_tells_what_changed(tmp_path: Path, work: Path) -> None:
    other = "  notes: {kind: memory, scheme: note, resources: {a: {text: one}}}\n"
    both = "sources:\n  work: {kind: file, uris: relative, roots: [./work]}\n" + other
    async with Octavo(load_text(both, file=tmp_path / "octavo.yaml", environ={}), lasting=True) as octavo:
        number = (await news(octavo, uri=None)).next
        put(work, "a", "longer")
        await told_until(octavo, number, ["updated a"])
        await octavo.reload(loaded(tmp_path, "limits: {page: 500}\n"))
        assert told(await news(octavo, number)) == ["updated a"]
        gone = load_text("sources:\n" + other, file=tmp_path / "octavo.yaml", environ={})
        await octavo.reload(gone)
        assert told(await news(octavo, number, uri="note://")) == []
        with pytest.raises(OctavoError):
            await news(octavo, number)
        everything = await request(octavo, None, "changes", None, arguments=ChangesArguments(number))
        assert expected(everything, News).changes == (), "what is not served is not told"
        put(work, "b", "longer")
        await octavo.reload(loaded(tmp_path))
        await told_until(octavo, number, ["updated a", "updated b"])


async def test_a_rule_that_forbids_and_a_source_that_hides_cut_what_was_stored(tmp_path: Path, work: Path) -> None:
    who = "agents: {a: {}}\npolicy:\n  - {who: a, may: '*', what: '**'}\n"
    async with serving(tmp_path, who) as octavo:
        number = (await news(octavo, who="a")).next
        put(work, "a", "longer")
        put(work, "b", "longer")
        await told_until(octavo, number, ["updated a", "updated b"], "a")
    denied = who + "  - {who: a, may: '*', what: 'file://b.md', effect: deny}\n"
    async with serving(tmp_path, denied) as octavo:
        assert told(await news(octavo, number, "a")) == ["updated a"]
    async with serving(tmp_path, who, ", hide: ['b.md']") as octavo:
        found = await news(octavo, number, "a")
        assert found.gap and found.changes == ()
        assert told(await news(octavo, None, "a")) == []
        put(work, "a", "longer still")
        await told_until(octavo, found.next, ["updated a"], "a")


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


async def test_whoever_sees_a_part_tells_the_others_nothing_of_the_rest(tmp_path: Path, work: Path) -> None:
    (work / "sub").mkdir()
    async with serving(tmp_path) as octavo:
        number = (await news(octavo)).next
        assert told(await news(octavo, number)) == []
        local = octavo.works.identity.launched(None)
        await octavo.narrow_to_roots(local, [(work / "sub").as_uri()])
        await octavo.feed.followed(["file"])
    async with serving(tmp_path) as octavo:
        assert told(await news(octavo, number)) == []


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
