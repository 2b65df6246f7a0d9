"""Tasks in one SQLite file of the state directory, `tasks.db`, shared by the processes that use the directory.

A process holds a lock for as long as it lives, and its tasks bear the name of the lock: so one that was killed is known
from one that still works, and what it left is taken over once. A damaged file is set aside and said. Without a state
directory tasks are kept in memory.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import RateLimited, SourceUnavailable
from octavo.core.tasks import Ended, StoredTask, Task
from octavo.core.values import Principal
from octavo.stores.state import NOT_THROUGH_LINKS

if sys.platform != "win32":
    import fcntl

logger = logging.getLogger(__name__)

NAME: Final = "tasks.db"
LAYOUT: Final = 1
MOST: Final = 100_000  # of all principals
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TABLES: Final = f"""
CREATE TABLE tasks (
    id TEXT PRIMARY KEY, who TEXT NOT NULL, tool TEXT NOT NULL, status TEXT NOT NULL, created REAL NOT NULL,
    updated REAL NOT NULL, ttl REAL NOT NULL, expires REAL NOT NULL, message TEXT NOT NULL, outcome BLOB NOT NULL,
    owner TEXT NOT NULL, roles TEXT NOT NULL, key TEXT NOT NULL, arguments BLOB) WITHOUT ROWID;
