"""From bytes to text, or not: a wrong guess is worse than bytes."""

from __future__ import annotations

import codecs

from octavo.sources.file.mime import known_binary, known_text

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


def decoded(raw: bytes | bytearray, mime: str) -> str | bytes:
    """Text where the bytes are surely text: by byte order mark, else strict UTF-8, else, under a name that
    promises text, CP949. Anything with a NUL is binary."""
    if known_binary(mime):
        return bytes(raw)
    try:
        if raw.startswith(codecs.BOM_UTF8):
            return raw.decode("utf-8-sig")
        if raw.startswith(_UTF32):  # before UTF-16, whose mark is its beginning
            return raw.decode("utf-32")
        if raw.startswith(_UTF16):
            return raw.decode("utf-16")
        if 0 in raw:
            return bytes(raw)
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if known_text(mime) and 0 not in raw:
        try:
            return raw.decode("cp949")
        except UnicodeDecodeError:
            pass
    return bytes(raw)
