"""The files of one root in order, from any point on, and the folders of all roots, empty ones too."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Final

from octavo.core.memo import Bounded
from octavo.sources._shared.fs.faults import ABSENT, DENIED
from octavo.sources._shared.fs.stats import identity, is_settled
from octavo.sources._shared.places import Place, Where
from octavo.sources.file.root import Child, Names, Tree, by_name


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


_LARGE: Final = 512  # children of a directory that is kept sorted
_LARGE_KEPT: Final = 4


class FileWalk:
    def __init__(self, tree: Tree, wall: Callable[[], float]) -> None:
        self._tree = tree
        self._wall = wall
        self._large: Bounded[Hashable, list[Child]] = Bounded(_LARGE_KEPT)  # by what stat says of the directory

    def files(
        self,
        start: Names,
        *,
        begin: Names,
        recursive: bool,
        stop: Callable[[], bool],
        levels: int | None = None,
        stands: Callable[[Names], bool] = bool,
    ) -> Iterator[Names]:
        """The files and links below a directory, ordered by names, from `begin` on. Nothing before it is opened.

        Of a directory that is more than `levels` deep nothing follows the first file that `stands` for it.

        One descriptor at a time, no recursion: a tree can be as deep as an address can be long.
        """
        try:
            stack = [self._frame(start, self._tree.on_disk(start), begin)]
        except OSError as error:
            if error.errno in ABSENT or error.errno in DENIED:
                return
            raise
        while stack and not stop():
            names, disk, rest = stack[-1]
            for child in rest:
                below = (*names, child.name)
                if child.kind != "directory":
                    yield below
                    if levels is not None and len(stack) > levels and stands(below):
                        del stack[levels:]
                        break
                elif recursive:
                    try:
                        stack.append(self._frame(below, (*disk, child.disk), begin))
                    except OSError as error:
                        if error.errno in ABSENT or error.errno in DENIED:
                            continue
                        raise
                    break
            else:
                stack.pop()

    def _frame(self, names: Names, disk: Names, begin: Names) -> tuple[Names, Names, Iterator[Child]]:
        fd = self._tree.open_directory(disk)
        try:
            children = self._children(fd, names)
        finally:
            os.close(fd)
        depth = len(names)
        if depth < len(begin) and names == begin[:depth]:
            children = children[bisect_left(children, begin[depth], key=by_name) :]
        return names, disk, iter(children)

    def _children(self, fd: int, names: Names) -> list[Child]:
        """Those of a large directory are kept, or each page of its listing would sort it again."""
        found = os.fstat(fd)
        key = (names, identity(found))
        known = self._large.get(key)
        if known is not None:
            return known
        children = self._tree.children(fd, names)
        if len(children) >= _LARGE and is_settled(found, self._wall()):
            self._large.keep(key, children)
        return children
