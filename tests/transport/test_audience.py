"""Many subscribers: each hears exactly what it would hear alone, and a change costs what those cost who hear of it.

Demands: O10, B3, T13.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.gate.world import configuration, house

from octavo.app import Octavo
from octavo.app.compose import Composed
from octavo.config.load import Loaded
from octavo.core.delivery import Delivery
from octavo.core.event import event
from octavo.core.glob import Glob
from octavo.core.ref import Ref
from octavo.core.values import Change, ChangeKind, Entry, Principal, Verb, shown
from octavo.transport.mcp import wire_names
from octavo.transport.mcp.streams import end_of, framed
from octavo.transport.mcp.subscriber import BACKLOG, Note, Subscriber
from octavo.transport.mcp.subscriptions import Hub

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O10", "B3")]

NAMES = ["a", "b", "hr", "hidden", "x.md", "y.md"]


def roomy(folder: Path, rule: str = "") -> Loaded:
    """The world, with subscriptions for everybody."""
    loaded = configuration(folder, rule=rule)
    limits = loaded.config.limits.model_copy(update={"subscriptions": 100_000})
    return replace(loaded, config=loaded.config.model_copy(update={"limits": limits}))


@pytest.fixture
async def octavo(folder: Path) -> AsyncIterator[Octavo]:
    async with house(roomy(folder)) as octavo:
        yield octavo


def joined(hub: Hub, octavo: Octavo, who: str, *, lists: bool = False, modern: bool = True) -> Subscriber:
    subscriber = Subscriber(octavo.works.identity.launched(who), ends_on_overflow=modern)
    if lists:
        subscriber.lists.add("resources")
    hub.join(subscriber)
    return subscriber


async def want(hub: Hub, subscriber: Subscriber, pattern: str) -> None:
    async def granted() -> Glob:
        return Glob(pattern)

    await hub.want(subscriber, pattern, granted)


def taken(subscriber: Subscriber) -> list[Note]:
    """What it was told since, as it is sent."""
    notes: list[Note] = []

    async def send(note: Note) -> None:
        notes.append(note)

    sending = subscriber.pump(send)
    with contextlib.suppress(StopIteration):  # it is closed; else it waits for the next note
        sending.send(None)
    sending.close()
    return notes


def updated(uri: str, kind: Any = "updated", **metadata: Any) -> Change:
    ref = Ref.parse(uri)
    old, new = (Entry(ref=ref, name=ref.name, version=version, metadata=metadata) for version in "12")
    return Change(
        kind=kind, ref=ref, at=0.0, old=None if kind == "created" else old, new=None if kind == "deleted" else new
    )


# -- the oracle: every subscriber is looked at, and every pattern of it


def heard(works: Composed, change: Change, subscriber: Subscriber) -> list[Note]:
    delivery, who, notes = Delivery(works, change), subscriber.principal, list[Note]()
    globs = {text: wanted.glob for text, wanted in subscriber.patterns.items()}

    def covers(ref: Ref, entry: Entry | None) -> bool:
        return bool(delivery.covering(globs, ref, shown(ref, entry)))

    def spelled(ref: Ref, listed: Ref) -> list[str]:
        covering = delivery.covering(globs, ref, listed)
        return [text for text, glob in covering.items() if glob.exact] or [str(listed) if covering else ""]

    def said(told: Change) -> list[dict[str, Any]]:
        uris = spelled(told.ref, told.shown)
        if told.source is None or told.shown_source is None:
            return [event(told, uri) for uri in uris]
        return [event(told, uri, spelled(told.source, told.shown_source)[0]) for uri in uris]

    listens = "resources" in subscriber.lists and delivery.kind != "updated"
    told = delivery.told(who, "list") if listens else None
    if told is not None:
        notes.append(Note(wire_names.LIST_CHANGED, {"_meta": {wire_names.EVENT: said(told)[0]}}))
    told = delivery.told(who, wanted=covers) if globs else None
    if told is not None:
        for about in said(told):
            notes.append(Note(wire_names.UPDATED, {"uri": about["uri"], "_meta": {wire_names.EVENT: about}}))
    return notes


class _Chance:
    """Patterns, addresses and changes by chance, on few names, so that they meet."""

    def __init__(self, seed: int, folder: Path) -> None:
        self._chance = random.Random(seed)
        self._places = ["file://", "file:///docs/", f"file://{folder}/docs/", "mem://"]
        self._folder = folder

    def path(self, most: int = 3) -> str:
        return "/".join(self._chance.choices(NAMES, k=self._chance.randint(1, most)))

    def pattern(self) -> str:
        place = self._chance.choice([*self._places, "*://"])
        parts = [
            self._chance.choice(["*", "**", name[0] + "*", "*" + name[-1]]) if self._chance.random() < 0.25 else name
            for name in self.path().split("/")
        ]
        whole = self._chance.choice(["**", "file://*", "mem://*", "file://hr/*"])
        end = self._chance.choice(["", "", "", "/*", "/"])
        return whole if self._chance.random() < 0.1 else place + "/".join(parts) + end

    def change(self) -> Change:
        kinds: list[ChangeKind] = ["created", "updated", "updated", "deleted", "renamed"]
        kind = self._chance.choice(kinds)
        scheme = self._chance.choice(["file", "file", "mem"])
        listed = self._chance.choice(["", "file:///docs/"]) if scheme == "file" else ""
        old, new = (self._entry(scheme, listed) for _ in range(2))
        if kind != "renamed":
            old = replace(old, ref=new.ref, name=new.name)
        ref, source = (Ref(scheme, one.ref.segments[listed != "" :]) for one in (new, old))
        change = Change(
            kind=kind,
            ref=ref,
            source=source if kind == "renamed" else None,
            at=0.0,
            old=None if kind == "created" else old,
            new=None if kind == "deleted" else new,
        )
        if scheme == "file" and self._chance.random() < 0.15:
            return replace(change, unmoved=(new.ref,))
        if listed and kind != "renamed" and self._chance.random() < 0.2:  # a file in an earlier folder hides it
            return replace(change, ref=ref._replace(params=(("root", "2"),)))
        return change

    def _entry(self, scheme: str, listed: str) -> Entry:
        path = self.path()
        target = Ref.parse(f"file://{self.path()}") if scheme == "file" and self._chance.random() < 0.1 else None
        return Entry(
            ref=Ref.parse(f"{listed or f'{scheme}://'}{path}"),
            name="a@example.com" if self._chance.random() < 0.3 else path.split("/")[-1],
            version=str(self._chance.random()),
            etag=self._chance.choice(["", "e1"]),
            target=target,
        )

    def of(self, many: Sequence[Any]) -> Any:
        return self._chance.choice(many)

    def often(self, share: float) -> bool:
        return self._chance.random() < share


RULES = [
    "{who: brand, may: [read], what: 'file://a/*', effect: deny}",
    "{who: hr, may: [list], what: 'file://b/*', effect: deny}",
    "{who: 'role:people', may: [watch], what: 'mem://a', effect: deny}",
    "{who: '*', may: '*', what: 'file://x.md', effect: deny}",
]


@pytest.mark.parametrize("seed", range(8))
async def test_each_hears_what_it_would_hear_if_it_were_asked_alone(folder: Path, octavo: Octavo, seed: int) -> None:
    chance, hub = _Chance(seed, folder), Hub(octavo)
    subscribers: list[Subscriber] = []
    told = 0
    for _ in range(250):
        if len(subscribers) < 12 or chance.often(0.1):
            who = chance.of(["brand", "hr", "local", "nobody"])
            subscribers.append(joined(hub, octavo, who, lists=chance.often(0.4)))
        subscriber = chance.of(subscribers)
        if chance.often(0.6):
            await want(hub, subscriber, chance.pattern())
        elif subscriber.patterns and chance.often(0.5):
            hub.forget(subscriber, chance.of([*subscriber.patterns]))
        elif len(subscribers) > 20:
            hub.leave(subscriber)
            subscribers.remove(subscriber)
        if chance.often(0.03):
            await octavo.reload(roomy(folder, chance.of(RULES)))
            for one in subscribers:
                taken(one)
        change = chance.change()
        expected = {one: heard(octavo.works, change, one) for one in subscribers}
        octavo.feed.publish(change)
        for one in subscribers:
            assert taken(one) == expected[one], (change, [*one.patterns], one.principal)
            told += len(expected[one])
    assert told > 500


# -- how often something is done


class _Counted:
    """What the policy and the encoder were asked."""

    def __init__(self, octavo: Octavo, monkeypatch: pytest.MonkeyPatch) -> None:
        self.decisions = 0
        policy = octavo.works.policy
        decide: Callable[[Principal, Verb, Change], Change | None] = policy.told

        def counting(principal: Principal, verb: Verb, change: Change) -> Change | None:
            self.decisions += 1
            return decide(principal, verb, change)

        monkeypatch.setattr(policy, "told", counting)


async def test_a_change_asks_and_makes_nothing_for_those_who_do_not_hear_of_it(
    octavo: Octavo, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, counted = Hub(octavo), _Counted(octavo, monkeypatch)
    subscribers = [joined(hub, octavo, "brand") for _ in range(1000)]
    for number, subscriber in enumerate(subscribers):
        await want(hub, subscriber, f"mem://team/{number // 10}/*")
    octavo.feed.publish(updated("mem://team/7/page"))
    assert counted.decisions == 1
    notes = [note for subscriber in subscribers for note in taken(subscriber)]
    assert len(notes) == 10 and len({id(note) for note in notes}) == 1
    octavo.feed.publish(updated("mem://nowhere"))
    assert counted.decisions == 1


async def test_those_of_the_same_rules_are_decided_together_and_told_the_same_note(
    octavo: Octavo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A spelling that was asked for is a note of its own."""
    hub, counted = Hub(octavo), _Counted(octavo, monkeypatch)
    people = {who: [joined(hub, octavo, who) for _ in range(20)] for who in ("brand", "hr", "local")}
    for subscriber in (one for some in people.values() for one in some):
        await want(hub, subscriber, "mem://*")
    await want(hub, people["hr"][0], "mem://%6fne")
    octavo.feed.publish(updated("mem://one"))
    assert counted.decisions == 2  # a rule denies something to brand; for hr and local the same rules hold
    notes = {who: [note for one in some for note in taken(one)] for who, some in people.items()}
    assert [len(some) for some in notes.values()] == [20, 20, 20]
    assert notes["hr"][0].params["uri"] == "mem://%6fne"
    assert len({id(note) for some in notes.values() for note in some}) == 2
    octavo.feed.publish(updated("mem://two"))
    assert not any(map(taken, people["brand"])) and all(map(taken, people["hr"]))


