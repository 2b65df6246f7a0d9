"""Reads files and looks for a needle. One directory is opened once, then each file by its one name in it.

A name is opened without following a link, relative to a directory that was opened beneath the root: that is the
same confinement as everywhere, at a third of the cost. What is found is looked at again before it is told.
"""

from __future__ import annotations

import errno
import os
import resource
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from octavo.core.sizes import BLOCK, KIB
from octavo.sources._shared.fs.faults import ABSENT, DENIED
from octavo.sources._shared.fs.mime import known_binary, mime_type
from octavo.sources._shared.places import Place
from octavo.sources.file.resolve import find
from octavo.sources.file.roots import Forest
from octavo.sources.file.search.ignores import Ignored
from octavo.sources.file.search.needle import Needle
from octavo.sources.file.search.paths import names_of

_OVERLAP: Final = 64 * KIB  # longer lines are not found where two pieces meet
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NO_FILE: Final = (errno.ESPIPE, errno.EISDIR, errno.EINVAL, errno.ENXIO)  # of going to its end, or of reading

Keyed = tuple[bytes, int]  # the key of a path, and its root: ordered as places are


class FoundPlaces(NamedTuple):
    places: list[Place]
    from_disk: bool  # many of the files were not in memory


class SearchScan:
    """For one search; its parts are used by several threads."""

    def __init__(
        self, forest: Forest, needle: Needle, max_bytes: int, ignored: Ignored | None, stop: Callable[[], bool]
    ) -> None:
        self._forest = forest
        self._needle = needle
        self._max_bytes = max_bytes
        self._ignored = ignored
        self._stop = stop

    def found(self, files: Sequence[Keyed]) -> FoundPlaces:
        """Those of the files, given in order, that contain the needle."""
        before = _blocks_from_disk()
        places: list[Place] = []
        for (folder, root), inside in groupby(files, key=_folder):
            if self._stop():
                break
            fd = self._opened(Place(names_of(folder), root))
            if fd is None:
                continue
            try:
                names = [key[len(folder) + 1 if folder else 0 :] for key, _ in inside]
                within = [Place((*names_of(folder), name.decode()), root) for name in names if self._contains(fd, name)]
            finally:
                os.close(fd)
            places += [place for place in within if self._ignored is None or not self._ignored.file(place)]
        # A page has eight blocks: one file in eight, or more, had to be waited for.
        return FoundPlaces(places, _blocks_from_disk() - before > len(files))

    def _opened(self, folder: Place) -> int | None:
        tree = self._forest.trees[folder.root]
        try:
            if self._ignored is not None and self._ignored.folder(folder):
                return None
            try:
                return tree.open_directory(folder.names)
            except FileNotFoundError:
                if all(name.isascii() for name in folder.names):
                    return None
                return tree.open_directory(tree.on_disk(folder.names))
        except OSError as error:
            if error.errno in ABSENT or error.errno in DENIED:
                return None
            raise

    def _contains(self, folder: int, name: bytes) -> bool:
        dot = name.rfind(b".")
        if dot > 0 and _is_binary(name[dot:]):
            return False
        try:
            fd = os.open(name, _READ, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ENOENT and not name.isascii():
                other = _other_form(folder, name)
                return other is not None and self._contains(folder, other)
            return _refused(error)
        try:
            # What has no end that can be gone to is no file: a pipe, a terminal. That is a third of the cost of a
            # look at its facts, and what is found is looked at again.
            size = os.lseek(fd, 0, os.SEEK_END)
            if size > self._max_bytes:
                return False
            if size > BLOCK:
                return self._is_in_large(fd, name, size)
            raw = os.pread(fd, size, 0)
        except OSError as error:
            return error.errno not in _NO_FILE and _refused(error)
        finally:
            os.close(fd)
        return self._needle.is_in(raw, name)

    def _is_in_large(self, fd: int, name: bytes, size: int) -> bool:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return False
        return any(self._needle.is_in(piece, name) for piece in self._pieces(fd, size))

    def _pieces(self, fd: int, size: int) -> Iterator[bytes]:
        """Whole lines of a large file, piece by piece. They overlap."""
        for start in range(0, size, BLOCK):
            if self._stop():
                return
            piece = os.pread(fd, BLOCK + _OVERLAP, start)
            begin = piece.find(b"\n") + 1 if start else 0
            end = piece.rfind(b"\n") + 1 if start + len(piece) < size else len(piece)
            yield piece[begin:end] if begin < end else piece


def _blocks_from_disk() -> int:
    """That this thread has waited for."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock if sys.platform == "linux" else 0


def _folder(file: Keyed) -> Keyed:
    key, root = file
    return key.rpartition(b"\0")[0], root


@lru_cache(maxsize=1024)
def _is_binary(ending: bytes) -> bool:
    return known_binary(mime_type(f"x{ending.decode(errors='replace')}"))


def _other_form(folder: int, name: bytes) -> bytes | None:
    """The disk may write a name in another Unicode form."""
    try:
        disk, _ = find(folder, name.decode())
    except OSError as error:
        if error.errno != errno.EEXIST:  # two files differ only in form: neither has an address
            _refused(error)
        return None
    return disk.encode() if disk.encode() != name else None


def _refused(error: OSError) -> bool:
    """A file that cannot be read contains nothing; what is wrong with more than one file is an error."""
    if error.errno in ABSENT or error.errno in DENIED:
        return False
    raise error
