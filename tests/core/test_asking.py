"""Forms: what can be asked, and what is an answer to it."""

from __future__ import annotations

from typing import Any

import pytest

from octavo.core.errors import InvalidParams
from octavo.core.forms import Answer, form

pytestmark = pytest.mark.seed("T4")

FIELDS: dict[str, Any] = {
    "name": {"type": "string", "minLength": 2, "maxLength": 5},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "share": {"type": "number"},
    "agreed": {"type": "boolean"},
    "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
    "days": {"type": "array", "items": {"type": "string", "enum": ["mon", "tue"]}, "minItems": 1},
}


def schema(required: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields or FIELDS, "required": [*required]}


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"name": "Kim", "age": 44, "share": 0.5, "agreed": False, "colour": "b", "days": ["mon", "tue"]},
        {"age": 44.0, "share": 1},
    ],
)
def test_these_are_answers(content: dict[str, Any]) -> None:
    assert form("Who?", schema()).taken(Answer("accept", content)) == Answer("accept", content)


def test_what_nobody_asked_for_is_left_out_of_an_answer() -> None:
    """Some clients send more than the form; that is no reason to ask again, and nothing for the tool."""
    given = Answer("accept", {"name": "Kim", "further": {"a": [1]}, "_meta": None})
    assert form("Who?", schema(("name",))).taken(given) == Answer("accept", {"name": "Kim"})
    assert form("Who?", schema(("name",))).taken(Answer("accept", {"nmae": "Kim"})) is None


@pytest.mark.parametrize(
    "content",
    [
        {"name": "K"}, {"name": "Kim Kim"}, {"name": 1}, {"age": 1.5}, {"age": True}, {"age": 151}, {"share": "1"},
        {"agreed": 1}, {"colour": "g"}, {"days": []}, {"days": ["wed"]}, {"days": "mon"},
        {"age": float("inf")}, {"age": float("nan")}, {"share": float("-inf")},
    ],
)  # fmt: skip
def test_these_are_none(content: dict[str, Any]) -> None:
    assert form("Who?", schema()).taken(Answer("accept", content)) is None


def test_what_is_required_must_be_there_unless_the_user_declines() -> None:
    asked = form("Who?", schema(("name",)))
    assert asked.taken(Answer("accept", {"age": 1})) is None
    assert asked.taken(Answer("decline")) and asked.taken(Answer("cancel"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "array"},
        {"type": "object", "properties": {}, "additionalProperties": True},
        schema(x={"type": "object"}),
        schema(x={"type": "string", "$ref": "#"}),
        schema(x={"type": "string", "minLength": "2"}),
        schema(x={"type": "string", "enum": [1]}),
        schema(x={"type": "array", "items": {"type": "string"}}),
        schema(x="string"),
        schema(api_key={"type": "string"}),
        schema(x={"type": "string", "title": "Your password"}),
        schema(x={"type": "string", "description": "the API key of the shop"}),
        schema(비밀번호={"type": "string"}),
        schema(x={"type": "string", "title": "주민등록번호 뒷자리"}),
        schema(x={"type": "string", "enum": ["y" * 20_000]}),
        schema(("other",), x={"type": "string"}),
        schema(x={"type": "string", "enum": [str(number) for number in range(101)]}),
    ],
)
def test_what_no_client_could_show_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        form("Who?", wrong)


@pytest.mark.parametrize("text", ["", "  ", "x" * 4001])
def test_a_question_has_words_and_not_too_many(text: str) -> None:
    with pytest.raises(InvalidParams):
        form(text, schema())
