"""Hints through the file. SQLite wakes nobody, so whoever listens looks ten times a second whether another connection
has changed anything, which costs no reading; within a process hints go directly."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final

from octavo.core.errors import SourceUnavailable
from octavo.core.ports.stores import Bus, Hint
from octavo.stores._shared.bounds import check_hint, check_key
from octavo.stores._shared.listeners import Listeners
from octavo.stores.sqlite.file import File

PAUSE: Final = 0.1  # seconds between two looks
KEPT: Final = 1_000  # hints


class SQLiteBus(Bus):
    def __init__(self, file: File) -> None:
        self._file = file
        self._origin = f"{os.getpid()}-{os.urandom(6).hex()}"
        self._listeners = Listeners(begin=self._begin, idle=self._idle)
        self._looking: asyncio.Task[None] | None = None
        self._last, self._version = 0, -1

    async def publish(self, topic: str, body: bytes = b"") -> None:
        check_key(topic)
        check_hint(body)

        def work(database: sqlite3.Connection) -> None:
            told = "INSERT INTO hints (origin, topic, body) VALUES (?, ?, ?)"
            number = database.execute(told, (self._origin, topic, body)).lastrowid or 0
            database.execute("DELETE FROM hints WHERE number <= ?", (number - KEPT,))

        await self._file.change(work)
        self._listeners.tell(Hint(topic, body))

    def listen(self, *topics: str) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        for topic in topics:
            check_key(topic)
        return self._listeners.listen(topics)

    async def close(self) -> None:
        self._listeners.end()
        looking = self._looking
        self._idle()
        if looking is not None:
            await asyncio.wait([looking])

    async def _begin(self) -> None:
        if self._looking is None:
            asked = "SELECT coalesce(max(number), 0) FROM hints"
            last: int = await self._file.read(lambda database: database.execute(asked).fetchone()[0])
            if self._looking is None:
                self._last = last
                self._looking = asyncio.get_running_loop().create_task(self._look())

    def _idle(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self) -> None:
        away = False
        while True:
            try:
                for hint in await self._file.read(self._news):
                    self._listeners.tell(hint)
                if away:
                    self._listeners.tell_of_a_loss()
                away = False
            except SourceUnavailable:  # whoever changes something next is told why
                away = True
            await asyncio.sleep(PAUSE)

    def _news(self, database: sqlite3.Connection) -> list[Hint]:
        (version,) = database.execute("PRAGMA data_version").fetchone()
        if version == self._version:
            return []
        asked = "SELECT number, origin, topic, body FROM hints WHERE number > ? ORDER BY number"
        rows = database.execute(asked, (self._last,)).fetchall()
        self._version = version
        self._last = max([self._last, *(row[0] for row in rows)])
        return [Hint(topic, body) for _, origin, topic, body in rows if origin != self._origin]
