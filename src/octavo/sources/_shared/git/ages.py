"""When the files of a branch were last changed: one walk back for all of them."""

from __future__ import annotations

import heapq
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Final, TypeAlias

from octavo.core.errors import SourceUnavailable
from octavo.sources._shared.git.history import MAX_COMMITS, MAX_PARENTS
from octavo.sources._shared.git.objects import Commit, Id, ObjectCache, Objects
from octavo.sources._shared.git.refs import Names
from octavo.sources._shared.git.trees import FOLDERS, Trees, name_of

MAX_DATED: Final = 100_000  # files; of more nothing is known
SECONDS: Final = 2.0  # once for each commit that the branch comes to
_KEPT_ITEMS: Final = 200_000
_Item: TypeAlias = tuple[bytes, bytes, Id]  # mode, name and id
_ITEM: Final = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)


class Ages:
    """Of one tip at a time. Where a branch has moved on, only the commits since are looked at. A walk that is ended by
    `stop` leaves the files that it had not come to without a time, until the branch moves. For several threads."""

    def __init__(self, trees: Trees) -> None:
        self._trees = trees
        self._lock = threading.Lock()
        self._tip: Id = b""
        self._times: Mapping[Names, float] = {}
        self._before: tuple[Id, Mapping[Names, float]] = self._tip, self._times

    def known(self, commit: Id) -> Mapping[Names, float]:
        """Of this tip or the one before, if it was one."""
        with self._lock:
            return {self._before[0]: self._before[1], self._tip: self._times}.get(commit, {})

    def at(self, objects: Objects, tip: Id, stop: Callable[[], bool]) -> Mapping[Names, float]:
        """The time of the commit that gave each file its content, as `git log` tells it."""
        with self._lock:
            if self._tip != tip:
                self._before = self._tip, self._times
                walk = _AgesWalk(objects, self._trees, self._tip, self._times, stop)
                self._times = walk.times_at(tip)
                self._tip = tip
            return self._times


class _AgesWalk:
    """Each file goes back along one way, from commit to parent, as long as the parent has the same content."""

    def __init__(
        self, objects: Objects, trees: Trees, known_tip: Id, known: Mapping[Names, float], stop: Callable[[], bool]
    ) -> None:
        self._objects, self._trees, self._stop = objects, trees, stop
        self._known_tip, self._known = known_tip, known
        self._times: dict[Names, float] = {}
        self._commits: dict[Id, Commit] = {}
        self._files: dict[Id, set[Names]] = {}  # on their way, by the commit that they have come to
        self._waiting: list[tuple[float, Id]] = []
        self._folders: set[Names] = set()
        self._kept: ObjectCache[Id, frozenset[_Item]] = ObjectCache(_KEPT_ITEMS)

    def times_at(self, tip: Id) -> Mapping[Names, float]:
        files = self._trees.files(self._objects, self._top(self._objects.commit(tip)), ())
        try:
            names = {names for names, _ in islice(files, MAX_DATED + 1)}
        except SourceUnavailable:
            return {}
        if len(names) <= MAX_DATED:
            self._folders = {one[:length] for one in names for length in range(1, len(one))}
            self._go_on(tip, names)
        for _ in range(MAX_COMMITS):
            if not self._waiting or self._stop():
                break
            with suppress(SourceUnavailable):  # a damaged object, or no time: files that came to it stay without one
                self._look(heapq.heappop(self._waiting)[1])
        return self._times

    def _look(self, id: Id) -> None:
        commit, files = self._commits[id], self._files.pop(id)
        if id == self._known_tip:
            self._times.update((names, self._known[names]) for names in files if names in self._known)
            files = files - self._known.keys()
        if not commit.parents:
            self._times.update(dict.fromkeys(files, commit.time))
            return
        first, *others = (parent for parent in commit.parents[:MAX_PARENTS])
        before = self._commit(first)
        if before is None:  # a shallow clone ends here: they may be older
            return
        for names, file in self._changed(self._top(before), self._top(commit), ()):
            if names in files:
                files.discard(names)
                same = next((other for other in others if self._has(other, names, file)), None)
                if same is None:
                    self._times[names] = commit.time
                else:
                    self._go_on(same, {names})
        self._go_on(first, files)

    def _changed(self, old: Id, new: Id, above: Names) -> Iterator[tuple[Names, Id]]:
        """What has come or changed, in the folders that have files today: nothing else is looked into."""
        before, now = self._items(old) if old else frozenset[_Item](), self._items(new) if new else frozenset[_Item]()
        gone = {(mode in FOLDERS, name): id for mode, name, id in before - now}
        for mode, raw, id in now - before:
            name = name_of(raw)
            names = (*above, name or "")
            if name is None:
                continue
            if mode in FOLDERS:
                if names in self._folders:
                    yield from self._changed(gone.get((True, raw), b""), id, names)
            elif gone.get((False, raw)) != id:  # not its mode alone
                yield names, id

    def _items(self, tree: Id) -> frozenset[_Item]:
        found = self._kept.get(tree)
        if found is None:
            if self._stop():
                raise SourceUnavailable("There was no time to look further back")
            found = frozenset(_ITEM.findall(self._objects.read(tree, "tree")))
            self._kept.put(tree, found, 1 + len(found))
        return found

    def _go_on(self, id: Id, files: set[Names]) -> None:
        commit = self._commit(id)
        if commit is None or not files:
            return
        there = self._files.get(id)
        if there is None:
            self._files[id] = files
            heapq.heappush(self._waiting, (-commit.time, id))
        else:
            small, large = sorted((there, files), key=len)
            large |= small
            self._files[id] = large

    def _has(self, id: Id, names: Names, file: Id | None) -> bool:
        commit = self._commit(id)
        found = None if commit is None else self._trees.find(self._objects, self._top(commit), names)
        return found is not None and not found.folder and found.id == file

    def _top(self, commit: Commit) -> Id:
        return self._trees.top(self._objects, commit)

    def _commit(self, id: Id) -> Commit | None:
        if id not in self._commits:
            try:
                self._commits[id] = self._objects.commit(id)
            except SourceUnavailable:
                return None
        return self._commits[id]
