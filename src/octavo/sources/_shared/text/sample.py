"""The part of a file that tells its encoding: lines with something beyond ASCII, up to a size."""

from __future__ import annotations

import re
from typing import Final

_HIGH: Final = re.compile(rb"[\x80-\xff]")
_BEFORE: Final = 80  # bytes of a line before what is beyond ASCII


def telling(raw: bytes | bytearray, size: int) -> bytes:
    """At most `size` bytes. A line feed is itself in every encoding that we guess at, and so is the ASCII before the
    first byte beyond it: no character is cut but perhaps the last."""
    pieces: list[bytes] = []
    found, at = 0, 0
    high = _HIGH.search(raw)
    while high and found < size:
        begin = max(raw.rfind(b"\n", at, high.start()) + 1, at, high.start() - _BEFORE)
        end = raw.find(b"\n", high.start()) + 1 or len(raw)
        pieces.append(bytes(raw[begin : min(end, begin + size - found)]))
        found += len(pieces[-1])
        at = end
        high = _HIGH.search(raw, at)
    return b"".join(pieces)


def high_bytes(sample: bytes) -> int:
    return len(_HIGH.findall(sample))
