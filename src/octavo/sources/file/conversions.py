"""Files in another form: documents as text, pictures smaller. Foreign bytes, so killable processes read them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from octavo.core.errors import InvalidParams, Timeout
from octavo.core.ref import Ref
from octavo.core.values import Content, Entry
from octavo.sources._shared.parts import document_mime

if TYPE_CHECKING:
    from octavo.sources._shared.documents.converter import Converter, ConverterTurn

Raw: TypeAlias = tuple[Entry, bytes, str]  # with its etag

FORMS: Final = ("text", "image")
_PIXELS: Final = 1_200_000  # as many as models look at
_IMAGE_BYTES: Final = 500_000


class Forms:
    """`seconds` bound one conversion and the waiting for it. It is our work that is slow then, not the source."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._converter: Converter | None = None

    async def content(self, ref: Ref, read: Callable[[], Awaitable[Raw]], max_bytes: int) -> Content:
        """Raises InvalidParams for what has no such form, TooLarge and Timeout.

        `read` is called when it is this caller's turn: of files that only wait nothing is in memory."""
        try:
            async with asyncio.timeout(self._seconds), self._converting().turn() as turn:
                entry, raw, etag = await read()
                if ref.param("as") == "image":
                    body, mime = await _image(turn, ref, entry, raw, max_bytes)
                else:
                    body, mime = await _text(turn, ref, entry, raw)
        except TimeoutError:
            message = f"The file could not be converted within {self._seconds:g} s; ask for a part of it"
            raise Timeout(message, telling=False) from None
        return Content(entry=replace(entry, mime_type=mime), body=body, etag=etag)

    async def close(self) -> None:
        if self._converter is not None:
            await self._converter.close()

    def _converting(self) -> Converter:
        if self._converter is None:
            from octavo.sources._shared.documents.converter import Converter  # here: it is rarely asked for
            from octavo.sources._shared.documents.model import ConversionLimits

            self._converter = Converter(ConversionLimits(seconds=self._seconds))
        return self._converter


async def _text(turn: ConverterTurn, ref: Ref, entry: Entry, raw: bytes) -> tuple[str | bytes, str]:
    document = await turn.convert(raw, document_mime(entry), pages=ref.param("pages"), sheet=ref.param("sheet"))
    return document.markdown, "text/markdown"


async def _image(turn: ConverterTurn, ref: Ref, entry: Entry, raw: bytes, max_bytes: int) -> tuple[str | bytes, str]:
    most = min(max_bytes, _most_bytes(ref))
    return await turn.shrink(raw, entry.mime_type, max_pixels=_PIXELS, max_bytes=most)


def _most_bytes(ref: Ref) -> int:
    wanted = ref.param("bytes")
    if wanted is None:
        return _IMAGE_BYTES
    if not (wanted.isascii() and wanted.isdigit() and int(wanted[:12]) > 0):
        raise InvalidParams("The parameter bytes is the most that a smaller image may have", uri=str(ref))
    return int(wanted[:12])


def refuse_unknown_form(ref: Ref, form: str) -> None:
    if form not in FORMS:
        raise InvalidParams("The parameter as is text (a document as Markdown) or image (a smaller one)", uri=str(ref))
