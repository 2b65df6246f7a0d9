"""Looks what file sources can rely on here (confinement, inotify), before one is opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from octavo.sources._shared.fs.confine import OpenedRoot

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
