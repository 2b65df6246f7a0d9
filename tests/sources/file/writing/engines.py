"""The blocking engine alone, as the heavy proofs use it: no event loop, no threads, little to import."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from octavo.core.ref import Ref
from octavo.core.values import Entry
from octavo.sources._shared.fs.confine import Confinement
from octavo.sources._shared.fs.credentials import CREDENTIALS
from octavo.sources._shared.fs.names import Rules
from octavo.sources.file.addresses import FileAddresses, FileRoot
from octavo.sources.file.entries import Digests
from octavo.sources.file.root import Tree
from octavo.sources.file.roots import Forest
from octavo.sources.file.writing.engine import WriteEngine
from octavo.sources.file.writing.journal import UndoJournal
from octavo.sources.file.writing.staging import STRAYS
from octavo.sources.file.writing.transfers import Transfer
from octavo.sources.file.writing.undo import Undo


@dataclass
class Hand:
    """Does by path what a source does by address."""

    engine: WriteEngine
    addresses: FileAddresses
    forest: Forest
    journal: UndoJournal

    def write(self, path: str, body: bytes, *, append: bool = False, if_match: str | None = None) -> Entry:
        ref = Ref.parse(f"file://{path}")
        return self.engine.write(
            ref, self.addresses.where(ref), body, if_match=if_match, mode="append" if append else "upsert",
            encoding=None, by="",
        )  # fmt: skip

    def read(self, path: str) -> tuple[bytes, str]:
        ref = Ref.parse(f"file://{path}")
        content = self.forest.read(ref, self.addresses.where(ref), 1 << 24, wait=True)
        body = content.body
        return body.encode() if isinstance(body, str) else body, content.entry.version

    def delete(self, path: str) -> None:
        ref = Ref.parse(f"file://{path}")
        self.engine.delete(ref, self.addresses.where(ref), if_match=None, by="")

    def make_directory(self, path: str) -> None:
        ref = Ref.parse(f"file://{path}")
        self.engine.make_directory(ref, self.addresses.where(ref), by="")

    def move(self, path: str, to: str, *, overwrite: bool = False) -> None:
        self._transfer(path, to, overwrite=overwrite).move(None)

    def copy(self, path: str, to: str, *, overwrite: bool = False) -> None:
        self._transfer(path, to, overwrite=overwrite).copy()

    def undo(self, count: int = 1) -> int:
        return len(Undo(self.engine, self.journal).newest("", count))

    def _transfer(self, path: str, to: str, *, overwrite: bool) -> Transfer:
        one, other = Ref.parse(f"file://{path}"), Ref.parse(f"file://{to}")
        where, to_where = self.addresses.where(one), self.addresses.where(other)
        return Transfer(self.engine, one, where, other, to_where, overwrite=overwrite, by="")


@contextmanager
def hand(root: Path, journal: Path, confinement: Confinement = "auto", *, most_count: int = 40) -> Iterator[Hand]:
    addresses = FileAddresses("file", [FileRoot(root)])
    rules = Rules((), (*CREDENTIALS, STRAYS))
    tree = Tree(root, rules, confinement=confinement, symlinks="inside", hard_links="auto", exclude_dirs=())
    digests = Digests(b"secret")
    forest = Forest([tree], addresses, digests, time.time, absolute=False)
    book = UndoJournal(journal, time.time, most_count=most_count)
    engine = WriteEngine(forest, addresses, digests, book, time.time)
    try:
        engine.recover()
        yield Hand(engine, addresses, forest, book)
    finally:
        book.close()
        forest.close()
