"""Files of which each belongs to one process at a time."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from octavo.core.private_folders import make_private

if sys.platform != "win32":
    import fcntl

MOST: Final = 16


class ProcessFile:
    """The first of several places that nobody else has. It is kept until it is left, or the process ends: the kernel
    takes it from one that dies. What another process left there can be used again."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def take(cls, directory: Path, *, most: int = MOST) -> ProcessFile | None:
        """None when all are taken. Raises OSError where the directory cannot be used."""
        make_private(directory)
        for number in range(most):
            lock = os.open(directory / f"{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if sys.platform != "win32":
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                continue
            return cls(directory / f"{number}.db", lock)
        return None

    def others(self) -> list[Path]:
        """The places before this one: they belonged to others when it was taken."""
        return [self.path.with_name(f"{number}.db") for number in range(int(self.path.stem))]

    def leave(self) -> None:
        os.close(self._lock)
