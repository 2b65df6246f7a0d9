"""What one descriptor tells: versions and etags that reveal nothing, and the bytes."""

from __future__ import annotations

import errno
import hashlib
import os
import struct
from typing import Final, NamedTuple

from octavo.sources.file.stats import identity
from octavo.sources.file.tree import Names, Seen

ON_LOOP: Final = 64 * 1024  # bytes that are read without leaving the event loop, if they are in memory

_VERSION: Final = struct.Struct("<QQqqq")
_NOWAIT: Final[int | None] = getattr(os, "RWF_NOWAIT", None)


class Facts(NamedTuple):
    """What a listing tells of a file beyond its address."""

    version: str
    size: int
    modified: float
    own: Names  # its own names, where a link led here
    device: int
    inode: int


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
        return Facts(digest.hexdigest(), found.st_size, found.st_mtime, seen.names, found.st_dev, found.st_ino)

    def etag(self, raw: bytes | bytearray) -> str:
        digest = self._etag.copy()
        digest.update(raw)
        return digest.hexdigest()


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
