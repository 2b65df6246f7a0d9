"""Counts the bytes of request bodies in memory, for each caller.

One caller's have a bound, and all have one together, of which nobody may have more than is left.
"""

from __future__ import annotations

from octavo.core.errors import RateLimited
from octavo.core.sizes import MIB

OF_ONE = 64 * MIB  # bytes of one caller's
OF_ALL = 256 * MIB


class Bodies:
    def __init__(self) -> None:
        self._free = OF_ALL
        self._of: dict[str, int] = {}

    def take(self, who: str, size: int) -> None:
        """Raises RateLimited where they would weigh too much; a caller who has none yet may have one."""
        mine = self._of.get(who, 0)
        if mine and mine + size > min(OF_ONE, self._free):
            message = "Too much of what you have sent waits already: try again when some of it is answered"
            raise RateLimited(message, retry_after=1.0, limit="bodies", allowed=OF_ONE)
        self._of[who] = mine + size
        self._free -= size

    def leave(self, who: str, size: int) -> None:
        self._free += size
        if left := self._of.get(who, 0) - size:
            self._of[who] = left
        else:
            self._of.pop(who, None)
