"""The file: opened, brought to the layout of today, and set aside where it is damaged.

Two connections, each with a thread of its own: one reads, one changes. So nothing blocks the event loop, and reading
never waits for a change.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import sqlite3
import stat
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol, TypeAlias, TypeVar

from octavo.core.clock import Clock
from octavo.core.errors import SourceUnavailable
from octavo.core.fair import FairQueue
from octavo.core.ports.stores import LOST
from octavo.stores._shared.layouts import newer, steps
from octavo.stores.state import NOT_THROUGH_LINKS

if sys.platform != "win32":
    import fcntl

logger = logging.getLogger(__name__)

T = TypeVar("T")
Work: TypeAlias = Callable[[sqlite3.Connection], T]

DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
TRIED_AGAIN: Final = 0.02  # seconds
BESIDE: Final = ("-wal", "-shm")
WAITING: Final = 10_000  # changes of one caller
BEGUN: Final = "store.begun"  # beside the file of the store, once there was one
Which: TypeAlias = tuple[int, int] | None  # device and inode


class Reading(Protocol):
    async def __call__(self, work: Work[T]) -> T: ...


class _Thread:
    """A connection, and the thread in which alone it is used. Opened by its first use."""

    def __init__(self, name: str, path: Path, open_: Callable[[], tuple[sqlite3.Connection, Which]]) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._path, self._open = path, open_
        self._database: sqlite3.Connection | None = None
        self.file: Which = None  # that it has open

    async def run(self, work: Work[T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work)

    def begin(self, work: Work[object]) -> None:
        """Without waiting for it: what is run later comes after it."""
        self._thread.submit(self._run, work)

    def close(self) -> None:
        """Waits for what still runs."""
        self._thread.submit(self.forget)
        self._thread.shutdown(wait=True)

    def forget(self) -> None:
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
            self._database = None

    def _run(self, work: Work[T]) -> T:
        """One that was moved away, or replaced, is let go: what is stored in it nobody else would find."""
        if self._database is not None and not self._database.in_transaction and which(self._path) != self.file:
            logger.warning("The file of the store was moved away or replaced: what stands in its place is used now")
            self.forget()
        if self._database is None:
            self._database, self.file = self._open()
        return work(self._database)


class File:
    """`patience` is how long a change waits for its turn, and how long a transaction may take, in seconds."""

    def __init__(self, path: Path, *, clock: Clock, patience: float, mends: bool = True) -> None:
        self._path, self._wall, self._patience, self._mends = path, clock.wall, patience, mends
        self._steps = steps("octavo.stores.sqlite")
        self._reader = _Thread("store-read", path, lambda: self._opened(reading=True))
        self._writer = _Thread("store-write", path, lambda: self._opened(reading=False))
        self._turn = FairQueue(1, "the store", waiting=WAITING)  # whoever stores much waits behind his own

    async def open(self) -> None:
        """Raises SourceUnavailable for a file that cannot be used, with the reason."""
        await self.change(lambda _: None)

    async def close(self) -> None:
        await asyncio.to_thread(self._reader.close)
        await asyncio.to_thread(self._writer.close)

    async def read(self, work: Work[T]) -> T:
        async with self._limited(self._reader):
            return await self._reader.run(work)

    @asynccontextmanager
    async def snapshot(self) -> AsyncGenerator[Reading]:
        """A connection of its own, to read what stood in the file when its first transaction began."""
        thread = _Thread("store-copy", self._path, lambda: self._opened(reading=True))

        async def read(work: Work[T]) -> T:
            async with self._limited(thread):
                return await thread.run(work)

        try:
            yield read
        finally:
            await asyncio.to_thread(thread.close)

    async def step(self, work: Work[T]) -> T:
        """A part of the transaction that has begun."""
        async with self._limited(self._writer):
            return await self._writer.run(work)

    async def change(self, work: Work[T]) -> T:
        """A transaction of its own. Begun in the thread it is made as a whole, also when nobody waits any more."""

        def whole(database: sqlite3.Connection) -> T:
            database.execute("BEGIN IMMEDIATE")
            try:
                done = work(database)
                database.execute("COMMIT")
            except BaseException:
                _roll_back(database)
                raise
            return done

        async with self._limited(self._writer), self._turn.turn():
            return await self._writer.run(whole)

    @asynccontextmanager
    async def changing(self, *, bounded: bool = True) -> AsyncGenerator[Changing]:
        """A transaction of as many steps as the block makes. Not bounded is the whole; each step is."""
        try:
            async with asyncio.timeout(self._patience if bounded else None) as limit, self._turn.turn():
                try:
                    await self.step(lambda database: database.execute("BEGIN IMMEDIATE"))
                    changing = Changing(self)
                    yield changing
                    if changing.failed:
                        raise SourceUnavailable("A step of the transaction failed, so nothing of it was stored")
                    await self.step(lambda database: database.execute("COMMIT"))
                finally:
                    self._writer.begin(_roll_back)
        except TimeoutError:
            if not limit.expired():
                raise
            raise _busy() from None

    @asynccontextmanager
    async def _limited(self, thread: _Thread) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(self._patience) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise _busy() from None
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in BUSY:
                raise _busy() from error
            if code in DAMAGE and not self._mends:
                raise SourceUnavailable("The file of the store is damaged, and was left as it is") from error
            if code in DAMAGE:
                # Each thread sees by its next use that it is gone.
                await asyncio.to_thread(self._set_aside, thread.file)
            raise SourceUnavailable("The store cannot be read or written now") from error
        except OSError as error:
            raise SourceUnavailable("The store cannot be read or written now") from error

    def _opened(self, *, reading: bool) -> tuple[sqlite3.Connection, Which]:
        with self._alone():
            try:
                return self._connected(reading=reading)
            except sqlite3.DatabaseError as error:
                if not self._mends or getattr(error, "sqlite_errorcode", 0) & 0xFF not in DAMAGE:
                    raise
                self._move_aside()
            return self._connected(reading=reading)

    def _connected(self, *, reading: bool) -> tuple[sqlite3.Connection, Which]:
        file = self._there()
        database = sqlite3.connect(
            self._path, timeout=self._patience, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")  # what was said to be stored outlives the machine
            database.execute("PRAGMA secure_delete = ON")
            database.execute("PRAGMA journal_size_limit = 16777216")
            database.execute("PRAGMA temp_store = MEMORY")
            self._bring_up(database)
            if reading:
                database.execute("PRAGMA query_only = ON")
        except BaseException:
            database.close()
            raise
        return database, file

    def _there(self) -> Which:
        """Made before SQLite would, with the mode of the process, and no link, which SQLite would follow to anywhere.
        One that is there is not opened: to close it again would end the locks that this process has on it."""
        with suppress(FileExistsError):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        facts = self._path.lstat()
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.ELOOP, "it is a link, or no plain file")
        return facts.st_dev, facts.st_ino

    def _bring_up(self, database: sqlite3.Connection) -> None:
        (layout,) = database.execute("PRAGMA user_version").fetchone()
        if layout > len(self._steps):
            raise newer(layout, len(self._steps))
        if layout == len(self._steps):
            return
        database.execute("BEGIN IMMEDIATE")
        try:
            for statements in self._steps[layout:]:
                for statement in statements:
                    database.execute(statement)
            if layout == 0:
                self._begin(database)
            database.execute(f"PRAGMA user_version = {len(self._steps)}")
            database.execute("COMMIT")
        except BaseException:
            _roll_back(database)
            raise

    def _begin(self, database: sqlite3.Connection) -> None:
        """A new store. That there was one before is known by a file beside it: whoever relies on what it kept has to
        know that it is gone."""
        begun = int(self._wall() * 1_000_000)
        database.execute("INSERT INTO line VALUES (?, ?)", (begun, begun))
        try:
            os.close(os.open(self._path.with_name(BEGUN), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            logger.warning("The store of before is gone: keys, approvals, tasks and the change feed begin anew")
            lost = (LOST, repr(self._wall()).encode())
            database.execute("INSERT INTO pairs (key, value, ends) VALUES (?, ?, NULL)", lost)

    @contextmanager
    def _alone(self) -> Generator[None]:
        """One process at a time makes the file, brings it to another layout or sets it aside."""
        if sys.platform == "win32":
            yield
            return
        lock = os.open(
            self._path.with_name(self._path.name + ".lock"),
            os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | NOT_THROUGH_LINKS, 0o600,
        )  # fmt: skip
        try:
            self._lock(lock)
            yield
        finally:
            os.close(lock)

    def _lock(self, lock: int) -> None:
        for _ in range(max(1, int(self._patience / TRIED_AGAIN))):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(TRIED_AGAIN)
            else:
                return
        raise _busy()

    def _set_aside(self, file: Which) -> None:
        with self._alone():
            if file is not None and which(self._path) == file:  # else somebody has done it
                self._move_aside()

    def _move_aside(self) -> None:
        aside = self._path.with_name(f"{self._path.name}.damaged-{self._wall():.0f}-{os.urandom(2).hex()}")
        os.replace(self._path, aside)
        for ending in BESIDE:
            with suppress(FileNotFoundError):
                os.replace(self._path.with_name(self._path.name + ending), aside.with_name(aside.name + ending))
        logger.warning("The file of the store is damaged; it is now %s and a new one was begun.", aside.name)


class Changing:
    """A transaction that has begun: everything runs in the one thread. After a step that failed it is not committed,
    whoever caught the error."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.failed = False

    async def change(self, work: Work[T]) -> T:
        try:
            return await self._file.step(work)
        except SourceUnavailable:
            self.failed = True
            raise

    read = change


def which(path: Path) -> Which:
    """None where there is no plain file."""
    try:
        facts = path.lstat()
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino) if stat.S_ISREG(facts.st_mode) else None


def _busy() -> SourceUnavailable:
    return SourceUnavailable("The store was busy for too long")


def _roll_back(database: sqlite3.Connection) -> None:
    if database.in_transaction:
        database.execute("ROLLBACK")
