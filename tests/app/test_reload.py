"""A reload composes a new house and swaps it in, or changes nothing (house.md, section 3; security.md section 5)."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.e2e.harness import audit_records

from octavo.app import Octavo, follow
from octavo.app import server as running
from octavo.app.configuration import load
from octavo.app.follow import follow_file
from octavo.config.load import Loaded
from octavo.config.problems import ConfigError
from octavo.core.errors import Forbidden, OctavoError, SourceUnavailable, Unauthenticated
from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.values import Call, Change, Op, Principal, Trail

pytestmark = pytest.mark.anyio

NOTES = "sources: {notes: {kind: memory, scheme: note, resources: {a: {text: %s}}}}\n"


def write(folder: Path, configuration: str) -> Path:
    file = folder / "octavo.yaml"
    file.write_text("version: 1\n" + dedent(configuration), encoding="utf-8")
    return file


def loaded(folder: Path, configuration: str) -> Loaded:
    return load(write(folder, configuration), environ={})


async def ask(octavo: Octavo, op: Op, uri: str, who: Principal | None = None) -> Reply:
    call = Call(op, Ref.parse(uri), who or octavo.works.identity.launched(None), Trail(), uri)
    with anyio.fail_after(30):
        return await octavo.works.ask(call)


async def text(octavo: Octavo) -> str:
    body: str = (await ask(octavo, "read", "note://a")).body
    return body


async def settled() -> None:
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


async def test_a_reload_swaps_everything_at_once_and_tells_who_wants_to_know(tmp_path: Path) -> None:
    """Sources, policy and limits come together from one configuration."""
    async with Octavo(loaded(tmp_path, NOTES % "one")) as octavo:
        told: list[str] = []
        octavo.on_swap(lambda: told.append(str(octavo.works.limits.page)))
        before = octavo.works
        assert await text(octavo) == "one"
        await octavo.reload(loaded(tmp_path, NOTES % "two" + "limits: {page: 9}\n"))
        assert await text(octavo) == "two"
        assert octavo.works is not before
        assert told == ["9"], "after the swap, once"


async def test_nothing_is_open_before_and_after(tmp_path: Path) -> None:
    """An async context manager: entered once, left once."""
    octavo = Octavo(loaded(tmp_path, NOTES % "one"))
    with pytest.raises(RuntimeError, match="not open"):
        _ = octavo.works
    async with octavo:
        assert await text(octavo) == "one"


BROKEN = {
    "a root that is gone": "sources: {gone: {kind: file, roots: [./gone]}}",
    "a plugin that fails": "plugins: [{path: ./broken.py}]",
    "a source that does not open": "plugins: [{path: ./unopened.py}]",
    "words about a file outside": """
        sources: {work: {kind: file, roots: [./work]}}
        resources: [{uri: "file:///etc/passwd", name: x}]
    """,
}


@pytest.mark.parametrize("what", BROKEN)
async def test_a_configuration_that_cannot_be_composed_leaves_everything_as_it_is(tmp_path: Path, what: str) -> None:
    """security.md section 5: keeps the last good policy; also in the middle of composing."""
    (tmp_path / "work").mkdir()
    (tmp_path / "gone").mkdir()
    (tmp_path / "broken.py").write_text("def register(octavo):\n    raise RuntimeError('no')\n", encoding="utf-8")
    (tmp_path / "unopened.py").write_text(UNOPENED, encoding="utf-8")
    async with Octavo(loaded(tmp_path, NOTES % "one")) as octavo:
        told: list[int] = []
        octavo.on_swap(lambda: told.append(1))
        before = octavo.works
        other = loaded(tmp_path, BROKEN[what])
        (tmp_path / "gone").rmdir()
        with pytest.raises((OctavoError, OSError)):
            await octavo.reload(other)
        assert octavo.works is before
        assert (await text(octavo), told) == ("one", [])


UNOPENED = """
from octavo.sources.memory import MemorySource

