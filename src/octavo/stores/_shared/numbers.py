"""The numbers of a journal: times, with steps between them that nobody can count."""

from __future__ import annotations

from itertools import accumulate
from random import SystemRandom
from typing import Final

STEP: Final = 1_000  # microseconds from one number to the next, at most
_random: Final = SystemRandom()


def steps(count: int) -> list[int]:
    """How far each of so many numbers stands behind the last that was given, or behind the clock. Not evenly: a reader
    who may see only some records would know from the numbers between them how many others there are."""
    return [*accumulate(_random.randint(1, STEP) for _ in range(count))]
