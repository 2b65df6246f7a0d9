"""From a template and values to messages. A resource part is a child call, so a prompt shows nothing
that its caller may not read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from octavo.core.errors import Forbidden, InvalidParams, NotFound, Timeout, TooLarge
from octavo.core.ports.chain import Ask, expected
from octavo.core.sizes import KIB
from octavo.core.tools import Block, Embedded, Link, PromptMessage, PromptResult, Said, Text
from octavo.core.values import Call, Content, Entry
from octavo.prompts.render_cache import Renderings
from octavo.prompts.substitution import MAX_OUTPUT, bounded
from octavo.prompts.template import HISTORY, PromptTemplate, ResourcePart, TemplateMessage, TextPart, Variant

MAX_RESOURCES: Final = 50  # of one prompt
_MAX_KEY: Final = 32 * KIB  # characters of arguments for which a rendering is worth keeping


class Rendering(Struct, frozen=True):
    """What is to be rendered: a template in one language, with checked values and the messages before it."""

    template: PromptTemplate
    locale: str
    values: Mapping[str, Any]
    past: Sequence[Said] = ()

    @property
    def variant(self) -> Variant:
        return self.template.variants[self.locale]


async def render(one: Rendering, call: Call, ask: Ask, *, embed: int, kept: Renderings) -> PromptResult:
    """One message a block, in the order of the file. Fails as a whole if one resource cannot be read.

    Resources of up to `embed` bytes are shown, larger ones are linked; and so are all from where they would be more
    than the caller may read at once. Raises Timeout, and InvalidParams for too many resources.
    """
    try:
        async with asyncio.timeout(call.timeout):
            blocks = await _resources(one, call, ask, embed)
    except TimeoutError:
        name = one.template.info.name
        raise Timeout(f"The resources of prompt {name} took longer than {call.timeout:g} s") from None
    values = json.dumps(one.values, ensure_ascii=False, sort_keys=True)
    key = (one.template.info.name, one.locale, values, tuple(one.past))
    result = kept.find(key, one.template, blocks)
    if result is None:
        description, locale = one.variant.description, one.locale
        result = PromptResult(messages=tuple(_messages(one, blocks)), description=description, locale=locale)
        if len(values) <= _MAX_KEY:
            kept.keep(key, one.template, blocks, result)
    return result


def _messages(one: Rendering, blocks: Iterable[Block]) -> Iterator[PromptMessage]:
    values = {**one.values, HISTORY: [{"role": said.role, "text": said.text} for said in one.past]}
    found, size = iter(blocks), 0
    for message in one.variant.messages:
        if not isinstance(message, TemplateMessage):
            yield from (PromptMessage(said.role, Text(said.text)) for said in one.past[-message.most :])
            continue
        for part in message.parts:
            if isinstance(part, ResourcePart):
                yield from (PromptMessage(message.role, next(found)) for _ in part.uri(one.values))
            elif isinstance(part, TextPart):
                text = part.fill(values)
                size += len(text)
                bounded(size)
                if text:
                    yield PromptMessage(message.role, Text(text))
            else:
                yield PromptMessage(message.role, part)


async def _resources(one: Rendering, call: Call, ask: Ask, embed: int) -> list[Block]:
    uris = [uri for part in _parts(one.variant) for uri in part.uri(one.values)]
    if len(uris) > MAX_RESOURCES:
        raise InvalidParams(
            f"The prompt would show {len(uris)} resources, the limit is {MAX_RESOURCES}: give fewer addresses",
            promptName=one.template.info.name,
        )
    blocks: list[Block] = []
    room = max(embed, min(call.max_bytes, MAX_OUTPUT))
    for uri in uris:
        block = await _resource(uri, call, ask, min(embed, room))
        if isinstance(block, Embedded):
            room -= block.content.size
        blocks.append(block)
    return blocks


def _parts(variant: Variant) -> Iterator[ResourcePart]:
    for message in variant.messages:
        if isinstance(message, TemplateMessage):
            yield from (part for part in message.parts if isinstance(part, ResourcePart))


async def _resource(uri: str, call: Call, ask: Ask, most: int) -> Block:
    reading = call.child_at("read", uri)
    try:
        content = expected(await ask(reading._replace(max_bytes=most)), Content)
    except TooLarge:
        try:
            entry = expected(await ask(call.child_at("stat", uri)), Entry)
        except (Forbidden, NotFound):  # what may be read, and not listed
            entry = Entry(ref=reading.ref, name=reading.ref.name)
        return Link(entry, uri)
    return Embedded(content, uri)
