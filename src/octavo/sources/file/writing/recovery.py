"""After a kill or a failure: was it done or not? The disk tells, and what lies about is cleared away."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from octavo.core.errors import OctavoError
from octavo.core.ref import Ref
from octavo.sources._shared.fs import syscalls
from octavo.sources._shared.fs.faults import ABSENT, DENIED
from octavo.sources.file.root import Names, Tree
from octavo.sources.file.writing.backup import mark_at
from octavo.sources.file.writing.journal import UndoJournal
from octavo.sources.file.writing.locks import locked
from octavo.sources.file.writing.records import UNKNOWN, ChangeRecord, Spelled, Version
from octavo.sources.file.writing.removal import drop, is_still, take_away
from octavo.sources.file.writing.staging import has_unnamed_files, print_at, rename_new, stray_of
from octavo.sources.file.writing.targets import TRIAL, Spot, read_link

log = logging.getLogger(__name__)

_STRAY: Final = re.compile(r"\.octavo-[0-9a-f]{16}\Z")


def recover(journal: UndoJournal, spot_at: Callable[[Spelled], Spot | None]) -> None:
    """Settles what was begun and not ended, by processes that are no more: whoever is at work holds the lock."""
    for record, status in journal.operations():
        if status not in ("pending", "undoing"):
            continue
        try:
            with ExitStack() as stack:
                spots = [
                    stack.enter_context(spot)
                    for spelled in (record.place, record.source)
                    if spelled is not None and (spot := spot_at(spelled)) is not None
                ]
                stack.enter_context(locked(*(spot.here for spot in spots)))
                if (record, status) in journal.operations():  # it may have ended while we waited for the lock
                    undoing = status == "undoing"
                    if not settle(journal, record, spots, undoing=undoing, in_doubt=record.old is not None):
                        for spot in spots[:1]:
                            spot.remove_made(record.made)
        except (OSError, OctavoError) as error:
            log.warning("An interrupted operation could not be looked at: %s", type(error).__name__)


def settle(
    journal: UndoJournal, record: ChangeRecord, spots: list[Spot], *, undoing: bool = False, in_doubt: bool = False
) -> bool:
    """Whether it was done. `spots` are of the place and the source, as far as they are there, and locked.

    `in_doubt`, with neither the old version nor the new one there, it counts as done: the old one stays in the
    journal. An undo that was interrupted can be asked for again: it goes on from there.
    """
    for spot in spots:
        _sweep(record, spot, undoing=undoing)
    done = undoing or _is_done(record, spots, in_doubt=in_doubt)
    journal.note(record, "done" if done else "void")
    return done


def sweep(tree: Tree) -> None:
    """Where drafts need names, one can be left behind before its record is written: looks everywhere for them."""
    if has_unnamed_files(tree.root.fd):
        return
    pending: list[Names] = [()]
    while pending:
        disk = pending.pop()
        try:
            fd = tree.open_directory(disk)
        except OSError as error:
            if error.errno in ABSENT or error.errno in DENIED:
                continue
            raise
        try:
            with os.scandir(fd) as entries:
                names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            pending += [(*disk, name) for name, is_directory in names if is_directory and not _STRAY.match(name)]
            strays = [name for name, _ in names if _STRAY.match(name)]
            if strays:
                with locked(fd):
                    for name in strays:
                        if print_at(fd, name.encode()) is not None:
                            drop(fd, name.encode())
        finally:
            os.close(fd)


def _sweep(record: ChangeRecord, spot: Spot, *, undoing: bool) -> None:
    stray = stray_of(record.id)
    try:
        found = os.stat(stray, dir_fd=spot.here, follow_symlinks=False)
    except FileNotFoundError:
        return
    there = spot.look()
    if undoing or _is_ours(record, spot, found):
        drop(spot.here, stray)
    elif there is None:  # somebody else's, which was hidden by mistake
        rename_new(spot.here, stray, spot.here, spot.name)
    elif record.new is not None and is_still(there, record.new.print):  # replaced by mistake
        syscalls.renameat2(spot.here, stray, spot.here, spot.name, syscalls.RENAME_EXCHANGE)
        drop(spot.here, stray)
    else:
        log.warning("A hidden file of an interrupted operation is not known and stays")
    os.fsync(spot.here)


def _is_ours(record: ChangeRecord, spot: Spot, found: os.stat_result) -> bool:
    """The new version, the old one, or a copy of a directory on its way."""
    known = (record.new and record.new.print, record.old and record.old.version.print, record.moved)
    half_made = stat.S_ISDIR(found.st_mode) and record.op != "delete" and spot.disk == record.place.disk
    trial = stat.S_ISLNK(found.st_mode) and read_link(stray_of(record.id), spot.here) == TRIAL
    return half_made or trial or any(one is not None and is_still(found, one) for one in known)


def _is_new(new: Version, spot: Spot, there: os.stat_result) -> bool:
    if new.print != UNKNOWN:
        return is_still(there, new.print)
    if not new.mark:  # just a directory
        return stat.S_ISDIR(there.st_mode)
    try:
        now = mark_at(spot, Ref("file", spot.place.names))
    except OctavoError:  # there is something in it that was not copied
        return False
    return now is not None and now.mark == new.mark


def _is_done(record: ChangeRecord, spots: list[Spot], *, in_doubt: bool) -> bool:
    spot = next((spot for spot in spots[:1] if spot.disk == record.place.disk), None)
    there = spot.look() if spot is not None else None
    if there is not None and record.old is not None and is_still(there, record.old.version.print):
        return False
    if record.new is None:
        return True
    if spot is None or there is None or not _is_new(record.new, spot, there):
        return in_doubt
    source = spots[-1] if record.source is not None and len(spots) > 1 else None
    if source is not None and record.moved is not None:
        left = source.look()
        if left is not None and is_still(left, record.moved):
            take_away(source, stray_of(record.id), record.moved)  # the copy is complete, and the original had to go
    return True
