"""One writer at a time in a directory, among the threads of this process and among processes.

The lock is on the directory itself, by descriptor: it needs no file of its own, moves with the directory
and also holds between servers that know nothing of each other. Where a file system has no such locks
(NFS), only the threads of this process exclude each other.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from octavo.core.errors import SourceUnavailable

_PATIENCE: Final = 5.0  # seconds; a thread of the pool waits
_PAUSES: Final = (0.0005, 0.001, 0.002, 0.004, 0.008, *[0.016] * 300)
_NO_LOCKS: Final = frozenset((errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS))

_busy: set[tuple[int, int]] = set()
_turn = threading.Condition()


@contextmanager
def locked(*directories: int) -> Iterator[None]:
    """Always in the same order, so that two who need the same two directories do not wait for each other.

    Raises SourceUnavailable when somebody holds one of them for too long.
    """
    by_inode = {(found.st_dev, found.st_ino): fd for fd in directories for found in (os.fstat(fd),)}
    with ExitStack() as stack:
        for key in sorted(by_inode):
            stack.enter_context(_one_thread(key))
            stack.enter_context(_one_process(by_inode[key]))
        yield


@contextmanager
def _one_thread(key: tuple[int, int]) -> Iterator[None]:
    with _turn:
        if not _turn.wait_for(lambda: key not in _busy, _PATIENCE):
            raise _held()
        _busy.add(key)
    try:
        yield
    finally:
        with _turn:
            _busy.discard(key)
            _turn.notify_all()


@contextmanager
def _one_process(fd: int) -> Iterator[None]:
    for pause in _PAUSES:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(pause)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            yield
            return
    else:
        raise _held()
    try:
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)


def _held() -> SourceUnavailable:
    return SourceUnavailable("Another writer is at work in this directory; try again", retry_after=0.5)
