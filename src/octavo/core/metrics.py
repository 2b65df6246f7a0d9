"""What the house can be asked about itself, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple


class Sample(NamedTuple):
    value: float
    labels: tuple[tuple[str, str], ...] = ()
    suffix: str = ""  # of a histogram: _bucket, _sum, _count


class Measure(NamedTuple):
    name: str
    kind: Literal["counter", "gauge", "histogram"]
    about: str
    samples: Sequence[Sample]


def number(name: str, about: str, value: float) -> Measure:
    """A gauge without labels."""
    return Measure(name, "gauge", about, (Sample(value),))
