"""The index of another process, which keeps it in step: it is read and never written."""

from __future__ import annotations

import sqlite3

from octavo.search import schema
from octavo.search.index import READERS, Index


class Borrowed(Index):
    """Raises sqlite3.Error where it cannot be opened, or another version of this program wrote it."""

    def close(self) -> None:
        self.threads.shutdown()
        with self._all_readers():
            self._closed = True

    def _open(self) -> None:
        assert self._path is not None
        for _ in range(READERS):
            self._readers.put(_connect(self._path.as_uri()))
        self._beginnings += 1

    def _begin_again(self, beginning: int, why: str) -> None:
        """Not here: whoever keeps it comes upon the damage too."""


def _connect(address: str) -> sqlite3.Connection:
    database = sqlite3.connect(
        f"{address}?mode=ro", uri=True, timeout=30, isolation_level=None, check_same_thread=False
    )
    database.execute("PRAGMA temp_store = MEMORY")
    if database.execute("PRAGMA user_version").fetchone() != (schema.STAMP,):
        database.close()
        raise sqlite3.DatabaseError("another version of this program wrote it")
    return database