async def test_news_of_lists_is_decided_once_for_all_of_the_same_rules(
    octavo: Octavo, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, counted = Hub(octavo), _Counted(octavo, monkeypatch)
    some = [joined(hub, octavo, "brand", lists=True) for _ in range(50)]
    octavo.feed.publish(updated("mem://new", "created"))
    octavo.feed.publish(updated("mem://new"))
    assert counted.decisions == 1
    assert len({id(note) for one in some for note in taken(one)}) == 1


async def test_a_note_is_encoded_once_and_says_on_each_stream_to_which_it_belongs(octavo: Octavo) -> None:
    hub = Hub(octavo)
    some = [joined(hub, octavo, "brand") for _ in range(3)]
    for subscriber in some:
        await want(hub, subscriber, "mem://*")
    octavo.feed.publish(updated("mem://one", tags=["가", None], since=None))
    (note,) = {id(note): note for one in some for note in taken(one)}.values()
    frames = [framed(note, end_of({"io.modelcontextprotocol/subscriptionId": tag})) for tag in (1, "둘")]
    beginning = note.memo["frame"]
    assert all(frame.startswith(beginning) for frame in frames)
    told = [json.loads(frame.removeprefix(b"event: message\r\ndata: ")) for frame in frames]
    assert [one["params"]["_meta"].pop("io.modelcontextprotocol/subscriptionId") for one in told] == [1, "둘"]
    assert told[0] == told[1] == {"jsonrpc": "2.0", "method": wire_names.UPDATED, "params": note.params}
    empty = Note("notifications/tools/list_changed", {})
    assert json.loads(framed(empty, end_of({"id": 9}))[22:])["params"] == {"_meta": {"id": 9}}


# -- those who want much, and those who go


async def test_a_hundred_patterns_that_cover_everything_are_told_one_note(
    octavo: Octavo, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, counted = Hub(octavo), _Counted(octavo, monkeypatch)
    subscriber = joined(hub, octavo, "brand")
    for number in range(98):
        await want(hub, subscriber, "mem://" + "**/" * (number + 1) + "*")
    await want(hub, subscriber, "**")
    octavo.feed.publish(updated("mem://one"))
    assert len(taken(subscriber)) == counted.decisions == 1


async def test_whoever_has_left_while_it_was_asked_about_hears_nothing_and_takes_no_room(octavo: Octavo) -> None:
    hub = Hub(octavo)
    subscriber = joined(hub, octavo, "brand")
    asked, may = asyncio.Event(), asyncio.Event()

    async def granted() -> Glob:
        asked.set()
        await may.wait()
        return Glob("mem://*")

    wanting = asyncio.ensure_future(hub.want(subscriber, "mem://*", granted))
    await asked.wait()
    hub.leave(subscriber)
    may.set()
    await wanting
    octavo.feed.publish(updated("mem://one"))
    assert not taken(subscriber) and not subscriber.patterns
    assert not hub._count and not hub._audience._index


async def test_what_is_asked_for_twice_at_once_is_told_once_and_ended_at_once(octavo: Octavo) -> None:
    hub = Hub(octavo)
    subscriber = joined(hub, octavo, "brand")
    both, may = asyncio.Barrier(3), asyncio.Event()

    async def granted() -> Glob:
        await both.wait()
        await may.wait()
        return Glob("mem://*")

    wanting = [asyncio.ensure_future(hub.want(subscriber, "mem://*", granted)) for _ in range(2)]
    await both.wait()
    may.set()
    await asyncio.gather(*wanting)
    octavo.feed.publish(updated("mem://one"))
    assert len(taken(subscriber)) == 1 and hub._count == {"brand": 1}
    assert hub.forget(subscriber, "mem://*") and not hub.forget(subscriber, "mem://*")
    octavo.feed.publish(updated("mem://one"))
    assert not taken(subscriber) and not hub._count and not hub._audience._index


async def test_a_change_between_two_steps_of_a_reload_is_told_by_the_rules_that_hold(
    octavo: Octavo, folder: Path
) -> None:
    """One who listens to reloads publishes before the hub has heard of it."""
    hub: Hub | None = None
    seen: list[list[Note]] = []
    some: list[Subscriber] = []

    def between() -> None:
        octavo.feed.publish(updated("mem://one"))
        seen.extend(map(taken, some))

    octavo.on_swap(between)
    hub = Hub(octavo)
    for who in ("hr", "local"):
        some.append(joined(hub, octavo, who))
        await want(hub, some[-1], "mem://*")
    await octavo.reload(roomy(folder, '{who: hr, may: [watch], what: "mem://one", effect: deny}'))
    assert [len(notes) for notes in seen] == [0, 1]


async def test_one_who_does_not_read_keeps_nothing_from_the_others(octavo: Octavo) -> None:
    hub = Hub(octavo)
    ends, stays, reads = (joined(hub, octavo, "brand", modern=modern) for modern in (True, False, True))
    for subscriber in (ends, stays, reads):
        await want(hub, subscriber, "mem://*")
    got: list[Note] = []
    for number in range(BACKLOG + 2):
        octavo.feed.publish(updated(f"mem://{number}"))
        got += taken(reads)
    assert [note.params["uri"] for note in got] == [f"mem://{number}" for number in range(BACKLOG + 2)]
    assert ends.closed and taken(ends) == got[:BACKLOG]
    assert taken(stays) == [Note(wire_names.LIST_CHANGED, {}), got[-1]]
