"""The schema for editors is made from the models, committed, and describes every key."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema_rs
from pydantic import BaseModel
from ruamel.yaml import YAML

from octavo.app.configuration import KINDS
from octavo.config import model
from octavo.config.schema import schema, schema_text

COMMITTED = Path(__file__).parents[2] / "schema" / "octavo.schema.json"


def test_the_committed_schema_is_the_generated_one() -> None:
    """Rewrite it with `octavo schema > schema/octavo.schema.json`."""
    assert COMMITTED.read_text(encoding="utf-8") == schema_text(KINDS)


def models() -> Iterator[type[BaseModel]]:
    modules = [model, *(import_module(record.options.__module__) for record in KINDS)]
    for thing in {id(one): one for module in modules for one in vars(module).values()}.values():
        if isinstance(thing, type) and issubclass(thing, model.Strict) and thing is not model.Strict:
            yield thing


def test_every_key_has_a_description() -> None:
    bare = [
        f"{shape.__name__}.{name}" for shape in models() for name, f in shape.model_fields.items() if not f.description
    ]
    assert bare == []


def test_every_model_is_strict_frozen_and_silent_about_input() -> None:
    for shape in models():
        config = shape.model_config
        assert (config.get("extra"), config.get("frozen"), config.get("hide_input_in_errors")) == ("forbid", True, True)


def test_the_schema_accepts_what_loads_and_refuses_what_does_not() -> None:
    validator = jsonschema_rs.validator_for(schema(KINDS))
    good = """\
version: 1
sources:
  docs: {kind: file, roots: [a, {path: b, as: /b}], list: {under: x}, cache: {ttl: 5m}}
  notes: {kind: memory, scheme: note, resources: {a: {text: A}}}
agents: {a: {key: "${A}", roles: [x]}}
policy: [{who: a, may: read, what: "**"}, {who: [a], may: ["*"], what: ["**"], effect: deny}]
limits: {read: 1MiB, time: 10, per_principal: off}
"""
    assert validator.is_valid(_plain(good))
    for bad in (
        "sourcs: {}",
        "policy: [{who: a}]",
        "agents: {a: {key: literal}}",
        "sources: {d: {kind: nothing}}",
        "limits: {read: big}",
    ):
        assert not validator.is_valid(_plain(bad)), bad


def _plain(text: str) -> Any:
    yaml: Any = YAML(typ="safe", pure=True)
    return yaml.load(text)
