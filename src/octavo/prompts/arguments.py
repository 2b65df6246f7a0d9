"""Arguments of a prompt: text on the wire, values after this page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, cast

import msgspec

from octavo.core.errors import InvalidParams
from octavo.core.near_names import meant
from octavo.core.scalars import spelled
from octavo.core.tools import PromptArgument, PromptInfo
from octavo.prompts.substitution import written
from octavo.prompts.template import CONTEXT, LANGUAGE, Check

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}\Z")
_MAX_SHOWN = 80
_MAX_UNKNOWN = 5


def checked(name: str, schema: Mapping[str, Any], check: Check, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the arguments: coerced by the schema, with its defaults, checked.

    Raises InvalidParams with data `promptName` and `validationErrors`; what the schema does not declare
    is refused too. A value that cannot be coerced stays text, so the schema says what is wrong with it.
    """
    declared = properties(schema)
    # What was meant is looked for only of the first ones: that takes long, and there may be very many.
    unknown = islice((key for key in given if key not in declared), _MAX_UNKNOWN)
    problems = [
        {"path": f"/{key[:_MAX_SHOWN]}", "message": f"is not an argument of this prompt; {meant(key, declared)}"}
        for key in unknown
    ]
    values = {key: _coerced(value, declared[key]) for key, value in given.items() if key in declared}
    for key, described in declared.items():
        if key not in values and "default" in described:
            values[key] = described["default"]
    problems += check(values)
    if problems:
        where, what = problems[0]["path"].lstrip("/"), problems[0]["message"]
        raise InvalidParams(
            f"Invalid arguments for prompt {name}: {f'{where}: ' if where else ''}{what}",
            promptName=name,
            validationErrors=problems,
        )
    return values


def properties(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The declared arguments in their order; `true` as a description of one says nothing of it."""
    declared: Any = schema.get("properties")
    if not isinstance(declared, Mapping):
        return {}
    known = cast("Mapping[str, Any]", declared)
    return {key: cast("Mapping[str, Any]", part) if isinstance(part, Mapping) else {} for key, part in known.items()}


def arguments_of(schema: Mapping[str, Any]) -> tuple[PromptArgument, ...]:
    """What `prompts/list` tells of a schema."""
    required: Any = schema.get("required") or ()
    return tuple(
        PromptArgument(name=key, description=_text(part.get("description")), required=key in required)
        for key, part in properties(schema).items()
    )


def with_further(schema: Mapping[str, Any], languages: Sequence[str], remembers: bool) -> Mapping[str, Any]:
    """With the arguments that a prompt has without declaring them."""
    further: dict[str, Any] = {}
    if len(languages) > 1:
        said = f"The language of the prompt: {', '.join(languages)}."
        further[LANGUAGE] = {"type": "string", "description": said, "examples": list(languages)}
    if remembers:
        said = "The handle of a conversation that was begun with the tool conversation."
        further[CONTEXT] = {"type": "string", "description": said}
    known = properties(schema)
    missing = {key: part for key, part in further.items() if key not in known}
    return {**schema, "properties": {**known, **missing}} if missing else schema


def schema_of(info: PromptInfo) -> Mapping[str, Any]:
    """The schema of a prompt that declares arguments only: each of them is text."""
    if info.input_schema is not None:
        return info.input_schema
    return {
        "type": "object",
        "properties": {argument.name: {"type": "string"} for argument in info.arguments},
        "required": [argument.name for argument in info.arguments if argument.required],
    }


def completions(schema: Mapping[str, Any], argument: str, prefix: str) -> list[str]:
    """Values of `argument` that begin with `prefix`, as far as the schema knows any; capitals count alike."""
    part = properties(schema).get(argument, {})
    items: Any = part.get("items")
    if isinstance(items, Mapping) and "array" in _types(part):
        part = cast("Mapping[str, Any]", items)
    offered: list[Any] = list(part.get("enum") or ([part["const"]] if "const" in part else []))
    if not offered and "boolean" in _types(part):
        offered = [True, False]
    examples: Any = part.get("examples")
    if not offered and isinstance(examples, list):
        offered = examples
    beginning = prefix.casefold()
    return [text for value in offered if (text := written(value)).casefold().startswith(beginning)]


def _coerced(value: Any, part: Mapping[str, Any]) -> Any:
    types = _types(part)
    if not isinstance(value, str) or not types or "string" in types:
        return value
    text = value.strip()
    if "integer" in types and _INTEGER.match(text):
        return int(text)
    if (found := spelled(text, types)) is not text:
        return found
    if types & {"number", "array", "object", "null"}:
        try:
            found = msgspec.json.decode(text)  # which takes no half characters and no infinite numbers
        except (ValueError, RecursionError):
            return value
        return value if isinstance(found, (str, bool)) else found
    return value


def _types(part: Mapping[str, Any]) -> frozenset[str]:
    said: Any = part.get("type")
    if isinstance(said, str):
        return frozenset((said,))
    return frozenset(cast("list[str]", said)) if isinstance(said, list) else frozenset()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