CREATE INDEX tasks_by_who ON tasks (who, expires);
CREATE INDEX tasks_by_end ON tasks (expires);
CREATE INDEX tasks_open ON tasks (owner) WHERE status = 'working';
PRAGMA user_version = {LAYOUT};
"""
_SHOWN: Final = "id, who, tool, status, created, updated, ttl, message, outcome"


class TaskFile:
    """Opened by its first use. Every method blocks for as long as the disk takes."""

    def __init__(self, state: Path | None, *, clock: Clock | None = None) -> None:
        self._state = state
        self._clock = clock or SystemClock()
        self._mutex = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._owner, self._lock = f"{os.getpid()}-{os.urandom(6).hex()}", -1

    def add(self, kept: StoredTask, *, most: int) -> None:
        task, who = kept.task, kept.principal
        arguments = None if kept.arguments is None else msgspec.json.encode(kept.arguments)
        with self._changing() as database:
            now = self._clock.wall()
            database.execute("DELETE FROM tasks WHERE expires <= ?", (now,))
            for limit, clause, values in ((most, "WHERE who = ?", (task.who,)), (MOST, "", ())):
                counted = f"SELECT count(*), min(expires) FROM tasks {clause}"  # noqa: S608  two constants
                count, soonest = database.execute(counted, values).fetchone()
                if count >= limit:
                    raise RateLimited(
                        "Too many tasks are kept; wait until some of them have expired",
                        retry_after=max(1.0, soonest - now),
                        limit="tasks",
                    )
            database.execute(
                "INSERT INTO tasks VALUES (?, ?, ?, 'working', ?, ?, ?, ?, ?, x'', ?, ?, ?, ?)",
                (task.id, task.who, task.tool, task.created, task.updated, task.ttl, task.created + task.ttl,
                 task.message, self._owner, msgspec.json.encode(sorted(who.roles)), who.key, arguments),
            )  # fmt: skip

    def find(self, who: str, task_id: str) -> Task | None:
        with self._open() as database:
            asked = f"SELECT {_SHOWN} FROM tasks WHERE id = ? AND who = ? AND expires > ?"  # noqa: S608  a constant
            row = database.execute(asked, (task_id, who, self._clock.wall())).fetchone()
        return None if row is None else _task(row)

    def end(self, task_id: str, ended: Ended) -> Task | None:
        with self._changing() as database:
            now = self._clock.wall()
            database.execute(
                "UPDATE tasks SET status = ?, updated = ?, message = ?, outcome = ?, arguments = NULL "
                "WHERE id = ? AND status = 'working'",
                (ended.status, now, ended.message, ended.outcome, task_id),
            )
            if not database.execute("SELECT changes()").fetchone()[0]:
                return None
            asked = f"SELECT {_SHOWN} FROM tasks WHERE id = ?"  # noqa: S608  a constant
            return _task(database.execute(asked, (task_id,)).fetchone())

    def take_over(self) -> Sequence[StoredTask]:
        left: list[StoredTask] = []
        with self._changing() as database:
            owners = database.execute("SELECT DISTINCT owner FROM tasks WHERE status = 'working'").fetchall()
            for (owner,) in owners:
                if owner == self._owner or self._lives(owner):
                    continue
                asked = f"SELECT {_SHOWN}, roles, key, arguments FROM tasks WHERE owner = ? AND status = 'working'"  # noqa: S608
                for *shown, roles, key, arguments in database.execute(asked, (owner,)).fetchall():
                    task = _task(shown)
                    who = Principal(task.who, frozenset(msgspec.json.decode(roles)), key)
                    left.append(StoredTask(task=task, principal=who, arguments=_decoded(arguments)))
                database.execute("UPDATE tasks SET owner = ? WHERE owner = ?", (self._owner, owner))
            for lock in [] if self._state is None else self._state.glob("tasks-*.lock"):
                owner = lock.stem.removeprefix("tasks-")
                if owner != self._owner and not self._lives(owner):
                    lock.unlink(missing_ok=True)
        return left

    def close(self) -> None:
        with self._mutex:
            if self._database is not None:
                self._database.close()
                self._database = None
            if self._lock >= 0:
                self._lock_file(self._owner).unlink(missing_ok=True)
                os.close(self._lock)
                self._lock = -1

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._mutex:
            try:
                if self._database is None:
                    self._database = self._opened()
                yield self._database
            except (sqlite3.Error, OSError) as error:
                if isinstance(error, sqlite3.DatabaseError) and _is_damage(error):
                    self._set_aside()
                raise SourceUnavailable("The tasks cannot be kept now: their file cannot be read or written") from error

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._open() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    def _opened(self) -> sqlite3.Connection:
        if self._state is None:
            return _prepared(_connected(None))
        path = self._state / NAME
        self._take_lock()
        path.touch(mode=0o600)  # before SQLite makes it with the mode of the process
        try:
            return _prepared(_connected(path))
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
        self._set_aside()
        path.touch(mode=0o600)
        return _prepared(_connected(path))

    def _take_lock(self) -> None:
        if sys.platform == "win32" or self._lock >= 0:
            return
        path = self._lock_file(self._owner)
        while True:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | NOT_THROUGH_LINKS, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):  # who looked for the dead in between may have taken it away
                if path.stat().st_ino == os.fstat(lock).st_ino:
                    self._lock = lock
                    return
            os.close(lock)

    def _lives(self, owner: str) -> bool:
        """The kernel takes the lock from a process that dies."""
        if sys.platform == "win32" or self._state is None:
            return False
        try:
            held = os.open(self._lock_file(owner), os.O_RDWR | os.O_CLOEXEC | NOT_THROUGH_LINKS)
        except OSError:
            return False
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(held)
        return False

    def _lock_file(self, owner: str) -> Path:
        return (self._state or Path()) / f"tasks-{owner}.lock"

    def _set_aside(self) -> None:
        if self._state is None:
            return
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
            self._database = None
        path = self._state / NAME
        aside = path.with_name(f"{NAME}.damaged-{self._clock.wall():.0f}-{os.urandom(2).hex()}")
        os.replace(path, aside)
        for ending in ("-wal", "-shm"):
            path.with_name(NAME + ending).unlink(missing_ok=True)
        logger.warning("The file of the tasks is damaged; it is now %s and a new one was begun.", aside.name)


def _connected(path: Path | None) -> sqlite3.Connection:
    database = sqlite3.connect(path or ":memory:", timeout=30, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")  # a handle that was given out outlives the machine
    database.execute("PRAGMA secure_delete = ON")
    database.execute("PRAGMA journal_size_limit = 16777216")
    database.execute("PRAGMA temp_store = MEMORY")
    return database


def _prepared(database: sqlite3.Connection) -> sqlite3.Connection:
    try:
        database.execute("BEGIN IMMEDIATE")
        (layout,) = database.execute("PRAGMA user_version").fetchone()
        if layout == 0:
            for statement in filter(str.strip, _TABLES.split(";")):
                database.execute(statement)
        elif layout != LAYOUT:
            raise SourceUnavailable("The tasks were written by a newer Octavo")
        database.execute("COMMIT")
    except BaseException:
        database.close()
        raise
    return database


def _task(row: Sequence[Any]) -> Task:
    task_id, who, tool, status, created, updated, ttl, message, outcome = row
    return Task(
        id=task_id, who=who, tool=tool, status=status, created=created, updated=updated, ttl=ttl, message=message,
        outcome=outcome,
    )  # fmt: skip


def _decoded(arguments: bytes | None) -> Mapping[str, Any] | None:
    if arguments is None:
        return None
    decoded: Mapping[str, Any] = msgspec.json.decode(arguments)
    return decoded


def _is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
