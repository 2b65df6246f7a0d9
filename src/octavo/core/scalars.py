"""Numbers and booleans that were written as text, and whole numbers that were written with a point."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

# As JSON writes them: 0x10, 007, " 5 " and 1e400 are none. Each part is bounded, so a million digits cost nothing.
_WHOLE: Final = re.compile(r"(-?(?:0|[1-9][0-9]{0,17}))(?:\.0{1,17})?\Z")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?\Z")
_EXACT: Final = 1 << 53  # from here on a float stands for several whole numbers


def spelled(text: str, types: Collection[str]) -> str | int | float:
    """The value of one of these types of JSON Schema that the text writes out; the text itself where it does not."""
    if "boolean" in types and text in ("true", "false"):
        return text == "true"
    if "integer" in types and (digits := _WHOLE.match(text)) is not None:
        return int(digits[1])
    if "number" in types and _NUMBER.match(text) is not None:
        return float(text)
    return text


def whole(value: float) -> int | None:
    """None for what is none, and for what may have been another one before it became a float."""
    return int(value) if -_EXACT < value < _EXACT and value.is_integer() else None
