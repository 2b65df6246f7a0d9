"""One root as callers may see it: confined, by canonical names, without what is hidden.

Every method raises OSError; ENOENT also stands for "there, but not for you".
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Final, Literal, NamedTuple

from octavo.core.clients import starts_programs
from octavo.core.foundation import Foundation, folded
from octavo.sources._shared.fs.confine import MAX_DEPTH, MAX_PATH_BYTES, Confinement, OpenedRoot
from octavo.sources._shared.fs.faults import ABSENT, Starts, StoodOn
from octavo.sources._shared.fs.names import Rules, canonical_name
from octavo.sources.file.resolve import find, resolve

Symlinks = Literal["inside", "refuse"]
HardLinks = Literal["auto", "refuse", "allow"]
Names = tuple[str, ...]

_NAMELESS: Final = 1000  # folders of which it is known how many of their names have no address
_ATTEMPTS: Final = 3  # a link that is replaced while it is followed
_LINK_IN_THE_WAY: Final = frozenset((errno.ELOOP, errno.ENOTDIR, errno.EMLINK))
by_name: Final = attrgetter("name")


class SeenFile(NamedTuple):
    """A regular file that may be served. `names` are its own: not those of a link that led to it."""

    names: Names
    stat: os.stat_result


class Child(NamedTuple):
    name: str  # canonical
    disk: str
    kind: Literal["directory", "file", "link"]


class Tree:
    def __init__(
        self,
        path: Path,
        rules: Rules,
        *,
        confinement: Confinement,
        symlinks: Symlinks,
        hard_links: HardLinks,
        exclude_dirs: Sequence[Path],
        exclude_files: Sequence[Path] = (),
        foundation: Foundation | None = None,
    ) -> None:
        self._path, self._confinement = path, confinement
        # It came in the place of a folder that may be written, and the second wall keeps this process from that.
        self.is_walled = False
        self.rules = rules
        self._narrowed = rules.narrowed
        self._follow = symlinks == "inside"
        self._of_hard_links = hard_links
        self._exclude_dirs, self._exclude_files = exclude_dirs, exclude_files
        self._foundation = foundation
        self.nameless: dict[Names, int] = {}  # of folders as they were read last: names that have no address
        self._stand_on(OpenedRoot(path, confinement))

    def _stand_on(self, root: OpenedRoot) -> None:
        hard_links = self._of_hard_links
        self.root = root
        self._hard_links = hard_links == "allow" or (hard_links == "auto" and not _others_write(root.stat_of_root))
        real = self.real = os.path.realpath(self._path)
        self._excluded = [e for e in map(os.path.realpath, self._exclude_dirs) if Path(e).is_relative_to(real)]
        self._secrets = [os.path.realpath(file) for file in self._exclude_files]
        self._left_out = {
            folded(Path(e).relative_to(real).parts) for e in self._secrets if Path(e).is_relative_to(real)
        }

    def close(self) -> None:
        self.root.close()

    @property
    def is_there(self) -> bool:
        """False from when its path was found to lead nowhere until it leads somewhere again."""
        return self.root.fd >= 0

    @property
    def is_replaced(self) -> bool:
        """Whether its path leads to another folder than the one that is open, or to none."""
        try:
            return not os.path.samestat(os.stat(self._path), self.root.stat_of_root) or not self.is_there
        except OSError:
            return True

    def confirm(self) -> None:
        """EBADF unless its path still leads here: in a folder that no path leads to nothing is changed. ENOMEDIUM where
        it is a folder that this process may not write to."""
        if self.is_replaced:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if self.is_walled:
            raise OSError(errno.ENOMEDIUM, os.strerror(errno.ENOMEDIUM))

    def reopen(self) -> bool:
        """Follows its path to the folder that is there now; where there is none, or none that may be read, EBADF is
        the answer to everything. Whether that is something new."""
        was_there = self.is_there
        if was_there and not self.is_replaced:
            return False
        try:
            root = OpenedRoot(self._path, self._confinement)
            os.close(root.open((), "directory"))
        except OSError:
            self.root = self.root.nowhere()
            return was_there
        self._stand_on(root)
        self.is_walled = self._foundation is not None and not _may_write(root)
        return True

    def look(self, names: Names, *, wait: bool = True) -> SeenFile:
        """With `wait=False` BlockingIOError where the answer could take long."""
        try:
            return self._served(names, names, self.root.stat(names, wait=wait))
        except OSError as error:
            if not self._is_elsewhere(names, error):
                raise
            if not wait:
                raise BlockingIOError from None
        for disk, own in self._elsewhere(names):
            try:
                return self._served(own, disk, self.root.stat(disk))
            except OSError as error:
                if error.errno not in ABSENT:
                    raise
        raise _absent()

    def open(self, names: Names, *, wait: bool = True) -> tuple[int, SeenFile]:
        """A descriptor for reading, which is the caller's to close."""
        try:
            return self._opened(names, names, wait=wait)
        except OSError as error:
            if not self._is_elsewhere(names, error):
                raise
            if not wait:
                raise BlockingIOError from None
        for disk, own in self._elsewhere(names):
            try:
                return self._opened(disk, own)
            except OSError as error:
                if error.errno not in ABSENT:
                    raise
        raise _absent()

    def leads_inside(self, names: Names) -> bool:
        """Whether a link with these names leads to something in this root that is not hidden."""
        if not self._follow:
            return False
        try:
            disk = resolve(self.root, names, follow=True)
            left_out = self._excluded and any(self._is_excluded(self.root.stat(disk[:i])) for i in range(len(disk) + 1))
        except OSError as error:
            if error.errno in ABSENT:
                return False
            raise
        own = tuple(unicodedata.normalize("NFC", name) for name in disk)
        hidden = self.rules.hides_on_the_way(own)
        return not left_out and not hidden and self.rules.covers(own)

    def excludes_below(self, disk: Names) -> bool:
        """Whether something at or below a directory is never to be changed, whether or not it is there."""
        return any(Path(one).is_relative_to(os.path.join(self.real, *disk)) for one in self._excluded)

    def on_disk(self, names: Names) -> Names:
        """How a directory's names are written on disk. Links are not followed: that could go in circles."""
        return resolve(self.root, names, follow=False)

    def is_twin(self, names: Names, written: Names) -> bool:
        """Whether something is on disk with these names as they are written, that is not what the canonical names
        stand for."""
        try:
            return not os.path.samestat(self.root.stat(self.on_disk(names)), self.root.stat(written))
        except OSError:
            return False

    def open_directory(self, disk: Names) -> int:
        fd = self.root.open(disk, "directory")
        try:
            if self._excluded and self._is_excluded(os.fstat(fd)):
                raise _absent()
        except BaseException:
            os.close(fd)
            raise
        return fd

    def open_above(self, disk: Names) -> int:
        """The directory in which the entry with these names on disk stands, or could stand, to change it. Absent for
        what is excluded, also where that is not there yet."""
        if self._excluded and (
            os.path.join(self.real, *disk) in self._excluded
            or any(self._is_excluded(self.root.stat(disk[:i])) for i in range(len(disk)))
        ):
            raise _absent()
        return self.open_directory(disk[:-1])

    def refuse_essential(self, disk: Names, entry: os.stat_result | None, *, making: bool) -> None:
        """Raises StoodOn, or ENOENT where callers may not know of it, when the server stands on the entry with these
        names on disk, on something above or below it, or on what would stand there. Making a folder, if there is none,
        harms nothing below it."""
        if self._foundation is None:
            return
        self.refuse_starting(disk)
        footing = self._foundation.below(self.root.stat_of_root)
        end, found = footing.at(disk), footing.holding(disk)
        if found is None and footing.found:
            found, is_end = footing.being(entry, self._folders_above(disk)) or (None, False)
            end = found if is_end else None
        if end is not None:
            raise Starts if end.starts else StoodOn if end.served else _absent()
        if found is not None and not making:
            raise Starts if found.starts else StoodOn

    def refuse_starting(self, names: Names) -> None:
        """Raises Starts for a file in which a client would find what it starts, and for what is in a folder of such a
        name."""
        whole = (*Path(self.real).parts, *names)
        if any(starts_programs(whole[: len(whole) - above]) for above in range(len(names))):
            raise Starts

    def _folders_above(self, disk: Names) -> Iterator[os.stat_result]:
        """As far as they are there."""
        try:
            for depth in range(1, len(disk)):
                yield self.root.stat(disk[:depth])
        except OSError:
            return

    def is_left_out(self, disk: Names, found: os.stat_result) -> bool:
        """Whether it is a file that is never served, by any of its names, or one of which no name is."""
        if self._left_out and folded(disk) in self._left_out:
            return True
        if found.st_nlink < 2 or not stat.S_ISREG(found.st_mode):
            return False
        return not self._hard_links or any(_is_same(path, found) for path in self._secrets)

    def children(self, fd: int, names: Names) -> list[Child]:
        """What may be served or walked into of an open directory, in order. Links may yet lead nowhere."""
        room = _room(names)
        found: dict[str, os.DirEntry[str]] = {}
        ambiguous: set[str] = set()
        children: list[Child] = []
        nameless = 0
        with os.scandir(fd) as entries:
            for entry in entries:
                name = canonical_name(entry.name)
                if name is None:
                    nameless += self.rules.allows(entry.name)
                    continue
                twin = found.get(name)
                if twin is not None:
                    nameless += 1
                    if twin.name == name:
                        continue
                    ambiguous.add(name)
                found[name] = entry
            for name, entry in found.items():
                if name in ambiguous and entry.name != name:
                    nameless += 1
                    continue
                kind: Literal["directory", "file", "link"]
                if entry.is_dir(follow_symlinks=False):
                    kind = "directory"
                elif not self.rules.allows(name):
                    continue
                elif entry.is_file(follow_symlinks=False):
                    kind = "file"
                elif self._follow and entry.is_symlink():
                    kind = "link"
                else:
                    continue
                if len(entry.name.encode()) <= room and not self.rules.hides(
                    (*names, name), folder=kind == "directory"
                ):
                    children.append(Child(name, entry.name, kind))
        children.sort(key=by_name)
        if nameless and len(self.nameless) < _NAMELESS:
            self.nameless[names] = nameless
        elif self.nameless:
            self.nameless.pop(names, None)
        return children

    def child(self, fd: int, names: Names, name: str) -> Child | None:
        """One of the children of an open directory, without reading all of it where that can be avoided."""
        try:
            disk, found = find(fd, name)
        except OSError as error:
            if error.errno in ABSENT or error.errno == errno.EEXIST:
                return None
            raise
        if len(disk.encode()) > _room(names) or self.rules.hides((*names, name), folder=stat.S_ISDIR(found.st_mode)):
            return None
        if stat.S_ISDIR(found.st_mode):
            return Child(name, disk, "directory")
        if stat.S_ISREG(found.st_mode) and self.rules.allows(name):
            return Child(name, disk, "file")
        if stat.S_ISLNK(found.st_mode) and self._follow and self.rules.allows(name):
            return Child(name, disk, "link")
        return None

    def _opened(self, disk: Names, own: Names, *, wait: bool = True) -> tuple[int, SeenFile]:
        fd = self.root.open(disk, "read", wait=wait)
        try:
            return fd, self._served(own, disk, os.fstat(fd))
        except BaseException:
            os.close(fd)
            raise

    def _served(self, own: Names, disk: Names, found: os.stat_result) -> SeenFile:
        if not stat.S_ISREG(found.st_mode) or self.is_left_out(disk, found):
            raise _absent()
        if self._excluded and any(self._is_excluded(self.root.stat(disk[:i])) for i in range(len(disk))):
            raise _absent()
        if self._narrowed and not self.rules.covers(own):
            raise _absent()
        return SeenFile(own, found)

    def _is_elsewhere(self, names: Names, error: OSError) -> bool:
        """Whether a link or a name in another Unicode form may be why these names cannot be opened as they are."""
        if error.errno in _LINK_IN_THE_WAY:
            return self._follow
        return error.errno == errno.ENOENT and not all(name.isascii() for name in names)

    def _elsewhere(self, names: Names) -> Iterator[tuple[Names, Names]]:
        """Where these names lead: on disk, and canonically, if that is a name to be served. A few times, for
        whoever replaces a link does not wait for us."""
        for _ in range(_ATTEMPTS):
            disk = resolve(self.root, names, follow=self._follow)
            own = tuple(unicodedata.normalize("NFC", name) for name in disk)
            if own != names and (
                self.rules.verdict(own) != "served" or any(canonical_name(name) is None for name in disk)
            ):
                raise _absent()
            yield disk, own

    def _is_excluded(self, found: os.stat_result) -> bool:
        return any(_is_same(path, found) for path in self._excluded)


def _is_same(path: str, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), found)
    except OSError:  # it does not exist now, so this is not it
        return False


def _room(names: Names) -> int:
    """How long a name in this directory may be: beyond that it has no address, and a walk comes to an end."""
    if len(names) >= MAX_DEPTH:
        return 0
    return MAX_PATH_BYTES - len("/".join((*names, "")).encode())


def _may_write(root: OpenedRoot) -> bool:
    """By trying: what Landlock forbids no question tells."""
    try:
        os.close(os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=root.fd))
    except (OSError, AttributeError) as error:
        return not isinstance(error, PermissionError)  # else the file system, or the system, has no such files
    return True


def _others_write(root: os.stat_result) -> bool:
    """Who can write into a root can put a hard link to any file of their own reach into it."""
    return bool(root.st_mode & (stat.S_IWGRP | stat.S_IWOTH)) or root.st_uid not in (0, os.geteuid())


def _absent() -> OSError:
    return OSError(errno.ENOENT, os.strerror(errno.ENOENT))
