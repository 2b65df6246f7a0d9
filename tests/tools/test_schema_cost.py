"""Schemas that could keep a validator busy are refused before they are used (issue: recursive, explosive)."""

from __future__ import annotations

from typing import Any

import pytest

from octavo.core.errors import InvalidParams
from octavo.tools.schema import compile_schema

pytestmark = pytest.mark.seed("T1")


def refer(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def whole(part: dict[str, Any], **definitions: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": part}, "$defs": definitions}


DOUBLING = {f"a{i}": {"allOf": [refer(f"a{i + 1}")] * 2} for i in range(40)} | {"a40": {}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "$ref": "#"},
        {"type": "object", "allOf": [{"$ref": "#"}]},
        {"type": "object", "not": {"anyOf": [{"$ref": "#"}]}},
        whole(refer("a"), a=refer("b"), b=refer("a")),
        whole({"$ref": "#loop"}, a={"$anchor": "loop", "if": {"$ref": "#loop"}}),
    ],
)
def test_a_schema_that_refers_to_itself_without_end_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match="without end"):
        compile_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        whole(refer("a0"), **DOUBLING),
        whole(refer("n"), n={"anyOf": [{"properties": {"a": refer("n")}}, {"properties": {"a": refer("n")}}]}),
        whole(refer("n"), n={"items": {"allOf": [refer("n"), refer("n"), refer("n")]}}),
        whole(
            refer("n"), n={"additionalProperties": refer("n"), "patternProperties": {"a": refer("n"), "b": refer("n")}}
        ),
    ],
)
def test_a_schema_whose_rounds_multiply_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match="explosive"):
        compile_schema(schema)


@pytest.mark.parametrize("written", ["#/%24defs/", "http://x/r#/$defs/", "part#/$defs/", "#/$defs/"])
def test_no_other_spelling_of_a_reference_hides_what_it_costs(written: str) -> None:
    doubling = {name: {"allOf": [{"$ref": f"{written}a{i + 1}"}] * 2} for i, name in enumerate([*DOUBLING][:-1])}
    inside = {"$id": "part", "$ref": f"{written}a0", "$defs": {**doubling, "a40": {}}}
    for schema in (whole({"$ref": f"{written}a0"}, **inside["$defs"]) | {"$id": "http://x/r"}, whole(inside)):
        with pytest.raises(InvalidParams, match=r"explosive|refers to itself by #|no \$id|Not a usable"):
            compile_schema(schema)
    names = {"propertyNames": {"$ref": f"{written}a0"}}
    with pytest.raises(InvalidParams):
        compile_schema(whole(names, **inside["$defs"]) | {"$id": "http://x/r"})


def test_a_schema_of_endless_length_and_a_dynamic_one_are_refused() -> None:
    with pytest.raises(InvalidParams, match="parts"):
        compile_schema({"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(10_001)}})
    with pytest.raises(InvalidParams, match="dynamically"):
        compile_schema({"type": "object", "$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}})


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "object", "properties": {"below": {"$ref": "#"}}}, {"below": {"below": {}}}, {"below": {"below": 1}}),
        (
            whole(
                refer("n"),
                n={
                    "anyOf": [
                        {"type": "string"},
                        {
                            "type": "object",
                            "properties": {"and": {"type": "array", "items": refer("n")}},
                            "required": ["and"],
                        },
                        {"type": "object", "properties": {"not": refer("n")}, "required": ["not"]},
                    ]
                },
            ),
            {"x": {"and": ["a", {"not": "b"}]}},
            {"x": {"and": ["a", {"not": 5}]}},
        ),
        (whole({"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}), {"x": {}}, {"x": 1}),
    ],
)
def test_a_tree_is_good_because_every_round_goes_deeper_into_the_value(
    schema: dict[str, Any], good: Any, bad: Any
) -> None:
    check = compile_schema(schema)
    assert check(good) == [] and check(bad) != []
