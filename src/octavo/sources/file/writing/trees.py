"""Whole directories: what is in them, and copies of it. Bounded, and only where all of it may be served."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from typing import Final, NamedTuple

from octavo.core.errors import Forbidden, TooLarge
from octavo.core.progress import step
from octavo.core.ref import Ref
from octavo.core.sizes import MIB
from octavo.sources._shared.fs.faults import ABSENT
from octavo.sources._shared.fs.names import canonical_name
from octavo.sources.file.root import Names, Tree
from octavo.sources.file.writing.attributes import Attributes
from octavo.sources.file.writing.locks import locked
from octavo.sources.file.writing.records import Leaf
from octavo.sources.file.writing.staging import Print, changed, copy_all
from octavo.sources.file.writing.targets import Spot, is_writable, read_link

MOST_ENTRIES: Final = 10_000
MOST_BYTES: Final = 256 * MIB  # of a copy
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Contents(NamedTuple):
    """Of a directory: itself first, and parents before what they hold."""

    leaves: tuple[Leaf, ...]
    prints: tuple[Print, ...]

    @property
    def size(self) -> int:
        return sum(found.size for leaf, found in zip(*self, strict=True) if leaf.is_file)

    @property
    def has_links(self) -> bool:
        return any(leaf.link is not None for leaf in self.leaves)

    @property
    def mark(self) -> str:
        """Equal for the same names with files of the same size and time, and links to the same place."""
        lines = [
            f"{'/'.join(leaf.path)}\0{_sign(leaf, found)}".encode(errors="surrogateescape")
            for leaf, found in zip(*self, strict=True)
        ]
        return hashlib.sha256(b"\n".join(sorted(lines))).hexdigest()


def _sign(leaf: Leaf, found: Print) -> str:
    if leaf.link is not None:
        return f"-> {leaf.link}"
    return str((found.size, found.mtime_ns)) if leaf.is_file else ""


class TreeScan:
    """Looks through the directory `disk` of a tree, which callers know as `names`, and would at `to`."""

    def __init__(
        self, tree: Tree, disk: Names, names: Names, ref: Ref, *, to: Spot | None = None, going: bool = False
    ) -> None:
        self._tree = tree
        self._disk = disk
        self._known = [(tree, names)] if to is None else [(tree, names), (to.tree, to.place.names)]
        self._ref = ref
        self._going = going  # it is to be deleted: nothing read-only may be in it

    def contents(self) -> Contents:
        """Waits for those who write in it.

        Raises Forbidden when something in it is not served or is read-only, TooLarge when there is too much.
        """
        leaves: list[Leaf] = []
        prints: list[Print] = []
        pending: list[Names] = [()]
        while pending:
            path = pending.pop()
            fd = self._open(path)
            try:
                with locked(fd):
                    leaves.append(Leaf(path, Attributes.of(fd)))
                    prints.append(Print.of(os.fstat(fd)))
                    for name in sorted(os.listdir(fd)):
                        step("looked at")
                        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                        below = (*path, name)
                        self._refuse_unserved(below, found)
                        if stat.S_ISDIR(found.st_mode):
                            pending.append(below)
                        else:
                            leaves.append(self._leaf(below, found, fd))
                            prints.append(Print.of(found))
            finally:
                os.close(fd)
            if len(leaves) + len(pending) > MOST_ENTRIES:
                uri = str(self._ref)
                raise TooLarge(
                    f"The directory {uri} holds more than {MOST_ENTRIES} entries; take a part of it at a time", uri=uri
                )
        return Contents(tuple(leaves), tuple(prints))

    def open_file(self, path: Names) -> int:
        return self._tree.root.open((*self._disk, *path), "read")

    def _open(self, path: Names) -> int:
        try:
            return self._tree.open_directory((*self._disk, *path))
        except OSError as error:
            if path and error.errno in ABSENT:  # left out of the source, or another file system
                raise self._stays() from None
            raise

    def _refuse_unserved(self, path: Names, found: os.stat_result) -> None:
        if self._tree.is_left_out((*self._disk, *path), found):
            raise self._stays()
        canonical = [canonical_name(name) for name in path]
        tail = tuple(name for name in canonical if name is not None)
        if len(tail) < len(path):
            raise self._stays()
        for tree, above in self._known:
            names = (*above, *tail)
            tree.refuse_starting(names)
            if stat.S_ISDIR(found.st_mode):
                served = not self._tree.rules.hides(names, folder=True)
            else:
                # A link goes along as a link: where it leads does not matter, and is not asked.
                kind = stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)
                served = kind and self._tree.rules.verdict(names) == "served"
            if not served:
                raise self._stays()

    def _leaf(self, path: Names, found: os.stat_result, above: int) -> Leaf:
        if stat.S_ISLNK(found.st_mode):
            return Leaf(path, Attributes.of_link(found), os.fsdecode(read_link(path[-1].encode(), above)))
        return Leaf(path, self._attributes(path, found))

    def _attributes(self, path: Names, found: os.stat_result) -> Attributes:
        fd = self.open_file(path)
        try:
            if Print.of(os.fstat(fd)) != Print.of(found):
                raise changed()
            if self._going and not is_writable(fd, found):
                raise self._stays()
            return Attributes.of(fd)
        finally:
            os.close(fd)

    def _stays(self) -> Forbidden:
        uri = str(self._ref)
        return Forbidden(
            f"Not all that is in the directory {uri} can go along: something is not served, read-only or no file. The "
            "directory stays as it is; take the files in it one by one",
            uri=uri,
        )


def refuse_bytes(ref: Ref, size: int) -> None:
    if size > MOST_BYTES:
        uri = str(ref)
        raise TooLarge(f"{uri} holds {size} bytes, the limit is {MOST_BYTES}; take a part of it at a time", uri=uri)


def plant(
    target: int,
    leaves: tuple[Leaf, ...],
    open_file: Callable[[Names], int],
    prints: tuple[Print, ...] | None = None,
    *,
    private: bool,
) -> None:
    """Copies everything below `leaves[0]` into the empty directory `target`, and to the disk.

    With `private` for our own eyes only; else with its attributes. ESTALE when a file is not what `prints` say.
    """
    for number, (path, attributes, link) in enumerate(leaves[1:], 1):
        step("copied")
        above = _descend(target, path[:-1])
        try:
            if attributes.is_directory:
                os.mkdir(path[-1], 0o700, dir_fd=above)
                continue
            if link is not None:
                if not private:  # else its record holds all of it
                    os.symlink(link, path[-1], dir_fd=above)
                    attributes.apply_to_link(path[-1], above)
                continue
            source = open_file(path)
            try:
                found = os.fstat(source)
                if prints is not None and Print.of(found) != prints[number]:
                    raise changed()
                made = os.open(path[-1], _FILE, 0o600, dir_fd=above)
                try:
                    copy_all(source, made, found.st_size)
                    if not private:
                        attributes.apply(made, times=True)
                    os.fsync(made)
                finally:
                    os.close(made)
            finally:
                os.close(source)
        finally:
            os.close(above)
    for path, attributes, _ in reversed([leaf for leaf in leaves if leaf.attributes.is_directory]):
        fd = _descend(target, path)  # their times last: what is made in them changes them
        try:
            if not private:
                attributes.apply(fd, times=True)
            os.fsync(fd)
        finally:
            os.close(fd)


def _descend(target: int, path: Names) -> int:
    """Step by step: somebody may put a link where we have just made a directory."""
    here = os.open(".", _DIRECTORY, dir_fd=target)
    for name in path:
        try:
            below = os.open(name, _DIRECTORY, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


def below(fd: int) -> Callable[[Names], int]:
    """Opens the files below a directory of ours."""

    def open_file(path: Names) -> int:
        above = _descend(fd, path[:-1])
        try:
            return os.open(path[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        finally:
            os.close(above)

    return open_file
