"""TOML changed by lines: a table is put at the end and taken out again. Whoever calls compares what the texts say, so
that a table written in a form not known here is noticed and left."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import tomlkit

from octavo.cli.client_files import HIDDEN, UnreadableFile

_CLOSES: Final = re.compile(r"""["'\]}]""")
_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")
_HEADER: Final = re.compile(r"[ \t]*\[")
_ASSIGNED: Final = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^"'=])*=""")
_REMARK: Final = re.compile(r"[ \t]*(#.*)?$")


def read(text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of a number that is too long for `int`
        raise UnreadableFile(str(error)) from None


def put(text: str, path: tuple[str, ...], value: Mapping[str, Any]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    written = [f"{tomlkit.key(name).as_string()} = {tomlkit.item(one).as_string()}" for name, one in value.items()]
    lines = [f"[{tomlkit.key(path).as_string()}]", *written]
    block = "".join(line + newline for line in lines)
    rest = _LINES.findall(text)
    if (spans := _tables(rest, path)) and _holds(read(text), path):
        start = spans[0][0]
        for first, last in reversed(spans):
            del rest[first:last]
        return "".join((*rest[:start], block, *rest[start:]))
    gap = "" if not text or text.endswith("\n") else newline
    return f"{text}{gap}{newline if text.strip() else ''}{block}"


def take(text: str, path: tuple[str, ...]) -> str:
    lines = _LINES.findall(text)
    for start, end in reversed(_tables(lines, path)):
        blank = start > 0 and not lines[start - 1].strip()
        del lines[start - blank : end]
    return "".join(lines)


def veiled(text: str, names: frozenset[str], own: tuple[str, ...]) -> str:
    """The text without values and remarks below these names, but for the table `own`."""
    made: list[str] = []
    table: tuple[str, ...] = ()
    for statement in _statements(text):
        line = statement.rstrip("\r\n")
        if _HEADER.match(statement):
            table = _named(statement)
        elif line.strip() and not (own and table[: len(own)] == own):
            held = not names.isdisjoint(_all_names(tomllib.loads(statement))) or not names.isdisjoint(_folded(table))
            assigned = _ASSIGNED.match(line) if not _REMARK.match(line) else None
            if held:
                sign = f"{assigned[0]} {json.dumps(HIDDEN)}" if assigned else f"# {HIDDEN}"
                statement = sign + statement[len(line) :]
        made.append(statement)
    return "".join(made)


def _statements(text: str) -> Iterator[str]:
    """A header, a remark, or a key with its whole value, however many lines that has."""
    statement = ""
    for line in _LINES.findall(text):
        statement += line
        if statement == line or _CLOSES.search(line):
            try:
                tomllib.loads(statement)
            except tomllib.TOMLDecodeError:
                continue
            yield statement
            statement = ""


def _all_names(said: object) -> Iterator[str]:
    if isinstance(said, dict):
        for name, value in said.items():
            yield name.casefold()
            yield from _all_names(value)
    elif isinstance(said, list):
        for value in said:
            yield from _all_names(value)


def _folded(names: tuple[str, ...]) -> Iterator[str]:
    return (name.casefold() for name in names)


def _tables(lines: list[str], path: tuple[str, ...]) -> list[tuple[int, int]]:
    """First line and end of the table at `path` and of those below it. Remarks in front of the next are the next's."""
    headers = [index for index, line in enumerate(lines) if _HEADER.match(line)]
    found = []
    for start, following in pairwise((*headers, len(lines))):
        if _named(lines[start])[: len(path)] == path:
            end = following
            while end > start + 1 and _REMARK.match(lines[end - 1].rstrip("\r\n")):
                end -= 1
            found.append((start, end))
    return found


def _holds(said: Any, path: tuple[str, ...]) -> bool:
    """Whether there is such a table, and not only lines in a longer text that look like one."""
    for name in path:
        if not isinstance(said, dict) or name not in said:
            return False
        said = said[name]
    return True


def _named(header: str) -> tuple[str, ...]:
    try:
        table: Any = tomllib.loads(header)
    except tomllib.TOMLDecodeError:  # a line of something longer
        return ()
    names = []
    while isinstance(table, dict) and table:
        name, table = next(iter(table.items()))
        names.append(name)
    return tuple(names)
