"""XML as values: attributes are `@name`, text beside them is `#text`, what stands several times is a list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn, cast
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from octavo.core.errors import InvalidParams

MAX_DEPTH: Final = 200
_NAME: Final = re.compile(r"[^\W\d][\w.:-]*\Z")
_UNSAYABLE: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse(text: str) -> dict[str, Any]:
    """Raises ValueError with the line of a fault. Definitions of entities are refused: they can stand for anything."""
    parser = expat.ParserCreate()
    builder = _Builder()
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.text
    parser.StartDoctypeDeclHandler = _refuse
    parser.buffer_text = True
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ValueError(f"{expat.ErrorString(error.code)} in line {error.lineno}, column {error.offset + 1}") from None
    return builder.root


def _refuse(*_: Any) -> NoReturn:
    raise ValueError("it has a document type (<!DOCTYPE …>), which is not read: take it out")


class _Builder:
    def __init__(self) -> None:
        self.root: dict[str, Any] = {}
        self._open: list[tuple[str, dict[str, Any], list[str]]] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
        self._open.append((name, {f"@{key}": value for key, value in attributes.items()}, []))

    def text(self, data: str) -> None:
        self._open[-1][2].append(data)

    def end(self, _: str) -> None:
        name, found, texts = self._open.pop()
        text = "".join(texts).strip()
        value: Any = found if found else (text or None)
        if found and text:
            found["#text"] = text
        above = self._open[-1][1] if self._open else self.root
        if name not in above:
            above[name] = value
        elif isinstance(above[name], list):
            above[name].append(value)
        else:
            above[name] = [above[name], value]


def write(value: Any) -> str:
    """An object with one key has its root; everything else gets one. Raises InvalidParams for names XML cannot say."""
    root = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
    if len(root) == 1 and not isinstance(next(iter(root.values())), list):
        name, inner = next(iter(root.items()))
    else:
        name, inner = "data", value if isinstance(value, Mapping) else {"item": value}
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + "".join(_element(name, inner, 0))


def _element(name: str, value: Any, depth: int) -> list[str]:
    _named(name)
    if isinstance(value, list):
        return [line for one in value for line in _element(name, one, depth)]
    space = "  " * depth
    if not isinstance(value, Mapping):
        text = _text(value)
        return [f"{space}<{name}>{text}</{name}>\n" if text else f"{space}<{name}/>\n"]
    parts = cast("Mapping[str, Any]", value)
    attributes = "".join(
        f" {_named(key[1:])}={quoteattr(_said(one))}"
        for key, one in parts.items()
        if key.startswith("@") and one is not None
    )
    text = _text(parts.get("#text"))
    below = [
        line
        for key, one in parts.items()
        if not key.startswith("@") and key != "#text"
        for line in _element(key, one, depth + 1)
    ]
    if not below:
        return [f"{space}<{name}{attributes}>{text}</{name}>\n" if text else f"{space}<{name}{attributes}/>\n"]
    return [f"{space}<{name}{attributes}>{text}\n", *below, f"{space}</{name}>\n"]


def _named(name: str) -> str:
    if not _NAME.match(name):
        raise InvalidParams(f"XML has nothing with the name {name[:60]!r}: begin names with a letter, without spaces")
    return name


def _text(value: Any) -> str:
    return "" if value is None else escape(_said(value))


def _said(value: Any) -> str:
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    if _UNSAYABLE.search(text):
        raise InvalidParams("A text has a control character, which XML cannot say: take it out")
    return text
