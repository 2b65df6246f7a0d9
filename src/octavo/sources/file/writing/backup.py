"""Old versions into the journal, and out of it again."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from octavo.core.ref import Ref
from octavo.sources._shared.fs.stats import identity
from octavo.sources.file.writing.attributes import Attributes
from octavo.sources.file.writing.journal import UndoJournal
from octavo.sources.file.writing.records import Backup, ChangeRecord, Leaf, Version
from octavo.sources.file.writing.removal import drop
from octavo.sources.file.writing.staging import Draft, Print, changed, copy_all, rename_new, stray_of
from octavo.sources.file.writing.targets import Spot, content_mark, mark_of_file, read_link
from octavo.sources.file.writing.trees import Contents, TreeScan, below, plant


class Damaged(Exception):
    """What was kept is not what it was when it was kept."""


class Old(NamedTuple):
    """A regular file that stands where something is to change."""

    fd: int
    stat: os.stat_result

    @property
    def print(self) -> Print:
        return Print.of(self.stat)


def keep_file(journal: UndoJournal, number: str, old: Old, ref: Ref) -> Backup:
    journal.refuse_over(old.stat.st_size, str(ref))
    fd = journal.create(number)
    try:
        copy_all(old.fd, fd, old.stat.st_size)
        if identity(os.fstat(old.fd)) != identity(old.stat):
            raise changed()
        os.fsync(fd)
        mark = mark_of_file(fd)
    finally:
        os.close(fd)
    return Backup(Version(old.print, mark), (Leaf((), Attributes.of(old.fd)),), old.stat.st_size)


def keep_directory(journal: UndoJournal, number: str, scan: TreeScan, contents: Contents, ref: Ref) -> Backup:
    journal.refuse_over(contents.size, str(ref))
    fd = journal.create_directory(number)
    try:
        plant(fd, contents.leaves, scan.open_file, contents.prints, private=True)
        digest = _digest(fd, contents.leaves)
    finally:
        os.close(fd)
    return Backup(Version(contents.prints[0], contents.mark), contents.leaves, contents.size, digest)


def keep_link(spot: Spot, found: os.stat_result) -> Backup:
    """All of it is in the record."""
    link = read_link(spot.name, spot.here)
    leaf = Leaf((), Attributes.of_link(found), os.fsdecode(link))
    return Backup(Version(Print.of(found), _mark_of_link(link)), (leaf,), 0)


def put_back(journal: UndoJournal, record: ChangeRecord, kept: Backup, spot: Spot, instead: Print | None) -> None:
    """The kept version where it was, in place of nothing or of the file `instead`, with its attributes and time.

    Raises Damaged, and changes nothing, for one that is not what was kept."""
    _, attributes, link = kept.leaves[0]
    if link is not None:
        os.symlink(os.fsencode(link), spot.name, dir_fd=spot.here)
        attributes.apply_to_link(spot.name, spot.here)
        os.fsync(spot.here)
        return
    fd = journal.open_kept(record)
    try:
        if attributes.is_directory:
            with planted(spot, stray_of(record.id)) as made:
                plant(made, kept.leaves, below(fd), private=False)
                if kept.digest and _digest(made, kept.leaves) != kept.digest:
                    raise Damaged
            return
        if mark_of_file(fd) != kept.version.mark:
            raise Damaged
        with Draft(spot.here, stray_of(record.id)) as draft:
            copy_all(fd, draft.fd, os.fstat(fd).st_size)
            draft.seal(attributes, after=None, times=True)
            if instead is None:
                draft.appear(spot.name)
            else:
                draft.replace(spot.name, instead)
    finally:
        os.close(fd)


@contextmanager
def planted(spot: Spot, stray: bytes) -> Iterator[int]:
    """A directory to be filled out of sight; then it appears, where nothing may be. What is not filled goes."""
    os.mkdir(stray, 0o700, dir_fd=spot.here)
    try:
        fd = os.open(stray, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.here)
        try:
            yield fd
        finally:
            os.close(fd)
        spot.confirm()
        rename_new(spot.here, stray, spot.here, spot.name)
    except BaseException:
        with suppress(OSError):
            drop(spot.here, stray)
        raise
    os.fsync(spot.here)


def hidden_scan(spot: Spot, number: str, ref: Ref) -> TreeScan:
    """Of a directory that has lost its name for the moment."""
    return TreeScan(spot.tree, (*spot.disk[:-1], stray_of(number).decode()), spot.place.names, ref)


def mark_at(spot: Spot, ref: Ref) -> Version | None:
    """What stands there now; None for nothing."""
    found = spot.look()
    if found is None:
        return None
    if stat.S_ISDIR(found.st_mode):
        return Version(Print.of(found), TreeScan(spot.tree, spot.disk, spot.place.names, ref).contents().mark)
    if stat.S_ISLNK(found.st_mode):
        return Version(Print.of(found), _mark_of_link(read_link(spot.name, spot.here)))
    fd = spot.open()
    try:
        return Version(Print.of(os.fstat(fd)), mark_of_file(fd))
    finally:
        os.close(fd)


def _digest(directory: int, leaves: tuple[Leaf, ...]) -> str:
    """Of the contents of all files in a copy."""
    digest = hashlib.sha256()
    for leaf in leaves:
        if leaf.is_file:
            fd = below(directory)(leaf.path)
            try:
                digest.update(f"{'/'.join(leaf.path)}\0{content_mark(fd)}\n".encode(errors="surrogateescape"))
            finally:
                os.close(fd)
    return digest.hexdigest()


def _mark_of_link(link: bytes) -> str:
    return f"-> {os.fsdecode(link)}"
