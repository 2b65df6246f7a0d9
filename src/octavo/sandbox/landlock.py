"""Landlock by ctypes: the kernel's own word on what this process may open, from now on and for all its children.

Needs no privilege and cannot be taken back. It holds for the calling thread and whatever that thread starts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
REMOVE_DIR: Final = 1 << 4
REMOVE_FILE: Final = 1 << 5
MAKE_DIR: Final = 1 << 7
MAKE_REG: Final = 1 << 8
MAKE_SYM: Final = 1 << 12  # a folder that is deleted and brought back may hold links
REFER: Final = 1 << 13
TRUNCATE: Final = 1 << 14

READ: Final = READ_FILE | READ_DIR
WRITE: Final = READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SYM | REFER | TRUNCATE
_OF_FILES: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE  # what a rule on a single file may grant
# What each version of the interface can refuse; an older kernel is asked for no more than it knows.
_HANDLED: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}

# What it can refuse beside files: TCP (from version 4), and signals and nameless sockets to others (from version 6).
_TCP: Final = (1 << 0) | (1 << 1)
_OTHERS: Final = (1 << 0) | (1 << 1)

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_ASK_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_NO_NEW_PRIVS: Final = 38


class Grant(NamedTuple):
    path: str
    rights: int


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("tcp", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("fd", ctypes.c_int32))


def version() -> int:
    """Of the kernel's interface; 0 where there is none, or it is switched off."""
    if sys.platform != "linux":
        return 0
    try:
        return _call(_CREATE_RULESET, None, 0, _ASK_VERSION)
    except OSError:
        return 0


def restrict(
    grants: Iterable[Grant], opened: Iterable[tuple[int, int]] = (), *, alone: bool = False, tcp: bool = True
) -> None:
    """Raises OSError, and restricts nothing, where the kernel cannot. What does not exist is left out. `opened` are
    descriptors with the rights on what they stand for, each used before the next is asked for. `alone` refuses
    signals to all others, and without `tcp` TCP too, as far as the kernel's version knows how."""
    known = version()
    if not known:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    handled = _HANDLED[min(known, max(_HANDLED))]
    wanted = _Ruleset(handled, _TCP if known >= 4 and not tcp else 0, _OTHERS if known >= 6 and alone else 0)
    size = 24 if wanted.scoped else 16 if wanted.tcp else 8
    ruleset = _call(_CREATE_RULESET, ctypes.byref(wanted), size, 0)
    try:
        for grant in dict.fromkeys(grants):
            _add(ruleset, grant, handled)
        for fd, rights in opened:
            _add_opened(ruleset, fd, rights, handled)
        if _libc().prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) < 0:
            raise _last_error()
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def mapped_files() -> set[str]:
    """The program, its libraries, and what loads them."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        return {line[line.index("/") :] for line in maps.read().split("\n") if "/" in line}


def _add(ruleset: int, grant: Grant, handled: int) -> None:
    try:
        fd = os.open(grant.path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        _add_opened(ruleset, fd, grant.rights, handled)
    finally:
        os.close(fd)


def _add_opened(ruleset: int, fd: int, rights: int, handled: int) -> None:
    rights &= handled & (-1 if stat.S_ISDIR(os.fstat(fd).st_mode) else _OF_FILES)
    _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(_Beneath(rights, fd)), 0)


def _call(number: int, *arguments: object) -> int:
    result: int = _libc().syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise _last_error()
    return result


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _last_error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
