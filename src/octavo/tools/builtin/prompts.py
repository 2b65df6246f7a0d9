"""The toolset `prompts`: for models that are to use prompts themselves, and for what was said before."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from octavo.core.errors import InvalidParams
from octavo.core.tools import Audio, Block, Conversations, Embedded, Image, Link, PromptResult, Said, Text, ToolResult
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

_ACTIONS = ("begin", "add", "show", "end")


def prompt_tools(conversations: Conversations | None, most: int) -> list[Tool]:
    """Their answers have at most `most` bytes. Without conversations, as where there are no prompts, no tool for them
    is offered."""
    made = [_get_prompt_tool(most)]
    if conversations is not None:
        made.append(_conversation_tool(conversations, most))
    return [replace(tool, max_answer=most) for tool in made]


async def _get_prompt(most: int, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    result = await ctx.render(asked["name"], asked.get("arguments", {}))
    if not isinstance(result, PromptResult):
        raise InvalidParams(f"The prompt {asked['name']} speaks the raw protocol: get it with prompts/get")
    return ToolResult(content=(Text(json.dumps(shape(result, most), ensure_ascii=False)),))


def shape(result: PromptResult, most: int | None = None) -> dict[str, Any]:
    """`{description, messages: [{role, content: []}]}`: what has one role and stands together is one message. A
    resource for which three quarters of `most` characters leave no room is named and not shown."""
    messages: list[dict[str, Any]] = []
    room = None if most is None else most - most // 4
    for one in result.messages:
        part = _part(one.content)
        if room is not None and isinstance(one.content, Embedded):
            size = len(json.dumps(part, ensure_ascii=False))
            if size <= room:
                room -= size
            else:
                part = _part(Link(one.content.content.entry, one.content.uri))
        if not messages or messages[-1]["role"] != one.role:
            messages.append({"role": one.role, "content": []})
        messages[-1]["content"].append(part)
    return {"description": result.description or "", "messages": messages}


def _part(block: Block) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Image() | Audio():
            kind = "image" if isinstance(block, Image) else "audio"
            return {"type": kind, "data": base64.b64encode(block.data).decode("ascii"), "mimeType": block.mime_type}
        case Embedded(content=content):
            body = content.body
            held = {"text": body} if isinstance(body, str) else {"blob": base64.b64encode(body).decode("ascii")}
            return {"type": "resource", "uri": block.uri, "mimeType": content.entry.mime_type, **held}
        case Link():
            return {"type": "resource", "uri": block.uri, "mimeType": block.entry.mime_type}


async def _converse(conversations: Conversations, most: int, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    who, action, handle = ctx.principal.id, asked["action"], asked.get("context_id")
    said = [Said(one["role"], one["text"]) for one in asked.get("messages", ())]
    if action == "begin":
        handle = await conversations.begin(who)
        await conversations.add(who, handle, said)
    elif handle is None:
        raise InvalidParams(f"{action} needs context_id: the handle that begin gave")
    elif action == "add":
        await conversations.add(who, handle, said)
    elif action == "end":
        await conversations.end(who, handle)
        return d.result("The conversation is forgotten", {"context_id": handle, "messages": []})
    past = await conversations.past(who, handle)
    lines = [f"context_id: {handle}, {len(past)} messages"]
    told: list[dict[str, str]] = []
    if action == "show":
        shown = _latest(past, most - most // 4)
        lines += [f"the latest {len(shown)} of them:"] if len(shown) < len(past) else []
        told = [{"role": one.role, "text": one.text} for one in shown]
        lines += [f"{one.role}: {one.text}" for one in shown]
    return d.result("\n".join(lines), {"context_id": handle, "messages": told})


def _latest(past: Sequence[Said], room: int) -> Sequence[Said]:
    """As many as fit."""
    for count, one in enumerate(reversed(past)):
        room -= len(json.dumps(one.text)) + 40  # as text and as JSON
        if room < 0:
            return past[len(past) - count :]
    return past


def _get_prompt_tool(most: int) -> Tool:
    return d.tool(
        "get_prompt",
        "Get a prompt",
        "A prompt of this server filled with arguments: {description, messages: [{role, content: [...]}]}. lang "
        "chooses the language of one that has several.",
        partial(_get_prompt, most),
        d.READS,
        {"name": d.TEXT, "arguments": {"type": "object"}},
        required=["name"],
    )


def _conversation_tool(conversations: Conversations, most: int) -> Tool:
    message = d.an_object({"role": d.one_of("user", "assistant"), "text": d.TEXT}, ["role", "text"])
    return d.tool(
        "conversation",
        "Remember a conversation",
        "Messages to be used in prompts that take a context_id: begin gives one, add appends, show lists, end forgets. "
        "It expires.",
        partial(_converse, conversations, most),
        d.ADDS,
        {
            "action": d.one_of(*_ACTIONS),
            "context_id": d.FILLED,
            "messages": {**d.a_list(message), "maxItems": 200},
        },
        required=["action"],
        gives=d.an_object({"context_id": d.TEXT, "messages": d.a_list()}, ["context_id", "messages"]),
    )
