"""Pictures and sound as such, as far as an answer may hold them; larger pictures are made smaller."""

from __future__ import annotations

from typing import Final

from octavo.core.errors import InvalidParams, Timeout, TooLarge
from octavo.core.tools import Audio, Block, Image, Link, Text
from octavo.core.values import Entry
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import read_with
from octavo.tools.builtin.answer_budget import Media
from octavo.tools.context import ToolContext

_USUAL: Final = 500_000  # bytes of a picture that is made smaller, where more would fit


def is_picture(entry: Entry) -> bool:
    return entry.mime_type.startswith("image/")


def as_such(entry: Entry, body: bytes, media: Media) -> tuple[Block, ...] | None:
    """None for what is too large, or is neither."""
    if len(body) > media.max_bytes:
        return None
    if is_picture(entry):
        return (Image(body, entry.mime_type),)
    return (Audio(body, entry.mime_type),) if entry.mime_type.startswith("audio/") else None


async def smaller(ctx: ToolContext, uri: str, entry: Entry, media: Media) -> tuple[Block, ...]:
    """The picture with fewer pixels, and a word that it is not the file. TooLarge, saying why, where it cannot be."""
    too_large = f"{entry.name} has {d.sized(entry.size)}, more than an answer holds ({media.max_bytes:,} bytes)"
    try:
        content = await read_with(ctx, uri, f"as=image&bytes={min(media.max_bytes, _USUAL)}")
    except (InvalidParams, TooLarge, Timeout) as fault:
        raise TooLarge(f"{too_large}, and cannot be made smaller: {fault}", uri=uri) from None
    body = content.body
    if not isinstance(body, bytes) or len(body) > media.max_bytes:
        raise TooLarge(f"{too_large}, also when it is made smaller: read it as a resource", uri=uri)
    if len(body) == entry.size:
        return (Image(body, content.entry.mime_type),)
    note = Text(f"[made smaller: {d.sized(len(body))} instead of {d.sized(entry.size)}]")
    return (Image(body, content.entry.mime_type), note, Link(entry, uri))


def only_a_link(entry: Entry, uri: str, as_text: str = 'as: "text"') -> tuple[Block, ...]:
    """`as_text` is how the text of a document is asked for."""
    sentence = f"{entry.name} is no text: {entry.mime_type}, {d.sized(entry.size)}."
    if entry.mime_type.startswith("application/"):
        sentence += f" {as_text} gives the text of documents (PDF, Office, HWPX, notebooks)."
    elif entry.mime_type.startswith("audio/"):
        sentence += " It is larger than an answer may be: read it as a resource, in ranges."
    return (Text(sentence), Link(entry, uri))
