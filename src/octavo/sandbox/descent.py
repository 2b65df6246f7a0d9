"""Which processes descend from this one, as /proc tells."""

from __future__ import annotations

import os


def descendants() -> set[int]:
    """As the machine numbers them, whose /proc this is. Empty where it cannot be seen; what has ended is none."""
    try:
        above = int(os.readlink("/proc/self"))
        parents = {int(name): parent for name in os.listdir("/proc") if name.isdigit() and (parent := _parent(name))}
    except OSError:
        return set()
    found = {above}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return found - {above}


def ever() -> float:
    """How many processes there have been in this namespace, for less than the price of counting them."""
    try:
        return int(_content("/proc/sys/kernel/ns_last_pid"))
    except (OSError, ValueError):
        return float("inf")


def _parent(name: str) -> int:
    """0 for one that is gone or has ended."""
    try:
        state, parent = _content(f"/proc/{name}/stat").rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return 0
    return 0 if state == b"Z" else int(parent)


def _content(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 512)
    finally:
        os.close(fd)