class Unopened(MemorySource):
    async def __aenter__(self):
        raise OSError("no such service")
    async def __aexit__(self, *what):
        pass

def register(octavo):
    octavo.source(Unopened("own", {}))
"""

LIFE = """
from octavo.sources.memory import MemorySource

class Lived(MemorySource):
    async def __aenter__(self):
        LIVES.append("open")
        return self
    async def __aexit__(self, *what):
        LIVES.append("closed")

LIVES = __import__("octavo").lives

def register(octavo):
    octavo.source(Lived("own", {"a": ""}))
"""


@pytest.fixture
def lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happened to the source of a plugin."""
    import octavo

    happened: list[str] = []
    monkeypatch.setattr(octavo, "lives", happened, raising=False)
    (tmp_path / "life.py").write_text(LIFE, encoding="utf-8")
    (tmp_path / "unopened.py").write_text(UNOPENED.replace('"own"', '"other"'), encoding="utf-8")
    return happened


async def test_old_sources_stay_open_for_the_calls_that_still_run_and_are_closed_once(
    tmp_path: Path, lives: list[str]
) -> None:
    """A swap must not pull a source away under a read."""
    plugin = "plugins: [{path: ./life.py}]\n"
    async with Octavo(loaded(tmp_path, plugin)) as octavo:
        await octavo.reload(loaded(tmp_path, NOTES % "x"))
        await settled()
        assert lives == ["open"]
    assert lives == ["open", "closed"]


async def test_old_sources_are_closed_after_their_grace(
    tmp_path: Path, lives: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not kept until the end: a server is reloaded often."""
    monkeypatch.setattr(running, "GRACE", 0.0)
    async with Octavo(loaded(tmp_path, "plugins: [{path: ./life.py}]\n")) as octavo:
        await octavo.reload(loaded(tmp_path, NOTES % "x"))
        with anyio.fail_after(30):
            while lives != ["open", "closed"]:
                await anyio.lowlevel.checkpoint()


async def test_what_was_opened_is_closed_when_a_later_source_does_not_open(tmp_path: Path, lives: list[str]) -> None:
    """Half a composition leaves nothing behind at a reload: what was served before goes on."""
    both = "plugins: [{path: ./life.py}, {path: ./unopened.py}]\n"
    async with Octavo(loaded(tmp_path, NOTES % "x")) as octavo:
        with pytest.raises(SourceUnavailable, match="other:// cannot be opened: it raised OSError: no such service"):
            await octavo.reload(loaded(tmp_path, both))
        assert lives == ["open", "closed"]
        assert await text(octavo) == "x"


@pytest.mark.seed("O14", "B2")
async def test_new_rules_and_agents_hold_from_the_next_call_on(tmp_path: Path) -> None:
    """Whatever connection an agent holds: its principal is checked against the configuration of now."""
    agents = NOTES % "x" + "agents: {agent-brand: {roles: [old]}, agent-ops: {}}\n"
    rule = 'policy: [{who: "role:%s", may: "*", what: "**"}]\n'
    async with Octavo(loaded(tmp_path, agents + rule % "old")) as octavo:
        brand = octavo.works.identity.launched("agent-brand")
        epoch = octavo.works.policy.epoch
        assert await ask(octavo, "read", "note://a", brand)
        await octavo.reload(loaded(tmp_path, agents + rule % "new"))
        assert octavo.works.policy.epoch != epoch
        with pytest.raises(Forbidden):
            await ask(octavo, "read", "note://a", brand)
        await octavo.reload(loaded(tmp_path, agents.replace("old", "new") + rule % "new"))
        assert await ask(octavo, "read", "note://a", brand), "new roles, on the old connection"
        await octavo.reload(loaded(tmp_path, NOTES % "x" + "agents: {agent-ops: {}}\n"))
        with pytest.raises(Unauthenticated):
            await ask(octavo, "read", "note://a", brand)


TWICE = """
import octavo
from octavo.core.tools import Hints

HINTS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)


