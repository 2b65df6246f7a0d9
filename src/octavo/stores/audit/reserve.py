"""Room on the disk of the audit log that is held for outcomes.

A change is recorded before it begins and after it has ended. If the disk fills up in between, the second record must
still find room: otherwise a change that was made would be told as one that failed.
"""

from __future__ import annotations

import os
from pathlib import Path

from octavo.core.sizes import KIB
from octavo.stores.state import write_all

SIZE = 256 * KIB  # several hundred outcomes


class Reserve:
    """A file without a name: its blocks are free again when the process ends, in whatever way."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: int | None = None
        self.spent = False  # it was given up, and is not there again yet

    def hold(self) -> None:
        """Raises OSError where there is no room for it."""
        if self._file is not None:
            return
        self._directory.mkdir(mode=0o700, exist_ok=True)
        name = self._directory / f"reserve-{os.getpid()}-{os.urandom(4).hex()}"
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.unlink(name)
            write_all(file, os.urandom(SIZE))  # what a file system cannot compress away
        except BaseException:
            os.close(file)
            raise
        self._file, self.spent = file, False

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file, self.spent = None, True
