"""Which processes on one state are alive: each has a name, and what was begun in the name of a dead one is left over.

Where the state is a folder of this machine, a name is a lock that the kernel takes from a process that dies, so that
it is known at once. Where it is a database, it is a lease: whoever did not renew it for a while counts as dead.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from octavo.core.errors import OctavoError, SourceUnavailable
from octavo.core.fair import in_thread
from octavo.core.ports.stores import Held, Opens
from octavo.stores.state import NOT_THROUGH_LINKS

if sys.platform != "win32":
    import fcntl

logger = logging.getLogger(__name__)

TTL: Final = 30.0  # seconds after which a server that does not renew its lease counts as dead
_LOCKS: Final = "process-"
_LEASES: Final = "processes/"


class Presence(Protocol):
    name: str

    async def begin(self) -> None:
        """From now on this process lives, for the others. Does nothing when it does already. Raises
        SourceUnavailable."""
        ...

    async def lives(self, name: str) -> bool: ...

    async def close(self) -> None: ...


def fresh_name() -> str:
    return f"{os.getpid()}-{os.urandom(6).hex()}"


class InFolder:
    """Without a folder there are no others."""

    def __init__(self, state: Path | None) -> None:
        self.name, self._state = fresh_name(), state
        self._lock = -1

    async def begin(self) -> None:
        if self._lock < 0:
            await in_thread(self._begin)

    async def lives(self, name: str) -> bool:
        return await in_thread(self._lives, name)

    async def close(self) -> None:
        if self._lock >= 0:
            self._file(self.name).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = -1

    def _begin(self) -> None:
        if self._state is None or sys.platform == "win32" or self._lock >= 0:
            return
        try:
            self._take(self._file(self.name))
            for lock in self._state.glob(f"{_LOCKS}*.lock"):
                name = lock.stem.removeprefix(_LOCKS)
                if name != self.name and not self._lives(name):
                    lock.unlink(missing_ok=True)
        except OSError as error:
            raise SourceUnavailable(f"The state folder cannot be used: {error.strerror}") from None

    def _take(self, path: Path) -> None:
        while True:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | NOT_THROUGH_LINKS, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):  # who looked for the dead in between may have taken it away
                if path.stat().st_ino == os.fstat(lock).st_ino:
                    self._lock = lock
                    return
            os.close(lock)

    def _lives(self, name: str) -> bool:
        if sys.platform == "win32" or self._state is None:
            return name == self.name
        try:
            held = os.open(self._file(name), os.O_RDWR | os.O_CLOEXEC | NOT_THROUGH_LINKS)
        except OSError:
            return False
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(held)
        return False

    def _file(self, name: str) -> Path:
        return (self._state or Path()) / f"{_LOCKS}{name}.lock"


class InStore:
    """By a lease of `ttl` seconds, renewed three times as often."""

    def __init__(self, opens: Opens, *, ttl: float = TTL) -> None:
        self.name = fresh_name()
        self._opens, self._ttl = opens, ttl
        self._held: Held | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        if self._held is None:
            self._held = await (await self._opens()).leases.acquire(_LEASES + self.name, ttl=self._ttl)
        if self._renewing is None:
            self._renewing = asyncio.get_running_loop().create_task(self._renew())

    async def lives(self, name: str) -> bool:
        leases = (await self._opens()).leases
        free = await leases.acquire(_LEASES + name, ttl=1.0)
        if free is None:
            return True
        await leases.release(free)
        return False

    async def close(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait({self._renewing})
            self._renewing = None
        if self._held is not None:
            with suppress(OctavoError):  # it ends by itself
                await (await self._opens()).leases.release(self._held)
            self._held = None

    async def _renew(self) -> None:
        """One that was lost, in a process that stood still for long, is taken again: what was taken over meanwhile
        belongs to others by then."""
        while True:
            await asyncio.sleep(self._ttl / 3)
            try:
                leases = (await self._opens()).leases
                if self._held is None or not await leases.renew(self._held, ttl=self._ttl):
                    self._held = await leases.acquire(_LEASES + self.name, ttl=self._ttl)
            except OctavoError as fault:
                logger.warning("Other servers may take this one for dead: %s", fault)
