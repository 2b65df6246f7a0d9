"""What `stat` says of a file: whether its content may have changed."""

from __future__ import annotations

import os
import re
import sys
from typing import Final

_TICK_SECONDS: Final = 0.010  # of the slowest kernels in use


def _has_fine_times() -> bool:
    """Linux 6.13 gives a file that was looked at a new time with every change."""
    numbers = re.findall(r"\d+", os.uname().release)
    return sys.platform == "linux" and tuple(map(int, numbers[:2])) >= (6, 13)


_FINE_TIMES: Final = _has_fine_times()


def identity(found: os.stat_result) -> tuple[int, int, int, int, int]:
    """Changes whenever the content does."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def is_settled(found: os.stat_result, now: float) -> bool:
    """False while a second change within the same tick of a coarse clock could leave the identity as it is."""
    return _FINE_TIMES or not 0 <= now - found.st_ctime < _TICK_SECONDS