def register(plugin):
    async def twice(ctx, arguments):
        first = await ctx.read("note://a")
        octavo.lives.append("begun")
        await octavo.go_on.wait()
        return f"{first.body}, {(await ctx.read('note://a')).body}"

    plugin.tool("twice", twice, description="Reads twice.", hints=HINTS, input_schema={"type": "object"})
"""


@pytest.mark.seed("O14", "B2", "T9")
async def test_a_tool_that_is_at_work_asks_under_the_rules_that_hold_now(
    tmp_path: Path, lives: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may go on for as long as a task does, and the rules may have changed because of it."""
    import octavo as package

    (tmp_path / "twice.py").write_text(TWICE, encoding="utf-8")
    plugin = "plugins: [{path: ./twice.py}]\nagents: {a: {}}\n"
    rules = 'policy: [{who: a, may: "*", what: "%s"}, {who: a, may: "*", what: "tool://*"}]\n'
    async with Octavo(loaded(tmp_path, NOTES % "one" + plugin + rules % "note://*")) as octavo:
        who = octavo.works.identity.launched("a")
        for after, outcome in (("note://*", "one, two"), ("note://b", Forbidden)):
            monkeypatch.setattr(package, "go_on", asyncio.Event(), raising=False)
            lives.clear()
            asked = asyncio.ensure_future(ask(octavo, "invoke", "tool://twice", who))
            with anyio.fail_after(30):
                while not lives:
                    await anyio.lowlevel.checkpoint()
            await octavo.reload(loaded(tmp_path, NOTES % "two" + plugin + rules % after))
            package.go_on.set()
            if isinstance(outcome, str):
                assert (await asked).content[0].text == outcome
            else:
                with pytest.raises(outcome):
                    await asked
            await octavo.reload(loaded(tmp_path, NOTES % "one" + plugin + rules % "note://*"))
        octavo.ledger.flush()
    records = audit_records(tmp_path / ".octavo")
    assert len({one["id"] for one in records}) == len(records)
    calls = {one["id"]: one for one in records if one["op"] == "invoke"}
    assert [calls[one["parent"]]["op"] for one in records if one["op"] == "read"] == ["invoke"] * 4


@pytest.mark.seed("O11", "A6")
async def test_nothing_cached_outlives_the_configuration_it_was_made_under(tmp_path: Path) -> None:
    """New redaction rules make old entries unreachable."""
    async with Octavo(loaded(tmp_path, NOTES % "codename-tiger")) as octavo:
        assert await text(octavo) == "codename-tiger"
        rules = "redact: {extra: [{name: codename, pattern: 'codename-[a-z]+'}]}\n"
        await octavo.reload(loaded(tmp_path, NOTES % "codename-tiger" + rules))
        assert (await text(octavo)).startswith("[redacted:codename:")


@pytest.mark.seed("O10", "B3")
async def test_a_change_after_a_reload_is_told_once_and_numbers_go_on(tmp_path: Path) -> None:
    """Old sources stay open for a while; their watches must not tell everything a second time."""
    (tmp_path / "plugin.py").write_text(SHARED, encoding="utf-8")
    plugin = "plugins: [{path: ./plugin.py}]\n"
    async with Octavo(loaded(tmp_path, plugin)) as octavo:
        heard: list[Change] = []
        octavo.feed.subscribe(heard.append)
        await settled()
        source: Any = octavo.works.sources[0]
        await source.write(Ref.parse("own://a"), "1", if_match=None)
        await settled()
        for number in range(3):
            await octavo.reload(loaded(tmp_path, plugin + f"limits: {{page: {number + 5}}}\n"))
        await settled()
        await source.write(Ref.parse("own://a"), "2", if_match=None)
        await settled()
        assert len(heard) == 2
        assert heard[0].seq < heard[1].seq


SHARED = """
import sys
from octavo.sources.memory import MemorySource

# One source behind all reloads, as a disk is.
keep = sys.modules.setdefault("octavo_test_shared", type(sys)("octavo_test_shared"))

def register(octavo):
    if not hasattr(keep, __file__):
        setattr(keep, __file__, MemorySource("own", {"a": ""}))
    octavo.source(getattr(keep, __file__))
"""


