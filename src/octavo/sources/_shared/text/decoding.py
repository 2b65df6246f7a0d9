"""Decodes bytes to text, where that is certain enough.

In this order: a byte order mark; strict UTF-8; and, only under a name that promises text, UTF-16 and UTF-32 without a
mark where the statistics leave no doubt, what the text itself says that it is in, the configured encodings, each
strictly and only if the result looks like its language, and last a statistical guess. What is left is binary.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from octavo.core.errors import InvalidParams
from octavo.sources._shared.fs.mime import known_binary, known_text
from octavo.sources._shared.text.declared import declared
from octavo.sources._shared.text.names import MARKS, canonical

ORDER: Final = ("cp949", "cp932", "euc_jp", "gb18030", "big5", "cp950", "cp1252")
_EAST_ASIAN: Final = frozenset(("cp949", "cp932", "euc_jp", "gb18030", "big5", "cp950"))
_USUAL: Final = frozenset(("latin-1", "cp1252", "ascii"))  # what programs say by themselves
_BEYOND_TWO_BYTES: Final = re.compile("[^\u0000-\u07ff]")  # said so, it is compiled ten times as fast
_C1: Final = re.compile(rb"[\x80-\x9f]")


class Decoded(NamedTuple):
    """A text and how it was written. `encode(text, encoding, bom=bom)` gives the bytes back if `exact`; if not
    (a few characters have two codes in some encodings), writing the text would change bytes that nobody touched."""

    text: str
    encoding: str
    bom: bool
    exact: bool


def decoded(raw: bytes | bytearray, mime: str, order: Sequence[str] = ORDER) -> str | bytes:
    """Text where the bytes are surely text, else the bytes."""
    found = decode(raw, mime, order=order)
    return bytes(raw) if found is None else found.text


def decode_as(raw: bytes | bytearray, chosen: str) -> Decoded:
    """In an encoding that the caller knows. Raises InvalidParams when the bytes are not in it."""
    return _chosen(raw, canonical(chosen))


def decode(
    raw: bytes | bytearray, mime: str, *, order: Sequence[str] = ORDER, chosen: str | None = None
) -> Decoded | None:
    """None when it is not text. With `chosen`, that encoding or InvalidParams: the caller knows better."""
    if chosen is not None:
        return _chosen(raw, canonical(chosen))
    if known_binary(mime):
        return None
    for name, mark in MARKS.items():
        if raw.startswith(mark):
            return _strict(raw, name)
    promised = known_text(mime)
    if 0 in raw:
        return _wide(raw) if promised else None
    plain = _strict(raw, "utf-8")
    if not promised or raw.isascii():
        return plain
    said = declared(raw)
    if said is not None and (plain is None or _is_utf8_by_chance(plain.text, said)):
        found = _as_declared(raw, said, order)
        if found is not None:
            return found
    return plain or _guessed(raw, [canonical(one) for one in order])


def _is_utf8_by_chance(text: str, said: str) -> bool:
    """A few syllables of Korean can be letters of UTF-8 that need two bytes; longer ones do not come by chance."""
    return said in _EAST_ASIAN and not _BEYOND_TWO_BYTES.search(text)


def _as_declared(raw: bytes | bytearray, said: str, order: Sequence[str]) -> Decoded | None:
    """None where it is not in it. Many a page says Latin-1 because its editor did, and anything can be in Latin-1:
    there what is said comes first, as if it were configured, and no more."""
    if said not in _USUAL:
        return _strict(raw, said) or (_strict(raw, "cp950") if said == "big5" else None)
    if _C1.search(raw):
        said = "cp1252"  # whose quotes and dashes stand where Latin-1 has control characters
    from octavo.sources._shared.text.plausible import ranked  # here: most files are in UTF-8

    likely = ranked(raw, list(dict.fromkeys((said, *map(canonical, order)))))
    return next((found for name in (*likely, said) if (found := _strict(raw, name)) is not None), None)


def _guessed(raw: bytes | bytearray, order: Sequence[str]) -> Decoded | None:
    from octavo.sources._shared.text.guess import guessed  # here: most files are in UTF-8
    from octavo.sources._shared.text.plausible import ranked

    for name in ranked(raw, order):
        found = _strict(raw, name)
        if found is not None:
            return found
    return _strict(raw, guessed(raw))


def _wide(raw: bytes | bytearray) -> Decoded | None:
    from octavo.sources._shared.text.guess import wide

    return _strict(raw, wide(raw))


def _chosen(raw: bytes | bytearray, name: str) -> Decoded:
    for marked, mark in MARKS.items():
        if marked[:6] == name[:6] and raw.startswith(mark):  # the mark knows which half comes first
            name = marked
            break
    found = _strict(raw, name)
    if found is None:
        raise InvalidParams(f"The file is not in {name}. Leave the encoding out, or choose another", encoding=name)
    return found


def _strict(raw: bytes | bytearray, name: str | None) -> Decoded | None:
    if name is None:
        return None
    mark = MARKS.get(name, b"")
    bom = bool(mark) and raw.startswith(mark)
    try:
        text = (raw[len(mark) :] if bom else raw).decode(name)
    except UnicodeDecodeError:
        return None
    return Decoded(text, name, bom, exact=name in MARKS or text.encode(name) == raw)


def preferring(names: Sequence[str]) -> tuple[str, ...]:
    """The order with these before all others. Raises InvalidParams for a name that is none of an encoding."""
    return tuple(dict.fromkeys((*map(canonical, names), *ORDER)))


def cut_at_characters(
    raw: bytes, begin: int, length: int, mime: str, order: Sequence[str] = ORDER, *, head: bytes = b""
) -> tuple[str | bytes, str | bytes, str | bytes]:
    """A piece of a file as text, and what stands before and behind it. Bytes, all three, where it is no text. `raw`
    begins at a multiple of 4 bytes, `head` is how the file begins, long enough for what it may say of its encoding.

    A character that the end of the piece cuts in two belongs to it, one at its beginning to the piece before.
    """
    begin, end = min(begin, len(raw)), min(begin + length, len(raw))
    cut = raw[:begin], raw[begin:end], raw[end:]
    if known_binary(mime):
        return cut
    if (name := _wide_name(raw, head or raw)) is not None:
        unit = 4 if "32" in name else 2
        begin, end = (min(-(-place // unit) * unit, len(raw)) for place in (begin, end))
        return _pieces(raw, begin, end, name)
    if 0 in raw:
        return cut
    while begin < end and raw[begin] & 0xC0 == 0x80:
        begin += 1
    while end < len(raw) and raw[end] & 0xC0 == 0x80:
        end += 1
    try:
        raw[begin:end].decode("utf-8")
    except UnicodeDecodeError:
        said = declared(head) if known_text(mime) else None
        if said is not None and _goes_on(raw, said):
            return _pieces(raw, begin, end, said)
        found = decode(raw, mime, order=order)
        return cut if found is None else _pieces(raw, begin, end, found.encoding)
    return _pieces(raw, begin, end, "utf-8")


def _wide_name(raw: bytes, head: bytes) -> str | None:
    for name, mark in MARKS.items():
        if head.startswith(mark):
            return None if name == "utf-8" else name
    if 0 not in raw:
        return None
    from octavo.sources._shared.text.guess import wide

    return wide(raw[: len(raw) // 4 * 4])


def _goes_on(raw: bytes, name: str) -> bool:
    """Whether a piece may be of a text in that encoding. Its first line may begin within a character."""
    try:
        codecs.getincrementaldecoder(name)().decode(raw[raw.find(b"\n") + 1 :], final=False)
    except UnicodeDecodeError:
        return False
    return True


def _pieces(raw: bytes, begin: int, end: int, name: str) -> tuple[str, str, str]:
    before, part, after = (piece.decode(name, "replace") for piece in (raw[:begin], raw[begin:end], raw[end:]))
    return before, part, after
