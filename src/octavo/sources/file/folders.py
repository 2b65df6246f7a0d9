"""Folders of all roots, empty ones too: by descriptors, and without what is hidden, as files are listed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import islice

from octavo.sources._shared.fs.faults import ABSENT, DENIED
from octavo.sources._shared.places import Place, Where
from octavo.sources.file.root import Names, Tree


def folders(
    trees: Sequence[Tree], where: Where, *, depth: int | None, limit: int, stop: Callable[[], bool]
) -> list[Place]:
    """The scope, if it is one, and those as many levels below it, ordered by names and root."""
    streams = [_of_root(k, trees[k], where.names, depth, stop) for k in where.roots]
    return [*islice(merge(*streams), limit)]


def _of_root(k: int, tree: Tree, start: Names, depth: int | None, stop: Callable[[], bool]) -> Iterator[Place]:
    if tree.rules.hides_on_the_way(start, folder=True):
        return
    try:
        on_disk = tree.on_disk(start)
        if on_disk:
            os.close(tree.open_above(on_disk))  # nothing above it is excluded
        pending = [(start, on_disk)]
    except OSError as error:
        if error.errno in ABSENT or error.errno in DENIED:
            return
        raise
    while pending and not stop():
        names, disk = pending.pop()
        below = _opened(tree, names, disk, inside=depth is None or len(names) - len(start) < depth)
        if below is not None:
            yield Place(names, k)
            pending += reversed(below)


def _opened(tree: Tree, names: Names, disk: Names, *, inside: bool) -> list[tuple[Names, Names]] | None:
    """What is in it, if that is asked for; None when it cannot be served. One that may not be opened is there."""
    try:
        fd = tree.open_directory(disk)
    except OSError as error:
        if error.errno in ABSENT:
            return None
        if error.errno in DENIED:
            return []
        raise
    try:
        children = tree.children(fd, names) if inside else []
    finally:
        os.close(fd)
    return [((*names, one.name), (*disk, one.disk)) for one in children if one.kind == "directory"]
