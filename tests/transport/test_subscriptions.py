"""Subscriptions in both eras: patterns, policy at subscribe and at delivery, caps, overflow, a proper end.

Demands: O10, A4, B3; protocol.md rows 10 to 13; T7, T13.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.gate.doors import Json, Pipe, Web, modern_headers
from tests.gate.twins import INITIALIZED, META, frame, initialize
from tests.gate.world import KEYS, configuration, house, principal

from octavo.app import Octavo
from octavo.app.configuration import zero
from octavo.core.ref import Ref
from octavo.core.values import Change, Entry, Principal
from octavo.stores.state import StateDirectory
from octavo.transport.mcp.subscriber import BACKLOG, Note, Subscriber

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O10", "A4", "B3")]

ERAS = ["modern", "2025-11-25"]
EVENT = "dev.octavo/event"
UPDATED = "notifications/resources/updated"
CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}'


def memory(octavo: Octavo) -> Any:
    return next(source for source in octavo.works.sources if source.scheme == "mem")


class Listener:
    """One client and the patterns it listens to."""

    def __init__(self, pipe: Pipe, era: str) -> None:
        self.pipe, self.era = pipe, era

    async def subscribe(self, *patterns: str, lists: bool = False) -> list[Json]:
        if self.era == "modern":
            wanted: dict[str, Any] = {"resourceSubscriptions": [*patterns]}
            if lists:
                wanted |= {"resourcesListChanged": True, "toolsListChanged": True, "promptsListChanged": True}
            await self.pipe.write(frame("subscriptions/listen", {"notifications": wanted, "_meta": META}, 9) + b"\n")
            return [Json.of(line) for line in await self.pipe.until(1)]
        answers = await self.pipe.ask(initialize(self.era)) + await self.pipe.ask(INITIALIZED)
        for number, pattern in enumerate(patterns):
            answers += await self.pipe.ask(frame("resources/subscribe", {"uri": pattern}, number))
        return answers

    async def heard(self, at_least: int) -> list[dict[str, Any]]:
        """The params of the updates that came since: at least so many, and what comes with them."""
        lines = await self.pipe.settle()
        while len(told := [one["params"] for one in map(json.loads, lines) if one["method"] == UPDATED]) < at_least:
            lines += await self.pipe.until(1)
        return told


@asynccontextmanager
async def listener(folder: Path, era: str, who: str = "brand") -> AsyncIterator[tuple[Octavo, Listener]]:
    async with house(configuration(folder)) as octavo, Pipe(octavo, principal(octavo, who), lane=True) as pipe:
        await pipe.settle()  # the feed begins to watch
        yield octavo, Listener(pipe, era)


async def write(octavo: Octavo, uri: str, body: str) -> None:
    await memory(octavo).write(Ref.parse(uri), body, if_match=None)


def change(uri: str, kind: Any = "updated") -> Change:
    ref = Ref.parse(uri)
    entry = Entry(ref=ref, name=ref.name, version="2", metadata={"version": "1.1.0"})
    old = Entry(ref=ref, name=ref.name, version="1", metadata={"version": "1.0.0"})
    return Change(
        kind=kind, ref=ref, at=0.0, old=None if kind == "created" else old, new=None if kind == "deleted" else entry
    )


@pytest.mark.parametrize("era", ERAS)
async def test_an_event_tells_what_when_and_which_fields_changed(folder: Path, era: str) -> None:
    """Seed 003: {type, uri, timestamp, changes {version: [old, new]}}."""
    async with listener(folder, era) as (octavo, client):
        await client.subscribe("mem://one")
        octavo.feed.publish(change("mem://one"))
        (told,) = await client.heard(1)
        assert told["uri"] == "mem://one"
        assert told["_meta"][EVENT] == {
            "type": "resource/updated",
            "uri": "mem://one",
            "timestamp": "1970-01-01T00:00:00.000Z",
            "changes": {"version": ["1.0.0", "1.1.0"]},
        }
        if era == "modern":
            assert told["_meta"]["io.modelcontextprotocol/subscriptionId"] == 9


@pytest.mark.parametrize("era", ERAS)
async def test_secrets_in_metadata_are_not_told(folder: Path, era: str) -> None:
    async with listener(folder, era) as (octavo, client):
        await client.subscribe("mem://one", lists=True)
        ref, secret = Ref.parse("mem://one"), "AKIA" + "Z7PQ4XKWM2RT6VYB"
        entry = Entry(ref=ref, name="one", version="1", metadata={"note": f"key {secret}"})
        octavo.feed.publish(Change(kind="created", ref=ref, at=0.0, new=entry))
        told = await client.heard(1)
        assert len(told) == 1 and "[redacted:" in json.dumps(told) and secret not in json.dumps(told)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("pattern", "covered"),
    [
        ("mem://one", {"mem://one"}),
        ("mem://item/*", {"mem://item/a", "mem://item/b/c"}),
        ("mem://item/", {"mem://item/a", "mem://item/b/c"}),
        ("mem://*", {"mem://one", "mem://item/a", "mem://item/b/c"}),
        ("file://docs/*.md", {"file://docs/x.md"}),
        ("**", {"mem://one", "mem://item/a", "mem://item/b/c", "file://docs/x.md", "file://docs/y.txt"}),
    ],
)
async def test_a_pattern_hears_what_it_covers_and_nothing_else(
    folder: Path, era: str, pattern: str, covered: set[str]
) -> None:
    async with listener(folder, era) as (octavo, client):
        await client.subscribe(pattern)
        for uri in (
            "mem://one",
            "mem://item/a",
            "mem://item/b/c",
            "file://docs/x.md",
            "file://docs/y.txt",
            "file://hr/a",
            "mem://two",
        ):
            octavo.feed.publish(change(uri))
        assert {told["uri"] for told in await client.heard(len(covered))} == covered  # hr and two are denied to it


def moved(uri: str, to: str) -> Change:
    left, came = change(uri, "deleted"), change(to, "created")
    return Change(kind="renamed", ref=came.ref, source=left.ref, at=0.0, old=left.old, new=came.new)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("pattern", "uri", "to", "told"),
    [
        ("file://*", "file://a/x", "file://b/x", ("renamed", "file://b/x", "file://a/x")),
        ("file://b/*", "file://a/x", "file://b/x", ("created", "file://b/x", None)),
        ("file://a/*", "file://a/x", "file://b/x", ("deleted", "file://a/x", None)),
        ("file://c/*", "file://a/x", "file://b/x", None),
        ("file://*", "file://hr/x", "file://b/x", ("created", "file://b/x", None)),
        ("file://*", "file://a/x", "file://hr/x", ("deleted", "file://a/x", None)),
        ("file://*", "file://hr/x", "file://hr/y", None),
    ],
)
async def test_a_move_is_told_as_far_as_the_listener_sees_it(
    folder: Path, era: str, pattern: str, uri: str, to: str, told: tuple[str, str, str | None] | None
) -> None:
    """Who hears of one end only, or may know of one end only, is not told that there is another."""
    async with listener(folder, era) as (octavo, client):
        await client.subscribe(pattern)
        octavo.feed.publish(moved(uri, to))
        events = [(one["uri"], one["_meta"][EVENT]) for one in await client.heard(told is not None)]
        assert [(e["type"], e["uri"], e.get("from")) for _, e in events] == (
            [] if told is None else [(f"resource/{told[0]}", *told[1:])]
        )
        assert all(named == event["uri"] for named, event in events)
        assert told is None or told[0] == "renamed" or "hr" not in json.dumps(events)


def listed_as(change: Change, prefix: str) -> Change:
    """As a source tells it whose lists give absolute addresses."""

    def own(entry: Entry | None) -> Entry | None:
        return None if entry is None else replace(entry, ref=Ref.parse(f"{prefix}{'/'.join(entry.ref.segments)}"))

    return replace(change, old=own(change.old), new=own(change.new))


SPELLINGS = ["file://", "file:///docs/", "file://{folder}/docs/"]  # relative, as it is shown, the path of the machine


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("shown", ["file:///docs/", "file://"])
async def test_what_a_pattern_covers_is_told_as_lists_give_it(
    folder: Path, era: str, spelling: str, shown: str
) -> None:
    """F1: whatever the spelling of the pattern; both ends of a move."""

    def told_by_a_source(change: Change) -> Change:
        return change if shown == "file://" else listed_as(change, shown)

    async with listener(folder, era) as (octavo, client):
        await client.subscribe(f"{spelling.format(folder=folder)}notes/*")
        octavo.feed.publish(told_by_a_source(change("file://notes/n0.txt")))
        octavo.feed.publish(told_by_a_source(change("file://notes/n1.txt", "deleted")))
        octavo.feed.publish(told_by_a_source(moved("file://notes/n0.txt", "file://notes/new.txt")))
        octavo.feed.publish(told_by_a_source(change("file://guide.md")))
        heard = [(one["uri"], one["_meta"][EVENT]) for one in await client.heard(3)]
        names = [f"{shown}notes/{name}" for name in ("n0.txt", "n1.txt", "new.txt")]
        assert [uri for uri, _ in heard] == [event["uri"] for _, event in heard] == names
        assert heard[-1][1]["from"] == names[0]


@pytest.mark.parametrize("era", ERAS)
async def test_real_writes_reach_the_subscriber(folder: Path, era: str) -> None:
    async with listener(folder, era) as (octavo, client):
        await client.subscribe("mem://*", lists=True)
        await write(octavo, "mem://one", "changed")
        assert [told["_meta"][EVENT]["type"] for told in await client.heard(1)] == ["resource/updated"]
        await write(octavo, "mem://new", "new")
        lines = [json.loads(line) for line in await client.pipe.until(2)]
        assert [one["method"] for one in lines] == [
            "notifications/resources/list_changed", UPDATED,
        ]  # fmt: skip
        assert all(one["params"]["_meta"][EVENT]["type"] == "resource/created" for one in lines)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_an_address_is_told_in_the_words_in_which_it_was_asked_for(folder: Path, era: str, spelling: str) -> None:
    """F1: also by a client that listens to a pattern around it."""
    uri = f"{spelling.format(folder=folder)}notes/n0.txt"
    async with listener(folder, era) as (octavo, client):
        await client.subscribe("file://notes/*", uri)
        octavo.feed.publish(listed_as(change("file://notes/n0.txt"), "file:///docs/"))
        octavo.feed.publish(listed_as(change("file://notes/n1.txt"), "file:///docs/"))
        octavo.feed.publish(listed_as(moved("file://notes/n1.txt", "file://notes/n0.txt"), "file:///docs/"))
        heard = [(one["uri"], one["_meta"][EVENT]["uri"]) for one in await client.heard(3)]
        other = "file:///docs/notes/n1.txt"
        assert heard == [(uri, uri), (other, other), (uri, uri)]


@asynccontextmanager
async def two_folders(base: Path, era: str) -> AsyncIterator[tuple[Octavo, Listener]]:
    """With a file of one name in each; the first one hides that of the second."""
    for name in ("A", "B"):
        (base / name).mkdir()
        (base / name / "same.md").write_text(name, encoding="utf-8")
    loaded = zero(base / "A", base / "B", environ={"HOME": str(base)})
    async with (
        Octavo(loaded, state=StateDirectory.open(base / "state")) as octavo,
        Pipe(octavo, octavo.works.identity.launched(None), lane=True) as pipe,
    ):
        await octavo.feed.followed(["file"])
        yield octavo, Listener(pipe, era)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("asked", "of_the_first", "of_the_second"),
    [
        (["rel"], ["rel"], []),
        (["second"], [], ["second"]),
        (["rel", "second"], ["rel"], ["second"]),
        (["file://*"], ["first"], ["second"]),
        (["file://*", "rel"], ["rel"], ["second"]),
        (["rel", "first"], ["rel", "first"], []),
        (["file://*", "first", "rel", "second"], ["first", "rel"], ["second"]),
    ],
)
async def test_a_file_that_another_one_hides_is_told_by_its_own_address_alone(
    tmp_path: Path, era: str, asked: list[str], of_the_first: list[str], of_the_second: list[str]
) -> None:
    """The relative address is that of the first folder. Whoever asked in two spellings is told in each of them."""
    meant = {"rel": "file://same.md", "first": f"file://{tmp_path}/A/same.md", "second": f"file://{tmp_path}/B/same.md"}
    async with two_folders(tmp_path, era) as (octavo, client):
        await client.subscribe(*(meant.get(one, one) for one in asked), "file://end.md")
        for folder, expected in (("A", of_the_first), ("B", of_the_second)):
            heard: asyncio.Queue[Change] = asyncio.Queue()
            leave = octavo.feed.subscribe(heard.put_nowait)
            (tmp_path / folder / "same.md").write_text(f"other words of {folder}", encoding="utf-8")
            async with asyncio.timeout(30):
                await heard.get()
            leave()
            octavo.feed.publish(change("file://end.md"))
            told = await client.heard(len(expected) + 1)
            assert [one["uri"] for one in told[:-1]] == [meant[one] for one in expected]
            assert all(one["_meta"][EVENT]["uri"] == one["uri"] for one in told)


async def test_the_acknowledgement_comes_first_and_leaves_out_what_is_denied(folder: Path) -> None:
    async with listener(folder, "modern") as (_, client):
        (acknowledged,) = await client.subscribe("mem://one", "mem://two", "file://hr/*", "not a uri", "what://x")
        assert acknowledged.value["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged.value["params"]["notifications"] == {"resourceSubscriptions": ["mem://one"]}


async def test_in_the_handshake_era_a_denied_subscription_is_an_error(folder: Path) -> None:
    async with listener(folder, "2025-11-25") as (_, client):
        answers = {one.value.get("id"): one.value for one in await client.subscribe("mem://one", "mem://two")}
        assert answers[0]["result"] == {}
        assert answers[1]["error"]["code"] == -32003


@pytest.mark.parametrize("era", ERAS)
async def test_a_rule_that_changes_takes_effect_at_the_next_event(folder: Path, era: str) -> None:
    async with listener(folder, era) as (octavo, client):
        await client.subscribe("mem://*")
        await octavo.reload(configuration(folder, rule='{who: brand, may: [watch], what: "mem://one", effect: deny}'))
        await client.pipe.settle()
        octavo.feed.publish(change("mem://one"))
        octavo.feed.publish(change("mem://bin"))
        assert [told["uri"] for told in await client.heard(1)] == ["mem://bin"]


@pytest.mark.parametrize("era", ERAS)
async def test_whoever_is_removed_from_the_configuration_hears_nothing_more(folder: Path, era: str) -> None:
    async with listener(folder, era) as (octavo, client):
        await client.subscribe("mem://*", lists=True)
        loaded = configuration(folder)
        agents = {name: agent for name, agent in loaded.config.agents.items() if name != "brand"}
        await octavo.reload(replace(loaded, config=loaded.config.model_copy(update={"agents": agents})))
        await client.pipe.settle()
        octavo.feed.publish(change("mem://one"))
        assert await client.pipe.settle() == []


@pytest.mark.parametrize("era", ERAS)
async def test_a_reload_tells_that_the_resources_may_have_changed(folder: Path, era: str) -> None:
    """What it tells of tools and prompts is in `test_definitions`."""
    async with listener(folder, era) as (octavo, client):
        await client.subscribe(lists=True)
        await octavo.reload(configuration(folder))
        assert await client.pipe.settle() == [], "the same again"
        await octavo.reload(configuration(folder, rule='{who: brand, may: [watch], what: "mem://one", effect: deny}'))
        told = {json.loads(line)["method"] for line in await client.pipe.settle()}
        assert told == {"notifications/resources/list_changed"}


async def test_a_principal_has_so_many_subscriptions_and_no_more(folder: Path) -> None:
    """T13: caps per principal; five in this world. What ends makes room."""
    async with listener(folder, "2025-11-25") as (_, client):
        answers = await client.subscribe(*(f"mem://item/{n}" for n in range(7)), "mem://item/0")
        refused = [one.value["error"] for one in answers if "error" in one.value]
        assert [error["code"] for error in refused] == [-32004, -32004]
        assert refused[0]["data"] == {"reason": "rate_limited", "limit": 5, "retryAfterMs": 60000}
        await client.pipe.ask(frame("resources/unsubscribe", {"uri": "mem://item/0"}, 50))
        (again,) = await client.pipe.ask(frame("resources/subscribe", {"uri": "mem://item/9"}, 51))
        assert again.value["result"] == {}


async def test_a_principal_has_so_many_listen_streams_and_no_more(folder: Path) -> None:
    async with listener(folder, "modern") as (_, client):
        lists = {"notifications": {"toolsListChanged": True}, "_meta": META}
        answers = await client.pipe.ask(*(frame("subscriptions/listen", lists, number) for number in range(7)))
        assert sum(one.value.get("method") == "notifications/subscriptions/acknowledged" for one in answers) == 5
        assert [one.value["error"]["code"] for one in answers if "error" in one.value] == [-32004, -32004]
        many = {"notifications": {"resourceSubscriptions": [f"mem://{n}" for n in range(6)]}, "_meta": META}
        (refused,) = await client.pipe.ask(frame("subscriptions/listen", many, 50))
        assert refused.value["error"]["code"] == -32004


async def test_when_the_server_stops_a_listen_stream_ends_with_its_result(folder: Path) -> None:
    """T7: the stream is owed a proper end, and must not hold up the shutdown."""
    async with listener(folder, "modern") as (_, client):
        await client.subscribe("mem://*")
        client.pipe.connection.stop()
        (ended,) = [json.loads(line) for line in await client.pipe.until(1)]
        assert ended["id"] == 9
        assert ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 9


async def test_over_HTTP_a_listen_stream_ends_with_its_result(folder: Path) -> None:
    asked = {"notifications": {"resourceSubscriptions": ["mem://*"]}, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": asked}
    raw = json.dumps(body).encode()
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        stream = asyncio.ensure_future(web.ask(raw, modern_headers(body, KEYS["BRAND_KEY"])))
        async with asyncio.timeout(5):
            while not any(subscriber.patterns for subscriber in web.hub._subscribers):
                await asyncio.sleep(0)
            octavo.feed.publish(change("mem://one"))
            web.hub.close()
            reply = await stream
        events = [json.loads(line[6:]) for line in reply.body.splitlines() if line.startswith("data: ")]
        assert [one.get("method", "result") for one in events] == [
            "notifications/subscriptions/acknowledged", "notifications/resources/updated", "result",
        ]  # fmt: skip


async def test_cancelling_a_listen_stream_leaves_nothing_behind(folder: Path) -> None:
    async with listener(folder, "modern") as (octavo, client):
        for _ in range(8):  # more than the cap: each makes room again
            (acknowledged,) = await client.subscribe("mem://one")
            assert "error" not in acknowledged.value
            await client.pipe.ask(CANCEL)
        hub = client.pipe.connection.hub
        assert not hub._subscribers and not hub._count and not hub._streams
        octavo.feed.publish(change("mem://one"))
        assert await client.pipe.settle() == []


async def test_a_connection_that_ends_leaves_nothing_behind(folder: Path) -> None:
    async with listener(folder, "2025-11-25") as (_, client):
        await client.subscribe("mem://one", "mem://*")
        hub = client.pipe.connection.hub
        assert hub._count["brand"] == 2
        await client.pipe.leave()
        assert not hub._subscribers and not hub._count and not hub._streams
        assert client.pipe.connection._server._sessions._open == {}


# -- a subscriber that does not read


def note(number: int) -> Note:
    return Note("notifications/resources/updated", {"uri": f"mem://{number}"})


async def drained(subscriber: Subscriber) -> list[Note]:
    got: list[Note] = []

    async def send(one: Note) -> None:
        got.append(one)

    subscriber.close()
    await subscriber.pump(send)
    return got


async def test_a_modern_stream_whose_backlog_overflows_is_ended() -> None:
    subscriber = Subscriber(Principal("x"), ends_on_overflow=True)
    for number in range(BACKLOG + 5):
        subscriber.push(note(number))
    assert subscriber.closed
    assert await drained(subscriber) == [note(number) for number in range(BACKLOG)]


async def test_an_old_connection_whose_backlog_overflows_is_told_to_read_anew() -> None:
    subscriber = Subscriber(Principal("x"), ends_on_overflow=False)
    for number in range(BACKLOG + 2):
        subscriber.push(note(number))
    assert not subscriber.closed
    got = await drained(subscriber)
    assert got == [Note("notifications/resources/list_changed", {}), note(BACKLOG + 1)]


async def test_an_overflow_takes_no_news_of_tools_away() -> None:
    """They are told once: whoever has missed that would never hear of it again."""
    subscriber = Subscriber(Principal("x"), ends_on_overflow=False)
    tools = Note("notifications/tools/list_changed", {})
    subscriber.push(tools)
    for number in range(BACKLOG):
        subscriber.push(note(number))
    assert await drained(subscriber) == [tools, Note("notifications/resources/list_changed", {})]


async def test_one_list_changed_tells_as_much_as_ten() -> None:
    subscriber = Subscriber(Principal("x"), ends_on_overflow=True)
    for _ in range(10):
        subscriber.push(Note("notifications/tools/list_changed", {}))
    assert len(await drained(subscriber)) == 1
