"""What the audit log says, asked by who, what, when and how it ended; and for other programs."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from octavo.core.clock import FrozenClock, iso
from octavo.core.glob import Glob
from octavo.stores.audit.export import COLUMNS, FORMATS
from octavo.stores.audit.ledger import FileLedger
from octavo.stores.audit.query import RecordFilter, found, latest, trees

KEY = b"k" * 32
BEGIN = 1_763_200_000.0


def record(number: int, **facts: Any) -> dict[str, Any]:
    known = {"time": iso(BEGIN + number), "id": f"ab-{number}", "who": "agent-brand", "op": "read"}
    return {
        **known,
        "uri": f"file://docs/{number}.md",
        "outcome": "ok",
        "rule": "policy[0]",
        "size": 1,
        "us": 5,
        **facts,
    }


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    return tmp_path / "audit"


def write(audit: Path, *records: dict[str, Any], begun: float = 0.0, max_bytes: int = 1 << 20) -> FileLedger:
    ledger = FileLedger(audit, KEY, clock=FrozenClock(BEGIN + begun), max_bytes=max_bytes)
    for one in records:
        ledger.append(json.dumps(one, ensure_ascii=False).encode())
        ledger.flush()
    return ledger


def numbers(records: Any) -> list[str]:
    return [one["id"] for one in records]


@pytest.mark.seed("A7", "T8")
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (RecordFilter(), ["ab-1", "ab-2", "ab-3", "ab-4"]),
        (RecordFilter(who=("agent-ops",)), ["ab-2"]),
        (RecordFilter(op=("list", "watch")), ["ab-3", "ab-4"]),
        (RecordFilter(outcome=("forbidden",)), ["ab-2"]),
        (RecordFilter(rule=("policy[1]",)), ["ab-2"]),
        (RecordFilter(uri=Glob("file://hr/*")), ["ab-2"]),
        (RecordFilter(uri=Glob("file://docs/1.md")), ["ab-1"]),
        (RecordFilter(since=BEGIN + 2, until=BEGIN + 3), ["ab-2"]),
        (RecordFilter(who=("agent-ops",), outcome=("ok",)), []),
    ],
)
def test_every_condition_must_hold(audit: Path, question: RecordFilter, expected: list[str]) -> None:
    write(
        audit,
        record(1),
        record(2, who="agent-ops", uri="file://hr/pay.md", outcome="forbidden", rule="policy[1]"),
        record(3, op="list", uri="no address"),
        record(4, op="watch file://docs/*", outcome="end"),
    )
    assert numbers(found(audit, question)) == expected


def test_the_latest_are_given_oldest_first(audit: Path) -> None:
    write(audit, *(record(number) for number in range(20)), max_bytes=600)
    assert numbers(latest(audit, RecordFilter(), 3)) == ["ab-17", "ab-18", "ab-19"]


def test_chains_of_several_processes_are_merged_by_time(audit: Path) -> None:
    write(audit, *(record(number) for number in (1, 4, 7, 12)))
    write(audit, *(record(number) for number in (6, 8)), begun=5)
    write(audit, record(11), begun=10)
    assert numbers(found(audit, RecordFilter())) == [f"ab-{number}" for number in (1, 4, 6, 7, 8, 11, 12)]


def test_the_torn_end_of_a_killed_process_is_left_out(audit: Path) -> None:
    write(audit, record(1))
    (file,) = audit.glob("*.jsonl")
    with file.open("ab") as end:
        end.write(b'{"time":"2025-11-')
    assert numbers(found(audit, RecordFilter())) == ["ab-1"]


@pytest.mark.seed("T8")
def test_a_match_shows_every_call_above_and_below_it(audit: Path) -> None:
    """Children are recorded before their parents, because they end earlier."""
    write(
        audit,
        record(2, parent="ab-1"),
        record(4, parent="ab-3", uri="file://hr/pay.md", outcome="forbidden"),
        record(3, parent="ab-1", op="invoke", uri="tool://inner"),
        record(5, parent="ab-1"),
        record(1, op="invoke", uri="tool://report"),
        record(6),
    )
    refused = latest(audit, RecordFilter(outcome=("forbidden",)), 10)
    shown = [(depth, one["id"]) for depth, one in trees(audit, refused)]
    assert shown == [(0, "ab-1"), (1, "ab-2"), (1, "ab-3"), (2, "ab-4"), (1, "ab-5")]


def test_a_log_whose_calls_go_in_circles_ends(audit: Path) -> None:
    write(audit, record(1, parent="ab-2"), record(2, parent="ab-1"))
    assert len(trees(audit, latest(audit, RecordFilter(), 10))) <= 2


def lines(form: str, *records: dict[str, Any]) -> list[str]:
    return [*FORMATS[form](records)]


def test_json_lines_are_the_records(audit: Path) -> None:
    records = [record(1), record(2, uri="file://한글\n.md")]
    assert [json.loads(line) for line in lines("jsonl", *records)] == records
    assert all(line.isprintable() for line in lines("jsonl", *records))


def test_csv_has_a_column_for_each_field_and_one_for_the_rest() -> None:
    heading, row = csv.reader(lines("csv", record(1, era="legacy", uri='file://a,"b".md')))
    assert heading == [*COLUMNS, "more"]
    cells = dict(zip(heading, row, strict=True))
    assert (cells["uri"], cells["size"], cells["parent"], cells["more"]) == (
        'file://a,"b".md',
        "1",
        "",
        '{"era":"legacy"}',
    )


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_no_cell_of_a_csv_begins_like_a_formula(text: str) -> None:
    *_, row = csv.reader(lines("csv", record(1, uri=text)))
    assert row[COLUMNS.index("uri")] == f"'{text}"


@pytest.mark.seed("T8")
def test_opentelemetry_log_records() -> None:
    first, second = lines("otel", *(record(number) for number in range(99)), record(99, outcome="crash"), record(100))
    logs = json.loads(first)["resourceLogs"][0]
    assert logs["resource"]["attributes"] == [{"key": "service.name", "value": {"stringValue": "octavo"}}]
    records = logs["scopeLogs"][0]["logRecords"]
    assert len(records) == 100
    assert len(json.loads(second)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]) == 1
    one = records[7]
    assert one["timeUnixNano"] == f"{int(BEGIN) + 7}000000000"
    assert (one["severityNumber"], one["severityText"], one["eventName"]) == (9, "INFO", "octavo.request")
    facts = {attribute["key"]: attribute["value"] for attribute in one["attributes"]}
    assert facts["user.id"] == {"stringValue": "agent-brand"}
    assert facts["octavo.uri"] == {"stringValue": "file://docs/7.md"}
    assert facts["octavo.us"] == {"intValue": "5"}
    assert records[99]["severityText"] == "ERROR"
    assert datetime.fromtimestamp(int(one["timeUnixNano"]) / 1e9).timestamp() == BEGIN + 7
