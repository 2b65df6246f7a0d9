"""Opens files below one directory, and nothing outside of it.

The root is opened once; from then on there are only descriptors and lists of names. A name is opened
without following any link, so what is opened is what was named and checked, however fast somebody
swaps directories for links meanwhile. Links are another matter: `resolve.py` turns them into names.

Two ways with one promise. `openat2`: the kernel resolves beneath the root. `walk`: one openat with
O_NOFOLLOW a part, for kernels and sandboxes without openat2. `confinement` tells which of them there is.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
import weakref
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Final, Literal

from octavo.sources._shared.fs import syscalls

Confinement = Literal["auto", "openat2", "walk"]
Purpose = Literal["read", "look", "directory"]

MAX_PATH_BYTES: Final = 4095  # the kernel's limit; the walk keeps the same one
MAX_DEPTH: Final = 128  # names; a walk opens each directory from the root, so its cost grows with the square of this
_RETRIES: Final = 64  # EAGAIN: the kernel saw a rename while it resolved

_PATH_ONLY: Final = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
_STEP: Final = _PATH_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a FIFO must not wait for its writer. O_NOCTTY: nor may a terminal become ours.
_FLAGS: Final[dict[Purpose, int]] = {
    "read": os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY,
    "look": _PATH_ONLY | os.O_CLOEXEC,
    "directory": os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC,
}
_RESOLVE: Final = (
    syscalls.RESOLVE_BENEATH | syscalls.RESOLVE_NO_MAGICLINKS | syscalls.RESOLVE_NO_SYMLINKS | syscalls.RESOLVE_NO_XDEV
)
_WAITING: Final = {purpose: syscalls.OpenHow(flags, 0, _RESOLVE) for purpose, flags in _FLAGS.items()}
_CACHED: Final = {
    purpose: syscalls.OpenHow(flags, 0, _RESOLVE | syscalls.RESOLVE_CACHED) for purpose, flags in _FLAGS.items()
}


class OpenedRoot:
    """An opened root. Every method raises OSError and nothing else; ELOOP (openat2) or ELOOP and ENOTDIR
    (walk) say that a link stands in the way."""

    def __init__(self, path: Path, confinement: Confinement) -> None:
        self.fd = os.open(path, _PATH_ONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # Threads may still be at work below a root in whose place another one was opened: closed when none is.
        self._closing = weakref.finalize(self, os.close, self.fd)
        try:
            self.stat_of_root = os.fstat(self.fd)
            self._mount = _mount_of(self.fd)
            self.kernel = confinement != "walk" and self._has_openat2(required=confinement == "openat2")
            waiting = {purpose: ctypes.addressof(how) for purpose, how in _WAITING.items()}
            cached = {purpose: ctypes.addressof(how) for purpose, how in _CACHED.items()}
            self._how = {True: waiting, False: cached if self.kernel and self._has_cached() else waiting}
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._closing()

    def nowhere(self) -> OpenedRoot:
        """The same with nothing in it and no place: EBADF is the answer to everything."""
        gone = copy(self)
        gone.fd = -1
        gone._closing = weakref.finalize(gone, _nothing, -1)
        return gone

    def open(self, names: Sequence[str], purpose: Purpose, *, wait: bool = True) -> int:
        """A descriptor for exactly these names, with no link among them.

        With `wait=False`, where the kernel can tell, EAGAIN instead of waiting for a disk.
        """
        path = "/".join(names).encode() if names else b"."
        if len(path) > MAX_PATH_BYTES or len(names) > MAX_DEPTH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        if not self.kernel:
            return self._walk(names, purpose)
        how = self._how[wait][purpose]
        if not wait:
            return syscalls.openat2(self.fd, path, how)
        for _ in range(_RETRIES):
            try:
                return syscalls.openat2(self.fd, path, how)
            except BlockingIOError:
                continue
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    def stat(self, names: Sequence[str], *, wait: bool = True) -> os.stat_result:
        fd = self.open(names, "look", wait=wait)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def step(self, here: int, name: str) -> int:
        """The directory `name` of the directory `here`, which came from this root."""
        fd = os.open(name.encode(), _STEP, dir_fd=here)
        try:
            self._on_this_mount(fd, os.fstat(fd))
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _walk(self, names: Sequence[str], purpose: Purpose) -> int:
        here = os.open(b".", _STEP, dir_fd=self.fd)
        try:
            for name in names[:-1]:
                below = self.step(here, name)
                os.close(here)
                here = below
            last = names[-1].encode() if names else b"."
            fd = os.open(last, _FLAGS[purpose] | os.O_NOFOLLOW, dir_fd=here)
        finally:
            os.close(here)
        try:
            found = os.fstat(fd)
            if stat.S_ISLNK(found.st_mode):  # O_PATH opens the link itself
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            self._on_this_mount(fd, found)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _on_this_mount(self, fd: int, found: os.stat_result) -> None:
        """In place of RESOLVE_NO_XDEV. An overlay gives files the device of a lower layer, so that another
        device alone proves nothing: then the mount decides."""
        if found.st_dev != self.stat_of_root.st_dev and (self._mount is None or _mount_of(fd) != self._mount):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    def _has_openat2(self, *, required: bool) -> bool:
        if sys.platform != "linux" and not required:
            return False
        try:
            os.close(syscalls.openat2(self.fd, b".", ctypes.addressof(_WAITING["look"])))
        except OSError as error:
            if required or error.errno not in (errno.ENOSYS, errno.EPERM):  # an old kernel; a seccomp profile
                raise
            return False
        return True

    def _has_cached(self) -> bool:
        try:
            os.close(syscalls.openat2(self.fd, b".", ctypes.addressof(_CACHED["look"])))
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


def _nothing(fd: int) -> None: ...


def _mount_of(fd: int) -> str | None:
    try:
        info = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        lines = os.read(info, 4096).decode("ascii", "replace").splitlines()
    finally:
        os.close(info)
    return next((line for line in lines if line.startswith("mnt_id:")), None)


_INOTIFY = Path("/proc/sys/fs/inotify")


def confinement() -> Literal["openat2", "walk"]:
    """How files below a root are opened here."""
    root = OpenedRoot(Path("/"), "auto")
    try:
        return "openat2" if root.kernel else "walk"
    finally:
        root.close()


def has_tmpfile(directory: Path) -> bool:
    """Whether the file system makes files without a name. Leaves nothing behind."""
    flag: int | None = getattr(os, "O_TMPFILE", None)
    if flag is None:
        return False
    try:
        os.close(os.open(directory, os.O_WRONLY | flag | os.O_CLOEXEC, 0o600))
    except OSError:
        return False
    return True


def inotify_limit(name: str) -> int | None:
    try:
        return int((_INOTIFY / name).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
