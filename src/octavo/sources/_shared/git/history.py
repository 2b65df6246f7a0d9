"""What a file was before: the commits that changed it, newest first, as far back as there is time to look."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from octavo.core.errors import SourceUnavailable
from octavo.sources._shared.git.objects import Commit, Id, Objects
from octavo.sources._shared.git.refs import Names
from octavo.sources._shared.git.trees import Trees

MAX_COMMITS: Final = 20_000
MAX_SECONDS: Final = 2.0
MAX_PARENTS: Final = 64  # of one commit: more than any merge has
_RENAMED_AMONG: Final = 2_000  # files that changed in one commit, of which one may be the file under its old name


class PastContent(NamedTuple):
    """A content that the file had, where it stood then, and the commit that gave it."""

    names: Names
    id: Id
    commit: Id
    time: float


class HistoryWalk(Struct):
    """Follows one file into the past: at a merge the side that the file came from, if it is only one; at the commit
    that made the file, a file of the same content that went away in the same commit. For one thread, once."""

    objects: Objects
    trees: Trees
    limit: int
    stop: Callable[[], bool]
    states: list[PastContent] = field(default_factory=list[PastContent])
    _waiting: list[tuple[float, Id, Names]] = field(default_factory=list[tuple[float, Id, Names]])
    _seen: set[tuple[Id, Names]] = field(default_factory=set[tuple[Id, Names]])
    _commits: dict[Id, Commit] = field(default_factory=dict[Id, Commit])

    def past(self, tip: Id, names: Names) -> Sequence[PastContent]:
        """Also the content of now. Ends early after MAX_COMMITS commits, `limit` states, or when `stop` says so."""
        self._wait(tip, names)
        for _ in range(MAX_COMMITS):
            if not self._waiting or len(self.states) >= self.limit or self.stop():
                break
            _, commit, then = heapq.heappop(self._waiting)
            self._look(commit, then)
        return self.states

    def _look(self, id: Id, names: Names) -> None:
        commit = self._commit(id)
        if commit is None:
            return
        here = self._file(commit, names)
        near = [(parent, self._commit(parent)) for parent in commit.parents[:MAX_PARENTS]]
        parents = [(parent, self._file(known, names)) for parent, known in near if known is not None]
        same = next((parent for parent, file in parents if file == here), None)
        if same is not None:
            self._wait(same, names)
            return
        if here is not None:
            self.states.append(PastContent(names, here, id, commit.time))
        held = [parent for parent, file in parents if file is not None]
        if held or here is None or not parents:
            for parent in held:
                self._wait(parent, names)
            return
        before = self._renamed(commit, parents[0][0], names, here)
        self._wait(parents[0][0], before or names)

    def _renamed(self, commit: Commit, parent: Id, names: Names, here: Id) -> Names | None:
        was = self._commit(parent)
        if was is None:
            return None
        old, new = self.trees.top(self.objects, was), self.trees.top(self.objects, commit)
        for number, one in enumerate(self.trees.differences(self.objects, old, new)):
            if number == _RENAMED_AMONG:
                return None
            if one.was == here and one.now is None:
                return one.names
        return None

    def _wait(self, id: Id, names: Names) -> None:
        commit = self._commit(id)
        if commit is not None and (id, names) not in self._seen:
            self._seen.add((id, names))
            heapq.heappush(self._waiting, (-commit.time, id, names))

    def _commit(self, id: Id) -> Commit | None:
        """None for one that is not there: a shallow clone ends somewhere."""
        if id not in self._commits:
            try:
                self._commits[id] = self.objects.commit(id)
            except SourceUnavailable:
                return None
        return self._commits[id]

    def _file(self, commit: Commit, names: Names) -> Id | None:
        found = self.trees.find(self.objects, self.trees.top(self.objects, commit), names)
        return None if found is None or found.folder else found.id
