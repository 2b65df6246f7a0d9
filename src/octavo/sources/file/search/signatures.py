"""Which texts may contain a word: one bit a text in each of many buckets, the bucket by the hash of three bytes.

A text that contains a word has its bit set in the bucket of each of the word's runs. So the texts that may
contain it are the AND of a few columns of bits, for eight texts a byte, and no file is opened for the others.
Only runs inside words count, so each word of a text is taken once, which is a quarter of a long text.
Bounded: 64 bytes to 2 KiB a text by the length of its words, and none once `limit` bytes are used.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import repeat
from typing import Final, Literal

from octavo.core.sizes import KIB
from octavo.sources.file.search.paths import Paths

_GROUPS: Final = 64  # of eight texts in a block
_NOBODY: Final = 0xFFFF_FFFF
_CLEARED: Final = [bytes(value & ~(1 << bit) for value in range(256)) for bit in range(8)]
MAX_BYTES: Final = 32 * KIB  # of words; a filter for more would be full
_LONGEST: Final = {9: 384, 10: 768, 11: 1536, 12: 3072, 13: 8192, 14: MAX_BYTES}  # words by bits of their hashes


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


class Known(IntEnum):
    """What is known of a text."""

    NOTHING = 0
    IS_NO_TEXT = 1
    IS_TEXT = 2  # and no more: it is too long, or there is no room
    SIGNATURE = 3


Contents = bytes | Literal[Known.IS_NO_TEXT, Known.IS_TEXT]  # the text in UTF-8, or what else is known


_TO_OPEN: Final = re.compile(b"[%c%c]" % (Known.NOTHING, Known.IS_TEXT))  # whatever is sought


class _Tier:
    """Texts of similar length, with as many buckets each as keep about two thirds of them empty."""

    def __init__(self, longest: int, bits: int) -> None:
        self.longest = longest
        self.owners = array("I")  # the number of the path whose text has the slot
        self._bits = bits
        self._buckets = 1 << bits
        self._blocks: list[bytearray] = []  # of groups of eight texts, each with a byte a bucket
        self._free: list[int] = []

    @property
    def size(self) -> int:
        return len(self._blocks) * _GROUPS * self._buckets

    @property
    def growth(self) -> int:
        """By how much the next text makes it larger."""
        full = not self._free and len(self.owners) == len(self._blocks) * _GROUPS * 8
        return _GROUPS * self._buckets if full else 0

    def add(self, owner: int, text: bytes) -> int:
        if self._free:
            slot = self._free.pop()
            self.owners[slot] = owner
        else:
            slot = len(self.owners)
            self.owners.append(owner)
            if slot == len(self._blocks) * _GROUPS * 8:
                self._blocks.append(bytearray(_GROUPS * self._buckets))
        marks = bytearray(self._buckets)
        for half in hashes(text, self._bits):
            deque(map(marks.__setitem__, half, repeat(1)), maxlen=0)
        block, begin, bit = self._at(slot)
        group = block[begin : begin + self._buckets]
        mixed = int.from_bytes(group, "little") | int.from_bytes(marks, "little") << bit
        block[begin : begin + self._buckets] = mixed.to_bytes(self._buckets, "little")
        return slot

    def remove(self, slot: int) -> None:
        block, begin, bit = self._at(slot)
        block[begin : begin + self._buckets] = block[begin : begin + self._buckets].translate(_CLEARED[bit])
        self.owners[slot] = _NOBODY
        self._free.append(slot)

    def holding(self, words: Sequence[bytes]) -> Iterator[int]:
        """The owners of texts that may have all the words, or words that contain them."""
        buckets = {bucket for word in words for half in hashes(word, self._bits) for bucket in half}
        for number, block in enumerate(self._blocks):
            bits = -1
            for bucket in buckets:
                bits &= int.from_bytes(block[bucket :: self._buckets], "little")
                if not bits:
                    break
            while bits > 0:
                lowest = bits & -bits
                bits ^= lowest
                owner = self.owners[number * _GROUPS * 8 + lowest.bit_length() - 1]
                if owner != _NOBODY:
                    yield owner

    def _at(self, slot: int) -> tuple[bytearray, int, int]:
        group, bit = divmod(slot, 8)
        block, row = divmod(group, _GROUPS)
        return self._blocks[block], row * self._buckets, bit


class Signatures:
    """For the numbered paths of one root. Used by one thread at a time."""

    def __init__(self, count: int, limit: int) -> None:
        self._limit = limit
        self._tiers = [_Tier(longest, bits) for bits, longest in _LONGEST.items()]
        self._kinds = bytearray(count)
        self._slots = array("I", bytes(4 * count))

    @property
    def size(self) -> int:
        """Bytes in use."""
        return sum(tier.size for tier in self._tiers) + 5 * len(self._kinds)

    def next_unknown(self, start: int) -> int | None:
        number = self._kinds.find(Known.NOTHING, start)
        return None if number < 0 else number

    def sign(self, number: int, text: Contents) -> None:
        self.forget(number)
        if isinstance(text, Known):
            self._kinds[number] = text
            return
        self._kinds[number] = Known.IS_TEXT
        words = b" ".join(set(text.lower().split()))
        for k, tier in enumerate(self._tiers):
            growth = tier.growth
            if len(words) <= tier.longest and (not growth or self.size + growth <= self._limit):
                self._slots[number] = tier.add(number, words) * len(self._tiers) + k
                self._kinds[number] = Known.SIGNATURE
                return

    def forget(self, number: int) -> None:
        """The file has changed, or gone."""
        if self._kinds[number] == Known.SIGNATURE:
            slot, k = divmod(self._slots[number], len(self._tiers))
            self._tiers[k].remove(slot)
        self._kinds[number] = Known.NOTHING

    def candidates(self, pieces: Sequence[bytes]) -> list[int] | None:
        """The numbers, in order, of the paths whose text may have all the pieces; None when they are too short."""
        words = [word for piece in pieces for word in piece.split() if len(word) >= 3]
        if not words:
            return None
        found = [match.start() for match in _TO_OPEN.finditer(self._kinds)]
        for tier in self._tiers:
            found += tier.holding(words)
        found.sort()
        return found

    def renumber(self, old: Paths, new: Paths) -> None:
        """After paths have come and gone: what is known of a path stays known."""
        known = {
            key: (kind, slot)
            for key, kind, slot in zip(old.keys(), self._kinds, self._slots, strict=True)
            if kind != Known.NOTHING
        }
        self._kinds = bytearray(len(new))
        self._slots = array("I", bytes(4 * len(new)))
        for number, key in enumerate(new.keys()):
            kind, slot = known.get(key, (Known.NOTHING, 0))
            self._kinds[number], self._slots[number] = kind, slot
            if kind == Known.SIGNATURE:
                place, k = divmod(slot, len(self._tiers))
                self._tiers[k].owners[place] = number
