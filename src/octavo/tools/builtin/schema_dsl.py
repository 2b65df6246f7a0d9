"""How a file tool is described: small schemas, and all four hints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from octavo.core.clock import iso
from octavo.core.tools import Hints, Text, ToolInfo, ToolResult
from octavo.core.values import LABELS, Entry
from octavo.tools.registry import Handler, Tool

Schema = Mapping[str, Any]

READS: Final = Hints(read_only=True, destructive=False, idempotent=True, open_world=True)
ADDS: Final = Hints(read_only=False, destructive=False, idempotent=True, open_world=True)
REPLACES: Final = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)
REMOVES: Final = Hints(read_only=False, destructive=True, idempotent=True, open_world=True)

TEXT: Final[Schema] = {"type": "string"}
FILLED: Final[Schema] = {"type": "string", "minLength": 1}  # an empty one is not given, where it is optional
FLAG: Final[Schema] = {"type": "boolean"}
TEXTS: Final[Schema] = {"type": "array", "items": TEXT, "maxItems": 100}
WHOLE: Final[Schema] = {"type": "integer"}


def one_of(*values: str) -> Schema:
    return {"enum": list(values)}


def said(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def at_least(least: int, most: int | None = None) -> Schema:
    return {"type": "integer", "minimum": least} | ({} if most is None else {"maximum": most})


def a_list(item: Schema = {"type": "object"}) -> Schema:  # noqa: B006  # never changed
    return {"type": "array", "items": item}


def an_object(properties: Mapping[str, Schema], required: Sequence[str] = ()) -> dict[str, Any]:
    shape: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    return {**shape, "required": list(required)} if required else shape


def tool(
    name: str,
    title: str,
    description: str,
    handler: Handler,
    hints: Hints,
    takes: Mapping[str, Schema],
    *,
    required: Sequence[str] = (),
    gives: Mapping[str, Any] | None = None,
    lane_safe: bool = False,
    asks: str = "",
    rehearses: bool = False,
) -> Tool:
    info = ToolInfo(
        name=name,
        title=title,
        description=description,
        input_schema={**an_object(takes, required), "additionalProperties": False},
        output_schema=gives,
        hints=hints,
        lane_safe=lane_safe,
        asks=asks,
    )
    return Tool(info, handler, rehearses=rehearses)


def result(text: str, structured: Mapping[str, Any]) -> ToolResult:
    return ToolResult(content=(Text(text),), structured=structured)


def labels(entry: Entry) -> dict[str, Any]:
    """How far it may go and be believed, where that is said: it goes along with the text."""
    return {key: entry.metadata[key] for key in LABELS if key in entry.metadata}


def facts(entry: Entry) -> dict[str, Any]:
    """What every answer tells of a file, as far as it is known."""
    known: dict[str, Any] = {"uri": str(entry.ref), "name": entry.name, "type": "file", "size": entry.size}
    if entry.modified is not None:
        known["modified"] = iso(entry.modified)
    return {key: value for key, value in known.items() if value is not None}


def versioned(entry: Entry) -> str:
    """For the end of a sentence: a client that keeps texts alone has no other place to see it."""
    return f" (version {entry.version})" if entry.version else ""


def sized(size: int | None) -> str:
    return "" if size is None else f"{size:,} bytes"
