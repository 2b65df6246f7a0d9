"""`GET /changes`: the feed as server-sent events, by number, for whom the rules let it be (B3, O10, A4, T7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.gate.doors import Reply, Web
from tests.gate.world import KEYS, Journal

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.config.load import Loaded
from octavo.core.ref import Ref
from octavo.core.routes import EVENTS
from octavo.core.values import Change, Entry
from octavo.feed.stream import ChangeStream
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("B3", "O10", "T7")]

LIMIT = 30.0
CONFIG = """
version: 1
sources:
  mem: {kind: memory, scheme: mem, resources: {one: {text: one}, hr/pay: {text: pay}}}
  other: {kind: memory, scheme: other, resources: {one: {text: one}}}
agents:
  brand: {key: "${BRAND_KEY}"}
  hr: {key: "${HR_KEY}"}
  nobody: {key: "${NOBODY_KEY}"}
policy:
  - {who: [brand, hr], may: "*", what: "**"}
  - {who: brand, may: "*", what: "mem://hr/*", effect: deny}
limits: {page: 4, subscriptions: 3, per_principal: "RATE"}
MORE
"""


def loaded(folder: Path, more: str = "", *, rate: str = "off", without: str = "") -> Loaded:
    text = CONFIG.replace("MORE", more).replace("RATE", rate)
    if without:
        text = "\n".join(line for line in text.splitlines() if not line.strip().startswith(without))
    return load_text(text, file=folder / "octavo.yaml", environ=KEYS)


@asynccontextmanager
async def served(
    folder: Path, config: Loaded | None = None, *, kept: bool = True, quiet: float = 1_000.0
) -> AsyncIterator[tuple[Web, Octavo]]:
    state = StateDirectory.open(folder / "state", fail_closed=True) if kept else StateDirectory.in_memory()
    octavo = Octavo(config or loaded(folder), state=state, lasting=True)
    octavo.ledger = Journal()
    async with octavo as house:
        await house.feed.followed([source.scheme for source in house.works.sources])
        stream = ChangeStream(house, lambda: house.works.changes, quiet=quiet)
        async with Web(house, lane=True, routes=stream.routes) as web:
            yield web, house


def told(key: str, *more: tuple[str, str]) -> list[tuple[str, str]]:
    return [("Host", "127.0.0.1:8321"), ("Authorization", f"Bearer {KEYS[key]}"), *more]


class Event(NamedTuple):
    id: str
    kind: str = ""
    data: Any = None


class Stream:
    """What one client hears."""

    def __init__(self, web: Web, key: str = "BRAND_KEY", query: str = "", *more: tuple[str, str]) -> None:
        self._web, self._sent = web, list[Any]()
        self._given = [{"type": "http.request", "body": b"", "more_body": False}]
        self._events, self._changes, self._read = list[Event](), list[str](), 0
        self.left = asyncio.Event()
        exchange = web.exchange(
            self._receive, told(key, *more), method="GET", path="/changes", query=query, sent=self._sent
        )
        self.task = asyncio.ensure_future(exchange)

    async def _receive(self) -> Any:
        if self._given:
            return self._given.pop()
        await self.left.wait()
        return {"type": "http.disconnect"}

    @property
    def events(self) -> list[Event]:
        """Pieces end with whole events."""
        while self._read < len(self._sent):
            text = self._sent[self._read].get("body", b"").decode()
            self._read += 1
            for block in text.split("\n\n")[:-1]:
                fields = dict(line.split(": ", 1) for line in block.split("\n"))
                if "id" in fields:
                    data = json.loads(fields.get("data", "null"))
                    self._events.append(Event(fields["id"], fields.get("event", ""), data))
                    if fields.get("event") == "change":
                        self._changes.append(f"{data['type'][9:]} {data['uri']}")
        return self._events

    @property
    def changes(self) -> list[str]:
        return self._changes if self.events else []

    async def until(self, *changes: str) -> None:
        async with asyncio.timeout(LIMIT):
            while len(self.changes) < len(changes) or not self.events:
                await asyncio.sleep(0)
        assert self.changes == [*changes]

    async def heard(self, kind: str) -> Event:
        async with asyncio.timeout(LIMIT):
            while not (found := [one for one in self.events if one.kind == kind]):
                await asyncio.sleep(0)
        return found[-1]

    async def ended(self) -> Reply:
        async with asyncio.timeout(LIMIT):
            return await self.task

    async def leave(self) -> None:
        self.left.set()
        await self.ended()


async def ask(
    web: Web, key: str = "BRAND_KEY", query: str = "", *more: tuple[str, str], path: str = "/changes"
) -> Reply:
    return await web.ask(b"", told(key, *more), method="GET", path=path, query=query)


def happen(house: Octavo, *paths: str, version: str = "2") -> None:
    for path in paths:
        ref = Ref.parse(path)
        old, new = (Entry(ref=ref, name=ref.name, version=one) for one in ("1", version))
        house.feed.publish(Change(kind="updated", ref=ref, at=1.0, old=old, new=new))


def outcomes(web: Web) -> list[tuple[str, str, str]]:
    journal = web.house.ledger
    assert isinstance(journal, Journal)
    return [(one["who"], one["op"], one["outcome"]) for one in journal.since(0)]


async def test_changes_are_told_as_they_happen_each_with_its_number(tmp_path: Path) -> None:
    async with served(tmp_path) as (web, house):
        stream = Stream(web)
        await stream.until()
        happen(house, "mem://one", "other://one")
        await stream.until("updated mem://one", "updated other://one")
        first = stream.events[1]
        assert first.id.startswith(f"{first.data['seq']}-") and first.data["changes"] == {"version": ["1", "2"]}
        await stream.leave()
        reply = await stream.ended()
        assert dict(reply.headers)["content-type"] == EVENTS
        assert outcomes(web) == [("brand", "changes", "ok"), ("brand", "changes", "end")]


async def test_a_client_that_comes_again_goes_on_behind_its_last_event(tmp_path: Path) -> None:
    """In another life of the server, too, and however many pages it has missed."""
    (tmp_path / "work").mkdir()
    text = 'sources: {work: {kind: file, uris: relative, roots: [./work]}}\nagents: {brand: {key: "${BRAND_KEY}"}}\n'
    config = load_text(text + "limits: {page: 4}", file=tmp_path / "octavo.yaml", environ=KEYS)
    names = [f"n{place:02}.md" for place in range(11)]
    async with served(tmp_path, config) as (web, _):
        stream = Stream(web)
        await stream.until()
        (tmp_path / "work" / "one.md").write_text("one", encoding="utf-8")
        await stream.until("created file://one.md")
        last = stream.events[-1].id
    for name in names:
        (tmp_path / "work" / name).write_text("one", encoding="utf-8")
    async with served(tmp_path, config) as (web, _):
        stream = Stream(web, "BRAND_KEY", "", ("Last-Event-ID", last))
        await stream.until(*(f"created file://{name}" for name in names))
        (tmp_path / "work" / "last.md").write_text("one", encoding="utf-8")
        await stream.until(*(f"created file://{name}" for name in (*names, "last.md")))
        told = [one for one in stream.events if one.kind == "change"]
        again = Stream(web, "BRAND_KEY", f"after={told[4].data['seq']}")
        await again.until(*stream.changes[5:])
        assert [one.id for one in told] == sorted({one.id for one in told})


async def test_only_what_the_caller_may_watch_leaves_and_a_reload_holds_at_once(tmp_path: Path) -> None:
    async with served(tmp_path) as (web, house):
        brand, hr = Stream(web), Stream(web, "HR_KEY")
        await brand.until()
        await hr.until()
        happen(house, "mem://hr/pay", "mem://one")
        await hr.until("updated mem://hr/pay", "updated mem://one")
        await brand.until("updated mem://one")
        denied = CONFIG.replace("\nlimits", '\n  - {who: brand, may: "*", what: "mem://one", effect: deny}\nlimits')
        denied = denied.replace("MORE", "").replace("RATE", "off")
        await house.reload(load_text(denied, file=tmp_path / "octavo.yaml", environ=KEYS))
        happen(house, "mem://one", "other://one", version="3")
        await brand.until("updated mem://one", "updated other://one")
        await house.reload(loaded(tmp_path, without="brand:"))
        assert (await brand.ended()).status == 200
        assert not hr.task.done()
        assert not any("pay" in str(one) for one in brand.events)


async def test_a_scope_is_a_source_or_what_stands_below_an_address(tmp_path: Path) -> None:
    async with served(tmp_path) as (web, house):
        whole, part = Stream(web, "HR_KEY", "scope=mem://"), Stream(web, "HR_KEY", "scope=mem://hr")
        await whole.until()
        await part.until()
        happen(house, "other://one", "mem://one", "mem://hr/pay")
        await whole.until("updated mem://one", "updated mem://hr/pay")
        await part.until("updated mem://hr/pay")
        left = CONFIG.replace("mem:", "none:").replace("scheme: mem", "scheme: none").replace("mem://", "none://")
        left = left.replace("MORE", "").replace("RATE", "off")
        await house.reload(load_text(left, file=tmp_path / "octavo.yaml", environ=KEYS))
        happen(house, "other://one", version="3")
        for stream in (whole, part):
            assert (await stream.ended()).status == 200, "it is not served any more"


async def test_whom_a_rule_denies_the_feed_it_is_denied_as_a_stream_too(tmp_path: Path) -> None:
    """As a resource, `changes://`, it needs no grant of its own, but a rule can deny it."""
    denied = CONFIG.replace("\nlimits", '\n  - {who: brand, may: "*", what: "changes://*", effect: deny}\nlimits')
    denied = denied.replace("MORE", "").replace("RATE", "off")
    config = load_text(denied, file=tmp_path / "octavo.yaml", environ=KEYS)
    async with served(tmp_path, config) as (web, house):
        for query in ("", "scope=mem://", "scope=mem://one"):
            reply = await ask(web, "BRAND_KEY", query)
            assert (reply.status, reply.json["error"]) == (403, "forbidden"), query
        hr = Stream(web, "HR_KEY")
        await hr.until()
        await house.reload(loaded(tmp_path))
        brand = Stream(web)
        await brand.until()
        happen(house, "mem://one")
        await brand.until("updated mem://one")
        await house.reload(config)
        happen(house, "mem://one", version="3")
        assert (await brand.ended()).status == 200
        await hr.until("updated mem://one", "updated mem://one")
        assert brand.changes == ["updated mem://one"]
        assert outcomes(web)[:3] == [("brand", "changes", "forbidden")] * 3


@pytest.mark.parametrize(
    "number",
    ["-1", "+1", "1.5", "1e3", "0x1", "9" * 400, "99999999999999999", "٣", "one", "1-", "1-ABC", "01", "1-" + "0" * 16],
)  # fmt: skip
@pytest.mark.parametrize("how", ["after", "Last-Event-ID"])
async def test_what_is_no_number_of_this_server_is_refused(tmp_path: Path, number: str, how: str) -> None:
    from urllib.parse import quote

    async with served(tmp_path) as (web, _):
        if how == "after":
            reply = await ask(web, "BRAND_KEY", f"after={quote(number)}")
        else:
            reply = await ask(web, "BRAND_KEY", "", (how, number.encode().decode("latin-1")))
        assert (reply.status, reply.json["error"]) == (400, "invalid_params")
        assert outcomes(web) == [("brand", "changes", "invalid_params")]


async def test_a_number_of_the_future_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as (web, _):
        line = (await _first(web)).partition("-")[2]
        for number in (2**53 - 1, 9_000_000_000_000_000):
            for query, header in ((f"after={number}", ()), ("", (("Last-Event-ID", f"{number}-{line}"),))):
                reply = await ask(web, "BRAND_KEY", query, *header)
                assert (reply.status, reply.json["error"]) == (400, "invalid_params")


async def test_the_last_event_of_another_server_is_refused(tmp_path: Path) -> None:
    """Also of this one, when its store was made anew."""
    async with served(tmp_path / "one") as (web, _):
        last = await _first(web)
    async with served(tmp_path / "other") as (web, _):
        reply = await ask(web, "BRAND_KEY", "", ("Last-Event-ID", last))
        assert (reply.status, reply.json["error"]) == (400, "invalid_params") and "another server" in reply.body


async def test_of_another_principal_a_number_gives_what_the_own_rules_allow(tmp_path: Path) -> None:
    async with served(tmp_path) as (web, house):
        hr = Stream(web, "HR_KEY")
        await hr.until()
        begun = hr.events[-1].id
        happen(house, "mem://hr/pay", "mem://one")
        await hr.until("updated mem://hr/pay", "updated mem://one")
        for last, seen in ((begun, ["updated mem://one"]), (hr.events[-2].id, ["updated mem://one"])):
            brand = Stream(web, "BRAND_KEY", "", ("Last-Event-ID", last))
            await brand.until(*seen)
            await brand.leave()


async def test_what_is_not_kept_any_more_is_said_and_the_stream_goes_on(tmp_path: Path) -> None:
    async with served(tmp_path, loaded(tmp_path, "feed: {keep: 2}")) as (web, house):
        last = await _first(web)
        happen(house, *(f"mem://n{place}" for place in range(1_500)))
        watching = Stream(web)
        await watching.until()
        stream = Stream(web, "BRAND_KEY", "", ("Last-Event-ID", last))
        gap = await stream.heard("gap")
        assert gap.id.partition("-")[0] == str(gap.data["next"])
        happen(house, "mem://one")
        await stream.until("updated mem://one")


async def test_a_quiet_stream_tells_a_number_to_go_on_with_and_nothing_about_what_is_hidden(tmp_path: Path) -> None:
    async with served(tmp_path, quiet=0.01) as (web, house):
        stream = Stream(web)
        await stream.until()
        seen = len(stream.events)
        happen(house, "mem://hr/pay")
        async with asyncio.timeout(LIMIT):
            while len(stream.events) < seen + 3:
                await asyncio.sleep(0)
        journal = (await house.home.store()).journal
        numbers = {str(one.number) for one in await journal.read(0)}
        assert stream.changes == [] and not numbers & {one.id.partition("-")[0] for one in stream.events}
        last = stream.events[-1].id
        await stream.leave()
        again = Stream(web, "HR_KEY", "", ("Last-Event-ID", last))
        happen(house, "mem://one")
        await again.until("updated mem://one")


async def test_a_slow_reader_holds_up_nobody_and_misses_nothing(tmp_path: Path) -> None:
    """Nothing waits for it in memory: it reads on where it was."""
    async with served(tmp_path) as (web, house):
        reads, sent = asyncio.Event(), list[bytes]()
        given = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Any:
            return given.pop() if given else await asyncio.get_running_loop().create_future()

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))
            if len(sent) > 2:
                await reads.wait()

        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "path": "/changes",
            "raw_path": b"/changes", "query_string": b"", "root_path": "", "scheme": "http", "client": ("127.0.0.1", 2),
            "headers": [(name.lower().encode(), value.encode()) for name, value in told("HR_KEY")],
            "server": ("127.0.0.1", 8321), "state": {},
        }  # fmt: skip
        slow = asyncio.ensure_future(web.app(scope, receive, send))
        quick = Stream(web)
        await quick.until()
        for place in range(6_000):  # more than is kept in memory
            happen(house, "other://one", version=f"n{place}")
            if place % 1_000 == 0:
                await quick.until(*["updated other://one"] * (place + 1))
        await quick.until(*["updated other://one"] * 6_000)
        assert b"".join(sent).count(b"event: change") <= 50
        reads.set()
        async with asyncio.timeout(LIMIT):
            while b'"n5999"' not in sent[-1]:
                await asyncio.sleep(0)
        heard = [json.loads(line[6:]) for line in b"".join(sent).split(b"\n") if line.startswith(b"data: ")]
        assert [one["changes"]["version"][1] for one in heard] == [f"n{place}" for place in range(6_000)]
        slow.cancel()


async def test_without_a_state_folder_the_stream_tells_what_this_process_has_seen(tmp_path: Path) -> None:
    async with served(tmp_path, kept=False) as (web, house):
        stream = Stream(web)
        await stream.until()
        happen(house, "mem://one", "mem://two")
        await stream.until("updated mem://one", "updated mem://two")
        again = Stream(web, "BRAND_KEY", "", ("Last-Event-ID", stream.events[1].id))
        await again.until("updated mem://two")


async def test_streams_are_limited_and_recorded_like_everything_else(tmp_path: Path) -> None:
    async with served(tmp_path) as (web, _):
        nobody = await web.ask(b"", [("Host", "127.0.0.1:8321")], method="GET", path="/changes")
        assert nobody.status == 401
        strange = await web.ask(b"", [("Host", "evil.example"), *told("HR_KEY")[1:]], method="GET", path="/changes")
        assert strange.status == 421
        assert (await ask(web, "NOBODY_KEY")).status == 403
        assert (await ask(web, "BRAND_KEY", "what=mem")).status == 400
        assert (await ask(web, "BRAND_KEY", "scope=nothing://")).status in (400, 404)
        streams = [Stream(web) for _ in range(3)]
        for one in streams:
            await one.until()
        assert (await ask(web)).status == 429
        web.app.stop()
        for one in streams:
            assert (await one.ended()).status == 200
        assert outcomes(web)[-3:] == [("brand", "changes", "end")] * 3
        found = {(who, outcome) for who, _, outcome in outcomes(web)}
        assert {("unknown", "unauthenticated"), ("nobody", "forbidden"), ("brand", "invalid_params")} <= found


async def test_a_stream_is_no_request_that_is_worked_on(tmp_path: Path) -> None:
    """What it counts as is said where there are too many."""
    config = CONFIG.replace("MORE", "").replace("RATE", "off").replace("limits: {", "limits: {in_flight: 2, ")
    async with served(tmp_path, load_text(config, file=tmp_path / "octavo.yaml", environ=KEYS)) as (web, _):
        streams = list[Stream]()
        for _ in range(3):
            streams.append(Stream(web))
            await streams[-1].until()
        refused = await ask(web)
        assert refused.status == 429 and "limits.subscriptions: 3" in refused.json["message"]
        assert (await ask(web, "BRAND_KEY", "after=one")).status == 400
        for one in streams:
            await one.leave()
        again = Stream(web)
        await again.until()


async def test_a_rate_counts_streams_that_are_begun(tmp_path: Path) -> None:
    async with served(tmp_path, loaded(tmp_path, rate="2/s")) as (web, _):
        statuses: list[int] = []
        for _ in range(20):
            stream = Stream(web)
            await asyncio.wait((stream.task,), timeout=0.001)
            async with asyncio.timeout(LIMIT):
                while not stream._sent:
                    await asyncio.sleep(0)
            statuses.append(stream._sent[0]["status"])
            await stream.leave()
        assert statuses[0] == 200 and 429 in statuses


async def _first(web: Web) -> str:
    stream = Stream(web)
    await stream.until()
    await stream.leave()
    return stream.events[0].id
