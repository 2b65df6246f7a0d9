"""The toolset `people`: asking the person at the client, showing him something, and hearing what he thinks of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from octavo.core.errors import InvalidParams
from octavo.core.forms import LONGEST, Answer, wants_secret
from octavo.core.tools import Hints, ToolResult
from octavo.tools.builtin.schema_dsl import TEXT, TEXTS, Schema, a_list, an_object, one_of, result, said, tool
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

PATIENCE: Final = 3600.0  # seconds that a person may take
# Nothing changes but what the caller knows; and the same question may have another answer.
ASKS: Final = Hints(read_only=True, destructive=False, idempotent=False, open_world=False)

_QUESTION: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": LONGEST - 500}
_ANSWERED: Final = an_object(
    {"action": one_of("accept", "decline", "cancel"), "content": {"type": "object"}}, ("action", "content")
)
_RATING: Final[Schema] = {
    "type": "object",
    "properties": {
        "rating": {"type": "integer", "title": "From 1, of no use, to 5, just right", "minimum": 1, "maximum": 5},
        "comment": {"type": "string", "title": "What should be different?", "maxLength": 2000},
    },
    "required": ["rating"],
}


async def _ask_user(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    answer = await ctx.ask_user(_signed(ctx, arguments["question"]), _form(arguments))
    return _told(answer)


async def _feedback(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    return _told(await ctx.ask_user(_signed(ctx, arguments["about"]), _RATING))


async def _notify(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    answer = await ctx.notify_user(_signed(ctx, arguments["message"]))
    if answer is None:
        return result("The client shows nothing; the message waits for whoever looks there.", {"seen": False})
    seen = answer.action == "accept"
    return result("Seen." if seen else "Put away.", {"seen": seen})


def _signed(ctx: ToolContext, text: str) -> str:
    """A person must know that it is an agent who speaks, and which."""
    return f"{ctx.principal.id} says: {text}"


def _form(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    fields, choices = arguments.get("fields"), arguments.get("choices")
    if fields is not None and choices is not None:
        raise InvalidParams("Give `choices` or `fields`, not both")
    if fields is None and choices is None and wants_secret(arguments["question"]):
        raise InvalidParams("A form must not ask for secrets; if the question is about one, offer `choices`")
    if fields is None:
        answer: dict[str, Any] = {"type": "string"} if choices is None else {"type": "string", "enum": choices}
        return {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
    return {"type": "object", "properties": fields, "required": arguments.get("required", [])}


def _told(answer: Answer) -> ToolResult:
    if answer.action != "accept":
        words = "declined to answer" if answer.action == "decline" else "put the question away"
        return result(f"The user has {words}.", {"action": answer.action, "content": {}})
    lines = [f"{name}: {value}" for name, value in answer.content.items()]
    return result("\n".join(lines) or "Accepted.", {"action": "accept", "content": dict(answer.content)})


def people_tools() -> list[Tool]:
    made = [
        tool(
            "ask_user",
            "Ask the user",
            "Asks the user a question and gives the answer. Offer `choices` where there are few, or several `fields`, "
            "each a JSON Schema of type string, number, integer, boolean, or array of choices. Never ask for passwords "
            "or other secrets.",
            _ask_user,
            ASKS,
            {
                "question": said(_QUESTION, "What the user reads."),
                "choices": said(TEXTS, "Answers to choose from."),
                "fields": said({"type": "object", "additionalProperties": {"type": "object"}}, "Fields by name."),
                "required": said(a_list(TEXT), "Names of the fields that must be filled in."),
            },
            required=("question",),
            gives=_ANSWERED,
        ),
        tool(
            "feedback",
            "Ask for feedback",
            "Asks the user how good a result is, from 1 to 5, and what should be different.",
            _feedback,
            ASKS,
            {"about": said(_QUESTION, "What the user shall judge.")},
            required=("about",),
            gives=_ANSWERED,
        ),
        tool(
            "notify",
            "Notify the user",
            "Shows the user a message. Tells whether it was seen.",
            _notify,
            ASKS,
            {"message": said(_QUESTION, "What the user reads.")},
            required=("message",),
            gives=an_object({"seen": {"type": "boolean"}}, ("seen",)),
        ),
    ]
    return [replace(one, info=replace(one.info, timeout=PATIENCE, task="may")) for one in made]
