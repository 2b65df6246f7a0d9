"""What waits for people: in the store, each by its own name, and changed in one transaction at a time.

That is what makes an answer count once, however many processes ask for it. A value that cannot be read counts for
nothing, is left as it is, and is told in the log.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from octavo.core.errors import RateLimited
from octavo.core.fair import FairQueue
from octavo.core.ports.stores import KeyValue, Opens

logger = logging.getLogger(__name__)

MOST_OF_ONE: Final = 32  # that one principal may have at a time
MOST: Final = 1000
LEFT: Final = 86_400.0  # seconds for which what has ended is still there, so that its end can be told


class Waits(Protocol):
    """What waits: a struct with these."""

    @property
    def id(self) -> str: ...
    @property
    def asked(self) -> float:
        """Seconds since 1970, like its end."""
        ...

    @property
    def expires(self) -> float: ...


One = TypeVar("One", bound=Waits)


class Turn(Generic[One]):
    """All that waits, the oldest first, while nobody else can change it."""

    def __init__(self, keys: KeyValue, prefix: str, waiting: list[One]) -> None:
        self._keys, self._prefix = keys, prefix
        self.waiting: Sequence[One] = waiting

    async def put(self, one: One, now: float) -> None:
        await self._keys.set(self._prefix + one.id, msgspec.json.encode(one), expires=one.expires - now + LEFT)

    async def drop(self, one: One) -> None:
        await self._keys.delete(self._prefix + one.id)


class Waiting(Generic[One]):
    def __init__(self, opens: Opens, what: str, kind: type[One]) -> None:
        """`what` is the plural: what the keys begin with, and the word for it in errors."""
        self._opens, self._what, self._prefix = opens, what, f"{what}/"
        self._decoder = msgspec.json.Decoder(kind)
        self._queue = FairQueue(1, what)  # who asks for much waits behind his own

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[Turn[One]]:
        """What is done in it is stored when it ends, or not at all. Raises SourceUnavailable when the store cannot be
        had in time."""
        async with self._queue.turn():
            store = await self._opens()
            async with store.transaction() as within:
                yield Turn(within.keys, self._prefix, await self._read(within.keys))

    async def all(self) -> list[One]:
        return await self._read((await self._opens()).keys)

    def check_room(self, mine: Sequence[One], others: Sequence[One], now: float) -> None:
        """Raises RateLimited where somebody has too much waiting, or all together have."""
        if len(mine) >= MOST_OF_ONE or len(others) >= MOST:
            soonest = min(one.expires for one in mine or others)
            raise RateLimited(
                f"Too many {self._what} wait for people already; wait until some of them are answered",
                retry_after=max(1.0, soonest - now),
                limit=self._what,
            )

    async def _read(self, keys: KeyValue) -> list[One]:
        found: list[One] = []
        for key, value in await keys.scan(self._prefix, limit=2 * MOST):
            try:
                found.append(self._decoder.decode(value))
            except msgspec.MsgspecError:
                logger.warning("What the store has at %s cannot be read, so it counts for nothing", key)
        return sorted(found, key=lambda one: (one.asked, one.id))


def live(one: Waits, now: float) -> bool:
    """A clock that was set back does not make it last longer."""
    return one.asked - 60 <= now < one.expires
