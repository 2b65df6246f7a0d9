"""Reads bytes from an open descriptor, within bounds."""

from __future__ import annotations

import errno
import os
from typing import Final

from octavo.core.sizes import KIB

ON_LOOP: Final = 64 * KIB  # bytes that are read without leaving the event loop, if they are in memory

_NOWAIT: Final[int | None] = getattr(os, "RWF_NOWAIT", None)


def contents(fd: int, size: int, *, wait: bool) -> bytearray:
    """The bytes of a file of that size, and at most one more, so that growth is seen.

    With `wait=False` BlockingIOError unless all of it is in memory.
    """
    if not wait and (size > ON_LOOP or _NOWAIT is None):
        raise BlockingIOError
    buffer = bytearray(size + 1)
    if not wait:
        try:
            got = os.preadv(fd, [buffer], 0, _NOWAIT or 0)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:  # this file system cannot tell
                raise BlockingIOError from None
            raise
        if got < size:
            raise BlockingIOError
    else:
        got = 0
        with memoryview(buffer) as view:
            while got <= size and (more := os.preadv(fd, [view[got:]], got)):
                got += more
    del buffer[got:]
    return buffer
