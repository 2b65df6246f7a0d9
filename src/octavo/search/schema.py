"""The database of the index: one file that can be made anew from the sources at any time.

So nothing in it is worth a repair. A file that is damaged, or of another layout, is set aside, said, and begun again.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from pathlib import Path
from typing import Final

from octavo.core.clock import Clock
from octavo.core.private_folders import make_private
from octavo.search import tokens

logger = logging.getLogger(__name__)

LAYOUT: Final = 4
STAMP: Final = LAYOUT * 1000 + tokens.VERSION
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

# `partial` is 1 where not all of the text is here, 2 where the bytes are no text though the name says so.
# `odd` is the address of a document whose address is more than scheme and path. `in_step` names the configuration with
# all of whose documents the index was compared. The token characters are those of
# `tokens.MARKS`.
_TABLES: Final = """
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, scheme TEXT NOT NULL, path TEXT NOT NULL, odd TEXT NOT NULL, version TEXT NOT NULL,
    revision INTEGER NOT NULL, length INTEGER NOT NULL, partial INTEGER NOT NULL, UNIQUE (scheme, path, odd));
CREATE INDEX documents_by_revision ON documents (revision);
CREATE TABLE texts (
    id INTEGER PRIMARY KEY, title TEXT NOT NULL, tags TEXT NOT NULL, headings TEXT NOT NULL, body TEXT NOT NULL,
    metadata TEXT NOT NULL);
CREATE TABLE facets (key TEXT, value TEXT, id INTEGER, PRIMARY KEY (key, value, id)) WITHOUT ROWID;
CREATE INDEX facets_by_document ON facets (id);
CREATE TABLE vectors (id INTEGER PRIMARY KEY, name TEXT NOT NULL, vector BLOB NOT NULL);
CREATE TABLE sounds (key TEXT, hangul INTEGER, word TEXT, PRIMARY KEY (key, hangul, word)) WITHOUT ROWID;
CREATE TABLE state (
    birth BLOB NOT NULL, revision INTEGER NOT NULL, removals INTEGER NOT NULL, clean INTEGER NOT NULL,
    redaction TEXT NOT NULL, in_step TEXT NOT NULL);
INSERT INTO state VALUES (randomblob(8), 0, 0, 1, '', '');
CREATE VIRTUAL TABLE words USING fts5(
    tokens, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '+=@^'");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row);
"""


class Unusable(Exception):
    """The file is there and cannot be used; why is the message."""


class Outdated(Unusable):
    """Another version of this program wrote it."""


def is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED


def connect(path: Path | None) -> sqlite3.Connection:
    database = sqlite3.connect(path or ":memory:", timeout=30, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("PRAGMA journal_size_limit = 67108864")
    database.execute("PRAGMA cache_size = -16000")
    database.execute("PRAGMA temp_store = MEMORY")  # no other folder may be written
    return database


def opened(path: Path | None, clock: Clock) -> sqlite3.Connection:
    """A database that is in order; begun again where it was not."""
    try:
        return _checked(path)
    except Outdated as problem:
        assert path is not None
        logger.warning("The search index is made anew: %s.", problem)
        clear(path)
    except (Unusable, sqlite3.DatabaseError) as problem:
        if path is None or not (isinstance(problem, Unusable) or is_damage(problem)):
            raise
        set_aside(path, str(problem), clock)
    return _checked(path)


def clear(path: Path) -> None:
    """Takes the index away, with all that SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def set_aside(path: Path, why: str, clock: Clock) -> None:
    aside = path.with_name(f"{path.name}.damaged-{clock.wall():.0f}-{os.urandom(2).hex()}")
    for earlier in path.parent.glob(f"{path.name}.damaged-*"):  # one is enough to look at
        earlier.unlink(missing_ok=True)
    if path.exists():
        os.replace(path, aside)
    clear(path)
    logger.warning("The search index %s cannot be used (%s); it is now %s and is made anew.", path, why, aside.name)


def _checked(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        make_private(path.parent)
        path.touch(mode=0o600)  # before SQLite makes it with the mode of the process
    database = connect(path)
    try:
        _prepare(database)
    except BaseException:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection) -> None:
    database.execute("BEGIN IMMEDIATE")  # two processes may begin it at once
    try:
        (stamp,) = database.execute("PRAGMA user_version").fetchone()
        if stamp == 0 and database.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
            for statement in _TABLES.strip().split(";\n"):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {STAMP}")
        elif stamp != STAMP:
            raise Outdated(f"it has layout {stamp}, this program writes {STAMP}")
        elif not database.execute("SELECT clean FROM state").fetchone()[0]:
            _check(database)
    finally:
        database.execute("COMMIT")


def _check(database: sqlite3.Connection) -> None:
    """Whoever wrote last did not say goodbye."""
    (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise Unusable("it is damaged")
    database.execute("INSERT INTO words(words) VALUES ('integrity-check')")
