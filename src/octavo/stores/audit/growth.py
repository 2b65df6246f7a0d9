"""How large the audit log is, and how fast it grows: what is too young to be deleted needs room."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

LEAST = 60.0  # seconds from which a pace can be told: of less, one burst would be told as a day of them
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class Growth(Struct, frozen=True):
    size: int  # bytes
    files: int
    per_day: int | None  # bytes; None where the log is too young to tell
    free: int  # bytes that the disk has left

    def __str__(self) -> str:
        days = f", enough for {self.free // self.per_day} days" if self.per_day else ""
        pace = "is too young for a pace" if self.per_day is None else f"grows by about {_said(self.per_day)} a day"
        return f"it has {_said(self.size)} in {self.files} file(s) and {pace}; {_said(self.free)} are free{days}"


def growth(directory: Path, now: float) -> Growth:
    """Raises OSError."""
    sizes: list[int] = []
    oldest = now
    for file in directory.glob("*.jsonl"):
        try:
            sizes.append(file.stat().st_size)
            begun = datetime.strptime(file.name[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
        except (FileNotFoundError, ValueError):  # retention was faster, or it is no file of ours
            continue
        oldest = min(oldest, begun)
    size = sum(sizes)
    disk = os.statvfs(directory)
    age = now - oldest
    return Growth(
        size,
        len(sizes),
        round(size / age * 86_400) if age >= LEAST else None,
        disk.f_bavail * disk.f_frsize,
    )


def _said(size: float) -> str:
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
