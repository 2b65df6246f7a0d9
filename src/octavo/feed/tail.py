"""The end of the journal, read once for all who follow it, and kept in memory while somebody does.

What this process stores is looked at at once. What another one stores is found by looking now and then, or sooner where
a bus wakes whoever listens.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from octavo.core.errors import OctavoError
from octavo.core.ports.stores import Bus
from octavo.core.values import Change
from octavo.feed.journal import PAGE, ChangeJournal
from octavo.feed.records import Kept, kept

logger = logging.getLogger(__name__)

TOPIC: Final = "changes"
MOST: Final = 4_096  # records in memory; whoever is further back reads the journal
LOOKS: Final = 0.25  # seconds between two looks for what other processes have stored,
LISTENS: Final = 5.0  # and with a bus, which may lose what it is told


async def _nobody() -> Bus | None:
    return None


class Tail:
    """`bus` gives what wakes other processes, where there is one. Raises SourceUnavailable while it is away."""

    def __init__(self, journal: ChangeJournal, bus: Callable[[], Awaitable[Bus | None]] = _nobody) -> None:
        self._journal, self._bus = journal, bus
        self._records: deque[Kept] = deque()
        self._after = self._last = 0  # the numbers between which all records are in memory
        self._following = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._stored = asyncio.Event()
        self._grown = asyncio.Event()  # another one each time
        self._telling: asyncio.Task[None] | None = None
        self._tells = False
        self._listens = False
        self.alone = False  # what wakes others is away

    @asynccontextmanager
    async def followed(self) -> AsyncGenerator[None]:
        self._following += 1
        if self._following == 1:
            self._after, self._last = -1, -1
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(self._read()), loop.create_task(self._listen())]
        try:
            yield
        finally:
            self._following -= 1
            if not self._following:
                await self._end()

    def since(self, number: int, served: Mapping[str, str]) -> tuple[Sequence[Change], int] | None:
        """What comes after a number, and the number to go on with, which is no one's to know; None where the journal
        has to be asked."""
        if not 0 <= self._after <= number:
            return None
        found: list[Change] = []
        for record in reversed(self._records):
            if record.number <= number:
                break
            if (change := record.told(served)) is not None:
                found.append(change)
        return found[::-1], max(number, self._last)

    async def passed(self, number: int) -> None:
        """Returns when there is a record with a greater number."""
        while self._last <= number:
            await self._grown.wait()

    def stored(self) -> None:
        """This process has stored something."""
        self._stored.set()
        self._tells = True
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def close(self) -> None:
        await self._end()
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait((self._telling,))

    async def _end(self) -> None:
        tasks, self._tasks = self._tasks, []
        self._records.clear()
        self._after = self._last = -1
        for task in tasks:
            task.cancel()
        if tasks:  # meanwhile others may begin
            await asyncio.wait(tasks)

    async def _tell(self) -> None:
        """Once for all that was stored while it is told. Who is not woken looks by himself."""
        while self._tells:
            self._tells = False
            try:
                bus = await self._bus()
                if bus is None:
                    return
                await bus.publish(TOPIC)
                self._heard(None)
            except OctavoError as error:
                self._heard(error)

    async def _listen(self) -> None:
        while True:
            try:
                bus = await self._bus()
                if bus is None:
                    return
                async with bus.listen(TOPIC) as hints:
                    self._heard(None)
                    self._listens = True
                    self._stored.set()  # what came before
                    async for _ in hints:
                        self._stored.set()
            except OctavoError as error:
                self._heard(error)
            finally:
                self._listens = False
            await asyncio.sleep(LISTENS)

    def _heard(self, error: OctavoError | None) -> None:
        if error is not None and not self.alone:
            logger.warning("Servers on one store do not wake each other now, and look by themselves: %s", error)
        self.alone = error is not None

    async def _read(self) -> None:
        failed = False
        while True:
            self._stored.clear()
            try:
                if self._last < 0:
                    self._after = self._last = await self._journal.last()
                records = await self._journal.records(self._last)
                failed = False
            except OctavoError as error:
                if not failed:
                    logger.warning("New changes cannot be read now: %s", error)
                failed, records = True, ()
            if records:
                self._take([kept(record) for record in records], records[-1].number)
            if len(records) < PAGE:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LISTENS if self._listens else LOOKS):
                        await self._stored.wait()

    def _take(self, records: Sequence[Kept | None], last: int) -> None:
        if None in records:  # of one that cannot be read nobody knows what it was: the journal says so to each reader
            self._records.clear()
            self._after = last
        else:
            self._records.extend(one for one in records if one is not None)
        while len(self._records) > MOST:
            self._after = self._records.popleft().number
        self._last = last
        self._grown.set()
        self._grown = asyncio.Event()
