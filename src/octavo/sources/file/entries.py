"""What one descriptor tells: versions and etags that reveal nothing."""

from __future__ import annotations

import hashlib
import struct
from typing import Final, NamedTuple

from octavo.sources._shared.fs.stats import identity
from octavo.sources.file.root import Names, SeenFile

_VERSION: Final = struct.Struct("<QQqqq")


class FileFacts(NamedTuple):
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

    def facts(self, seen: SeenFile) -> FileFacts:
        found = seen.stat
        digest = self._version.copy()
        digest.update(_VERSION.pack(*identity(found)))
        return FileFacts(digest.hexdigest(), found.st_size, found.st_mtime, seen.names, found.st_dev, found.st_ino)

    def etag(self, raw: bytes | bytearray) -> str:
        digest = self._etag.copy()
        digest.update(raw)
        return digest.hexdigest()
