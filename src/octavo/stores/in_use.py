"""Who uses the state of a folder: everybody who has its store open, and every server for as long as it runs.

They share a lock that the kernel takes from a process that dies. Whoever moves the state or brings it back has it
alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from octavo.core.errors import Conflict, SourceUnavailable
from octavo.stores.state import NOT_THROUGH_LINKS

if sys.platform != "win32":
    import fcntl

LOCK: Final = "serving.lock"


class InUse:
    """Without a folder, or before there is one, nobody else is there."""

    def __init__(self, state: Path | None) -> None:
        self._state = state
        self._lock = -1

    def begin(self) -> None:
        """Does nothing when it has begun. Never waits. Raises SourceUnavailable while the state is moved."""
        if self._state is None or self._lock >= 0 or not self._state.is_dir() or sys.platform == "win32":
            return
        lock = _opened(self._state)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise SourceUnavailable("The state is being moved or restored now: start again when that is done") from None
        self._lock = lock

    def end(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@contextmanager
def alone(state: Path) -> Generator[None]:
    """Raises Conflict while anybody uses the state of this folder, which is there."""
    lock = _opened(state)
    try:
        if sys.platform != "win32":
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Conflict(f"A server, or another command, uses the state in {state}: stop it first") from None
        yield
    finally:
        os.close(lock)


def _opened(state: Path) -> int:
    try:
        return os.open(state / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | NOT_THROUGH_LINKS, 0o600)
    except OSError as error:
        raise SourceUnavailable(f"The state folder cannot be used: {error.strerror}") from None
