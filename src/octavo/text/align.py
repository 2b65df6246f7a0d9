"""Which lines of two texts correspond: what changed, in near-linear time.

`difflib` alone is quadratic. Lines that occur once on both sides are certain companions; they cut the texts into
small gaps, and only in a small gap is the best alignment worth its price. A large gap without such a line counts as
replaced: correct, and rarely as short as could be.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

_SMALL: Final = 40_000  # pairs of lines that difflib may compare in one gap
_ALL: Final = 2_000_000  # and in all gaps together
_DEPTH: Final = 16  # cuts within cuts


class Block(NamedTuple):
    """Lines `a1:a2` of the one side stand where lines `b1:b2` stand in the other."""

    a1: int
    a2: int
    b1: int
    b2: int


def changed(before: Sequence[str], after: Sequence[str]) -> list[Block]:
    """The blocks that differ, in order; between them lie equal lines."""
    blocks: list[Block] = []
    gaps = [(Block(0, len(before), 0, len(after)), 0)]
    budget = _ALL
    while gaps:
        whole, depth = gaps.pop()
        gap = _trimmed(before, after, whole)
        if gap.a1 == gap.a2 and gap.b1 == gap.b2:
            continue
        anchors = _companions(before, after, gap) if depth < _DEPTH else []
        if anchors:
            gaps += [(between, depth + 1) for between in _between(gap, anchors)]
        else:
            pairs = (gap.a2 - gap.a1) * (gap.b2 - gap.b1)
            small = pairs <= min(_SMALL, budget)
            blocks += _compared(before, after, gap) if small else [gap]
            budget -= pairs if small else 0
    return _merged(sorted(blocks))


def _trimmed(before: Sequence[str], after: Sequence[str], gap: Block) -> Block:
    a1, a2, b1, b2 = gap
    while a1 < a2 and b1 < b2 and before[a1] == after[b1]:
        a1, b1 = a1 + 1, b1 + 1
    while a1 < a2 and b1 < b2 and before[a2 - 1] == after[b2 - 1]:
        a2, b2 = a2 - 1, b2 - 1
    return Block(a1, a2, b1, b2)


def _companions(before: Sequence[str], after: Sequence[str], gap: Block) -> list[tuple[int, int]]:
    """Lines that are unique on both sides of the gap, as many as stand in the same order."""
    a1, a2, b1, b2 = gap
    if a1 == a2 or b1 == b2:
        return []
    left, right = Counter(before[a1:a2]), Counter(after[b1:b2])
    place = {after[b]: b for b in range(b1, b2) if right[after[b]] == 1 and left.get(after[b]) == 1}
    pairs = [(a, place[before[a]]) for a in range(a1, a2) if before[a] in place]
    return _increasing(pairs)


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence whose second numbers increase."""
    ends: list[int] = []  # the smallest last number of a chain of each length
    holders: list[int] = []  # and the pair that has it
    previous: list[int] = []
    for n, (_, b) in enumerate(pairs):
        length = bisect_left(ends, b)
        previous.append(holders[length - 1] if length else -1)
        if length == len(ends):
            ends.append(b)
            holders.append(n)
        else:
            ends[length] = b
            holders[length] = n
    chain: list[tuple[int, int]] = []
    n = holders[-1] if holders else -1
    while n >= 0:
        chain.append(pairs[n])
        n = previous[n]
    return chain[::-1]


def _between(gap: Block, anchors: Sequence[tuple[int, int]]) -> list[Block]:
    gaps: list[Block] = []
    a1, b1 = gap.a1, gap.b1
    for a, b in (*anchors, (gap.a2, gap.b2)):
        if a > a1 or b > b1:
            gaps.append(Block(a1, a, b1, b))
        a1, b1 = a + 1, b + 1
    return gaps


def _compared(before: Sequence[str], after: Sequence[str], gap: Block) -> list[Block]:
    a1, a2, b1, b2 = gap
    codes = SequenceMatcher(None, before[a1:a2], after[b1:b2], autojunk=False).get_opcodes()
    return [Block(a1 + i1, a1 + i2, b1 + j1, b1 + j2) for tag, i1, i2, j1, j2 in codes if tag != "equal"]


def _merged(blocks: Sequence[Block]) -> list[Block]:
    merged: list[Block] = []
    for block in blocks:
        if merged and (merged[-1].a2, merged[-1].b2) == (block.a1, block.b1):
            merged[-1] = Block(merged[-1].a1, block.a2, merged[-1].b1, block.b2)
        else:
            merged.append(block)
    return merged
