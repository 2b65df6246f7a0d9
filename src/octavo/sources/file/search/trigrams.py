"""Hashes of all runs of three bytes of a text, for a filter that can say "surely not in this file".

Python is slow a byte at a time and fast on large integers, so all positions are hashed at once: an integer of
16-bit lanes holds one position in each lane. A Hangul syllable in UTF-8 is one run of three bytes.
"""

from __future__ import annotations

import sys
from array import array
from typing import Final

from octavo.core.sizes import KIB

MAX_BYTES: Final = 32 * KIB  # of words; a filter for more would be full


def _lanes(value: int) -> int:
    return int.from_bytes(value.to_bytes(2, "little") * (MAX_BYTES // 2 + 2), "little")


_BYTE: Final = _lanes(0x00FF)
_SHIFTED: Final = _lanes(0x03FF)  # what is left of a lane's own bits after a shift by 6
_KEPT: Final = {bits: _lanes((1 << bits) - 1) for bits in range(9, 15)}


def hashes(text: bytes, bits: int) -> tuple[array[int], array[int]]:
    """A hash of so many bits for each run that begins at an even position, and for each at an odd one."""
    number, count = int.from_bytes(text, "little"), len(text) - 2
    return _hashed(number, _KEPT[bits], (count + 1) // 2), _hashed(number >> 8, _KEPT[bits], count // 2)


def _hashed(number: int, kept: int, count: int) -> array[int]:
    mixed = (number & _BYTE) ^ ((number >> 8 & _BYTE) << 4) ^ ((number >> 16 & _BYTE) << 8)
    mixed = (mixed ^ (mixed >> 6 & _SHIFTED)) & kept
    lanes = array("H", mixed.to_bytes(2 * max(0, count) + 4, "little")[: 2 * max(0, count)])
    if sys.byteorder == "big":
        lanes.byteswap()
    return lanes
