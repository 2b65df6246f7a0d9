"""Guesses an encoding that nothing names.

UTF-16 and UTF-32 by where the NUL bytes are; as the last resort single-byte encodings that nobody configured, by
charset-normalizer.
"""

from __future__ import annotations

import re
from typing import Final

from octavo.core.sizes import KIB
from octavo.sources._shared.text.names import canonical
from octavo.sources._shared.text.sample import high_bytes, telling

_WIDE_FEWEST: Final = 8  # characters; less is no statistics
_WIDE_SAMPLE: Final = 64 * KIB
# Controls, private use and noncharacters: a text has none of them, numbers read as characters do.
_NO_TEXT: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ue000-\uf8ff\ufdd0-\ufdef\ufff0-\uffff]")
_SCRIPTS: Final = re.compile(
    r"[\t\n\r\f\x20-\x7e\xa0-\u024f\u0370-\u052f\u2010-\u2040\u20a0-\u20bf\u2190-\u21ff\u2500-\u25ff"
    r"\u3000-\u30ff\u3131-\u318e\u4e00-\u9fff\uac00-\ud7a3\uff00-\uff9f\U0001f300-\U0001faff]"
)
_SHARE: Final = 0.98  # of the characters, in scripts that people here write


def wide(raw: bytes | bytearray) -> str | None:
    """The encoding of bytes with NULs among them; None means binary."""
    sample = bytes(raw[:_WIDE_SAMPLE])
    if len(raw) % 4 == 0:
        for name in ("utf-32-le", "utf-32-be"):
            if _reads(sample, name):
                return name
    if len(raw) % 2 == 0:
        # The NULs of ASCII are all on one side; a few on the other are low halves, as of U+AC00.
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        likely = "utf-16-le" if odd > even else "utf-16-be"
        if odd != even and _reads(sample, likely):
            return likely
    return None


def _reads(sample: bytes, name: str) -> bool:
    try:
        text = sample.decode(name)
    except UnicodeDecodeError as error:
        if error.start < len(sample) - 2 or len(sample) < _WIDE_SAMPLE:  # a pair that the sample cuts
            return False
        text = sample[: error.start].decode(name)
    if len(text) < _WIDE_FEWEST or _NO_TEXT.search(text):
        return False
    return len(_SCRIPTS.findall(text)) >= _SHARE * len(text) and _has_blanks_or_letters(text)


def _has_blanks_or_letters(text: str) -> bool:
    """The NULs come from ASCII: enough of it must be what texts are full of, or the bytes may be a table."""
    ascii_only = text.encode("ascii", "ignore").decode()
    usual = sum(character.isalnum() or character in " \n\r\t.,-_" for character in ascii_only)
    return usual >= 0.6 * len(ascii_only)


_SAMPLE: Final = 16 * KIB  # bytes; its cost grows with them
_FEWEST: Final = 16  # bytes beyond ASCII; less is no statistics
_CANDIDATES: Final = ("cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874", "koi8_r")
_CLEAR: Final = 0.2  # of mess that a text may have
_SURE: Final = 0.3  # of resemblance to a language that it must have


def guessed(raw: bytes | bytearray) -> str | None:
    sample = telling(raw, _SAMPLE)
    if high_bytes(sample) < _FEWEST:
        return None
    # Imported here: it takes a twentieth of a second, and few files need it.
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=list(_CANDIDATES), threshold=_CLEAR, preemptive_behaviour=False).best()
    if best is None or best.coherence < _SURE:
        return None
    return canonical(best.encoding)
