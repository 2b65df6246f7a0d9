"""Evidence cannot be washed away: floods are counted, and what is young stays."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import Place, Server

from octavo.core.clock import FrozenClock
from octavo.stores.audit.growth import growth
from octavo.stores.audit.ledger import FileLedger
from octavo.stores.audit.query import RecordFilter, found
from octavo.stores.audit.verify import verify

KEY = "octavo_reader-key-for-tests-0123456789"
CONFIGURATION = """\
version: 1
sources:
  work: {kind: file, roots: [./root]}
agents:
  reader: {key: "file:keys/reader"}
policy:
  - {who: "*", may: "*", what: "**"}
limits: {per_principal: 1/s}
audit: {rotate: 4KiB, keep: 2}
"""
SECRET = b"k" * 32
pytestmark = pytest.mark.seed("A7")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.edit("salaries.md", "x")
    (tmp_path / "keys").mkdir(mode=0o700)
    (tmp_path / "keys/reader").write_text(f"{KEY}\n", encoding="utf-8")
    (tmp_path / "keys/reader").chmod(0o600)
    (tmp_path / "octavo.yaml").write_text(CONFIGURATION, encoding="utf-8")
    return made


def strangers(server: Server, number: int) -> int:
    """So many requests without a key; how many were answered."""
    host = server.url.removeprefix("http://").partition("/")[0]
    connection = HTTPConnection(host, timeout=30)
    answered = 0
    for _ in range(number):
        connection.request("POST", "/mcp", b"{}", {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        answered += answer.status == 401
    connection.close()
    return answered


def read_back(place: Place, *asked: str) -> list[Any]:
    done = place.run("audit", "query", "--config", place.base / "octavo.yaml", "--json", "--limit", "100000", *asked)
    return list(json.loads(done.stdout)["records"])


def number_of(records: list[Any]) -> int:
    return sum(one.get("count", 1) for one in records)


def test_strangers_cannot_wash_a_record_away_and_each_of_them_is_counted_also_after_a_kill(place: Place) -> None:
    with place.serve("--config", place.base / "octavo.yaml") as server:
        assert server.asking(KEY).ask("resources/read", {"uri": "file://salaries.md"}).result
        assert strangers(server, 400) == 400
        refused = [server.asking(KEY).ask("resources/read", {"uri": "file://salaries.md"}).status for _ in range(60)]
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(30)
    (read, *_) = read_back(place, "--op", "read", "--outcome", "ok")
    assert read["uri"] == "file://salaries.md"
    unknown = read_back(place, "--who", "unknown")
    assert number_of(unknown) == 400 and len(unknown) < 30
    assert number_of(read_back(place, "--who", "reader")) == 61, refused
    done = place.run("audit", "verify", "--config", place.base / "octavo.yaml")
    assert done.returncode == 0 and "request(s) of floods, in summaries" in done.stdout, done.stdout


# Each with the `op` of its records. Methods that a client makes up have one together, or it could make up kinds too.
FLOODS = {
    "ping": ("legacy", lambda _: ("ping", {}), "ping"),
    "logging/setLevel": ("legacy", lambda _: ("logging/setLevel", {"level": "info"}), "logging/setLevel"),
    "server/discover": ("modern", lambda _: ("server/discover", {}), "server/discover"),
    "subscribing, with wrong params": ("legacy", lambda _: ("resources/subscribe", {}), "resources/subscribe"),
    "made-up methods": ("modern", lambda number: (f"no/such-{number}", {}), "request"),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_of_what_never_becomes_a_call_is_summarised_too(place: Place, flood: str) -> None:
    era, made, op = FLOODS[flood]
    with place.serve("--config", place.base / "octavo.yaml") as server:
        asking = server.asking(KEY, era).open()
        answers = [asking.ask(*made(number)).body for number in range(100)]
    refused = sum("Rate limit exceeded" in one.get("error", {}).get("message", "") for one in answers)
    assert refused > 50
    records = read_back(place, "--who", "reader", "--op", op, "--outcome", "rate_limited")
    assert number_of(records) == refused
    assert any("count" in one for one in records) and len(records) <= 42, "20 a minute and a summary"
    assert not [one for one in read_back(place) if one["outcome"] == "error -32004"]


@contextmanager
def ledger(folder: Path, clock: FrozenClock, **more: Any) -> Iterator[FileLedger]:
    made = FileLedger(folder, SECRET, clock=clock, **more)
    yield made
    made.close()


def flood(log: FileLedger, number: int) -> None:
    for one in range(number):
        log.crowd(b'{"time":"2025-11-15T09:46:40Z","id":"x-%d","who":"unknown"}' % one, "unknown", "http", "refused")
        log.flush()


def test_a_summary_goes_into_the_chain_when_its_minute_is_over(tmp_path: Path) -> None:
    clock = FrozenClock(1_763_200_000.0)
    with ledger(tmp_path / "audit", clock) as log:
        flood(log, 50)
        clock.advance(61)
        flood(log, 50)
        report = verify(tmp_path / "audit", SECRET)
        assert (report.ok, report.records, report.chains[0].counted) == (True, 41, 60)
        records = list(found(tmp_path / "audit", RecordFilter()))
        assert [one["count"] for one in records if "count" in one] == [30, 30]
    report = verify(tmp_path / "audit", SECRET)
    assert (report.ok, report.records, report.chains[0].counted) == (True, 42, 60)
    assert number_of(list(found(tmp_path / "audit", RecordFilter()))) == 100


def test_counts_that_were_changed_are_found(tmp_path: Path) -> None:
    clock = FrozenClock(1_763_200_000.0)
    with ledger(tmp_path / "audit", clock) as log:
        flood(log, 50)
        (counts,) = (tmp_path / "audit").glob("*.counts")
        counts.write_bytes(counts.read_bytes().replace(b'"count":30', b'"count":10'))
        report = verify(tmp_path / "audit", SECRET)
        assert not report.ok and report.chains[0].broken is not None
        assert report.chains[0].broken.file == counts.name


@pytest.mark.parametrize("minutes", (1, 10, 59, 61, 600))
def test_the_pace_of_the_log_is_that_of_the_time_it_took(tmp_path: Path, minutes: int) -> None:
    """Whatever its age: a disk that is full in forty minutes is not told to last for weeks."""
    clock = FrozenClock(1_763_200_000.0)
    with ledger(tmp_path / "audit", clock, max_bytes=1 << 20, keep=2) as log:
        log.append(b'{"filler":"%b"}' % (b"." * 100_000))
        log.flush()
        clock.advance(59)
        young = growth(tmp_path / "audit", clock.wall())
        assert young.per_day is None and "too young" in str(young), "a burst is no pace"
        clock.advance(60 * minutes - 59)
        told = growth(tmp_path / "audit", clock.wall())
        assert told.per_day == round(told.size * 24 * 60 / minutes)


def test_nothing_is_deleted_that_is_younger_than_min_age(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = FrozenClock(1_763_200_000.0)
    with ledger(tmp_path / "audit", clock, max_bytes=1000, keep=2, min_age=3600.0) as log:
        for number in range(100):
            clock.advance(10)
            log.append(b'{"id":"a-%d","who":"reader","filler":"%b"}' % (number, b"." * 100))
            log.flush()
        young = len(list((tmp_path / "audit").glob("*.jsonl")))
        assert young > 10 and verify(tmp_path / "audit", SECRET).records == 100
        assert caplog.text.count("nothing is old enough to be deleted") == 1 and "a day" in caplog.text
        clock.advance(3601)
        for number in range(20):
            log.append(b'{"id":"b-%d","who":"reader","filler":"%b"}' % (number, b"." * 100))
            log.flush()
        kept = len(list((tmp_path / "audit").glob("*.jsonl")))
        assert kept < young, "of what is older, `keep` files stay"
    report = verify(tmp_path / "audit", SECRET, min_age=3600.0)
    assert report.ok and not report.chains[0].early
    assert verify(tmp_path / "audit", SECRET, min_age=7200.0).chains[0].early, "for a longer age it was too early"
