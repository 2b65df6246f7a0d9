"""Away with something, unless it is not what we think it is.

First it loses its name, all at once; then one can look at what that was, in peace; then it goes, or gets
its name back.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable

from octavo.core.errors import OctavoError
from octavo.sources.file.writing.staging import Print, changed, rename_new
from octavo.sources.file.writing.targets import Spot


def take_away(spot: Spot, stray: bytes, old: Print, is_same: Callable[[], bool] = lambda: True) -> None:
    """ESTALE when `old` is not what stands there, or `is_same` says so of what has just been hidden."""
    try:
        rename_new(spot.here, spot.name, spot.here, stray)
    except FileNotFoundError:
        raise changed() from None
    try:
        expected = is_still(os.stat(stray, dir_fd=spot.here, follow_symlinks=False), old) and is_same()
    except (OSError, OctavoError):
        expected = False
    if not expected:
        rename_new(spot.here, stray, spot.here, spot.name)
        raise changed()
    drop(spot.here, stray)
    os.fsync(spot.here)


def drop(here: int, name: bytes) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
        shutil.rmtree(os.fsdecode(name), dir_fd=here)
    else:
        os.unlink(name, dir_fd=here)


def is_still(found: os.stat_result, old: Print) -> bool:
    """The size and time of a directory are those of its list of names, not of what is in it."""
    if stat.S_ISDIR(found.st_mode):
        return (found.st_dev, found.st_ino) == (old.dev, old.ino)
    return Print.of(found) == old