@pytest.mark.seed("O11")
async def test_the_feed_makes_the_cache_forget(tmp_path: Path) -> None:
    """Invalidated by the feed, in the works of now."""
    async with Octavo(loaded(tmp_path, NOTES % "one")) as octavo:
        await octavo.reload(loaded(tmp_path, NOTES % "two"))
        await text(octavo)
        assert octavo.works.cache.used > 0
        octavo.feed.publish(Change(kind="updated", ref=Ref.parse("note://a"), at=0.0))
        assert octavo.works.cache.used == 0


async def test_of_two_reloads_at_once_the_later_one_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal and a change of the file may come together."""
    slow = loaded(tmp_path, NOTES % "first")
    async with Octavo(loaded(tmp_path, NOTES % "zero")) as octavo:
        compose, inside, go = running.compose, asyncio.Event(), asyncio.Event()

        async def slowly(what: Loaded, *rest: Any) -> Any:
            if what is slow:
                inside.set()
                await go.wait()
            return await compose(what, *rest)

        monkeypatch.setattr(running, "compose", slowly)
        first = asyncio.ensure_future(octavo.reload(slow))
        with anyio.fail_after(30):
            await inside.wait()
            second = asyncio.ensure_future(octavo.reload(loaded(tmp_path, NOTES % "second")))
            await settled()
            go.set()
            await asyncio.gather(first, second)
        assert await text(octavo) == "second"


# -- following the file


class Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[str] = []
        self.news = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record.getMessage())
        self.news.set()

    async def next(self) -> str:
        with anyio.fail_after(30):
            await self.news.wait()
        self.news.clear()
        return self.records[-1]


async def test_the_file_is_followed_and_a_broken_one_keeps_what_runs(tmp_path: Path) -> None:
    """Woken by a signal; whatever is wrong with the new file, the loop goes on."""
    (tmp_path / "unopened.py").write_text(UNOPENED.replace("OSError", "KeyError"), encoding="utf-8")
    log, wake = Log(), asyncio.Event()
    follow.logger.addHandler(log)
    file = write(tmp_path, NOTES % "one")
    try:
        async with Octavo(load(file)) as octavo:
            following = asyncio.ensure_future(follow_file(octavo, file, wake=wake))
            await settled()
            for broken in ("sauces: {}\n", "sources: [\n", "plugins: [{path: ./unopened.py}]\n"):
                write(tmp_path, broken)
                wake.set()
                assert "the old one stays" in await log.next()
                assert await text(octavo) == "one"
            write(tmp_path, NOTES % "two")
            wake.set()
            assert "reloaded" in await log.next()
            assert await text(octavo) == "two"
            following.cancel()
            with pytest.raises(asyncio.CancelledError):
                await following
    finally:
        follow.logger.removeHandler(log)


async def test_a_house_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    """And leaves no file open behind it: warnings are errors here."""
    (tmp_path / "gone").mkdir()
    configuration = loaded(tmp_path, "sources: {gone: {kind: file, roots: [./gone]}}\n")
    (tmp_path / "gone").rmdir()
    with pytest.raises(SourceUnavailable, match="Root 1"):
        async with Octavo(configuration):
            pass
    with pytest.raises(ConfigError):
        loaded(tmp_path, "sources: {gone: {kind: file, roots: [./gone]}}\n")


HANDBOOK = """
sources:
  handbook: {kind: file, roots: [./handbook], expose: false}
  sops: {kind: sop, store: handbook, path: sops}
  work: {kind: file, roots: [./work], write: true}
  notes: {kind: memory, scheme: note, resources: {a: {text: one}}}
