"""From text to the bytes of a file: in the encoding that was asked for, else in the one the file has."""

from __future__ import annotations

from collections.abc import Sequence

from octavo.core.errors import InvalidParams
from octavo.sources._shared.text import decode, encode

_PROMISE = "text/plain"  # whoever writes text into a file takes it for text


def encoded(text: str, like: bytes | None, encoding: str | None, order: Sequence[str]) -> bytes:
    """`like` is what the file holds now. Raises InvalidParams for a character that the encoding has not."""
    found = decode(like, _PROMISE, order=order) if like and encoding is None else None
    if found is None:
        return encode(text, encoding or "utf-8", bom=_is_marked(encoding))
    return encode(text, found.encoding, bom=found.bom)


def appended(text: str, like: bytes, encoding: str | None, order: Sequence[str]) -> bytes:
    """The file with the text at its end. Raises InvalidParams when the file has another encoding."""
    if not like:
        return encoded(text, None, encoding, order)
    found = decode(like, _PROMISE, order=order, chosen=encoding)
    if found is None:
        raise InvalidParams("The file is not text; append bytes to it")
    return like + encode(text, found.encoding, bom=False)


def _is_marked(encoding: str | None) -> bool:
    """UTF-16 and UTF-32 are not recognised without a mark by most programs."""
    name = (encoding or "").casefold().replace("_", "-")
    return name.endswith("-sig") or name.startswith(("utf-16", "utf16", "utf-32", "utf32"))
