"""Folders for this user alone."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

_OWNER: Final = 0o700


def make_private(folder: Path, *, parents: bool = True) -> None:
    """Makes a folder, and with `parents` those above it that are missing, with 0700 whatever the umask is. One that is
    there stays as it is. Raises OSError where it cannot be, or something else is there."""
    missing: list[Path] = []
    above = folder
    while not above.exists() and (parents or not missing):
        missing.append(above)
        above = above.parent
    for one in reversed(missing):
        try:
            one.mkdir(_OWNER)
            one.chmod(_OWNER)
        except FileExistsError:  # another process was faster, or it is no folder
            if not one.is_dir():
                raise
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
