"""The front-matter model: a JSON Schema, and what is wrong with a file in words that its author understands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeAlias

import jsonschema_rs

from octavo.core.errors import InvalidParams
from octavo.text.frontmatter import KeyPath, shown

MAX_FAULTS: Final = 20

# What is wrong with the data, as (where, message); nothing when it fits.
Check: TypeAlias = Callable[[Mapping[str, Any]], list[tuple[KeyPath, str]]]

_TYPES: Final = {
    "string": "text",
    "array": "a list",
    "object": "keys and values",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "empty",
}


def compile_model(schema: Mapping[str, Any]) -> Check:
    """Raises InvalidParams for what is no JSON Schema, and for one that points outside itself."""
    try:
        validator = jsonschema_rs.Draft202012Validator(
            dict(schema), retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions()
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        said = getattr(error, "message", None) or str(error)
        raise InvalidParams(f"Not a usable JSON Schema 2020-12: {str(said)[:300]}") from None

    def check(data: Mapping[str, Any]) -> list[tuple[KeyPath, str]]:
        found: list[tuple[KeyPath, str]] = []
        for error in validator.iter_errors(data):
            path = tuple(error.instance_path)
            found.append((path, _said(path, error)))
            if len(found) == MAX_FAULTS:
                break
        return found

    return check


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not fetched")


def _said(path: KeyPath, error: jsonschema_rs.ValidationError) -> str:
    where, kind = shown(path), error.kind
    of: Mapping[str, Any] = kind.as_dict()
    match kind.name:
        case "required":
            return f"{shown((*path, str(of.get('property', ''))))} is missing"
        case "type":
            types = [_TYPES.get(str(one), str(one)) for one in of.get("types", ())]
            return f"{where} must be {' or '.join(types)}" if types else f"{where} has a value of the wrong kind"
        case "enum":
            options = ", ".join(str(one) for one in of.get("options", ()))
            return f"{where} must be one of: {options}"
        case "minLength" | "minItems":
            return f"{where} must not be empty"
        case "additionalProperties":
            return f"{where or 'the front matter'} has a key that its schema does not know"
        case name:
            return f"{where} does not fit its schema ({name})"
