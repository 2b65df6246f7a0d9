"""A prompt file as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from octavo.core.tools import Audio, Image, PromptInfo
from octavo.prompts.substitution import Address, Fill

# Gives what is wrong with a value as `{path, message}`; [] when it is right.
Check: TypeAlias = Callable[[Any], list[dict[str, str]]]
# Compiles a JSON Schema; raises InvalidParams for what is none. The composition root lends it.
Compile: TypeAlias = Callable[[Mapping[str, Any]], Check]

Role: TypeAlias = Literal["system", "user", "assistant"]

# Arguments that a prompt has without declaring them: where it speaks several languages, or knows the conversation.
LANGUAGE = "lang"
CONTEXT = "context_id"
HISTORY = "history"  # a variable: the messages of the conversation, each with `role` and `text`


class TextPart(Struct, frozen=True):
    fill: Fill


class ResourcePart(Struct, frozen=True):
    uri: Address


Part: TypeAlias = TextPart | ResourcePart | Image | Audio


class TemplateMessage(Struct, frozen=True):
    role: Role
    parts: tuple[Part, ...]


class PastMessages(Struct, frozen=True):
    """Where the latest messages of the conversation stand, in their own roles."""

    most: int


class Variant(Struct, frozen=True, kw_only=True):
    """A prompt in one language."""

    title: str | None
    description: str
    messages: tuple[TemplateMessage | PastMessages, ...]


class PromptTemplate(Struct, frozen=True, kw_only=True):
    info: PromptInfo
    schema: Mapping[str, Any]
    check: Check
    variants: Mapping[str, Variant]  # by language; "" where the file does not say in which it is
    remembers: bool  # it uses the messages of a conversation
    definition: Mapping[str, Any]  # the file's own words
    origin: str  # the file

    def addresses(self) -> tuple[Address, ...]:
        """Of the resources in it, in all of its languages, each once."""
        every = (
            part.uri
            for variant in self.variants.values()
            for message in variant.messages
            if isinstance(message, TemplateMessage)
            for part in message.parts
            if isinstance(part, ResourcePart)
        )
        return tuple(dict.fromkeys(every))
