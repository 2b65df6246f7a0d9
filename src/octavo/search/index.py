"""The index: what is known of all documents, kept in step with them.

Text, metadata and tokens of a document change in one transaction. Reads see one moment and do not wait for writes.
Each write raises `revision`; whoever remembers something about a document can ask what has changed since.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import InternalError, SourceUnavailable
from octavo.core.fair import FairThreads
from octavo.core.ref import Ref
from octavo.search import loanwords, schema
from octavo.search.document import MAX_CHARACTERS, Document, Fields, facets, fields_of, kept_metadata
from octavo.search.tokens import MARKS

logger = logging.getLogger(__name__)

MOST: Final = 100_000  # documents
READERS: Final = 2  # questions that are answered at once
_TOGETHER: Final = 100  # documents of one transaction
_TOGETHER_IN_MEMORY: Final = 8  # there a question waits for the end of it
UNREAD: Final = 2  # see `schema`
_SOUNDING: Final = 100_000  # words that are remembered, so as not to be written again


class Index:
    """For use from any thread. `path` is the file; None keeps everything in memory. `most` is how many documents
    there may be: what comes when it is full is left out."""

    def __init__(self, path: Path | None, *, most: int = MOST, clock: Clock | None = None) -> None:
        self._path = path
        self.most = most
        self.together = _TOGETHER if path is not None else _TOGETHER_IN_MEMORY  # documents that are best put at once
        # Questions wait for each other, and for nothing else. One caller has one thread: what it asks may take long,
        # and nobody else waits for the end of it. In memory there is one connection, and so one thread.
        readers = READERS if path is not None else 1
        self.threads = FairThreads(readers, "ranked", spare=readers - 1)
        self._clock = clock or SystemClock()
        self._writing = threading.RLock()
        self._readers: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()  # those that nobody uses
        self._beginnings = 0
        self._redaction = ""
        self._closed = False
        self._sounding = set[str]()  # words that were written; of a change that failed they are missed until the next
        self.when_lost: Callable[[], None] = _nothing  # called when the index was begun again, and is empty
        self._open()

    def begin_for(self, redaction: str) -> None:
        """Holds only texts that were redacted by these rules: all others go at once."""
        self._redaction = redaction
        with self._change() as (database, _):
            (held,) = database.execute("SELECT redaction FROM state").fetchone()
            if held != redaction:
                for table in ("documents", "texts", "facets", "vectors", "sounds"):
                    database.execute(f"DELETE FROM {table}")  # noqa: S608  # the names stand above
                self._sounding.clear()
                database.execute("INSERT INTO words(words) VALUES ('delete-all')")
                database.execute("UPDATE state SET redaction = ?, birth = randomblob(8)", (redaction,))

    def mark(self, configuration: str) -> None:
        """With whose documents it is in step; "" while that is not known."""
        if self.marked() != configuration:
            with self._change() as (database, _):
                database.execute("UPDATE state SET in_step = ?", (configuration,))

    def marked(self) -> str:
        with self.reading() as database:
            text: str = database.execute("SELECT in_step FROM state").fetchone()[0]
            return text

    def put(self, documents: Iterable[Document], *, redaction: str = "") -> None:
        """Adds documents, or replaces those with the same address: all of them or none. Texts that were redacted by
        other rules than those of the index come too late, and are left out."""
        made = [(document, fields := fields_of(document), fields.tokens()) for document in documents]
        with self._change() as (database, revision):
            if database.execute("SELECT redaction FROM state").fetchone() != (redaction,):
                return
            room = self.most - _count(database)
            for document, fields, tokens in made:
                if not _forget(database, document.ref):
                    if room <= 0:
                        continue
                    room -= 1
                _keep(database, document, fields, tokens, revision)
                self._keep_sounds(database, tokens)

    def remove(self, refs: Iterable[Ref]) -> None:
        """Takes out documents. What stands below them stays: the page of a team may go, and its rota be there."""
        with self._change() as (database, _):
            for ref in refs:
                if _forget(database, ref):
                    _drop(database, ref)

    def remove_all(self, schemes: Iterable[str]) -> None:
        """Takes out everything of some sources."""
        for scheme in schemes:
            self.remove(self.versions(scheme))

    def held_below(self, scopes: Iterable[Ref]) -> list[Ref]:
        """The documents that stand below some addresses."""
        with self.reading() as database:
            return [ref for scope in scopes for ref in _refs(database, scope) if ref != scope]

    def keep_vectors(self, name: str, vectors: Iterable[tuple[int, int, bytes]]) -> None:
        """What documents mean: number, revision and vector of each. Those that have changed meanwhile are left out."""
        with self._change() as (database, _):
            database.executemany(
                "INSERT OR REPLACE INTO vectors SELECT id, ?, ? FROM documents WHERE id = ? AND revision = ?",
                [(name, vector, number, revision) for number, revision, vector in vectors],
            )

    def versions(self, scheme: str) -> Mapping[Ref, str]:
        """The documents of one source that are held, and which version of each."""
        with self.reading() as database:
            rows = database.execute("SELECT scheme, path, odd, version FROM documents WHERE scheme = ?", (scheme,))
            return {ref_of(*address): version for *address, version in rows}

    def count(self) -> int:
        with self.reading() as database:
            return _count(database)

    def schemes(self) -> set[str]:
        with self.reading() as database:
            return {scheme for (scheme,) in database.execute("SELECT DISTINCT scheme FROM documents")}

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """The index at one moment."""
        with self._sound(), self._reader() as database:
            database.execute("BEGIN")
            try:
                yield database
            finally:
                if database.in_transaction:
                    database.execute("COMMIT")

    def close(self) -> None:
        """What threads still ask that nobody waits for any more is refused from here on."""
        self.threads.shutdown()
        with self._writing, self._all_readers():
            self._closed = True
            try:
                self._writer.execute("UPDATE state SET clean = 1")
            except sqlite3.Error:
                logger.warning("The search index could not be closed in order; it is checked when it is next opened.")
            self._writer.close()

    @contextmanager
    def _reader(self) -> Generator[sqlite3.Connection]:
        if self._path is None:
            with self._writing:
                yield self._writer
            return
        reader = self._readers.get()
        try:
            yield reader
        finally:
            self._readers.put(reader)

    @contextmanager
    def _all_readers(self) -> Generator[None]:
        """Nobody reads any more, and they are closed. There are as many afterwards."""
        readers = [] if self._path is None else [self._readers.get() for _ in range(READERS)]
        for reader in readers:
            reader.close()
        beginning = self._beginnings
        try:
            yield
        finally:
            if self._beginnings == beginning:  # none were opened instead: whoever comes learns that they are closed
                for reader in readers:
                    self._readers.put(reader)

    def _keep_sounds(self, database: sqlite3.Connection, tokens: str) -> None:
        """The words, by how they sound. Those of documents that went stay: whether anybody may find one is asked."""
        if len(self._sounding) > _SOUNDING:
            self._sounding.clear()
        unheard = [word for word in tokens.split() if word[0] not in MARKS and word not in self._sounding]
        rows = [(key, script, word) for word in unheard for key, script in loanwords.keys(word)]
        database.executemany("INSERT OR IGNORE INTO sounds VALUES (?, ?, ?)", rows)
        self._sounding.update(unheard)

    @contextmanager
    def _change(self) -> Generator[tuple[sqlite3.Connection, int]]:
        with self._sound(), self._writing:
            database = self._writer
            database.execute("BEGIN IMMEDIATE")
            try:
                database.execute("UPDATE state SET revision = revision + 1, clean = 0")
                (revision,) = database.execute("SELECT revision FROM state").fetchone()
                yield database, revision
                database.execute("COMMIT")
            finally:
                if database.in_transaction:
                    database.execute("ROLLBACK")

    @contextmanager
    def _sound(self) -> Generator[None]:
        """A damaged file is begun again, and what was asked of it has failed."""
        beginning = self._beginnings
        try:
            yield
        except sqlite3.DatabaseError as error:
            if self._closed:
                raise SourceUnavailable("The server is stopping; ask again when it is back") from error
            if not schema.is_damage(error):
                logger.exception("The search index could not be used")
                raise InternalError("The search index could not be used; the log says why") from error
            self._begin_again(beginning, str(error))
            raise SourceUnavailable("The search index was damaged and is made anew; ask again in a moment") from error

    def _begin_again(self, beginning: int, why: str) -> None:
        with self._writing:
            if self._beginnings != beginning:
                return  # another thread came upon it first
            with self._all_readers():
                self._writer.close()
                self._start_over(why)
        self.when_lost()

    def _start_over(self, why: str) -> None:
        if self._path is not None:
            schema.set_aside(self._path, why, self._clock)
        self._open()
        self._writer.execute("UPDATE state SET redaction = ?", (self._redaction,))

    def _open(self) -> None:
        self._writer = schema.opened(self._path, self._clock)
        for _ in range(READERS if self._path is not None else 0):
            self._readers.put(schema.connect(self._path))
        self._beginnings += 1
        self._sounding = set()


def _nothing() -> None:
    """Nobody waits to hear of it."""


def _count(database: sqlite3.Connection) -> int:
    count: int = database.execute("SELECT count(*) FROM documents").fetchone()[0]
    return count


def ref_of(scheme: str, path: str, odd: str) -> Ref:
    return Ref.parse(odd) if odd else Ref(scheme, tuple(path.split("/")) if path else ())


def _address(ref: Ref) -> tuple[str, str, str]:
    return ref.scheme, ref.path, str(ref) if ref.params or ref.absolute else ""


def _refs(database: sqlite3.Connection, scope: Ref) -> list[Ref]:
    rows = database.execute(
        "SELECT scheme, path, odd FROM documents WHERE scheme = ? AND (? = '' OR path = ? OR (path > ? AND path < ?))",
        below(scope),
    )
    return [ref for row in rows if (ref := ref_of(*row)).absolute is scope.absolute]


def below(scope: Ref) -> tuple[str, str, str, str, str]:
    """For a condition on what stands below: `0` follows `/`, so a path that goes on lies between the last two."""
    path = scope.path
    return scope.scheme, path, path, f"{path}/", f"{path}0"


def _forget(database: sqlite3.Connection, ref: Ref) -> bool:
    """Takes the tokens and facets of a document out, if there is one."""
    found = database.execute(
        "SELECT id, title, tags, headings, body FROM documents JOIN texts USING (id)"
        " WHERE scheme = ? AND path = ? AND odd = ?",
        _address(ref),
    ).fetchone()
    if found is None:
        return False
    number, *texts = found
    # The table keeps no texts of its own: it must be told what to take out.
    old = Fields(*texts).tokens()
    database.execute("INSERT INTO words(words, rowid, tokens) VALUES ('delete', ?, ?)", (number, old))
    database.execute("DELETE FROM facets WHERE id = ?", (number,))
    database.execute("DELETE FROM vectors WHERE id = ?", (number,))
    return True


def _drop(database: sqlite3.Connection, ref: Ref) -> None:
    database.execute(
        "DELETE FROM texts WHERE id = (SELECT id FROM documents WHERE scheme = ? AND path = ? AND odd = ?)",
        _address(ref),
    )
    database.execute("DELETE FROM documents WHERE scheme = ? AND path = ? AND odd = ?", _address(ref))
    database.execute("UPDATE state SET removals = removals + 1")


def _keep(database: sqlite3.Connection, document: Document, fields: Fields, tokens: str, revision: int) -> None:
    """A document keeps its number as long as it is there."""
    partial = UNREAD if document.unread else int(document.partial or len(document.text) > MAX_CHARACTERS)
    if len(document.text) > MAX_CHARACTERS:
        logger.warning("Only the first %d characters of %s are searched.", MAX_CHARACTERS, document.ref)
    (number,) = database.execute(
        "INSERT INTO documents (scheme, path, odd, version, revision, length, partial) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET version = excluded.version, revision = excluded.revision,"
        " length = excluded.length, partial = excluded.partial RETURNING id",
        (*_address(document.ref), document.version, revision, len(fields.body.split()), partial),
    ).fetchone()
    metadata = kept_metadata(document.metadata)
    database.execute("INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?, ?, ?)", (number, *fields, metadata))
    database.execute("INSERT INTO words (rowid, tokens) VALUES (?, ?)", (number, tokens))
    pairs = facets(document)
    database.executemany("INSERT INTO facets VALUES (?, ?, ?)", [(key, value, number) for key, value in pairs])
