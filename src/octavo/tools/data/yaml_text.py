"""YAML 1.2 of strangers: event by event, without aliases, tags and merge keys."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

MAX_DEPTH: Final = 64

_WHOLE: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\Z")
_NUMBER: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?\Z")
_LOOKS: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z|0[ox][0-9a-fA-F]+\Z")
_WORDS: Final = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


def prepare() -> None:
    """The library loads parts of itself when it is first used."""
    write(parse("a: [1]"))


def parse(text: str) -> Any:
    """Raises ValueError with the line of a fault."""
    try:
        events = iter(yaml.parse(text, Loader=yaml.CLoader))
        return _document(events)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ValueError(f"{error.problem}{f' in line {mark.line + 1}' if mark else ''}") from None
    except yaml.YAMLError:
        raise ValueError("it holds a character that YAML does not allow") from None


def write(value: Any) -> str:
    written: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=120)
    return written


class _Dumper(yaml.CSafeDumper):  # type: ignore[misc]
    """Texts that readers of YAML 1.2 would take for numbers get quotes: 007, 1e5."""


def _text(dumper: Any, text: str) -> Any:
    looks = _LOOKS.match(text) is not None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if looks else None)


_Dumper.add_representer(str, _text)


def _document(events: Iterator[Any]) -> Any:
    value: Any = None
    documents = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise ValueError(f"it holds several documents; the second begins in line {event.start_mark.line + 1}")
            value = _node(next(events), events, 0)
    return value


def _node(event: Any, events: Iterator[Any], depth: int) -> Any:
    line = event.start_mark.line + 1
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise ValueError(f"it uses an alias (& or *), which is not read; line {line}")
    if getattr(event, "tag", None) not in (None, "!"):
        raise ValueError(f"it uses a tag ({str(event.tag)[:40]}), which is not read; line {line}")
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    if isinstance(event, yaml.ScalarEvent):
        return event.value if not event.implicit[0] else _scalar(event.value)
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[Any] = []
        while not isinstance(inner := next(events), yaml.SequenceEndEvent):
            items.append(_node(inner, events, depth + 1))
        return items
    found: dict[str, Any] = {}
    while not isinstance(inner := next(events), yaml.MappingEndEvent):
        key = _node(inner, events, depth + 1)
        if isinstance(key, (dict, list)):
            raise ValueError(f"a key is no single value; line {inner.start_mark.line + 1}")
        name = inner.value
        if name in found:
            raise ValueError(f"the key {name[:60]!r} stands twice; line {inner.start_mark.line + 1}")
        found[name] = _node(next(events), events, depth + 1)
    return found


def _scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.match(text):
        return int(text)
    if _NUMBER.match(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text
