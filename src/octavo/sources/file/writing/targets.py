"""Where something is to change: the open directory and a name in it. Links are never followed on the way."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import unicodedata
from collections.abc import Sequence
from typing import Final, Literal

from octavo.core.errors import Conflict, Forbidden
from octavo.core.ref import Ref
from octavo.core.sizes import BLOCK, MIB
from octavo.sources._shared.fs.confine import MAX_DEPTH
from octavo.sources._shared.fs.faults import ABSENT, DENIED, StoodOn
from octavo.sources._shared.places import Place, Where
from octavo.sources.file.resolve import find, resolve
from octavo.sources.file.root import Names, Tree
from octavo.sources.file.writing.staging import changed

_MARKED_BY_CONTENT: Final = 16 * MIB  # bytes; larger files are told apart by size and time
TRIAL: Final = b".octavo-trial"  # where a link leads that is made only to see whether links can be made
Use = Literal["change", "make", "read"]  # "make": a folder, where there is none; it is not replaced
_NAMED_DESCRIPTORS: Final = os.path.isdir("/proc/self/fd")


class Spot:
    """To be closed. Everything is done with `here` and `name`; `disk` leads there from the root. When an error
    closes it, the directories that were `made` for it go again.

    There is none for what the server stands on, so that no operation can forget to ask."""

    def __init__(self, tree: Tree, root: int, disk: Names, made: int = 0, *, use: Use = "change") -> None:
        self.tree = tree
        self.disk = disk
        self.place = Place(tuple(unicodedata.normalize("NFC", name) for name in disk), root)
        self.name = disk[-1].encode()
        self.made = made
        self.here = tree.open_above(disk)
        if use != "read":
            try:
                tree.refuse_essential(disk, self.look(), making=use == "make")
            except BaseException:
                self.__exit__(StoodOn)
                raise

    def __enter__(self) -> Spot:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        os.close(self.here)
        if kind is not None:
            self.remove_made(self.made)

    def remove_made(self, count: int) -> None:
        """The directories above it, as far as they are empty."""
        for depth in range(1, count + 1):
            try:
                with Spot(self.tree, self.place.root, self.disk[:-depth], use="make") as above:
                    os.rmdir(above.name, dir_fd=above.here)
            except OSError:
                return

    def confirm(self) -> None:
        """ESTALE when the directory is no longer where it was opened: what is done in it would be done elsewhere."""
        self.tree.confirm()
        try:
            there = self.tree.root.stat(self.disk[:-1])
        except OSError:
            raise changed() from None
        if not os.path.samestat(there, os.fstat(self.here)):
            raise changed()

    def look(self) -> os.stat_result | None:
        try:
            return os.stat(self.name, dir_fd=self.here, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self) -> int:
        """For reading: a regular file or a directory. ELOOP for a link, ESTALE for one that is not in `here`."""
        found = self.look()
        if found is None:
            raise changed()
        if stat.S_ISLNK(found.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        fd = self.tree.root.open(self.disk, "read")
        try:
            if not os.path.samestat(found, os.fstat(fd)):
                raise changed()
        except BaseException:
            os.close(fd)
            raise
        return fd


def spot_of(trees: Sequence[Tree], where: Where, *, use: Use = "change") -> Spot | None:
    """Where the first root has something under these names, whatever it is."""
    for k in where.roots:
        if not trees[k].rules.covers(where.names):
            continue
        try:
            disk = resolve(trees[k].root, where.names[:-1], follow=False)
            parent = trees[k].root.open(disk, "look")
            try:
                name, _ = find(parent, where.names[-1])
            finally:
                os.close(parent)
            return Spot(trees[k], k, (*disk, name), use=use)
        except StoodOn:  # not the same name in another root
            raise
        except OSError as error:
            if error.errno not in ABSENT - {errno.ELOOP}:
                raise
    return None


def made_spot(tree: Tree, k: int, names: Names, *, use: Use = "change") -> Spot:
    """Where something new is to stand; the directories above it are made where they are missing."""
    if len(names) > MAX_DEPTH:  # before any is made
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    tree.refuse_essential(names, None, making=use == "make")
    disk: Names = ()
    made = 0
    here = tree.root.step(tree.root.fd, ".")
    try:
        for name in names[:-1]:
            try:
                name, found = find(here, name)
                if stat.S_ISLNK(found.st_mode):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            except FileNotFoundError:
                made += _make(tree, (*disk, name))
            below = tree.root.step(here, name)
            os.close(here)
            here = below
            disk = (*disk, name)
    finally:
        os.close(here)
    return Spot(tree, k, (*disk, names[-1]), made, use=use)


def _make(tree: Tree, disk: Names) -> bool:
    above = tree.open_above(disk)
    try:
        os.mkdir(disk[-1].encode(), dir_fd=above)
        os.fsync(above)
    except FileExistsError:  # somebody else made it, or something else: the next step tells
        return False
    finally:
        os.close(above)
    return True


def is_writable(fd: int, found: os.stat_result) -> bool:
    """Not where somebody took the right to write away on purpose; that we could rename over it does not matter."""
    return bool(found.st_mode & 0o222) and _may_write(fd)


def refuse_unwritable(ref: Ref, fd: int, found: os.stat_result) -> None:
    uri = str(ref)
    if not is_writable(fd, found):
        raise Forbidden(f"The file is read-only: {uri}", uri=uri)


def refuse_linked(ref: Ref, found: os.stat_result) -> None:
    uri = str(ref)
    if found.st_nlink > 1:
        raise Conflict(
            f"{uri} has {found.st_nlink} hard links, and replacing it would part them; write a copy instead", uri=uri
        )


def _may_write(fd: int) -> bool:
    """Access control lists included. Where descriptors have no names, the bits of the owner decide."""
    if not _NAMED_DESCRIPTORS:
        return bool(os.fstat(fd).st_mode & stat.S_IWUSR)
    return os.access(f"/proc/self/fd/{fd}", os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def refuse_unmakable(ref: Ref, spot: Spot, stray: bytes) -> None:
    """Where links cannot be made they are not copied, nor deleted, for they could not be brought back: Landlock may
    forbid it. To be asked when the record is written, so that the trial is cleared away if we are killed."""
    uri = str(ref)
    try:
        os.symlink(TRIAL, stray, dir_fd=spot.here)
    except OSError as error:
        if error.errno not in DENIED:
            raise
        raise Forbidden(
            f"{uri} is or holds a symbolic link, and this server may not make such links: it can neither copy it nor "
            "bring it back, so nothing was changed",
            uri=uri,
        ) from None
    os.unlink(stray, dir_fd=spot.here)


def read_link(name: bytes, here: int) -> bytes:
    """Where a link leads. ESTALE when something else has its name by now."""
    try:
        return os.readlink(name, dir_fd=here)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            raise changed() from None
        raise


def mark_of_file(fd: int) -> str:
    """Equal for equal content."""
    found = os.fstat(fd)
    if found.st_size > _MARKED_BY_CONTENT:
        return f"{found.st_size}:{found.st_mtime_ns}"
    return content_mark(fd)


def content_mark(fd: int) -> str:
    """Of every byte, however many there are."""
    digest = hashlib.sha256()
    at = 0
    while piece := os.pread(fd, BLOCK, at):
        digest.update(piece)
        at += len(piece)
    return digest.hexdigest()
