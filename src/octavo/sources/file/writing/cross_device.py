"""To another file system: the copy is complete and on disk before the original goes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from octavo.core.ref import Ref
from octavo.sources._shared.fs.stats import identity
from octavo.sources.file.writing.attributes import Attributes
from octavo.sources.file.writing.backup import Old, hidden_scan, planted
from octavo.sources.file.writing.removal import take_away
from octavo.sources.file.writing.staging import Draft, Print, changed, copy_all, print_at, stray_of
from octavo.sources.file.writing.targets import Spot, refuse_unmakable
from octavo.sources.file.writing.trees import Contents, TreeScan, plant, refuse_bytes


def carry(source: Spot, target: Spot, number: str, ref: Ref) -> None:
    """A file or a directory to where nothing stands. When the original changes meanwhile, the copy goes."""
    old, is_same = _copy(source, target, number, ref)
    made = print_at(target.here, target.name)
    try:
        take_away(source, stray_of(number), old, is_same)
    except OSError:
        if made is not None:
            take_away(target, stray_of(number), made)
        raise


def copy_directory(scan: TreeScan, what: Contents, target: Spot, number: str, ref: Ref) -> None:
    refuse_bytes(ref, what.size)
    if what.has_links:
        refuse_unmakable(ref, target, stray_of(number))
    with planted(target, stray_of(number)) as made:
        plant(made, what.leaves, scan.open_file, what.prints, private=False)


def fill_from(draft: Draft, old: Old) -> None:
    copy_all(old.fd, draft.fd, old.stat.st_size)
    if identity(os.fstat(old.fd)) != identity(old.stat):
        raise changed()


def _copy(source: Spot, target: Spot, number: str, ref: Ref) -> tuple[Print, Callable[[], bool]]:
    found = source.look()
    if found is None:
        raise changed()
    if stat.S_ISDIR(found.st_mode):
        scan = TreeScan(source.tree, source.disk, source.place.names, ref, to=target)
        what = scan.contents()
        copy_directory(scan, what, target, number, ref)
        return what.prints[0], lambda: hidden_scan(source, number, ref).contents().mark == what.mark
    fd = source.open()
    try:
        file = Old(fd, os.fstat(fd))
        with Draft(target.here, stray_of(number)) as draft:
            fill_from(draft, file)
            draft.seal(Attributes.of(fd), after=None, times=True)
            target.confirm()
            draft.appear(target.name)
        return file.print, lambda: True
    finally:
        os.close(fd)
