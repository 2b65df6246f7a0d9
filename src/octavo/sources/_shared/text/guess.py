"""The last resort: charset-normalizer, for the single-byte encodings that nobody configured."""

from __future__ import annotations

from typing import Final

from octavo.core.sizes import KIB
from octavo.sources._shared.text.names import canonical
from octavo.sources._shared.text.sample import high_bytes, telling

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
