"""Time comes from here, so that a test can hold it still."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

passing = time.monotonic  # for whoever really waits: no test holds it still


class Clock(Protocol):
    def monotonic(self) -> float:
        """Seconds that never run backwards: for TTLs, buckets and deadlines."""
        ...

    def wall(self) -> float:
        """Seconds since 1970: for records and events, never for durations."""
        ...


class SystemClock:
    monotonic = staticmethod(time.monotonic)
    wall = staticmethod(time.time)


class FrozenClock:
    """Stands still until it is told to move."""

    def __init__(self, wall: float = 1_763_200_000.0) -> None:
        self._wall, self._monotonic = wall, 1_000.0

    def monotonic(self) -> float:
        return self._monotonic

    def wall(self) -> float:
        return self._wall

    def advance(self, seconds: float) -> None:
        self._monotonic += seconds
        self._wall += seconds


def iso(wall: float) -> str:
    """RFC 3339 with milliseconds, always UTC."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
