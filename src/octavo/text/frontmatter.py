"""What a file says of itself: the YAML before a Markdown text, or a file that is YAML from the first to the last line.

The text is foreign. It is read event by event and never further than the bounds: aliases, tags, merge keys, several
documents, too much depth or too many nodes end the reading. Whatever is wrong becomes a fault with its line, and what
could be read beside it is kept. A fault names keys and never repeats a value.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

import yaml  # type: ignore[import-untyped]
from msgspec import Struct

from octavo.core.sizes import KIB

MAX_CHARACTERS: Final = 256 * KIB
MAX_DEPTH: Final = 32
MAX_NODES: Final = 10_000
MAX_FAULTS: Final = 20
_MAX_DIGITS: Final = 18  # more do not fit into what every JSON reader takes as a whole number
_SHOWN: Final = 60  # characters of a key in a message

KeyPath: TypeAlias = tuple[str | int, ...]

_FENCE: Final = re.compile(r"---[ \t]*\r?\n")
_END: Final = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
_INT: Final = re.compile(r"[-+]?[0-9]+\Z|0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z"
)
_WORDS: Final[Mapping[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


class Fault(NamedTuple):
    line: int  # of the file, from 1
    message: str


class FrontMatter(Struct, frozen=True):
    """`lines` has the line of every key and item. `body` is where the text behind the front matter begins."""

    data: Mapping[str, Any]
    lines: Mapping[KeyPath, int]
    faults: tuple[Fault, ...] = ()
    body: int = 0
    found: bool = True

    def line(self, path: KeyPath) -> int:
        """Of the nearest part of the path that stands in the file."""
        return next((self.lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.lines), 1)


def of_markdown(text: str, *, texts: frozenset[str] = frozenset(), whole: bool = True) -> FrontMatter:
    """`texts` are keys whose values are taken as they are written, so that a version 1.10 stays one. `whole=False`
    says that `text` is only the beginning of the file."""
    text, mark = _unmarked(text)
    fence = _FENCE.match(text)
    if fence is None:
        return FrontMatter({}, {}, found=False)
    end = _END.search(text, fence.end())
    if end is None:
        message = "the front matter begins with --- and does not end" if whole else "the front matter is too long"
        return FrontMatter({}, {}, (Fault(1, message),))
    behind = text.find("\n", end.end())
    body = mark + (len(text) if behind < 0 else behind + 1)
    return _read(text[fence.end() : end.start()], first_line=2, texts=texts, body=body)


def of_yaml(text: str, *, texts: frozenset[str] = frozenset()) -> FrontMatter:
    return _read(_unmarked(text)[0], first_line=1, texts=texts, body=len(text))


def _unmarked(text: str) -> tuple[str, int]:
    return (text[1:], 1) if text.startswith("\ufeff") else (text, 0)


def _read(text: str, *, first_line: int, texts: frozenset[str], body: int) -> FrontMatter:
    builder = _Builder(first_line, texts)
    if len(text) > MAX_CHARACTERS:
        builder.fault(first_line, f"is longer than {MAX_CHARACTERS} characters")
    else:
        builder.read(text)
    return FrontMatter(builder.data, builder.lines, tuple(builder.faults[:MAX_FAULTS]), body)


class _Stop(Exception):
    """The rest of the text is not looked at; the faults say why."""


class _Builder:
    def __init__(self, first_line: int, texts: frozenset[str]) -> None:
        self._first_line, self._texts = first_line, texts
        self._nodes = 0
        self._events: Iterator[Any] = iter(())
        self.data: dict[str, Any] = {}
        self.lines: dict[KeyPath, int] = {}
        self.faults: list[Fault] = []

    def fault(self, line: int, message: str) -> None:
        self.faults.append(Fault(line, message))

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
        text: str = event.value if len(event.value) > _SHOWN else sys.intern(event.value)
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


def shown(path: KeyPath) -> str:
    """`tags[2]`, short enough for a message whatever the file says."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


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
