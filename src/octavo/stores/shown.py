"""Who was shown what may not be believed, `untrusted/` of the store: for every server on it, and after a restart."""

from __future__ import annotations

import hashlib
from typing import Final

from octavo.core.clock import Clock, SystemClock
from octavo.core.ports.stores import Opens

_SHOWN: Final = "untrusted/"


class StoredShown:
    def __init__(self, opens: Opens, *, clock: Clock | None = None) -> None:
        self._opens, self._wall = opens, (clock or SystemClock()).wall

    async def note(self, who: str, seconds: float) -> None:
        end = repr(self._wall() + seconds).encode()
        await (await self._opens()).keys.set(_place(who), end, expires=seconds)

    async def left(self, who: str) -> float:
        value = await (await self._opens()).keys.get(_place(who))
        return 0.0 if value is None else max(0.0, float(value) - self._wall())


def _place(who: str) -> str:
    """By a digest: names may be longer than keys."""
    return _SHOWN + hashlib.blake2b(who.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
