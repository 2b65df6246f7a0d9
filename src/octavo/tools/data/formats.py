"""Texts and bytes as values, and values as texts and bytes: JSON, JSON lines, YAML, TOML, CSV, XML, Parquet."""

from __future__ import annotations

import io
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, cast

from octavo.core.errors import InvalidParams
from octavo.tools.data import csv_text, toml_text, xml_text, yaml_text
from octavo.tools.data.tables import DataTable, table_of

_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


def prepare(formats: Sequence[str]) -> None:
    """Loads what is loaded late, while files can still be opened."""
    json.loads("[]")
    if "yaml" in formats:
        yaml_text.prepare()
    if "parquet" in formats:
        _parquet(_as_parquet(DataTable(("a",), ((1,),))), "")


def parse(raw: bytes, format: str, *, name: str = "") -> Any:
    """Plain values: dict, list, text, numbers, booleans, None. Raises InvalidParams with the place of a fault."""
    label = name or format
    if format == "parquet":
        return _parquet(raw, label)
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InvalidParams(f"{label} is no text in UTF-8 (byte {error.start}); is it really {format}?") from None
    try:
        return _READERS[format](text)
    except json.JSONDecodeError as error:
        raise InvalidParams(f"{label} is no JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    except (ValueError, ArithmeticError) as error:
        raise InvalidParams(f"{label} is no {format.upper()}: {error}; mend it, or say with from what it is") from None


def write(value: Any, format: str) -> bytes:
    """Raises InvalidParams for what the format cannot say."""
    if format == "parquet":
        return _as_parquet(table_of(value))
    return _WRITERS[format](plain(value)).encode("utf-8")


def plain(value: Any) -> Any:
    """As JSON can say it."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in cast("Sequence[Any]", value)]
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and abs(value) < 1 << 53 else float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None  # JSON has no such numbers
    return value


def _json(text: str) -> Any:
    value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    if _HALF.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it holds half a character: \\ud800 to \\udfff stand in pairs") from None
    return value


def _jsonl(text: str) -> list[Any]:
    rows: list[Any] = []
    for number, line in enumerate(text.split("\n"), 1):  # alone: other line ends may stand in a text
        if line.strip():
            try:
                rows.append(_json(line))
            except json.JSONDecodeError as error:
                raise ValueError(f"{error.msg} in line {number}, column {error.colno}") from None
    return rows


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:60]!r} stands twice in one object")
        found[key] = value
    return found


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _csv(text: str) -> list[dict[str, Any]]:
    return csv_text.parse(text).dicts()


def _parquet(raw: bytes, name: str) -> list[dict[str, Any]]:
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from pyarrow import parquet

    try:
        table = parquet.read_table(io.BytesIO(raw), use_threads=False)
        for at, field in enumerate(table.schema):
            if (
                pyarrow.types.is_timestamp(field.type) and field.type.tz
            ):  # in UTC: zones are files, and none can be read
                table = table.set_column(at, field.name, table.column(at).cast(pyarrow.timestamp(field.type.unit)))
        return cast("list[dict[str, Any]]", plain(table.to_pylist()))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InvalidParams(f"{name} is no Parquet file that can be read: {str(error).splitlines()[0]}") from None


def _as_parquet(table: DataTable) -> bytes:
    import pyarrow
    from pyarrow import parquet

    out = io.BytesIO()
    try:
        parquet.write_table(pyarrow.Table.from_pylist(table.dicts()), out)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise InvalidParams(
            f"That is no table for Parquet: {str(error).splitlines()[0]}; each column holds values of one type"
        ) from None
    return out.getvalue()


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _to_jsonl(value: Any) -> str:
    rows = value if isinstance(value, list) else [value]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _to_csv(value: Any) -> str:
    return csv_text.write(table_of(value))


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "json": _json,
    "jsonl": _jsonl,
    "yaml": yaml_text.parse,
    "toml": lambda text: plain(tomllib.loads(text)),
    "csv": _csv,
    "xml": xml_text.parse,
}
_WRITERS: Final[Mapping[str, Callable[[Any], str]]] = {
    "json": _to_json,
    "jsonl": _to_jsonl,
    "yaml": yaml_text.write,
    "toml": toml_text.write,
    "csv": _to_csv,
    "xml": xml_text.write,
}
