"""SQL over tables in memory, in an engine that can touch nothing else.

Nothing can be opened in this process any more; and the engine itself is told what it may do: SELECT, on the tables
that are there, with functions of a list. Both must fail before a byte beyond the tables is read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from octavo.core.errors import InvalidParams
from octavo.core.sizes import MIB
from octavo.tools.data.sight import copied, hidden_in, opened, parsed
from octavo.tools.data.tables import DataTable, cell, distinct, table_of

MAX_CELL: Final = 4 * MIB  # bytes
_LIMITS: Final = (
    (sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 100),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
)
FUNCTIONS: Final = frozenset((
    "->", "->>", "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "avg", "ceil", "ceiling", "char",
    "coalesce", "concat", "concat_ws", "cos", "cosh", "count", "cume_dist", "current_date", "current_time",
    "current_timestamp", "date", "datetime", "degrees", "dense_rank", "exp", "first_value", "floor", "format", "glob",
    "group_concat", "hex", "ifnull", "iif", "instr", "json", "json_array", "json_array_length", "json_each",
    "json_extract", "json_group_array", "json_group_object", "json_insert", "json_object", "json_patch", "json_quote",
    "json_remove", "json_replace", "json_set", "json_tree", "json_type", "json_valid", "julianday", "lag",
    "last_value", "lead", "length", "like", "likelihood", "likely", "ln", "log", "log10", "log2", "lower", "ltrim",
    "max", "median", "min", "mod", "nth_value", "ntile", "nullif", "octet_length", "percent_rank", "pi", "pow",
    "power", "printf", "quote", "radians", "random", "rank", "replace", "round", "row_number", "rtrim", "sign", "sin",
    "sinh", "sqrt", "strftime", "string_agg", "substr", "substring", "sum", "tan", "tanh", "time", "timediff",
    "total", "trim", "trunc", "typeof", "unicode", "unixepoch", "unlikely", "upper",
))  # fmt: skip
_TABLES_OF_FUNCTIONS: Final = frozenset(("json_each", "json_tree"))
_SCHEMA: Final = frozenset(("sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema"))


def query(asked: Mapping[str, Any], inputs: Sequence[bytes]) -> tuple[Mapping[str, Any], bytes]:
    """The first rows of the answer. Raises InvalidParams in the engine's words, with the tables that there are."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        return _answer(connection, asked, inputs), b""


def _answer(connection: sqlite3.Connection, asked: Mapping[str, Any], inputs: Sequence[bytes]) -> Mapping[str, Any]:
    connection.execute("PRAGMA temp_store=MEMORY")
    given = [*zip(inputs, asked["formats"], asked["names"], strict=True)]
    for at, (raw, format, name) in enumerate(given):
        if format == "sqlite" and (hidden := hidden_in(asked, at)):
            copied(connection, raw, name, hidden)
        elif format == "sqlite":
            opened(connection, raw, name)
    for at, (_, format, name) in enumerate(given):
        if format != "sqlite":
            _load(connection, name, table_of(parsed(asked, inputs, at)))
    tables = _lock(connection)
    try:
        cursor = connection.execute(asked["sql"])
        rows = cursor.fetchmany(asked["limit"] + 1)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise InvalidParams(_explained(error, tables)) from None
    if cursor.description is None:
        raise InvalidParams("That gives no rows: ask with a SELECT")
    columns = [str(one[0]) for one in cursor.description]
    shown = [[_shown(value) for value in row] for row in rows[: asked["limit"]]]
    return {"columns": columns, "rows": shown, "more": len(rows) > asked["limit"], "tables": dict(tables)}


def _load(connection: sqlite3.Connection, name: str, table: DataTable) -> None:
    columns = distinct(table.columns, str.lower)  # SQL knows no difference between Name and name
    if not columns:
        raise InvalidParams(f"{name} has no columns")
    marks = ", ".join("?" * len(columns))
    try:
        connection.execute(f"CREATE TEMP TABLE {_quoted(name)} ({', '.join(map(_quoted, columns))})")
        connection.executemany(
            f"INSERT INTO temp.{_quoted(name)} VALUES ({marks})",  # noqa: S608  # the name is quoted
            ([cell(value) for value in row] for row in table.rows),
        )
    except sqlite3.Error as error:
        raise InvalidParams(f"{name} cannot be made a table: {error}") from None


def _lock(connection: sqlite3.Connection) -> list[tuple[str, list[str]]]:
    """From here on it can only select. The tables that there are, with their columns."""
    found: list[tuple[str, list[str]]] = []
    for schema in ("temp", "main"):
        listed = connection.execute(f"SELECT name FROM {schema}.sqlite_master WHERE type IN ('table', 'view')")  # noqa: S608
        for (name,) in listed.fetchall():
            try:
                columns = [str(row[1]) for row in connection.execute(f"PRAGMA {schema}.table_info({_quoted(name)})")]
            except sqlite3.Error:
                continue  # a view of something that is not there
            found.append((str(name), columns))
    for name in _TABLES_OF_FUNCTIONS:  # they come to be when they are first used, and that is no SELECT
        connection.execute(f"SELECT 1 FROM {name}('[]')")  # noqa: S608  # ours
    connection.execute("PRAGMA query_only=ON")
    for limit, most in _LIMITS:
        connection.setlimit(limit, most)
    connection.set_authorizer(_allowed({name.lower() for name, _ in found}))
    return found


def _allowed(tables: set[str]) -> Callable[..., int]:
    readable = tables | _TABLES_OF_FUNCTIONS | _SCHEMA

    def judge(action: int, first: str | None, second: str | None, schema: str | None, inside: str | None) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        # Without a column it is a name that is only counted, such as that of a WITH.
        if action == sqlite3.SQLITE_READ and (not second or (first or "").lower() in readable):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in FUNCTIONS:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    return judge


def _explained(error: Exception, tables: Sequence[tuple[str, Sequence[str]]]) -> str:
    said = str(error)
    if "not authorized" in said or "prohibited" in said:
        return (
            f"{said}: only SELECT over the given tables is possible, with the usual functions; "
            "no PRAGMA, ATTACH, CREATE, files or extensions"
        )
    if "one statement" in said:
        return "Only one statement at a time is possible"
    there = "; ".join(f"{name} ({', '.join(columns)})" for name, columns in tables)
    return f"{said}. There is: {there[:1_000]}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""').replace("\0", "") + '"'


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
