"""What belongs to a file beside its content, and survives when the content is replaced."""

from __future__ import annotations

import base64
import os
import stat
from typing import Any, Final, NamedTuple

# The kernel takes capabilities away from a program that is written to; so do we.
_NOT_KEPT: Final = frozenset(("security.capability", "security.ima", "security.evm"))

_ACCESS_LIST: Final = "system.posix_acl_access"


class Attributes(NamedTuple):
    mode: int  # with the kind, as stat tells it
    uid: int
    gid: int
    mtime_ns: int
    extended: tuple[tuple[str, bytes], ...]  # access control lists among them

    @classmethod
    def of(cls, fd: int) -> Attributes:
        found = os.fstat(fd)
        return cls(found.st_mode, found.st_uid, found.st_gid, found.st_mtime_ns, _extended(fd))

    @classmethod
    def of_link(cls, found: os.stat_result) -> Attributes:
        return cls(found.st_mode, found.st_uid, found.st_gid, found.st_mtime_ns, ())

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def of_new_content(self) -> Attributes:
        """Without the right to run as somebody else, which was given to the old content."""
        return self._replace(mode=self.mode & ~(stat.S_ISUID | stat.S_ISGID))

    def apply(self, fd: int, *, times: bool) -> None:
        """As far as we are permitted to. Rights that went with another owner are not given to the new one."""
        mode = stat.S_IMODE(self.mode)
        now = os.fstat(fd)
        if (now.st_uid, now.st_gid) != (self.uid, self.gid):
            try:
                os.fchown(fd, self.uid, self.gid)
            except OSError:
                mode &= ~(stat.S_ISUID | stat.S_ISGID)
        os.fchmod(fd, mode)
        for name, value in self.extended:
            try:
                os.setxattr(fd, name, value)
            except OSError:  # not permitted, or unknown to this file system
                continue
        if _ACCESS_LIST not in dict(self.extended):
            try:
                os.removexattr(fd, _ACCESS_LIST)  # inherited from the directory
            except (OSError, AttributeError):
                pass
        if times:
            os.utime(fd, ns=(self.mtime_ns, self.mtime_ns))

    def apply_to_link(self, name: str | bytes, here: int) -> None:
        """As far as we are permitted to, and as links have such things."""
        try:
            os.chown(name, self.uid, self.gid, dir_fd=here, follow_symlinks=False)
        except OSError:
            pass
        try:
            os.utime(name, ns=(self.mtime_ns, self.mtime_ns), dir_fd=here, follow_symlinks=False)
        except (OSError, NotImplementedError):
            pass

    def as_json(self) -> list[Any]:
        extended = {name: base64.b64encode(value).decode() for name, value in self.extended}
        return [self.mode, self.uid, self.gid, self.mtime_ns, extended]

    @classmethod
    def from_json(cls, value: list[Any]) -> Attributes:
        mode, uid, gid, mtime_ns, extended = value
        return cls(mode, uid, gid, mtime_ns, tuple((k, base64.b64decode(v)) for k, v in extended.items()))


def _extended(fd: int) -> tuple[tuple[str, bytes], ...]:
    if not hasattr(os, "listxattr"):
        return ()
    found: list[tuple[str, bytes]] = []
    try:
        for name in os.listxattr(fd):
            if name not in _NOT_KEPT:
                found.append((name, os.getxattr(fd, name)))
    except OSError:  # a file system without them
        pass
    return tuple(found)
