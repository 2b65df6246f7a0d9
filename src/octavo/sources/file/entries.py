"""What one descriptor tells: versions and etags that reveal nothing, and the bytes."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import struct
import sys
from typing import Final, NamedTuple

from octavo.sources.file.tree import Names, Seen

ON_LOOP: Final = 64 * 1024  # bytes that are read without leaving the event loop, if they are in memory

_VERSION: Final = struct.Struct("<QQqqq")
_TICK_SECONDS: Final = 0.010  # of the slowest kernels in use


def _has_fine_times() -> bool:
    """Linux 6.13 gives a file that was looked at a new time with every change."""
    numbers = re.findall(r"\d+", os.uname().release)
    return sys.platform == "linux" and tuple(map(int, numbers[:2])) >= (6, 13)


_FINE_TIMES: Final = _has_fine_times()
_NOWAIT: Final[int | None] = getattr(os, "RWF_NOWAIT", None)


class Facts(NamedTuple):
    """What a listing tells of a file beyond its address."""

    version: str
    size: int
    modified: float
    own: Names  # its own names, where a link led here


class Digests:
    """Keyed: a plain hash of a short file would be a way to guess it, and of a stat one to learn inodes."""

    def __init__(self, secret: bytes) -> None:
        key = hashlib.blake2b(secret, digest_size=32, person=b"octavo-file").digest()
        self._version = hashlib.blake2b(key=key, digest_size=8, person=b"version")
        self._etag = hashlib.blake2b(key=key, digest_size=8, person=b"etag")

    def facts(self, seen: Seen) -> Facts:
        found = seen.stat
        digest = self._version.copy()
        digest.update(_VERSION.pack(*identity(found)))
        return Facts(digest.hexdigest(), found.st_size, found.st_mtime, seen.names)

    def etag(self, raw: bytes | bytearray) -> str:
        digest = self._etag.copy()
        digest.update(raw)
        return digest.hexdigest()


def identity(found: os.stat_result) -> tuple[int, int, int, int, int]:
    """Changes whenever the content does."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def is_settled(found: os.stat_result, now: float) -> bool:
    """False while a second change within the same tick of a coarse clock could leave the identity as it is."""
    return _FINE_TIMES or not 0 <= now - found.st_ctime < _TICK_SECONDS


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
