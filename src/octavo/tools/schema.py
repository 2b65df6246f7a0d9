"""JSON Schema 2020-12, compiled once; nothing is ever fetched for a schema, and none may cost without bounds.

Patterns run on an engine with linear time, because arguments are foreign text: look-around and
back-references are refused when the schema is compiled. Values are bounded in depth before the
validator sees them, since it descends on the native stack.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, NoReturn, TypeAlias, cast

import jsonschema_rs

from octavo.core.errors import InvalidParams
from octavo.core.near_names import MOST
from octavo.tools.schema_cost import bounded

MAX_MEMBERS = 1000  # of the arguments of a call: to look through more would hold up everybody
MAX_ERRORS = 20
MAX_DEPTH = 64
_MAX_MESSAGE = 300
_TOLD_ANYWAY: Final = 3  # choices that the library names; of more it names two

# Gives what is wrong with a value as `{path, message}`, at most MAX_ERRORS of them; [] when it is right.
Check: TypeAlias = Callable[[Any], list[dict[str, str]]]


def compile_schema(schema: Mapping[str, Any]) -> Check:
    """Raises InvalidParams for what is no schema, and for one that points outside itself."""
    if depth_exceeds(schema, MAX_DEPTH):
        raise InvalidParams(f"The schema is nested deeper than {MAX_DEPTH} levels")
    try:
        validator = jsonschema_rs.Draft202012Validator(
            dict(schema), retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions()
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        said = getattr(error, "message", None) or str(error)
        raise InvalidParams(f"Not a usable JSON Schema 2020-12: {_short(str(said))}") from None
    bounded(schema, MAX_DEPTH)

    def check(value: Any) -> list[dict[str, str]]:
        if isinstance(value, Mapping) and len(cast("Mapping[str, Any]", value)) > MAX_MEMBERS:
            return [{"path": "", "message": f"there are more than {MAX_MEMBERS} names; give only those that are known"}]
        if depth_exceeds(value, MAX_DEPTH):
            return [{"path": "", "message": f"nested deeper than {MAX_DEPTH} levels"}]
        problems: list[dict[str, str]] = []
        try:
            for error in validator.iter_errors(value):
                problems.append({"path": pointer(error.instance_path), "message": _said(error, schema)})
                if len(problems) == MAX_ERRORS:
                    break
        except ValueError as error:  # no JSON at all, such as a key that is no string
            problems.append({"path": "", "message": _short(str(error))})
        return problems

    return check


def _said(error: jsonschema_rs.ValidationError, schema: Mapping[str, Any]) -> str:
    """With what a model needs to do it right the next time: what is known here, what was meant."""
    message = _short(error.message)
    match error.kind.name:
        case "additionalProperties" | "unevaluatedProperties":
            return f"{message}; {_known(error, schema)}"
        case "enum":
            options = error.kind.as_dict().get("options", ())
            if len(options) <= _TOLD_ANYWAY:
                return message
            told = ", ".join(_short(_json(one)) for one in options[:MOST])
            return f"{_short(_json(error.instance))} is not one of {told}{', …' if len(options) > MOST else ''}"
        case "propertyNames":
            within = error.kind.as_dict().get("error")
            return _said(within, schema) if isinstance(within, jsonschema_rs.ValidationError) else message
        case "required":
            words = _about_missing(error, schema)
            return f"{message} ({words})" if words else message
        case "anyOf" | "oneOf":
            choices = [one for one in _at(schema, error.schema_path[:-1]).get(error.kind.name, ()) if "type" in one]
            kinds = dict.fromkeys(str(one["type"]) for one in choices)
            return f"{message}; expected: {' or '.join(kinds)}" if kinds else message
        case _:
            return message


def _known(error: jsonschema_rs.ValidationError, schema: Mapping[str, Any]) -> str:
    """Which names are known where there was another one, and which of them was meant."""
    from difflib import get_close_matches  # here: most servers never need it

    known = [*_at(schema, error.schema_path[:-1]).get("properties", ())]
    # To look for what was meant takes long, and a call may have as many names as its line is long.
    first = islice(error.kind.as_dict().get("unexpected", ()), _NEAR)
    near = {one: get_close_matches(one, known, 1) for name in first if (one := name[:_NAME])}
    meant = [f"{one}: did you mean {found[0]}?" for one, found in near.items() if found]
    more = ", …" if len(known) > MOST else ""
    told = ", ".join(_short(one) for one in known[:MOST])
    return f"{_short('; '.join(meant))}{'; ' if meant else ''}known are: {told or 'none'}{more}"


def _about_missing(error: jsonschema_rs.ValidationError, schema: Mapping[str, Any]) -> str:
    missing = error.kind.as_dict().get("property")
    about = _at(schema, error.schema_path[:-1]).get("properties", {}).get(missing, {})
    return _short(", ".join(str(about[key]) for key in ("type", "description") if key in about))


def _at(schema: Mapping[str, Any], path: list[str | int]) -> Mapping[str, Any]:
    """The part of a schema in which a keyword stands; empty where the way to it leads through a reference."""
    part: Any = schema
    for step in path:
        try:
            part = part[step]
        except (KeyError, IndexError, TypeError):
            return {}
    return cast("Mapping[str, Any]", part) if isinstance(part, Mapping) else {}


_NEAR: Final = 5  # names that nothing has, of which it is told what was meant
_NAME: Final = 80  # characters of one that are compared
_LEAVES: Final = frozenset((str, int, float, bool, type(None)))  # what most of a value is made of


def depth_exceeds(value: object, limit: int) -> bool:
    """Whether containers stand more than `limit` deep in each other. Level by level, without recursion."""
    level: list[object] = [value]
    for _ in range(limit + 1):
        below: list[object] = []
        for item in level:
            if type(item) in _LEAVES:
                continue
            if isinstance(item, Mapping):
                below += cast("Mapping[object, object]", item).values()
            elif isinstance(item, (list, tuple)):
                below += cast("list[object]", item)
        if not below:
            return False
        level = below
    return True


def mentions(schema: object, keyword: str) -> bool:
    """Whether `keyword` is a key anywhere in a schema that compile_schema took."""
    if isinstance(schema, Mapping):
        parts = cast("Mapping[object, object]", schema)
        return keyword in parts or any(mentions(part, keyword) for part in parts.values())
    if isinstance(schema, (list, tuple)):
        return any(mentions(part, keyword) for part in cast("list[object]", schema))
    return False


def pointer(path: list[str | int]) -> str:
    """A JSON pointer: `/files/0/name`; the whole value is the empty one."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(message: str) -> str:
    """What was given stands first, what was expected last: both ends are kept."""
    if len(message) <= _MAX_MESSAGE:
        return message
    return f"{message[: _MAX_MESSAGE // 3]} … {message[-_MAX_MESSAGE // 2 :]}"


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"a schema may only refer to itself, not to {uri}")
