"""Units in which sizes are written, and how many bytes are moved at once."""

from __future__ import annotations

import os
from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30

BLOCK: Final = MIB  # of a file or a pipe, at once
PIECE: Final = 64 * KIB  # of a stream that somebody else fills, at once


def exactly(descriptor: int, count: int) -> bytes | None:
    """So many bytes; None where the other end is gone before."""
    pieces: list[bytes] = []
    while count:
        piece = os.read(descriptor, min(count, BLOCK))
        if not piece:
            return None
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)
