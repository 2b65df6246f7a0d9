"""From the names somebody asked for to the names on disk, with no link among them.

The slow half of opening: it is needed only where a link stands in the way or where a name is written
in another Unicode form on disk. It opens nothing for reading and its answer is only a list of names:
the caller checks them and opens exactly them, so a race here can change what is found, never where.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from typing import Final

from octavo.sources._shared.fs.confine import OpenedRoot

MAX_LINKS: Final = 40  # the kernel's own limit
_MAX_STEPS: Final = 2_500  # as many as an address can have, and some; links could make any number


def resolve(root: OpenedRoot, names: tuple[str, ...], *, follow: bool) -> tuple[str, ...]:
    """Raises OSError: ELOOP for a link where none may be followed or for too many, EXDEV for one that
    leads out of the root, EEXIST when two names on disk differ only in Unicode form."""
    pending = list(reversed(names))
    real: list[str] = []
    links = steps = 0
    here = root.step(root.fd, ".")
    try:
        while pending:
            steps += 1
            if steps > _MAX_STEPS:
                raise _os_error(errno.ELOOP)
            name = pending.pop()
            if name == "..":  # only a link's target has it; real names have no link, so the parent is the one before
                if not real:
                    raise _os_error(errno.EXDEV)
                real.pop()
                steps += len(real)
                here = _replace(here, root.open(real, "look"))
                continue
            name, found = find(here, name)
            if stat.S_ISLNK(found.st_mode):
                links += 1
                if not follow or links > MAX_LINKS:
                    raise _os_error(errno.ELOOP)
                pending += reversed(_parts_of_link(here, name))
                continue
            real.append(name)
            if pending:
                here = _replace(here, root.step(here, name))
    finally:
        os.close(here)
    return tuple(real)


def find(here: int, name: str) -> tuple[str, os.stat_result]:
    """The entry of the directory `here` that the canonical `name` stands for.

    The exact name first; else the one entry whose NFC form it is, because disks keep the form in
    which a name was written and addresses are NFC.
    """
    try:
        return name, os.stat(name.encode(), dir_fd=here, follow_symlinks=False)
    except FileNotFoundError:
        if name.isascii():
            raise
    readable = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
    try:
        with os.scandir(readable) as entries:
            twins = [e.name for e in entries if not e.name.isascii() and unicodedata.normalize("NFC", e.name) == name]
    finally:
        os.close(readable)
    if len(twins) > 1:
        raise _os_error(errno.EEXIST)
    if not twins:
        raise _os_error(errno.ENOENT)
    return twins[0], os.stat(twins[0].encode(), dir_fd=here, follow_symlinks=False)


def _parts_of_link(here: int, name: str) -> list[str]:
    target = os.fsdecode(os.readlink(name.encode(), dir_fd=here))
    if target.startswith("/"):
        raise _os_error(errno.EXDEV)
    try:
        target.encode()
    except UnicodeEncodeError:  # bytes that are no UTF-8 have no address here
        raise _os_error(errno.ENOENT) from None
    return [part for part in target.split("/") if part not in ("", ".")]


def _replace(old: int, new: int) -> int:
    os.close(old)
    return new


def _os_error(code: int) -> OSError:
    return OSError(code, os.strerror(code))
