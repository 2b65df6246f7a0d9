"""The base of every part of octavo.yaml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """Unknown keys are errors, values do not change, and no error repeats a value."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False, defer_build=True
    )


def written(text: str, parse: Callable[[object], Any], description: str) -> Any:
    """A default as people would write it: the schema shows the text, the model holds the value."""
    return Field(default=parse(text), description=description, json_schema_extra={"default": text})
