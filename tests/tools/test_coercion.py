"""Arguments as clients really send them: what is made of them, and what never is."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from octavo.tools.coercion import Coercion
from octavo.tools.schema import compile_schema

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "name": {"type": "string", "minLength": 1},
        "day": {"type": "string", "format": "date"},
        "count": {"type": "integer", "minimum": 0},
        "size": {"type": "number"},
        "on": {"type": "boolean"},
        "kind": {"enum": ["a", "b"]},
        "level": {"enum": [1, 2]},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "listed": {"type": ["integer", "null"]},
        "either": {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "all"}]},
        "texts": {"type": "array", "items": {"type": "string"}},
        "pair": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        "free": {"type": "object"},
        "by_name": {"type": "object", "additionalProperties": {"type": "integer"}},
        "anything": {},
        "node": {"$ref": "#/$defs/node"},
        "needed": {"type": "integer"},
        "places": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
    "required": ["needed"],
    "additionalProperties": False,
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "line": {"type": "integer"},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["line"],
            "additionalProperties": False,
        }
    },
}
GONE = object()
CHECK = compile_schema(SCHEMA)


def meant(name: str, value: Any) -> Any:
    made = Coercion(SCHEMA).meant({"needed": 1, name: value})
    return made.get(name, GONE)


@pytest.mark.parametrize(
    ("name", "sent", "made"),
    [
        ("count", 2.0, 2),
        ("count", "2", 2),
        ("count", "2.0", 2),
        ("count", "-3", -3),
        ("needed", -0.0, 0),
        ("size", "1.5", 1.5),
        ("size", "2", 2),
        ("size", "1e3", 1000.0),
        ("on", "true", True),
        ("on", "false", False),
        ("level", "2", 2),
        ("level", 2.0, 2),
        ("maybe", "7", 7),
        ("maybe", "", GONE),
        ("listed", 3.0, 3),
        ("either", 2.0, 2),
        ("pair", ["1", 2.0], [1, 2]),
        ("pair", [], GONE),
        ("pair", "", GONE),
        ("node", {"line": "4", "next": {"line": 5.0}}, {"line": 4, "next": {"line": 5}}),
        ("places", [{"line": "1"}, {"line": 2}], [{"line": 1}, {"line": 2}]),
        ("count", None, GONE),
        ("texts", None, GONE),
        ("free", None, GONE),
        ("free", [], GONE),
        ("count", "", GONE),
        ("count", [], GONE),
        ("kind", "", GONE),
        ("name", "", GONE),
        ("day", "", GONE),
        ("on", "", GONE),
    ],
)  # fmt: skip
def test_what_leaves_no_doubt_is_made_what_the_schema_asks_for(name: str, sent: Any, made: Any) -> None:
    found = meant(name, sent)
    assert found == made and type(found) is type(made)
    assert CHECK({"needed": 1} | ({} if made is GONE or name == "needed" else {name: made})) == [] or sent == "-3"


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("count", 1.5),
        ("count", "1.5"),
        ("count", "0x10"),
        ("count", " 5 "),
        ("count", "5\n"),
        ("count", "+5"),
        ("count", "007"),
        ("count", "1_000"),
        ("count", "٣"),
        ("count", "1e3"),
        ("count", "9" * 19),
        ("count", "1" * 1_000_000),
        ("count", True),
        ("count", "true"),
        ("size", "1e400"),
        ("size", "NaN"),
        ("size", "Infinity"),
        ("size", ".5"),
        ("on", "yes"),
        ("on", "True"),
        ("on", "1"),
        ("on", 1),
        ("on", 0.0),
        ("text", 5),
        ("needed", None),
        ("needed", ""),
        ("needed", []),
        ("text", []),
        ("texts", ""),
        ("texts", "one"),
        ("texts", [None]),
        ("pair", [None, ""]),
        ("node", {"line": None}),
        ("node", {"line": 1, "more": "2"}),
        ("places", ["1"]),
        ("kind", "c"),
    ],
)
def test_what_leaves_a_doubt_stays_and_the_schema_refuses_it(name: str, sent: Any) -> None:
    assert meant(name, sent) == sent and type(meant(name, sent)) is type(sent)
    problems = CHECK({"needed": 1, name: sent})
    assert problems and all(one["path"].startswith(f"/{name}") for one in problems)


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("maybe", None),
        ("listed", None),
        ("text", ""),
        ("texts", []),
        ("either", "2"),
        ("either", "all"),
        ("free", {"count": "2", "on": "true", "nothing": None, "whole": 2.0}),
        ("by_name", {"count": "2", "whole": 2.0}),
        ("anything", "2"),
        ("anything", 2.0),
        ("anything", None),
        ("size", 2.0),
        ("unknown", "2"),
        ("unknown", None),
    ],
)
def test_what_the_schema_allows_or_says_nothing_of_is_as_it_came(name: str, sent: Any) -> None:
    arguments = {"needed": 1, name: sent}
    assert Coercion(SCHEMA).meant(arguments) is arguments


@pytest.mark.parametrize("value", [float(1 << 53), -float(1 << 53), 1e20, 1e300])
@pytest.mark.parametrize("name", ["count", "pair", "places"])
def test_a_float_beyond_2_to_the_53_is_no_whole_number(value: float, name: str) -> None:
    sent = {"count": value, "pair": [1, value], "places": [{"line": value}]}[name]
    coercion = Coercion(SCHEMA)
    made = coercion.meant({"needed": 1, name: sent})
    (problem,) = coercion.inexact(made)
    assert problem["path"].startswith(f"/{name}") and "whole number" in problem["message"]
    assert coercion.inexact({"needed": 1, "size": value, "free": {"x": value}}) == []


def test_a_choice_of_objects_or_a_thing_said_twice_is_left_alone() -> None:
    one, other = ({"type": "object", "properties": {"n": {"type": kind}}} for kind in ("integer", "string"))
    for schema in ({"anyOf": [one, other]}, {"oneOf": [one, {"type": "object"}]}, {"allOf": [one, other]}):
        sent = {"x": {"n": "5"}}
        assert Coercion({"type": "object", "properties": {"x": schema}}).meant(sent) is sent
    for schema in ({"allOf": [one]}, {"anyOf": [one, {"type": "null"}]}, {"oneOf": [{"type": "array"}, one]}):
        sent = {"x": {"n": "5"}}
        assert Coercion({"type": "object", "properties": {"x": schema}}).meant(sent) == {"x": {"n": 5}}


def test_right_arguments_are_given_on_untouched_and_twice_is_as_once() -> None:
    chance, coercion = random.Random(7), Coercion(SCHEMA)
    values = (
        None,
        True,
        0,
        1,
        2.0,
        1.5,
        "",
        "1",
        "true",
        "a",
        [],
        [1, 2],
        ["1", 2.0],
        {},
        {"line": 1},
        {"line": "1.0"},
    )
    right = 0
    for _ in range(3000):
        names = chance.sample(sorted(SCHEMA["properties"]), 2)
        sent = {"needed": 1} | {name: chance.choice(values) for name in names}
        made = coercion.meant(sent)
        assert coercion.meant(made) == made
        if CHECK(sent) == []:
            right += 1
            assert made == {name: value for name, value in sent.items() if not (name == "day" and value == "")}
    assert right > 50
