"""Who was shown what may not be believed, `untrusted/` of the store: for every server on it, and after a restart.

Of a store that was begun in the place of one that was lost nobody can say: everybody counts as one who was shown it.
"""

from __future__ import annotations

import hashlib
from typing import Final

from octavo.core.clock import Clock, SystemClock
from octavo.core.ports.stores import LOST, Opens

_SHOWN: Final = "untrusted/"


class StoredShown:
    def __init__(self, opens: Opens, *, clock: Clock | None = None) -> None:
        self._opens, self._wall = opens, (clock or SystemClock()).wall

    async def note(self, who: str, seconds: float) -> None:
        """A server that remembers for a shorter time shortens it for nobody."""
        keys, place, end = (await self._opens()).keys, _place(who), self._wall() + seconds
        while True:
            value = await keys.get(place)
            if value is not None and float(value) >= end:
                return
            if await keys.compare_and_set(place, value, repr(end).encode(), expires=seconds):
                return

    async def left(self, who: str, seconds: float) -> float:
        keys, now = (await self._opens()).keys, self._wall()
        value, lost = await keys.get(_place(who)), await keys.get(LOST)
        known = 0.0 if value is None else float(value) - now
        return max(0.0, known, 0.0 if lost is None else float(lost) + seconds - now)


def _place(who: str) -> str:
    """By a digest: names may be longer than keys."""
    return _SHOWN + hashlib.blake2b(who.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
