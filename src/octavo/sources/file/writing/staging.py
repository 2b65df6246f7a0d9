"""A new version in the making: complete and on disk before it gets a name that anybody looks at.

Where the file system can, it has no name at all until then, and a process that is killed leaves nothing.
To replace a file it needs a name beside it for a moment, the stray, which the journal knows of.
"""

from __future__ import annotations

import errno
import logging
import os
from typing import Final, NamedTuple

from octavo.core.sizes import BLOCK
from octavo.sources._shared.fs import syscalls
from octavo.sources.file.writing.attributes import Attributes

logger = logging.getLogger(__name__)

STRAYS: Final = ".octavo-*"  # hidden from everybody; see `names.Rules`

_NO_SUCH_CALL: Final = frozenset((errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP))
_NO_TMPFILE: Final = frozenset((errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT))
_TMPFILE: Final[int | None] = getattr(os, "O_TMPFILE", None) if os.path.isdir("/proc/self/fd") else None
_NO_LINKS: Final = frozenset((errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK))
_links: Final[dict[int, bool]] = {}  # by device, where it is known


class Print(NamedTuple):
    """Tells a version of a file from every other one, whatever it is called: links and renames keep it."""

    dev: int
    ino: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Print:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def stray_of(number: str) -> bytes:
    return f".octavo-{number}".encode()


def has_unnamed_files(here: int) -> bool:
    """Whether a draft in this directory needs no name."""
    try:
        fd = _unnamed(here, stray_of("0" * 16), 0o600)
    except OSError:
        return True  # for another reason: there will be no draft either
    if fd is not None:
        os.close(fd)
    return fd is not None


def _unnamed(here: int, stray: bytes, mode: int) -> int | None:
    """A file without a name; None where the file system has none, or could not give it a name later: some have no hard
    links, which is found out once, with a file that is called `stray` for a moment."""
    if _TMPFILE is None:
        return None
    device = os.fstat(here).st_dev
    if _links.get(device) is False:
        return None
    try:
        fd = os.open(b".", _TMPFILE | os.O_RDWR | os.O_CLOEXEC, mode, dir_fd=here)
    except OSError as error:
        if error.errno not in _NO_TMPFILE:
            raise
        return None
    if device in _links:
        return fd
    try:
        _link(fd, here, stray)
        os.unlink(stray, dir_fd=here)
        _links[device] = True
    except OSError as error:
        os.close(fd)
        if error.errno not in _NO_LINKS:
            raise
        logger.warning(
            "A file system has no hard links (%s): new content stands under a hidden name until it is whole", error
        )
        _links[device] = False
        return None
    os.close(fd)  # it has been seen under a name: whoever comes gets one that never was
    return os.open(b".", _TMPFILE | os.O_RDWR | os.O_CLOEXEC, mode, dir_fd=here)


def _link(fd: int, here: int, name: bytes) -> None:
    os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=here, follow_symlinks=True)


class Draft:
    """In the directory `here`. To be closed; what was not published is gone then. Private until it is sealed,
    unless it is made with the mode of a new file."""

    def __init__(self, here: int, stray: bytes, mode: int = 0o600) -> None:
        self._here = here
        self._stray = stray
        self._mode = mode
        self._named = False
        self.fd = self._open()

    def _open(self) -> int:
        unnamed = _unnamed(self._here, self._stray, self._mode)
        if unnamed is not None:
            return unnamed
        fd = os.open(
            self._stray,
            os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
            self._mode,
            dir_fd=self._here,
        )
        self._named = True
        return fd

    def close(self) -> None:
        os.close(self.fd)
        if self._named:
            try:
                os.unlink(self._stray, dir_fd=self._here)
            except FileNotFoundError:  # settled already
                pass

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fill(self, body: bytes) -> None:
        write_all(self.fd, body)

    def seal(self, attributes: Attributes | None, *, after: os.stat_result | None, times: bool = False) -> Print:
        """On disk from here on. It is younger than the version it comes `after`, also on a coarse clock, so
        that no two versions of a file can be taken for each other."""
        if attributes is not None:
            attributes.apply(self.fd, times=times)
        made = os.fstat(self.fd)
        if after is not None and not times and made.st_mtime_ns <= after.st_mtime_ns:
            os.utime(self.fd, ns=(made.st_atime_ns, after.st_mtime_ns + 1))
        os.fsync(self.fd)
        return Print.of(os.fstat(self.fd))

    def appear(self, name: bytes) -> None:
        """Under a name that nothing has. FileExistsError when something has it by now."""
        if self._named:
            rename_new(self._here, self._stray, self._here, name)
            self._named = False
        else:
            _link(self.fd, self._here, name)
        os.fsync(self._here)

    def replace(self, name: bytes, old: Print) -> None:
        """In place of `old`. ESTALE when something else had the name: then that has it again."""
        if not self._named:
            _link(self.fd, self._here, self._stray)
            self._named = True
        try:
            syscalls.renameat2(self._here, self._stray, self._here, name, syscalls.RENAME_EXCHANGE)
        except FileNotFoundError:
            raise changed() from None
        except OSError as error:
            if error.errno not in _NO_SUCH_CALL:
                raise
            if print_at(self._here, name) != old:
                raise changed() from None
            os.rename(self._stray, name, src_dir_fd=self._here, dst_dir_fd=self._here)
            self._named = False
        else:
            if print_at(self._here, self._stray) != old:
                syscalls.renameat2(self._here, self._stray, self._here, name, syscalls.RENAME_EXCHANGE)
                raise changed()
            os.unlink(self._stray, dir_fd=self._here)
            self._named = False
        os.fsync(self._here)


def print_at(here: int, name: bytes) -> Print | None:
    try:
        return Print.of(os.stat(name, dir_fd=here, follow_symlinks=False))
    except FileNotFoundError:
        return None


def rename_new(old_dir: int, old: bytes, new_dir: int, new: bytes) -> None:
    """FileExistsError when something has the new name."""
    try:
        syscalls.renameat2(old_dir, old, new_dir, new, syscalls.RENAME_NOREPLACE)
    except OSError as error:
        if error.errno not in _NO_SUCH_CALL:
            raise
        if print_at(new_dir, new) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        os.rename(old, new, src_dir_fd=old_dir, dst_dir_fd=new_dir)


def write_all(fd: int, body: bytes) -> None:
    with memoryview(body) as view:
        at = 0
        while at < len(view):
            at += os.write(fd, view[at : at + BLOCK])


def copy_all(source: int, target: int, size: int) -> None:
    """The content of a file of that size. ESTALE when it has another size by now."""
    done = 0
    while done < size:
        try:
            more = os.copy_file_range(source, target, size - done, offset_src=done)
        except (OSError, AttributeError) as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
                raise
            more = 0
        if more == 0:  # between two file systems, or one that cannot
            piece = os.pread(source, min(BLOCK, size - done), done)
            if not piece:
                raise changed()
            write_all(target, piece)
            more = len(piece)
        done += more


def changed() -> OSError:
    return OSError(errno.ESTALE, os.strerror(errno.ESTALE))