"""


def handbook(folder: Path) -> None:
    for name in ("handbook/sops/brand", "work"):
        (folder / name).mkdir(parents=True)
    (folder / "handbook/sops/brand/brief.md").write_text("---\ntitle: Brief\n---\nText\n", encoding="utf-8")
    (folder / "work/a.md").write_text("one", encoding="utf-8")


@pytest.mark.seed("B3", "T9")
async def test_what_a_reload_does_not_change_goes_on_with_its_watch_and_what_was_told(tmp_path: Path) -> None:
    """Reopened at every reload, sources left threads and memory behind, and readers waited for a first look again."""
    handbook(tmp_path)
    async with Octavo(loaded(tmp_path, HANDBOOK)) as octavo:
        with anyio.fail_after(30):
            await octavo.feed.followed(["file", "sop", "note"])
            before, number = octavo.works, octavo.feed.number()
            told_first = asyncio.Event()
            octavo.feed.subscribe(lambda _: told_first.set())
            (tmp_path / "work/b.md").write_text("new", encoding="utf-8")
            await told_first.wait()
            for page in (5, 6, 7):
                await octavo.reload(loaded(tmp_path, HANDBOOK + f"limits: {{page: {page}}}\n"))
        assert [*octavo.works.sources] == [*before.sources]
        assert octavo.works.catalogs is before.catalogs
        told = octavo.feed.since(number, ["file", "sop", "note"])
        assert told is not None, "no gap: all of them were watched all the time"
        assert [str(one.ref) for one in told] == ["file://b.md"]


async def test_what_a_reload_changes_is_opened_anew_and_the_rest_goes_on(tmp_path: Path) -> None:
    """One source is not the other, even if they share a configuration file."""
    handbook(tmp_path)
    async with Octavo(loaded(tmp_path, HANDBOOK)) as octavo:
        before = {one.scheme: one for one in octavo.works.sources}
        await octavo.reload(loaded(tmp_path, HANDBOOK.replace("write: true", "write: true, extensions: [.md]")))
        after = {one.scheme: one for one in octavo.works.sources}
        assert [scheme for scheme in before if before[scheme] is not after[scheme]] == ["file"]
        (tmp_path / "handbook").rename(tmp_path / "old")
        (tmp_path / "handbook/sops/brand").mkdir(parents=True)
        (tmp_path / "handbook/sops/brand/brief.md").write_text("---\ntitle: Other\n---\n", encoding="utf-8")
        await octavo.reload(loaded(tmp_path, HANDBOOK.replace("write: true", "write: true, extensions: [.md]")))
        assert "Other" in (await ask(octavo, "read", "sop://brand/brief")).body, "another folder of the same name"


async def test_a_reload_that_fails_leaves_the_sources_of_before_open_and_what_catalogs_say_of_agents(
    tmp_path: Path,
) -> None:
    """They are shared by both configurations for a moment, and the new one never held."""
    handbook(tmp_path)
    (tmp_path / "unopened.py").write_text(UNOPENED, encoding="utf-8")
    async with Octavo(loaded(tmp_path, HANDBOOK)) as octavo:
        assert octavo.works.catalogs is not None
        live = octavo.works.catalogs.handbook.live
        with pytest.raises(SourceUnavailable):
            await octavo.reload(loaded(tmp_path, HANDBOOK + "plugins: [{path: ./unopened.py}]\n"))
        assert octavo.works.catalogs.handbook.live is live
        assert (await ask(octavo, "read", "file://a.md")).body == "one"
        await octavo.reload(loaded(tmp_path, HANDBOOK))
        assert (await ask(octavo, "read", "file://a.md")).body == "one"


async def test_what_is_replaced_is_closed_as_soon_as_nobody_uses_it(
    tmp_path: Path, lives: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only after half a minute: of a server that is reloaded every second thirty would be open."""
    monkeypatch.setattr(running, "LOOK", 0.0)
    async with Octavo(loaded(tmp_path, "plugins: [{path: ./life.py}]\n")) as octavo:
        await octavo.reload(loaded(tmp_path, NOTES % "x"))
        with anyio.fail_after(running.GRACE / 2):
            while lives != ["open", "closed"]:
                await anyio.lowlevel.checkpoint()
