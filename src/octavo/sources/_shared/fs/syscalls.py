"""System calls that Python does not offer: openat2, renameat2 and inotify, by ctypes.

Every function raises OSError like its siblings in `os`. Nothing here decides anything.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

RESOLVE_NO_XDEV: Final = 0x01
RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_NO_SYMLINKS: Final = 0x04
RESOLVE_BENEATH: Final = 0x08
RESOLVE_CACHED: Final = 0x20  # answer from the kernel's name cache or EAGAIN: never waits for a disk

RENAME_NOREPLACE: Final = 0x01
RENAME_EXCHANGE: Final = 0x02

IN_MODIFY: Final = 0x0002
IN_ATTRIB: Final = 0x0004
IN_CLOSE_WRITE: Final = 0x0008
IN_MOVED_FROM: Final = 0x0040
IN_MOVED_TO: Final = 0x0080
IN_CREATE: Final = 0x0100
IN_DELETE: Final = 0x0200
IN_DELETE_SELF: Final = 0x0400
IN_MOVE_SELF: Final = 0x0800
IN_Q_OVERFLOW: Final = 0x4000
IN_IGNORED: Final = 0x8000
IN_ONLYDIR: Final = 0x0100_0000
IN_EXCL_UNLINK: Final = 0x0400_0000

_SYS_OPENAT2: Final = 437  # the same number on every architecture
_IN_NONBLOCK_CLOEXEC: Final = os.O_NONBLOCK | os.O_CLOEXEC

_libc = ctypes.CDLL(None, use_errno=True)


class OpenHow(ctypes.Structure):
    """`struct open_how`. Never changed after it is made, so that threads can share one."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
_HOW_SIZE: Final = ctypes.sizeof(OpenHow)
_renameat2 = getattr(_libc, "renameat2", None)


def openat2(dir_fd: int, path: bytes, how: int) -> int:
    """A descriptor for `path` below `dir_fd`. `how` is the address of an OpenHow that outlives the call."""
    if b"\0" in path:  # C would stop reading there and open another name than the one that was checked
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    while True:
        fd: int = _syscall(_SYS_OPENAT2, dir_fd, path, how, _HOW_SIZE)
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code))


def renameat2(old_dir: int, old: bytes, new_dir: int, new: bytes, flags: int) -> None:
    """ENOSYS where the C library has none, EINVAL where the file system does not know the flags."""
    if b"\0" in old or b"\0" in new:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    if _renameat2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    _checked(_renameat2(old_dir, old, new_dir, new, ctypes.c_uint(flags)))


def inotify_init() -> int:
    return _checked(_libc.inotify_init1(_IN_NONBLOCK_CLOEXEC))


def inotify_add_watch(fd: int, path: bytes, mask: int) -> int:
    return _checked(_libc.inotify_add_watch(fd, path, ctypes.c_uint32(mask)))


def inotify_rm_watch(fd: int, wd: int) -> None:
    _checked(_libc.inotify_rm_watch(fd, wd))


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
