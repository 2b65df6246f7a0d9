"""Encodes text to bytes, in the encoding that a file has."""

from __future__ import annotations

import unicodedata

from octavo.core.errors import InvalidParams
from octavo.sources._shared.text.names import MARKS, canonical


def encode(text: str, encoding: str, *, bom: bool) -> bytes:
    """The bytes of a text. InvalidParams names the first character that the encoding does not have, and its line."""
    name = canonical(encoding)
    if bom and name not in MARKS:
        raise InvalidParams(f"{name} has no byte order mark: only Unicode encodings have one")
    try:
        raw = text.encode(name)
    except UnicodeEncodeError as error:
        raise _missing(text, error.start, name) from None
    if name not in MARKS:
        _refuse_stand_ins(text, raw, name)
    return (MARKS[name] if bom else b"") + raw


def _refuse_stand_ins(text: str, raw: bytes, name: str) -> None:
    """Some codecs write a look-alike for a character that they lack: Shift-JIS a backslash for a yen sign."""
    back = raw.decode(name)
    if back == text:
        return
    for at, (asked, got) in enumerate(zip(text, back, strict=False)):
        if asked != got:
            raise _missing(text, at, name)
    raise _missing(text, len(text) - 1, name)


def _missing(text: str, at: int, name: str) -> InvalidParams:
    character = text[at]
    line = text.count("\n", 0, at) + text.count("\r", 0, at) - text.count("\r\n", 0, at) + 1
    shown = f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()
    return InvalidParams(
        f"The file is in {name}, which has no {shown} (line {line}). Replace it, or save the file as utf-8",
        encoding=name,
        line=line,
    )
