"""Files that can be changed too.

A writable source creates, replaces, moves and deletes: in one step each, never through a link, and with the old
version in the journal, from which it can be undone.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from octavo.core import preconditions
from octavo.core.arguments import Mode
from octavo.core.edit import Revision
from octavo.core.errors import SourceUnavailable
from octavo.core.progress import current
from octavo.core.ref import Ref
from octavo.core.values import Edited, Entry, Past, Undone
from octavo.sources._shared.fs.credentials import CREDENTIALS
from octavo.sources._shared.fs.faults import fault_of_change
from octavo.sources.file.addresses import FileRoot
from octavo.sources.file.root import HardLinks
from octavo.sources.file.roots import Forest
from octavo.sources.file.source import FileSource
from octavo.sources.file.writing import UndoJournal, WriteEngine
from octavo.sources.file.writing.edit import edited
from octavo.sources.file.writing.journal import JournalMissing
from octavo.sources.file.writing.staging import STRAYS
from octavo.sources.file.writing.transfers import Transfer
from octavo.sources.file.writing.undo import Undo

T = TypeVar("T")
log = logging.getLogger(__name__)


class WritableFileSource(FileSource):
    """`journal` is a private directory that is never served. Without one, or with one that cannot be used, only
    what destroys nothing is done. Read-only files and files with several hard links are not replaced; the latter are
    not served at all unless they are allowed: a rule for one of their names would not hold for the others."""

    def __init__(
        self,
        roots: Sequence[FileRoot],
        *,
        journal: Path | None,
        hidden: Iterable[str] = CREDENTIALS,
        hard_links: HardLinks = "auto",
        exclude_dirs: Sequence[Path] = (),
        **options: Any,
    ) -> None:
        never = (*exclude_dirs, *([] if journal is None else [journal]))
        linked: HardLinks = "refuse" if hard_links == "auto" else hard_links
        super().__init__(roots, hidden=(*hidden, STRAYS), hard_links=linked, exclude_dirs=never, **options)
        self._journal_path = journal
        self._journal: UndoJournal | None = None
        self._engine: WriteEngine | None = None
        self._said_removed = False

    async def __aenter__(self) -> WritableFileSource:
        await super().__aenter__()
        try:
            await self._in_thread(partial(self._open_engine, self._forest), Ref(self.scheme))
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        if self._journal is not None:
            self._journal.close()
        self._journal = self._engine = None

    @property
    def trouble(self) -> str:
        trees = () if self._open is None else self._open.trees
        if any(tree.is_walled for tree in trees):
            return super().trouble or "another folder stands in its place, to be read alone: restart needed"
        wanted = self._open is not None and self._journal_path is not None
        unkept = self._said_removed or (wanted and self._journal is None)
        return super().trouble or ("it has no journal, so nothing in it is replaced or deleted" if unkept else "")

    async def write(
        self,
        ref: Ref,
        body: str | bytes,
        *,
        if_match: str | None,
        mode: Mode = "upsert",
        encoding: str | None = None,
        by: str = "",
    ) -> Entry:
        """Makes the file, or replaces it, or adds to it; missing directories are made. New files are in the first
        root. Text is written in the given encoding, else in that of the file, else in UTF-8.

        Raises Conflict when `if_match` is neither the version nor the etag of what is there, or for `create` on
        something that is there; Forbidden for what may not be written; InvalidParams for text that cannot be.
        """
        engine, where = self._writing, self._served(ref)
        return await self._change(
            partial(engine.write, ref, where, body, if_match=if_match, mode=mode, encoding=encoding, by=by), ref
        )

    async def edit(
        self,
        ref: Ref,
        revision: Revision,
        *,
        if_match: str | None,
        dry_run: bool = False,
        by: str = "",
    ) -> Edited:
        """In the encoding of the file. Conflict when it is not what `if_match` says, or changes meanwhile."""
        engine, where = self._writing, self._served(ref)
        work = partial(edited, engine, self._forest, ref, where, revision, if_match=if_match, dry_run=dry_run, by=by)
        return await self._change(work, ref)

    async def delete(self, ref: Ref, *, if_match: str | None, by: str = "") -> None:
        """Into the journal: a file, or a directory with all that is in it, if that is not too much and all of it
        is served."""
        engine, where = self._writing, self._addresses.where(ref)
        await self._change(partial(engine.delete, ref, where, if_match=if_match, by=by), ref)

    async def move(self, ref: Ref, to: Ref, *, if_match: str | None, overwrite: bool = False, by: str = "") -> Entry:
        """A file or a directory. Conflict when something is at `to`, unless a file may `overwrite` a file."""
        return await self._change(partial(self._transfer(ref, to, overwrite=overwrite, by=by).move, if_match), ref)

    async def copy(self, ref: Ref, to: Ref, *, overwrite: bool = False, by: str = "") -> Entry:
        """A file or a directory. Conflict when something is at `to`, unless a file may `overwrite` a file."""
        return await self._change(self._transfer(ref, to, overwrite=overwrite, by=by).copy, ref)

    async def make_directory(self, ref: Ref, by: str = "") -> None:
        """And those above it. One that is there already is fine; a file is a Conflict."""
        engine, where = self._writing, self._addresses.where(ref)
        engine.refuse_hidden(ref, where)
        await self._change(partial(engine.make_directory, ref, where, by=by), ref)

    async def undo(
        self, by: str, *, count: int = 1, only: Sequence[str] | None = None, scope: Ref | None = None
    ) -> Sequence[Undone]:
        """Takes back the newest operations of a principal; fewer, when one of them cannot be any more. Conflict
        when the newest cannot, or when they are not those of `only`."""
        ref = scope or Ref(self.scheme)
        undo = Undo(self._writing, self._writing.required_journal(ref))
        return await self._change(partial(undo.newest, by, count, only, scope), ref)

    async def history(
        self, by: str, limit: int = 20, *, standing: bool = False, scope: Ref | None = None
    ) -> Sequence[Past]:
        """What a principal did, the newest first, as far as it is kept."""
        engine = self._writing
        if engine.journal is None:  # so nothing was replaced or deleted
            return ()
        undo = Undo(engine, engine.journal)
        return await self._change(
            partial(undo.history, by, limit, standing=standing, scope=scope), scope or Ref(self.scheme)
        )

    @property
    def _writing(self) -> WriteEngine:
        if self._engine is None:
            raise SourceUnavailable("The source is not open")
        return self._engine

    def _open_engine(self, forest: Forest) -> None:
        """A journal that cannot be used is said, and is no reason not to read."""
        make_engine = partial(WriteEngine, forest, self._addresses, self._digests, wall=self._clock.wall)
        try:
            if self._journal_path is not None:
                self._journal = UndoJournal(self._journal_path, self._clock.wall)
            self._engine = make_engine(journal=self._journal)
            self._engine.recover()
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            log.warning("Nothing in %s:// is replaced or deleted: no journal (%s)", self.scheme, reason)
            if self._journal is not None:
                self._journal.close()
            self._journal = None
            self._engine = make_engine(journal=None)

    def _say_removed(self) -> None:
        """To the operator, once: only a restart mends it."""
        if not self._said_removed:
            self._said_removed = True
            place = self._journal_path
            log.error(
                "Nothing in %s:// is changed: its journal %s was removed; restart to begin a new one",
                self.scheme,
                place,
            )

    def _transfer(self, ref: Ref, to: Ref, *, overwrite: bool, by: str) -> Transfer:
        engine, where, to_where = self._writing, self._addresses.where(ref), self._addresses.where(to)
        return Transfer(engine, ref, where, to, to_where, overwrite=overwrite, by=by)

    async def _change(self, work: Callable[[], T], ref: Ref) -> T:
        effort, holding, trees = current(), preconditions.current(), self._forest.trees

        def changing() -> T:
            try:
                for tree in trees:
                    tree.confirm()
                with effort.made(), preconditions.guarded(holding):
                    return work()
            except JournalMissing:
                self._say_removed()
                raise SourceUnavailable(
                    "The journal folder of this server was removed, so nothing was changed; restart the server to "
                    "begin a new one",
                    uri=str(ref),
                ) from None
            except OSError as error:
                raise fault_of_change(error, ref) from None

        try:
            return await self._in_thread(changing, ref)
        except asyncio.CancelledError:
            effort.stop()  # between two files, and what was done is taken back; else it is done to its end
            raise
        finally:
            self._looks.clear()  # what was seen before says nothing about now
