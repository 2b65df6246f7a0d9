"""A prompt file as a value, and `{{name}}`: one pass, and what is put in is data, never a template."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct

from octavo.core.surface import Audio, Image, PromptInfo

# Gives what is wrong with a value as `{path, message}`; [] when it is right.
Check: TypeAlias = Callable[[Any], list[dict[str, str]]]
# Compiles a JSON Schema; raises InvalidParams for what is none. The composition root lends it.
Compile: TypeAlias = Callable[[Mapping[str, Any]], Check]

Role: TypeAlias = Literal["system", "user", "assistant"]

_VARIABLE = re.compile(r"\{\{(.+?)\}\}", re.DOTALL)
# In a URI a value must not end a segment, open a query or add a parameter; `/` may stand, because
# paths are what authors put there, and `..` is refused by the parser of addresses.
_URI_ESCAPES = {ord(c): f"%{ord(c):02X}" for c in ' %?#&=+"<>^`{}|\\'}


class TextPart(Struct, frozen=True):
    text: str


class ResourcePart(Struct, frozen=True):
    uri: str


Part: TypeAlias = TextPart | ResourcePart | Image | Audio


class Message(Struct, frozen=True):
    role: Role
    parts: tuple[Part, ...]


class Template(Struct, frozen=True, kw_only=True):
    info: PromptInfo
    schema: Mapping[str, Any]
    check: Check
    messages: tuple[Message, ...]
    definition: Mapping[str, Any]  # the file's own words
    origin: str  # the file


def variables(text: str) -> Iterable[str]:
    return (match[1].strip() for match in _VARIABLE.finditer(text))


def fill(text: str, values: Mapping[str, Any]) -> str:
    """A declared variable that was not given is empty."""
    return _VARIABLE.sub(lambda match: written(values.get(match[1].strip())), text)


def fill_uri(uri: str, values: Mapping[str, Any]) -> list[str]:
    """The addresses that a resource part stands for: several for a list, none where nothing was given.

    A value that is the whole URI is taken as it is; inside a URI it is escaped.
    """
    whole = _VARIABLE.fullmatch(uri)
    if whole is None:
        return [_VARIABLE.sub(lambda match: written(values.get(match[1].strip())).translate(_URI_ESCAPES), uri)]
    value = values.get(whole[1].strip())
    several = cast("Sequence[Any]", value) if isinstance(value, list) else (value,)
    return [text for one in several if (text := written(one))]


def written(value: Any) -> str:
    """A value as the text of a prompt has it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
