"""TOML to plain data that knows its lines, as well as they can be found."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, cast

from octavo.config.document import ConfigText, TextFault, broken
from octavo.config.problems import KeyPath, Position
from octavo.config.words import nfc

_WHERE = re.compile(r"(?P<message>.*?) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)")
_KEY = r"(?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')"
_KEYS = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_TABLE = re.compile(rf"\s*(?P<open>\[\[?)\s*(?P<keys>{_KEYS})\s*\]")
_LINE = re.compile(rf"(?P<indent>\s*)(?P<keys>{_KEYS})\s*=")


def read_toml(text: str) -> ConfigText:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _WHERE.match(str(error))
        line = int(found["line"]) if found and found["line"] else text.count("\n") + 1
        column = int(found["column"]) if found and found["column"] else 1
        message = re.sub(r"'[^']{3,}'", "...", found["message"] if found else "cannot be read")
        return broken(line, column, f"is no TOML: {message}")
    except RecursionError:
        return broken(1, 1, "is nested too deeply")
    if not data:
        return broken(1, 1, "is empty; the smallest configuration names one source")
    places = _places(text)
    if text.isascii():
        return ConfigText(data, places)
    twice: list[KeyPath] = []
    data = _named(data, (), twice)
    return ConfigText(
        data, places, tuple(TextFault(path, places.get(path, Position(1, 1)), "is given twice") for path in twice)
    )


def _named(data: Mapping[str, Any], path: KeyPath, twice: list[KeyPath]) -> dict[str, Any]:
    """With keys as all names are written."""
    made: dict[str, Any] = {}
    for key, value in data.items():
        name = nfc(key)
        if name in made:
            twice.append((*path, name))
        else:
            made[name] = _of_names(value, (*path, name), twice)
    return made


def _of_names(value: Any, path: KeyPath, twice: list[KeyPath]) -> Any:
    if isinstance(value, dict):
        return _named(cast("dict[str, Any]", value), path, twice)
    if isinstance(value, list):
        return [_of_names(one, (*path, at), twice) for at, one in enumerate(value)]
    return value


def _places(text: str) -> dict[KeyPath, Position]:
    """The lines of headers and keys. tomllib does not tell them, so they are looked for; inside a
    multi-line value a wrong place can be found, never a wrong value."""
    places: dict[KeyPath, Position] = {(): Position(1, 1)}
    table: KeyPath = ()
    seen: dict[KeyPath, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _TABLE.match(line):
            keys = _path(header["keys"])
            path: KeyPath = ()
            for key in keys[:-1]:
                path = (*path, key)
                places.setdefault(path, Position(number, 1))
                if path in seen:
                    path = (*path, seen[path])
            table = (*path, keys[-1])
            places.setdefault(table, Position(number, 1))
            if header["open"] == "[[":
                seen[table] = seen.get(table, -1) + 1
                table = (*table, seen[table])
                places[table] = Position(number, 1)
        elif found := _LINE.match(line):
            place = Position(number, len(found["indent"]) + 1)
            path = table
            for key in _path(found["keys"]):
                path = (*path, key)
                places.setdefault(path, place)
    return places


def _path(keys: str) -> tuple[str, ...]:
    return tuple(nfc(key.strip("\"'")) for key in re.findall(_KEY, keys))
