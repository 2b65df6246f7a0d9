"""From a template and values to messages. A resource part is a child call, so a prompt shows nothing
that its caller may not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from octavo.core.errors import OctavoError, TooLarge
from octavo.core.model import Call, Content, Entry, Op
from octavo.core.ports import Ask
from octavo.core.ref import Ref
from octavo.core.surface import Block, Embedded, Link, PromptMessage, PromptResult, Text
from octavo.prompts.template import Part, ResourcePart, Template, TextPart, fill, fill_uri

_NOWHERE = Ref("invalid")  # stands for an address that could not be parsed; the call carries the fault


async def render(template: Template, values: Mapping[str, Any], call: Call, ask: Ask) -> PromptResult:
    """One message a block, in the order of the file. Fails as a whole if one resource cannot be read."""
    messages: list[PromptMessage] = []
    for message in template.messages:
        for part in message.parts:
            messages += [PromptMessage(message.role, block) for block in await _blocks(part, values, call, ask)]
    return PromptResult(messages=tuple(messages), description=template.info.description)


async def _blocks(part: Part, values: Mapping[str, Any], call: Call, ask: Ask) -> list[Block]:
    if isinstance(part, TextPart):
        return [Text(fill(part.text, values))]
    if isinstance(part, ResourcePart):
        return [await _resource(uri, call, ask) for uri in fill_uri(part.uri, values)]
    return [part]


async def _resource(uri: str, call: Call, ask: Ask) -> Block:
    try:
        content: Content = await ask(_child(call, "read", uri))
    except TooLarge:
        entry: Entry = await ask(_child(call, "stat", uri))
        return Link(entry, uri)
    return Embedded(content, uri)


def _child(call: Call, op: Op, uri: str) -> Call:
    try:
        return call.child(op, Ref.parse(uri), uri=uri)
    except OctavoError as fault:  # the pipeline raises it, so that it is counted and recorded
        return call.child(op, _NOWHERE, uri=uri)._replace(fault=fault)
