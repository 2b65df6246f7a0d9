"""How much of a folder a caller may open, for a program that opens files by itself.

Landlock gives a right on a folder for all that is or comes to be below it. So a folder is given as a whole only where
the rules keep nothing back below it, there or not yet, and nothing in it is hidden; else what may be read of it is
given one by one, and nobody may list it: a listing tells all names.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from octavo.core.errors import TooLarge
from octavo.core.external import Extent, Opening, Rights, ServedFolder
from octavo.core.ref import Ref
from octavo.sandbox.landlock import READ, READ_DIR, READ_FILE
from octavo.sources._shared.fs.faults import ABSENT, DENIED
from octavo.sources._shared.places import Place
from octavo.sources.file.addresses import FileAddresses
from octavo.sources.file.root import Child, Names, Tree
from octavo.sources.file.roots import Forest

MOST: Final = 20_000  # entries that are looked at
_NOT_OURS: Final = frozenset((*ABSENT, *DENIED, errno.EXDEV))  # of another file system: never served


class _Part(NamedTuple):
    openings: list[Opening]
    named: bool = True  # all names in it may be told
    read: bool = True  # and all of it may be read
    unlisted: tuple[Names, ...] = ()  # of which the caller may know that they are there
    inside: tuple[Names, ...] = ()  # the uppermost folders below it that are both
    free: tuple[Names, ...] = ()  # the same, or itself


class Survey:
    """Blocking. Raises OSError where the folder cannot be looked at."""

    def __init__(
        self, forest: Forest, k: int, addresses: FileAddresses, rights: Rights, stop: Callable[[], bool]
    ) -> None:
        self._forest, self._tree, self._k = forest, forest.trees[k], k
        self._addresses, self._rights, self._stop = addresses, rights, stop
        self._left = MOST
        self._above = 0  # names of the folder itself
        self._steady = True

    def of(self, names: Sequence[str]) -> Extent:
        start = tuple(names)
        disk = self._tree.on_disk(start)
        if disk:
            os.close(self._tree.open_above(disk))  # nothing above it is excluded
        self._above = len(disk)
        found = self._folder(start, disk, listed=False, read=False)
        return Extent(
            folder=self._told(start),
            openings=tuple(found.openings),
            whole=found.named and found.read,
            steady=self._steady and not self._tree.excludes_below(disk),
            unlisted=tuple(self._forest.folder(Place(one, self._k)) for one in found.unlisted),
            free=tuple(map(self._told, found.inside)),
        )

    def _folder(self, names: Names, disk: Names, *, listed: bool, read: bool) -> _Part:
        """`listed` and `read`: the rules are known to allow that below it."""
        refs = self._spellings(names)
        listed = listed or self._rights.all_below("list", refs)
        read = read or self._rights.all_below("read", refs)
        here, children, on_disk = self._looked(names, disk)
        named = listed and {child.disk for child in children}.issuperset(on_disk)
        parts = [self._part(child, names, disk, listed=listed, read=read) for child in children]
        named = named and all(part.named for part in parts)
        read = named and read and all(part.read for part in parts)
        inside = tuple(one for part in parts for one in part.free)
        if read:
            return _Part([self._opening(disk, READ, here)], inside=inside, free=(names,))
        openings = [one for part in parts for one in part.openings]
        if named:
            files = [one for one in openings if one.rights & READ_FILE]
            openings = [self._opening(disk, READ_DIR, here), *files]
        unlisted = [one for part in parts for one in part.unlisted]
        if not named and (listed or self._rights.allows("list", refs)):
            unlisted.insert(0, names)
        return _Part(openings, named, False, tuple(unlisted), inside, inside)

    def _looked(self, names: Names, disk: Names) -> tuple[os.stat_result, Sequence[Child], Sequence[str]]:
        """A folder itself, what is served in it, and all names in it."""
        fd = self._tree.open_directory(disk)
        try:
            here = os.fstat(fd)
            children = self._tree.children(fd, names)
            on_disk = os.listdir(fd)  # later than the children: what appeared between is none of them
        finally:
            os.close(fd)
        self._count(len(on_disk))
        return here, children, on_disk

    def _part(self, child: Child, names: Names, disk: Names, *, listed: bool, read: bool) -> _Part:
        own, where = (*names, child.name), (*disk, child.disk)
        try:
            if child.kind == "directory":
                return self._folder(own, where, listed=listed, read=read)
            names, found = self._tree.look(own)
        except OSError as error:
            if error.errno not in _NOT_OURS:
                raise
            return _Part([], named=False, read=False)
        if child.kind == "link":  # what it leads to is opened there; its text tells of it
            told = self._rights.allows("list", self._spellings(names))
            return _Part([], named=told, read=told)
        self._steady = self._steady and found.st_nlink == 1
        if not read and not self._rights.allows("read", self._spellings(own)):
            return _Part([], read=False)
        return _Part([self._opening(where, READ_FILE, found)])

    def _told(self, names: Names) -> ServedFolder:
        return ServedFolder(self._forest.folder(Place(names, self._k)), self._spellings(names))

    def _spellings(self, names: Names) -> list[Ref]:
        absolute = self._addresses.absolute(names, self._k)
        relative = Ref(self._addresses.scheme, names)
        return [relative] if absolute is None else [relative, absolute]

    def _opening(self, disk: Names, rights: int, found: os.stat_result) -> Opening:
        return Opening(disk[self._above :], rights, found.st_dev, found.st_ino)

    def _count(self, entries: int) -> None:
        self._left -= entries
        if self._left < 0:
            raise TooLarge(f"The folder holds more than {MOST:,} entries, too many to confine a program to them")
        if self._stop():
            raise OSError(errno.EINTR, os.strerror(errno.EINTR))


def opening(tree: Tree, names: Names) -> tuple[Names, Opening]:
    """Of a file that is served. Blocking; raises OSError where there is none."""
    own, found = tree.look(names)
    return own, Opening(tree.on_disk(own), READ_FILE, found.st_dev, found.st_ino)
