"""Makes folders that only the current user can read."""

from __future__ import annotations

import errno
import os
import sys
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


def check_private(folder: Path, *, parents: bool = True) -> None:
    """Raises OSError where `make_private` would, and where nothing could be made in the folder. Makes nothing."""
    above = folder if os.path.lexists(folder) else folder.parent
    while parents and not os.path.lexists(above):
        above = above.parent
    if not above.is_dir():
        fault = errno.ENOTDIR if os.path.lexists(above) else errno.ENOENT
    elif os.access(above, os.W_OK | os.X_OK):
        return
    elif sys.platform != "win32" and os.statvfs(above).f_flag & os.ST_RDONLY:
        fault = errno.EROFS
    else:
        fault = errno.EACCES
    raise OSError(fault, os.strerror(fault), str(above))
