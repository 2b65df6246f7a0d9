"""What comes in floods is counted: records of callers whom nobody knows, of what is refused for its number, and of
what is no message. Otherwise whoever can reach the server could fill the log, and wash away what it says of others.

Of each kind the first few of a minute have records of their own. The rest of the minute is one record, a summary:

    {"time":FIRST,"id":…,"who":"unknown","op":"http","outcome":"unauthenticated","count":31153,"first":FIRST,"last":LAST,
     "summary":7}

It goes into the chain when the minute is over. Until then it stands in `<chain>.counts`, which is written anew before
any answer leaves that it counts: so a kill loses none. `summary` numbers the minutes; what the chain has of a number
is what the file said last.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import NamedTuple

from octavo.core.clock import iso

WINDOW = 60.0  # seconds that one summary is about
OWN = 20  # records of its own that one kind has in a window
OWN_OF_ALL = 200  # and all kinds together
KINDS = 64  # that are told apart in a window; the rest is counted as one
OTHER = "other"


class Kind(NamedTuple):
    who: str
    op: str
    outcome: str


class _Count:
    __slots__ = ("first", "last", "number")

    def __init__(self, now: float) -> None:
        self.number, self.first, self.last = 0, now, now


class Summaries:
    def __init__(self, name: str) -> None:
        """`name` begins the ids of what is made here."""
        self._name = name
        self._number = 1
        self.until = 0.0  # when the window ends; 0: none has begun
        self._own: Counter[Kind] = Counter()
        self._counts: dict[Kind, _Count] = {}
        self.fresh = False  # something was counted that is not stored yet

    def counts(self, kind: Kind, now: float) -> bool:
        """Whether it was counted; else it has a record of its own."""
        if not self.until:
            self.until = now + WINDOW
        if self._own[kind] < OWN and self._own.total() < OWN_OF_ALL:
            self._own[kind] += 1
            return False
        if kind not in self._counts and len(self._counts) >= KINDS:
            kind = Kind(OTHER, OTHER, OTHER)
        count = self._counts.setdefault(kind, _Count(now))
        count.number, count.last = count.number + 1, now
        self.fresh = True
        return True

    def over(self, now: float) -> bool:
        return bool(self.until) and not self.until - WINDOW <= now < self.until

    def records(self) -> list[bytes]:
        return [self._record(place, kind, count) for place, (kind, count) in enumerate(self._counts.items(), start=1)]

    def begin_anew(self) -> None:
        """What was counted so far is in the chain."""
        self._number += bool(self._counts)
        self.until, self.fresh = 0.0, False
        self._own.clear()
        self._counts.clear()

    def _record(self, place: int, kind: Kind, count: _Count) -> bytes:
        first = iso(count.first)
        said = {"time": first, "id": f"{self._name}-s{self._number}.{place}", **kind._asdict()}
        counted = {"count": count.number, "first": first, "last": iso(count.last), "summary": self._number}
        return json.dumps({**said, **counted}, separators=(",", ":")).encode()
