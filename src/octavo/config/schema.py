"""The JSON Schema of octavo.yaml, for editors and for the nearest known key in an error."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Union, cast

from pydantic import Field, create_model

from octavo.config.model import Config
from octavo.config.problems import KeyPath
from octavo.config.sections.source import Kinds, Options
from octavo.config.words import Name

ADDRESS = "https://json-schema.org/draft/2020-12/schema"
NOTHING = ("default", None)


def schema(kinds: Kinds, names: Iterable[str] | None = None) -> dict[str, Any]:
    """With the kinds of these names alone, or with all of them."""
    records = filter(None, map(kinds.kind, kinds.names if names is None else names))
    models = tuple(record.options for record in records)
    # Any kind of source, where there is none to tell of.
    one: Any = Annotated[Union[models], Field(discriminator="kind")] if len(models) > 1 else (*models, Options)[0]  # noqa: UP007
    sources: Any = (dict[Name, one], Config.model_fields["sources"])
    whole = create_model("Config", __base__=Config, __doc__=Config.__doc__, sources=sources)
    made: dict[str, Any] = _plain(whole.model_json_schema(mode="validation"))
    return {"$schema": ADDRESS, "title": "octavo.yaml", **made}


def schema_text(kinds: Kinds) -> str:
    """As it is committed: schema/octavo.schema.json."""
    return json.dumps(schema(kinds), ensure_ascii=False, indent=2) + "\n"


def known_keys(path: KeyPath, data: Mapping[str, Any], kinds: Kinds) -> tuple[str, ...]:
    """The keys that may stand in the mapping at `path` of `data`."""
    whole = schema(kinds, _named(data, kinds))
    nodes, value = [whole], data
    for part in path:
        nodes = [below for node in nodes for below in _below(whole, node, part, value)]
        value = _item(value, part)
    return tuple(
        dict.fromkeys(key for node in nodes for one in _shapes(whole, node, value) for key in one.get("properties", ()))
    )


def _named(data: Mapping[str, Any], kinds: Kinds) -> list[str]:
    """Kinds that a file names: the others are not loaded for what is told of it."""
    sources = data.get("sources")
    entries = sources.values() if isinstance(sources, Mapping) else ()
    said = [_item(entry, "kind") for entry in entries]
    return [name for name in kinds.names if name in said]


def nearest(word: str, known: Iterable[str]) -> str | None:
    found = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def _plain(node: Any) -> Any:
    """Without what helps nobody: null where a key can be left out, and titles that repeat the key."""
    if isinstance(node, list):
        return [_plain(item) for item in cast("Iterable[Any]", node)]
    if not isinstance(node, dict):
        return node
    items = cast("dict[str, Any]", node).items()
    kept = {k: _plain(v) for k, v in items if not (k == "title" and isinstance(v, str)) and (k, v) != NOTHING}
    real = [choice for choice in kept.get("anyOf", []) if choice != {"type": "null"}]
    if len(real) == 1:
        del kept["anyOf"]
        return {**real[0], **kept}
    return kept


def _item(value: Any, part: str | int) -> Any:
    try:
        return value[part]
    except (KeyError, IndexError, TypeError):
        return None


def _below(whole: Mapping[str, Any], node: Mapping[str, Any], part: str | int, value: Any) -> Iterator[dict[str, Any]]:
    for shape in _shapes(whole, node, value):
        if isinstance(part, int):
            below = shape.get("items")
        else:
            below = shape.get("properties", {}).get(part, shape.get("additionalProperties"))
        if isinstance(below, dict):
            yield below


def _shapes(whole: Mapping[str, Any], node: Mapping[str, Any], value: Any) -> Iterator[Mapping[str, Any]]:
    """The node without its indirections: references followed, of alternatives the one whose kind fits."""
    if reference := node.get("$ref"):
        yield from _shapes(whole, whole["$defs"][reference.rpartition("/")[2]], value)
        return
    kinds = node.get("discriminator", {}).get("mapping", {})
    kind = _item(value, "kind")
    if isinstance(kind, str) and kind in kinds:
        yield from _shapes(whole, {"$ref": kinds[kind]}, value)
        return
    yield node
    for alternative in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _shapes(whole, alternative, value)
