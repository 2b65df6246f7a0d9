"""The commits that a branch has gone through. What is not among them was never served by it, whatever names it."""

from __future__ import annotations

import heapq
import re
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Final

from octavo.core.errors import SourceUnavailable
from octavo.sources._shared.git.history import MAX_COMMITS, MAX_PARENTS
from octavo.sources._shared.git.objects import Commit, Id, Objects

ID: Final = re.compile(r"[0-9a-f]{7,40}\Z")
_A_DAY: Final = timedelta(days=1).total_seconds()
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")


def end_of_day(text: str) -> float | None:
    """When a day such as 2026-03-01 is over, in UTC. None for what is no day."""
    try:
        day = date.fromisoformat(text) if _DAY.match(text) else None
        return None if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + _A_DAY
    except (ValueError, OverflowError):
        return None


class Ancestry:
    """Of one tip at a time, looked at as far as somebody has asked, and never further than MAX_COMMITS commits. For
    several threads, each with its objects; `stop` ends a look, and the next one goes on from there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin(b"")

    def holds(self, objects: Objects, tip: Id, commit: Id, stop: Callable[[], bool]) -> bool:
        with self._lock:
            self._of(objects, tip)
            while commit not in self._seen and self._further(objects) and not stop():
                pass
            return commit in self._seen

    def beginning(self, objects: Objects, tip: Id, text: str, stop: Callable[[], bool]) -> Id | None:
        """The only one whose id begins so. None as long as there may be another."""
        with self._lock:
            self._of(objects, tip)
            while self._further(objects):
                if stop():
                    return None
            found = [id for id in self._seen if id.hex().startswith(text)]
            return found[0] if len(found) == 1 else None

    def newest(self, objects: Objects, tip: Id, until: float, stop: Callable[[], bool]) -> Id | None:
        """Where the branch was at that time: of a merge, what it was merged into came before."""
        id = tip
        for _ in range(MAX_COMMITS):
            commit = _read(objects, id)
            if commit is None or stop():
                return None
            if commit.time < until:
                return id
            if not commit.parents:
                return None
            id = commit.parents[0]
        return None

    def _begin(self, tip: Id) -> None:
        self._tip = tip
        self._seen: set[Id] = set()  # with those that wait
        self._waiting: list[tuple[float, Id, Commit]] = []
        self._looked = 0

    def _of(self, objects: Objects, tip: Id) -> None:
        if self._tip != tip:
            self._begin(tip)
            self._wait(objects, tip)

    def _further(self, objects: Objects) -> bool:
        """Looks at one more; False when there is none."""
        if not self._waiting or self._looked >= MAX_COMMITS:
            return False
        self._looked += 1
        for parent in heapq.heappop(self._waiting)[2].parents[:MAX_PARENTS]:
            self._wait(objects, parent)
        return True

    def _wait(self, objects: Objects, id: Id) -> None:
        if id in self._seen:
            return
        commit = _read(objects, id)
        if commit is not None:
            self._seen.add(id)
            heapq.heappush(self._waiting, (-commit.time, id, commit))


def committed(objects: Objects, id: Id) -> Id | None:
    """The commit that a tag stands for; None where it stands for none, or one that is not there."""
    try:
        return objects.committed(id)
    except SourceUnavailable:
        return None


def _read(objects: Objects, id: Id) -> Commit | None:
    """None for one that is not there: a shallow clone ends somewhere."""
    try:
        return objects.commit(id)
    except SourceUnavailable:
        return None
