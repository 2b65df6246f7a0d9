"""The texts that some bytes may be read as, so that redaction also looks into what a source could not decode.

One stray byte keeps a source from decoding a text, and makes no difference to a reader."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final, TypeAlias

# What stands before a part, the part, and what stands behind it.
Cut: TypeAlias = tuple[str, str, str]

# Types that say what is in them, and are no text.
_OPAQUE: Final = re.compile(
    r"(?:image/(?!svg)|audio/|video/|font/|application/(?:pdf|msword|wasm|rtf|.*(?:zip|tar|x-xz|zstd|compressed|hwp"
    r"|officedocument|opendocument|vnd\.ms-|sqlite|parquet)))"
)
_HIGH: Final = re.compile(rb"[\x80-\xff]")
_WIDE: Final = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


def reading(before: bytes, part: bytes, after: bytes, mime_type: str) -> Cut | None:
    """The reading that is shown; None where a type says that there is no text, and there is none."""
    whole = b"".join((before, part, after))
    if _OPAQUE.match(mime_type) and (0 in whole or not _is_utf8(whole, cut=bool(before))):
        return None
    return _utf8(before), _utf8(part), _utf8(after)


def others(whole: bytes) -> Iterator[str]:
    """Further readings, in which a secret may be known that has no form of its own: by a label in Korean."""
    if 0 in whole:
        for name in _WIDE:
            for odd in (0, 1):  # a stray byte shifts all that follow
                yield whole[odd:].decode(name, "replace")
    if _HIGH.search(whole):
        yield whole.decode("cp949", "replace")


def _utf8(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace("\0", "")


def _is_utf8(raw: bytes, *, cut: bool) -> bool:
    """But for a character that its end cuts, or its beginning."""
    begin = next((n for n in range(min(4, len(raw))) if raw[n] & 0xC0 != 0x80), 0) if cut else 0
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw[begin:])
    except UnicodeDecodeError:
        return False
    return True
