"""Texts and addresses with variables, compiled when their file loads.

`{{name}}` alone is a matter of cutting and joining. A text with `{% if %}` or `{% for %}` is compiled by an engine,
which is imported only then. Either way what is put in is data: it is looked at once, and never as a template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from msgspec import Struct

from octavo.core.errors import TooLarge
from octavo.core.sizes import MIB

MAX_OUTPUT = MIB  # characters of one text

_VARIABLE = re.compile(r"\{\{(.+?)\}\}", re.DOTALL)
_TAG = re.compile(r"\{[%#]|[%#]\}")
_BRACES = re.compile(r"\{\{|\}\}")
_NAME = re.compile(r"\s*[\w-]+\s*")
# In an address a value must not end a segment, open a query or add a parameter; `/` may stand, because
# paths are what authors put there, and `..` is refused by the parser of addresses.
_URI_ESCAPES = {ord(c): f"%{ord(c):02X}" for c in ' %?#&=+"<>^`{}|\\'}


class NoTemplate(ValueError):
    """The text is no template; `line` is that of the text, from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


class Fill(Protocol):
    """A compiled text."""

    @property
    def names(self) -> frozenset[str]:
        """The variables in it."""
        ...

    def __call__(self, values: Mapping[str, Any]) -> str:
        """A variable without a value is empty. Raises TooLarge, and InvalidParams for values it cannot work with."""
        ...


class Plain(Struct, frozen=True):
    """Every second piece is the name of a variable."""

    pieces: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.pieces[1::2])

    def __call__(self, values: Mapping[str, Any]) -> str:
        pieces = list(self.pieces)
        pieces[1::2] = [written(values.get(name)) for name in pieces[1::2]]
        bounded(sum(map(len, pieces)))
        return "".join(pieces)


class Address(Struct, frozen=True):
    """The address of a resource part, with variables."""

    text: str
    pieces: tuple[str, ...]

    @property
    def whole(self) -> str | None:
        """The variable that is the whole address, if one is."""
        return self.pieces[1] if len(self.pieces) == 3 and not (self.pieces[0] or self.pieces[2]) else None

    def __call__(self, values: Mapping[str, Any]) -> list[str]:
        """Several for a list, none where nothing was given. A value inside an address is escaped."""
        if self.whole is not None:
            value = values.get(self.whole)
            several = cast("Sequence[Any]", value) if isinstance(value, list) else (value,)
            return [text for one in several if (text := written(one))]
        pieces = list(self.pieces)
        pieces[1::2] = [written(values.get(name)).translate(_URI_ESCAPES) for name in pieces[1::2]]
        return ["".join(pieces)]


def compiled(text: str, declared: frozenset[str]) -> Fill:
    """Raises NoTemplate for a text that is no template, or uses a variable that is not declared."""
    names = _VARIABLE.findall(text)
    if not _TAG.search(text) and all(_NAME.fullmatch(name) or name.strip() in declared for name in names):
        return Plain(_pieces(text, declared))
    from octavo.prompts.template_engine import program

    return program(text, declared)


def address(text: str, declared: frozenset[str]) -> Address:
    """Raises NoTemplate, as `compiled` does; in an address nothing but variables may stand."""
    return Address(text, _pieces(text, declared))


def written(value: Any) -> str:
    """A value as the text of a prompt has it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def bounded(size: int) -> None:
    if size > MAX_OUTPUT:
        raise TooLarge(
            f"The prompt would have a text of more than {MAX_OUTPUT} characters: give it shorter arguments",
            size=size,
            limit=MAX_OUTPUT,
        )


def line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def undeclared(name: str) -> str:
    return f"the variable {{{{{name[:80]}}}}} is not declared in inputSchema"


def _pieces(text: str, declared: frozenset[str]) -> tuple[str, ...]:
    pieces: list[str] = []
    end = 0
    for match in _VARIABLE.finditer(text):
        name = match[1].strip()
        if name not in declared:
            raise NoTemplate(line_of(text, match.start()), undeclared(name))
        pieces += (_literal(text, end, match.start()), name)
        end = match.end()
    return (*pieces, _literal(text, end, len(text)))


def _literal(text: str, start: int, end: int) -> str:
    if (found := _BRACES.search(text, start, end)) is not None and found[0] == "{{":
        raise NoTemplate(line_of(text, found.start()), "{{ is not closed by }}")
    return text[start:end]
