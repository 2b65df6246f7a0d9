"""JSON with comments, as seed 002 writes it, and the line of everything in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

MAX_DEPTH = 64

Path: TypeAlias = tuple[str | int, ...]

_SKIP = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_ATOM = re.compile(r"[-+.\w]+")


class NotJson(ValueError):
    """The text is not JSON; `line` counts from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


class JsonText(NamedTuple):
    value: Any
    lines: Mapping[Path, int]  # where the value at a path begins; for a member, where its name stands

    def line(self, path: Path) -> int:
        """The line of the value at `path`, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def parse(text: str) -> JsonText:
    """Raises NotJson. Stricter than `json.loads`: a name given twice, NaN and Infinity are refused too."""
    reader = _Reader(text)
    value = reader.value(())
    reader.skip()
    if reader.at < len(text):
        raise reader.broken("there is text after the end of the value")
    return JsonText(value, reader.lines)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.lines: dict[Path, int] = {}
        self._counted, self._line = 0, 1

    def value(self, path: Path) -> Any:
        if len(path) > MAX_DEPTH:
            raise self.broken(f"nested deeper than {MAX_DEPTH} levels")
        first = self.peek()
        self.lines.setdefault(path, self.line())
        if first == "{":
            return self.members(path)
        if first == "[":
            return self.items(path)
        if first == '"':
            return self.string()
        match = _ATOM.match(self.text, self.at)
        if match is None:
            raise self.broken("a value is missing" if first else "the text ends too early")
        try:
            atom = json.loads(match[0], parse_constant=_no_constant)
        except ValueError:
            raise self.broken(f"{match[0][:40]!r} is no JSON value") from None
        self.at = match.end()
        return atom

    def members(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.at += 1
        while self.peek() != "}":
            if found:
                self.expect(",")
                if self.peek() == "}":
                    raise self.broken("a comma before } is not JSON")
            if self.peek() != '"':
                raise self.broken('a name in "quotes" is missing')
            line = self.line()
            name = self.string()
            if name in found:
                raise NotJson(line, f"the name {name!r} is given twice")
            self.expect(":")
            self.lines[*path, name] = line
            found[name] = self.value((*path, name))
        self.at += 1
        return found

    def items(self, path: Path) -> list[Any]:
        found: list[Any] = []
        self.at += 1
        while self.peek() != "]":
            if found:
                self.expect(",")
                if self.peek() == "]":
                    raise self.broken("a comma before ] is not JSON")
            found.append(self.value((*path, len(found))))
        self.at += 1
        return found

    def string(self) -> str:
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise self.broken("a string does not end on its line")
        try:
            text = json.loads(match[0])
        except ValueError:
            raise self.broken("a string holds a wrong escape") from None
        self.at = match.end()
        return str(text)

    def expect(self, mark: str) -> None:
        if self.peek() != mark:
            raise self.broken(f"{mark!r} is missing")
        self.at += 1

    def peek(self) -> str:
        self.skip()
        return self.text[self.at : self.at + 1]

    def skip(self) -> None:
        match = _SKIP.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        if self.text.startswith("/*", self.at):
            raise self.broken("a comment /* is not closed")

    def line(self) -> int:
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def broken(self, reason: str) -> NotJson:
        return NotJson(self.line(), reason)


def _no_constant(name: str) -> float:
    raise ValueError(name)
