"""A client's file: read if it is the user's own and no link, and replaced in one step.

Links are left: what is behind one may be kept by another program, or stand outside of the project that brought it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from octavo.cli.client_files import Left
from octavo.core.sizes import MIB

LARGEST: Final = 64 * MIB
FRESH: Final = ".octavo-new"
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)


class ClientFile(NamedTuple):
    base: Path  # the user's home or the project: above it links are nobody's business
    file: Path
    shared: bool  # a file of a project, that others read too

    @property
    def fresh(self) -> Path:
        return self.file.with_name(f".{self.file.name}{FRESH}")


def content(place: ClientFile) -> bytes | None:
    """The bytes of the file, None where there is none. Raises `Left`."""
    _look_at_folders(place)
    try:
        status = place.file.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        raise Left("linked", file=place.file, target=os.readlink(place.file))
    if not stat.S_ISREG(status.st_mode):
        raise Left("no_file", file=place.file)
    if not _own(status):
        raise Left("foreign", file=place.file)
    if status.st_nlink > 1:
        raise Left("two_names", file=place.file)
    if not status.st_mode & stat.S_IWUSR:
        raise Left("read_only", file=place.file)
    if status.st_size > LARGEST:
        raise Left("too_large", file=place.file)
    with os.fdopen(os.open(place.file, os.O_RDONLY | _NO_LINK), "rb") as opened:
        return opened.read()


def replace(place: ClientFile, before: bytes | None, after: bytes | None) -> list[Path]:
    """Puts `after` in the place of `before`, the whole of it or nothing; the folders that were made for it.

    Raises `Left` if the file is not, or no longer, `before`."""
    made = list(_make_folders(place))
    try:
        if after is None:
            if content(place) != before:
                raise Left("changed", file=place.file)
            place.file.unlink(missing_ok=True)
        else:
            _write(place, before, after)
    except BaseException:
        remove_empty(made)
        raise
    return made


def remove_empty(folders: list[Path]) -> None:
    """Folders that were made for the file, where nobody else has put anything into them."""
    for folder in reversed(folders):
        try:
            folder.rmdir()
        except OSError:
            return


def _write(place: ClientFile, before: bytes | None, after: bytes) -> None:
    try:
        place.fresh.unlink(missing_ok=True)  # of an installation that was killed
    except OSError:  # a folder, or whatever else cannot be
        raise Left("in_the_way", file=place.fresh) from None
    mode = 0o666 if place.shared else 0o600
    descriptor = os.open(place.fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, mode)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            if before is not None:
                os.chmod(place.fresh, stat.S_IMODE(place.file.lstat().st_mode))
            opened.write(after)
            opened.flush()
            os.fsync(opened.fileno())
        if content(place) != before:
            raise Left("changed", file=place.file)
        os.replace(place.fresh, place.file)
    finally:
        place.fresh.unlink(missing_ok=True)


def _look_at_folders(place: ClientFile) -> None:
    if not place.base.is_dir():
        raise Left("no_base", folder=place.base)
    last = place.base
    for folder in _folders(place):
        try:
            status = folder.lstat()
        except FileNotFoundError:
            break
        if stat.S_ISLNK(status.st_mode):
            raise Left("linked", file=folder, target=os.readlink(folder))
        if not stat.S_ISDIR(status.st_mode):
            raise Left("no_folder", folder=folder)
        last = folder
    if not (os.access(last, os.W_OK | os.X_OK) and last.stat().st_mode & 0o222):
        raise Left("read_only_folder", folder=last)


def _make_folders(place: ClientFile) -> Iterator[Path]:
    for folder in _folders(place):
        if not folder.is_dir():
            folder.mkdir(mode=0o777 if place.shared else 0o700)
            yield folder


def _folders(place: ClientFile) -> list[Path]:
    """Between base and file, from above."""
    between = place.file.relative_to(place.base).parts[:-1]
    return [place.base.joinpath(*between[: depth + 1]) for depth in range(len(between))]


def _own(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
