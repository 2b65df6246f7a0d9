"""The first fold. Requirements F9, A7, T8: every attempt, good or bad, is one record."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from octavo.core.clock import FrozenClock
from octavo.core.errors import (
    ALL,
    Forbidden,
    InternalError,
    InvalidParams,
    OctavoError,
    ProtocolError,
    RateLimited,
    SourceUnavailable,
    Unrecorded,
)
from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.values import Call, Op, Principal, Trail
from octavo.pipeline.audit import Audit

BRAND = Principal("agent-brand")


class Shelf:
    """A ledger that shows what was appended. Flushing it is the transport's business."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.full = False

    def append(self, record: bytes) -> None:
        self.lines.append(record)

    def crowd(self, record: bytes, who: str, op: str, outcome: str) -> None:
        self.lines.append(record)

    def flush(self) -> None:
        raise AssertionError("no fold flushes")

    def check(self) -> None:
        raise AssertionError("no fold asks")

    def intend(self, record: bytes) -> None:
        if self.full:
            raise Unrecorded
        self.lines.append(record)

    def settle(self, record: bytes, *, now: bool) -> bool:
        self.lines.append(record)
        return now and not self.full

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(1_763_200_000.125)


@pytest.fixture
def audit(shelf: Shelf, clock: FrozenClock) -> Audit:
    return Audit(shelf, clock=clock)


def a_call(uri: str = "sop://brand/guide", op: Op = "read", **more: Any) -> Call:
    return Call(op, Ref.parse(uri), BRAND, Trail(), uri, **more)


