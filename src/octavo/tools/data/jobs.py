"""The work of the tools `convert` and `validate`."""

from __future__ import annotations

import difflib  # noqa: F401  # which the schema loads late, when nothing can be opened any more
from collections.abc import Mapping, Sequence
from typing import Any

from octavo.core.errors import InvalidParams
from octavo.tools.data.formats import plain, write
from octavo.tools.data.sight import parsed
from octavo.tools.schema import compile_schema


def convert(asked: Mapping[str, Any], inputs: Sequence[bytes]) -> tuple[Mapping[str, Any], bytes]:
    return {}, write(parsed(asked, inputs, 0), asked["formats"][1])


def validate(asked: Mapping[str, Any], inputs: Sequence[bytes]) -> tuple[Mapping[str, Any], bytes]:
    value = plain(parsed(asked, inputs, 0))
    schema = asked.get("schema")
    if schema is None:
        schema = parsed(asked, inputs, 1)
    if not isinstance(schema, Mapping):
        raise InvalidParams("A JSON Schema is an object")
    problems = compile_schema(schema)(value)
    return {"valid": not problems, "problems": problems}, b""
