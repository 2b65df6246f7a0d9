"""Prepares data for a caller: what is hidden from it is removed before anything is asked of them.

A text is redacted when it is read. A database and a Parquet file are no text, so this process tells which texts are in
them, the server says what becomes of each, and only then the work is done: no function, comparison or picture can
spell what is not there.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, cast

from octavo.core.errors import InvalidParams
from octavo.tools.data.formats import parse

_TYPE: Final = re.compile(r"\w[\w ]{0,40}(?:\(\d+(?:, ?\d+)?\))?\Z")  # which decides how a column compares
_VIEW: Final = re.compile(r"\s*CREATE\s+VIEW\b", re.IGNORECASE)


def texts(asked: Mapping[str, Any], inputs: Sequence[bytes]) -> tuple[Mapping[str, Any], bytes]:
    """Each text once, by the name that it has there: of a column, of a key."""
    found: dict[str, dict[str, None]] = {}
    for name, text in _texts(asked["formats"][0], inputs[0], asked["names"][0]):
        found.setdefault(name, {})[text] = None
    return {"texts": {name: [*these] for name, these in found.items()}}, b""


def parsed(asked: Mapping[str, Any], inputs: Sequence[bytes], at: int) -> Any:
    """One of the inputs, with what is hidden replaced."""
    value = parse(inputs[at], asked["formats"][at], name=asked["names"][at])
    hidden = hidden_in(asked, at)
    return _replaced(value, hidden) if hidden else value


def hidden_in(asked: Mapping[str, Any], at: int) -> Mapping[str, str]:
    every: Sequence[Mapping[str, str]] = asked.get("hidden", ())
    return every[at] if at < len(every) else {}


def opened(connection: sqlite3.Connection, raw: bytes, name: str) -> None:
    try:
        connection.deserialize(raw)
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA cell_size_check=ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (sqlite3.Error, MemoryError, OverflowError) as error:
        raise InvalidParams(f"{name} is no SQLite database that can be read: {error}") from None


def copied(connection: sqlite3.Connection, raw: bytes, name: str, hidden: Mapping[str, str]) -> None:
    """The tables and views of a database, without what is hidden. Its indexes and triggers are left behind."""
    connection.execute("PRAGMA trusted_schema=OFF")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as source:
        opened(source, raw, name)
        try:
            for table in _tables(source):
                rows = source.execute(f"SELECT * FROM {_quoted(table)}")  # noqa: S608  # the name is quoted
                kinds = {row[1]: row[2] for row in source.execute(f"PRAGMA table_info({_quoted(table)})")}
                names = [column[0] for column in rows.description]
                declared = [f"{_quoted(one)} {_kind(kinds.get(one))}" for one in names]
                connection.execute(f"CREATE TABLE {_quoted(table)} ({', '.join(declared)})")
                connection.executemany(
                    f"INSERT INTO {_quoted(table)} VALUES ({', '.join('?' * len(names))})",  # noqa: S608  # quoted
                    ([_cell(value, hidden) for value in row] for row in rows),
                )
            views = source.execute("SELECT sql FROM sqlite_master WHERE type = 'view'").fetchall()
        except (sqlite3.Error, MemoryError) as error:
            raise InvalidParams(f"{name} has secrets in it, and cannot be copied without them: {error}") from None
    for (sql,) in views:
        if isinstance(sql, str) and sql not in hidden and _VIEW.match(sql):
            try:
                connection.execute(sql)
            except (sqlite3.Error, sqlite3.Warning):
                continue  # a view of something that is not there


def _texts(format: str, raw: bytes, name: str) -> Iterator[tuple[str, str]]:
    if format != "sqlite":
        yield from _inside(parse(raw, format, name=name), "")
        return
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as source:
        opened(source, raw, name)
        try:
            for (sql,) in source.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall():
                yield "", str(sql)
            for table in _tables(source):
                rows = source.execute(f"SELECT * FROM {_quoted(table)}")  # noqa: S608  # the name is quoted
                names = [str(column[0]) for column in rows.description]
                for row in rows:
                    for column, value in zip(names, row, strict=True):
                        yield from _inside(value, column)
        except sqlite3.Error as error:
            raise InvalidParams(f"{name} is no SQLite database that can be read: {error}") from None


def _tables(source: sqlite3.Connection) -> list[str]:
    """Those that hold something, not those that a module makes up when it is asked."""
    source.text_factory = _decoded
    found = source.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
    return [str(name) for (name,) in found.fetchall()]


def _inside(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str | bytes):
        yield name, value if isinstance(value, str) else _decoded(value)
    elif isinstance(value, int) and abs(value) >= 10**8:
        yield name, str(value)  # a card, somebody's number
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _inside(one, str(key))
    elif isinstance(value, list | tuple):
        for one in cast("Sequence[Any]", value):
            yield from _inside(one, name)


def _replaced(value: Any, hidden: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _replaced(one, hidden) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(one, hidden) for one in cast("Sequence[Any]", value)]
    return _cell(value, hidden)


def _cell(value: Any, hidden: Mapping[str, str]) -> Any:
    if isinstance(value, bytes):
        shown = hidden.get(_decoded(value))
        return value if shown is None else shown.encode()
    if isinstance(value, str):
        return hidden.get(value, value)
    return hidden.get(str(value), value) if isinstance(value, int) and not isinstance(value, bool) else value


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _kind(declared: Any) -> str:
    return declared if isinstance(declared, str) and _TYPE.match(declared) else ""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""').replace("\0", "") + '"'