def run_without_a_task(coroutine: Any) -> Any:
    """As the hot lane does it."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it suspended")


async def answer(call: Call) -> str:
    return f"the content of {call.ref}"


def failing(error: BaseException) -> Any:
    async def fail(call: Call) -> None:
        raise error

    return fail


@pytest.mark.seed("F9", "A7", "T8")
def test_a_success_is_one_record_without_content(audit: Audit, shelf: Shelf, clock: FrozenClock) -> None:
    async def inner(call: Call) -> str:
        call.trail.rule, call.trail.cache, call.trail.size = "policy[2]", "hit", 2048
        clock.advance(0.000045)
        return await answer(call)

    assert run_without_a_task(audit(a_call(), inner)) == "the content of sop://brand/guide"
    assert shelf.records == [
        {
            "time": "2025-11-15T09:46:40.125Z",
            "id": f"{audit.nonce}-1",
            "who": "agent-brand",
            "op": "read",
            "uri": "sop://brand/guide",
            "outcome": "ok",
            "rule": "policy[2]",
            "cache": "hit",
            "size": 2048,
            "us": shelf.records[0]["us"],
        }
    ]
    assert shelf.records[0]["us"] in (44, 45)


@pytest.mark.seed("F9", "A7")
@pytest.mark.parametrize("kind", ALL)
def test_a_refusal_is_recorded_by_its_reason_and_passes_unchanged(
    audit: Audit, shelf: Shelf, kind: type[OctavoError]
) -> None:
    needed: dict[type[OctavoError], dict[str, Any]] = {
        RateLimited: {"retry_after": 1.0},
        ProtocolError: {"code": -32000},
    }
    error = kind("no", **needed.get(kind, {}))
    with pytest.raises(kind) as caught:
        run_without_a_task(audit(a_call(), failing(error)))
    assert caught.value is error
    assert [record["outcome"] for record in shelf.records] == [kind.reason]


def test_a_refusal_that_looks_like_absence_is_recorded_as_what_it_is(audit: Audit, shelf: Shelf) -> None:
    with pytest.raises(Forbidden):
        run_without_a_task(audit(a_call(), failing(Forbidden("no", hidden=True))))
    assert shelf.records[0]["outcome"] == "forbidden"


@pytest.mark.seed("A7", "T7")
def test_a_crash_is_recorded_and_only_the_log_knows_the_cause(
    audit: Audit, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InternalError) as caught:
        run_without_a_task(audit(a_call(), failing(KeyError("/srv/private"))))
    (record,) = shelf.records
    assert (record["outcome"], record["incident"]) == ("crash", record["id"])
    assert (str(caught.value), caught.value.data) == ("Internal error", {"incident": record["id"]})
    assert caught.value.__suppress_context__
    (entry,) = caplog.records
    assert (entry.levelno, record["id"] in entry.getMessage()) == (logging.ERROR, True)
    assert "/srv/private" in caplog.text
    assert "private" not in shelf.lines[0].decode()


def test_an_incident_of_an_inner_fold_is_named(audit: Audit, shelf: Shelf) -> None:
    with pytest.raises(SourceUnavailable):
        run_without_a_task(audit(a_call(), failing(SourceUnavailable("Source unavailable: sop", incident="ab12"))))
    assert (shelf.records[0]["outcome"], shelf.records[0]["incident"]) == ("source_unavailable", "ab12")


@pytest.mark.anyio
async def test_a_cancelled_call_is_recorded_and_stays_cancelled(audit: Audit, shelf: Shelf) -> None:
    inside = asyncio.Event()

    async def hang(call: Call) -> None:
        inside.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(5):
        task = asyncio.create_task(audit(a_call(), hang))
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [record["outcome"] for record in shelf.records] == ["cancelled"]


def test_a_coroutine_that_is_closed_is_recorded_as_cancelled(audit: Audit, shelf: Shelf) -> None:
    class Wait:
        def __await__(self) -> Any:
            yield

    async def hang(call: Call) -> None:
        await Wait()

    coroutine = audit(a_call(), hang)
    coroutine.send(None)
    coroutine.close()
    assert [record["outcome"] for record in shelf.records] == ["cancelled"]


@pytest.mark.seed("A7", "F11")
def test_children_name_their_parent(audit: Audit, shelf: Shelf) -> None:
    async def tool(call: Call) -> None:
        await audit(call.child("read", Ref.parse("sop://brand/a")), answer)
        await audit(call.child("read", Ref.parse("sop://brand/b")), nested)

    async def nested(call: Call) -> None:
        await audit(call.child("stat", Ref.parse("sop://brand/c")), answer)

    run_without_a_task(audit(a_call("tool://report", "invoke"), tool))
    tree = {record["uri"]: (record["id"], record.get("parent")) for record in shelf.records}
    number = f"{audit.nonce}-%d"
    assert tree == {
        "tool://report": (number % 1, None),
        "sop://brand/a": (number % 2, number % 1),
        "sop://brand/b": (number % 3, number % 1),
        "sop://brand/c": (number % 4, number % 3),
    }


def test_the_canonical_address_is_recorded_whatever_the_client_wrote(audit: Audit, shelf: Shelf) -> None:
    run_without_a_task(audit(a_call("SOP://brand/%EA%B0%80?b=2&a=1"), answer))
    assert shelf.records[0]["uri"] == "sop://brand/가?a=1&b=2"


@pytest.mark.parametrize(
    ("uri", "recorded"),
    [
        ("no uri\n{}", "no uri\n{}"),
        ('x","outcome":"ok', 'x","outcome":"ok'),
        ("sop://\u202egnp.exe", "sop://\u202egnp.exe"),
        ("sop://" + "a" * 9000, "sop://" + "a" * 506 + "…"),
        ("sop://\udc80", "sop://\udc80"),
    ],
)
def test_what_is_no_address_is_recorded_as_it_came_escaped_and_bounded(
    audit: Audit, shelf: Shelf, uri: str, recorded: str
) -> None:
    call = Call("read", Ref("invalid"), BRAND, Trail(), uri, fault=InvalidParams("Not a resource URI"))
    with pytest.raises(InvalidParams):
        run_without_a_task(audit(call, failing(InvalidParams("Not a resource URI"))))
    (line,) = shelf.lines
    assert shelf.records[0]["uri"] == recorded
    assert b"\n" not in line and b"\xe2\x80\xae" not in line


def test_addresses_are_scrubbed(shelf: Shelf) -> None:
    audit = Audit(shelf, scrub=lambda text: text.replace("hunter2", "[redacted]"))
    for _ in range(2):
        run_without_a_task(audit(a_call("http://host/x?key=hunter2"), answer))
    assert {record["uri"] for record in shelf.records} == {"http://host/x?key=[redacted]"}


def test_a_method_that_a_client_made_up_is_scrubbed(shelf: Shelf) -> None:
    audit = Audit(shelf, scrub=lambda text: text.replace("hunter2", "[redacted]"))
    audit.note("local", "login/hunter2", "error -32601")
    assert shelf.records[0]["op"] == "login/[redacted]"


def test_many_different_addresses_are_all_recorded(audit: Audit, shelf: Shelf) -> None:
    """The memo of addresses is bounded; records are not."""
    for number in range(5000):
        run_without_a_task(audit(a_call(f"sop://brand/{number}"), answer))
    assert [record["uri"] for record in shelf.records] == [f"sop://brand/{number}" for number in range(5000)]
    assert len({record["id"] for record in shelf.records}) == 5000


@pytest.mark.seed("A7")
def test_requests_that_never_become_a_call_are_noted(audit: Audit, shelf: Shelf) -> None:
    noted = audit.note("local", "ping", "ok", era="legacy", bytes=12)
    assert shelf.records == [
        {
            "time": "2025-11-15T09:46:40.125Z",
            "id": noted,
            "who": "local",
            "op": "ping",
            "outcome": "ok",
            "era": "legacy",
            "bytes": 12,
        }
    ]


@pytest.mark.seed("A7", "F1")
def test_the_record_names_the_canonical_address(audit: Audit, shelf: Shelf) -> None:
    """Whoever asks the log who read a thing must not have to know every spelling of its address."""

    async def canonical(call: Call) -> Reply:
        call.trail.ref = Ref.parse("file://docs/a.md")
        return await answer(call)

    run_without_a_task(audit(a_call("file:///srv/docs/a.md"), canonical))
    assert [record["uri"] for record in shelf.records] == ["file://docs/a.md"]


def test_two_processes_never_share_an_id(shelf: Shelf) -> None:
    for audit in (Audit(shelf), Audit(shelf)):
        audit.note("local", "ping", "ok")
    first, second = shelf.records
    assert first["id"] != second["id"]


@pytest.mark.seed("A7")
def test_what_changes_something_is_recorded_before_it_begins_and_its_outcome_names_that(
    audit: Audit, shelf: Shelf
) -> None:
    async def write(call: Call) -> str:
        audit.intend(call)
        assert [one["outcome"] for one in shelf.records] == ["intent"], "nothing is done before"
        return "written"

    async def tool(call: Call) -> Any:
        return await audit(call.child("write", Ref.parse("file://a.md")), write)

    call = a_call("tool://note", "invoke")
    assert run_without_a_task(audit(call, tool)) == "written"
    intent, done, root = shelf.records
    assert (intent["op"], intent["uri"], intent["parent"]) == ("write", "file://a.md", done["id"])
    assert (done["outcome"], done["intent"], done["parent"]) == ("ok", intent["id"], root["id"])
    assert "intent" not in root and "parent" not in root
    assert call.trail.kept, "nothing holds the answer back"


def test_nothing_begins_that_cannot_be_recorded(audit: Audit, shelf: Shelf) -> None:
    shelf.full = True

    async def write(call: Call) -> str:
        audit.intend(call)
        raise AssertionError("it was begun")

    with pytest.raises(Unrecorded) as refused:
        run_without_a_task(audit(a_call("file://a.md", "write"), write))
    assert refused.value.data["begun"] is False
    assert "try again later" in str(refused.value.data["hint"])
    (record,) = shelf.records
    assert record["outcome"] == "unrecorded" and "intent" not in record
    with pytest.raises(Unrecorded):
        audit.begin("local", "keys new")
    assert len(shelf.lines) == 1, "and what was announced is forgotten"


def test_an_outcome_that_is_not_stored_is_told_as_such(audit: Audit, shelf: Shelf) -> None:
    async def write(call: Call) -> str:
        audit.intend(call)
        shelf.full = True
        return "written"

    call = a_call("file://a.md", "write")
    assert run_without_a_task(audit(call, write)) == "written"
    assert call.trail.changed and not call.trail.kept
    shelf.full = False
    begun = audit.begin("local", "keys new", agent="brand")
    shelf.full = True
    with pytest.raises(Unrecorded, match="begun"):
        audit.note("local", "keys new", "ok", begun=begun)
    announced, noted = shelf.records[-2:]
    assert (announced["outcome"], announced["parent"], noted["intent"]) == ("intent", noted["id"], announced["id"])
