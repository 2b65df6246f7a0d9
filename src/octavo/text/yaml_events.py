"""Reads YAML event by event, within the bounds that `octavo.text.frontmatter` sets and explains."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn

import yaml  # type: ignore[import-untyped]

from octavo.text.frontmatter import MAX_DEPTH, MAX_NODES, SHOWN, FrontmatterFault, KeyPath, shown

_MAX_DIGITS: Final = 18  # more do not fit into what every JSON reader takes as a whole number

_INT: Final = re.compile(r"[-+]?[0-9]+\Z|0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z"
)
_WORDS: Final[Mapping[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


class _Stop(Exception):
    """The rest of the text is not looked at; the faults say why."""


class YamlReader:
    def __init__(self, first_line: int, texts: frozenset[str]) -> None:
        self._first_line, self._texts = first_line, texts
        self._nodes = 0
        self._events: Iterator[Any] = iter(())
        self.data: dict[str, Any] = {}
        self.lines: dict[KeyPath, int] = {}
        self.faults: list[FrontmatterFault] = []

    def fault(self, line: int, message: str) -> None:
        self.faults.append(FrontmatterFault(line, message))

    def read(self, text: str) -> None:
        try:
            self._events = iter(yaml.parse(text, Loader=yaml.CLoader))
            self._document()
        except _Stop:
            pass
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self.fault(self._first_line + (mark.line if mark else 0), f"is no YAML: {_said(str(error.problem))}")
        except yaml.reader.ReaderError as error:
            line = self._first_line + text.encode("utf-8")[: error.position].count(b"\n")
            self.fault(line, "holds a character that YAML does not allow")
        except (yaml.YAMLError, ValueError):  # ValueError: a text that is no Unicode
            self.fault(self._first_line, "is no YAML")

    def _document(self) -> None:
        self._next()  # the stream begins
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return
        event = self._next()
        if not isinstance(event, yaml.MappingStartEvent):
            if isinstance(event, yaml.ScalarEvent) and not event.value and event.implicit[0]:
                return
            self._stop(event, "must be keys and values, as in title: Expenses")
        self.lines[()] = self._line(event)
        self._refuse_marks(event, "it")
        self._mapping(self.data, (), 1)
        self._next()  # the document ends
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            self._stop(event, "begins a second document; one file is one definition")

    def _mapping(self, data: dict[str, Any], path: KeyPath, depth: int) -> None:
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                self._stop(event, "a key must be plain text")
            self._refuse_marks(event, "a key")
            key, line = sys.intern(event.value), self._line(event)  # thousands of files have the same keys
            here = (*path, key)
            if event.implicit[0] and key == "<<":
                self._stop(event, "merge keys (<<) are not used here; write the keys out")
            value = self._value(self._next(), here, depth)
            if key in data:
                self.fault(line, f"{shown(here)} is given twice")
                continue
            self.lines[here] = line
            data[key] = value

    def _value(self, event: Any, path: KeyPath, depth: int) -> Any:
        self._refuse_marks(event, shown(path))
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        if depth >= MAX_DEPTH:
            self._stop(event, f"{shown(path)} is nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, yaml.MappingStartEvent):
            mapping: dict[str, Any] = {}
            self._mapping(mapping, path, depth + 1)
            return mapping
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            here = (*path, len(items))
            self.lines[here] = self._line(event)
            items.append(self._value(event, here, depth + 1))
        return items

    def _scalar(self, event: Any, path: KeyPath) -> Any:
        text: str = event.value if len(event.value) > SHOWN else sys.intern(event.value)
        if not event.implicit[0]:
            return text
        if text in _WORDS and (_WORDS[text] is None or not self._as_text(path)):
            return _WORDS[text]
        if self._as_text(path):
            return text
        read: Callable[[str], int | float] | None = (
            _whole if _INT.match(text) else float if _FLOAT.match(text) else None
        )
        if read is None:
            return text
        try:
            return _finite(read(text.lower().replace(".inf", "inf").replace(".nan", "nan")))
        except ValueError:
            self.fault(self._line(event), f"{shown(path)} is a number that cannot be used; quote it if it is text")
            return None

    def _as_text(self, path: KeyPath) -> bool:
        """At the key itself, or in a list that stands there."""
        return path[0] in self._texts and (len(path) == 1 or (len(path) == 2 and isinstance(path[1], int)))

    def _refuse_marks(self, event: Any, where: str) -> None:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            self._stop(event, f"{where} has an anchor or alias (& or *); write the value out, or quote it")
        if getattr(event, "tag", None):
            self._stop(event, f"{where} has a tag (!name); quote the value if it begins with !")

    def _next(self) -> Any:
        self._nodes += 1
        event = next(self._events)
        if self._nodes > MAX_NODES:
            self._stop(event, f"has more than {MAX_NODES} values")
        return event

    def _line(self, event: Any) -> int:
        return self._first_line + int(event.start_mark.line)

    def _stop(self, event: Any, message: str) -> NoReturn:
        self.fault(self._line(event), message)
        raise _Stop


def _whole(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError
    return int(text, {"0x": 16, "0o": 8}.get(text[:2], 10))


def _finite(number: int | float) -> int | float:
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError
    return number


def _said(problem: str) -> str:
    if "cannot start any token" in problem:
        return "a value begins with a character that needs quotes, or a tab indents"
    return problem
