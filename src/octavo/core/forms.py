"""Forms that a tool shows a person: the questions, and the answers that come back."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from octavo.core.errors import InvalidParams

Action: TypeAlias = Literal["accept", "decline", "cancel"]

MOST_FIELDS: Final = 20
LONGEST: Final = 4000  # characters of a question,
LARGEST: Final = 16_000  # and of the schema of its answer
MOST_CHOICES: Final = 100
_COMMON: Final = frozenset(("type", "title", "description", "default"))
_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    "string": _COMMON | {"minLength", "maxLength", "format", "enum", "enumNames", "oneOf"},
    "number": _COMMON | {"minimum", "maximum"},
    "integer": _COMMON | {"minimum", "maximum"},
    "boolean": _COMMON,
    "array": _COMMON | {"items", "minItems", "maxItems"},
}
_FORMATS: Final = frozenset(("email", "uri", "date", "date-time"))
_READ_BY_PEOPLE: Final = frozenset(("title", "description", "enumNames"))  # of a field; choices come back as they are
# The protocol forbids to ask for these by a form, which clients may keep.
_SECRETS: Final = re.compile(
    r"passw|passphrase|secret|api.?key|access.?key|private.?key|credential|\b(cvv|cvc|pin)\b|"
    r"비밀번호|비번|암호|인증.?번호|주민.?(등록)?번호",
    re.I,
)


class Answer(Struct, frozen=True):
    action: Action
    content: Mapping[str, Any] = {}


class Form(Struct, frozen=True):
    """A question, as `form` has checked it."""

    text: str
    schema: Mapping[str, Any]

    def told(self, shown: Callable[[Any], Any]) -> Form:
        """With `shown` of each text that people read."""
        fields: Mapping[str, Mapping[str, Any]] = self.schema.get("properties", {})
        described = {
            name: {key: shown(value) if key in _READ_BY_PEOPLE else value for key, value in field.items()}
            for name, field in fields.items()
        }
        return replace(self, text=shown(self.text), schema={**self.schema, "properties": described})

    def taken(self, answer: Answer) -> Answer | None:
        """The answer without what nobody asked for, since some clients send more than the form; None for what is no
        answer to this question. Who declines need not fill in anything."""
        if answer.action != "accept":
            return answer
        fields = self.schema.get("properties", {})
        content = {name: value for name, value in answer.content.items() if name in fields}
        missing = any(name not in content for name in self.schema.get("required", ()))
        fits = not missing and all(_fits(fields[name], value) for name, value in content.items())
        return Answer(answer.action, content) if fits else None


class Asked(Struct, frozen=True, kw_only=True):
    """A question that waits for somebody who looks at what waits; a notice, where there is no form to fill in."""

    id: str
    who: str  # on whose behalf it is asked
    tool: str
    form: Form
    request: str  # keyed digest of principal, call and question
    asked: float  # seconds since 1970
    expires: float
    answer: Answer | None = None
    by: str = ""  # whoever answered


class Questions(Protocol):
    """Where questions wait whose client can ask nobody: one place for all processes that share it."""

    async def ask(self, who: str, tool: str, form: Form, request: str, *, seconds: float) -> Asked:
        """The one that stands for this request, or a new one. Raises RateLimited for too many that wait."""
        ...

    async def take(self, request: str) -> Answer | None:
        """The answer, once; None while there is none."""
        ...


def form(text: str, schema: Mapping[str, Any]) -> Form:
    """Raises InvalidParams for what a client could not show: a form is flat, and its fields are texts, numbers, yes or
    no, and choices."""
    if not text.strip() or len(text) > LONGEST:
        raise InvalidParams(f"A question has 1 to {LONGEST} characters")
    fields = schema.get("properties", {})
    known = set(schema) <= {"type", "properties", "required", "title", "description", "$schema"}
    if schema.get("type") != "object" or not known or not isinstance(fields, Mapping) or len(fields) > MOST_FIELDS:
        raise InvalidParams(
            f'The schema of a question is {{"type": "object", "properties": …, "required": …}} with at most '
            f"{MOST_FIELDS} fields and nothing else"
        )
    if len(json.dumps(schema, ensure_ascii=False)) > LARGEST:
        raise InvalidParams(f"The schema of a question has at most {LARGEST} characters")
    for name, field in cast("Mapping[str, Any]", fields).items():
        _check(name, field)
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(name in fields for name in cast("list[object]", required)):
        raise InvalidParams("`required` names fields of the question")
    return Form(text, schema)


def wants_secret(text: str) -> bool:
    return _SECRETS.search(text) is not None


def _check(name: str, field: object) -> None:
    kind = cast("Mapping[str, Any]", field).get("type") if isinstance(field, Mapping) else None
    if not isinstance(field, Mapping) or not isinstance(kind, str) or kind not in _MEMBERS:
        raise InvalidParams(f"The field {name[:80]} needs a type: {', '.join(_MEMBERS)}")
    told = cast("Mapping[str, Any]", field)
    if wants_secret(f"{name} {told.get('title', '')} {told.get('description', '')}"):
        raise InvalidParams(f"A form must not ask for secrets, as the field {name[:80]} does")
    further = sorted(set(told) - _MEMBERS[kind])
    if further:
        raise InvalidParams(f"A {kind} in a question cannot have {', '.join(map(str, further))[:200]}")
    for bound in ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"):
        if isinstance(value := told.get(bound, 0), bool) or not isinstance(value, int | float):
            raise InvalidParams(f"The {bound} of the field {name[:80]} is a number")
    if told.get("format") not in (None, *_FORMATS):
        raise InvalidParams(f"The format of a text is one of {', '.join(sorted(_FORMATS))}")
    if kind == "array":
        items = told.get("items")
        choices = _choices(cast("Mapping[str, Any]", items), "anyOf") if isinstance(items, Mapping) else None
    else:
        choices = _choices(told, "oneOf")
    if (kind == "array" and not choices) or (choices is not None and len(choices) > MOST_CHOICES):
        raise InvalidParams(f"The field {name[:80]} offers between 1 and {MOST_CHOICES} choices")


def _choices(told: Mapping[str, Any], titled: str) -> list[Any] | None:
    """None where any value will do. Raises InvalidParams for choices that are no texts."""
    if "enum" in told:
        offered = told["enum"]
    elif titled in told:
        listed = told[titled]
        offered = [one.get("const") for one in listed] if _are_mappings(listed) else None
    else:
        return None
    if not isinstance(offered, list) or not all(isinstance(one, str) for one in cast("list[object]", offered)):
        raise InvalidParams("Choices are a list of texts, or of {const, title}")
    return offered


def _are_mappings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in cast("list[object]", value))


def _fits(field: Mapping[str, Any], value: object) -> bool:
    kind = field["type"]
    if kind == "array":
        listed = _choices(field["items"], "anyOf") or []
        chosen = cast("list[object]", value) if isinstance(value, list) else [None]
        return all(one in listed for one in chosen) and _between(field, len(chosen), "minItems", "maxItems")
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "string":
        offered = _choices(field, "oneOf")
        if not isinstance(value, str) or not _between(field, len(value), "minLength", "maxLength"):
            return False
        return offered is None or value in offered
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, float) and not (math.isfinite(value) and (kind == "number" or value.is_integer())):
        return False
    return _between(field, value, "minimum", "maximum")


def _between(field: Mapping[str, Any], value: float, least: str, most: str) -> bool:
    return bool(field.get(least, value) <= value <= field.get(most, value))
