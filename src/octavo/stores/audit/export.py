"""Audit records for other programs: lines of JSON, of CSV, and OpenTelemetry log records.

OpenTelemetry: each line is one `LogsData` message in the JSON encoding of OTLP, which collectors read with
their otlpjsonfile receiver and which can be posted to /v1/logs as it is.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from octavo.core.version import VERSION
from octavo.stores.audit.query import Record

COLUMNS: Final = ("time", "id", "parent", "who", "op", "uri", "outcome", "rule", "cache", "size", "us", "incident")
_BATCH = 100
_INFO, _WARN, _ERROR = (9, "INFO"), (13, "WARN"), (17, "ERROR")


def json_lines(records: Iterable[Record]) -> Iterator[str]:
    return (_compact(record) for record in records)


def csv_lines(records: Iterable[Record]) -> Iterator[str]:
    """A heading, then a row each; what has no column of its own stands as JSON in `more`."""
    yield _row([*COLUMNS, "more"])
    for record in records:
        more = {key: value for key, value in record.items() if key not in COLUMNS}
        yield _row([*(record.get(column, "") for column in COLUMNS), _compact(more) if more else ""])


def otel_lines(records: Iterable[Record]) -> Iterator[str]:
    rest = iter(records)
    while batch := [*itertools.islice(rest, _BATCH)]:
        scope = {"scope": {"name": "octavo.audit", "version": VERSION}, "logRecords": [*map(_log_record, batch)]}
        resource = {"attributes": [_attribute("service.name", "octavo")]}
        yield _compact({"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]})


FORMATS: Final[Mapping[str, Callable[[Iterable[Record]], Iterator[str]]]] = {
    "jsonl": json_lines,
    "csv": csv_lines,
    "otel": otel_lines,
}


def _log_record(record: Record) -> dict[str, Any]:
    number, text = _severity(str(record.get("outcome", "")))
    facts = {f"octavo.{key}": value for key, value in record.items() if key not in ("time", "who")}
    return {
        "timeUnixNano": _nanoseconds(str(record.get("time", ""))),
        "severityNumber": number,
        "severityText": text,
        "eventName": "octavo.request",
        "body": {"stringValue": f"{record.get('op', '')} {record.get('uri', '')}".strip()},
        "attributes": [
            _attribute("user.id", record.get("who", "")),
            *(_attribute(key, value) for key, value in facts.items()),
        ],
    }


def _severity(outcome: str) -> tuple[int, str]:
    if outcome in ("ok", "end", "cancelled", "intent") or outcome.startswith("status 2"):
        return _INFO
    return _ERROR if outcome in ("crash", "internal") else _WARN


def _attribute(key: str, value: object) -> dict[str, Any]:
    # 64-bit integers are strings in this encoding.
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}}


def _nanoseconds(time: str) -> str:
    try:
        return f"{round(datetime.fromisoformat(time).timestamp() * 1000)}000000"
    except ValueError:
        return "0"


def _row(cells: Iterable[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([_harmless(cell) for cell in cells])
    return text.getvalue()


def _harmless(cell: object) -> object:
    """Spreadsheets run a text that begins like a formula, and clients choose what addresses begin with."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def _compact(value: object) -> str:
    """On one line, and with nothing that could fool a reader or a terminal."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if text.isprintable() else json.dumps(value, separators=(",", ":"))
