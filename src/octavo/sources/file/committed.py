"""Files of a git work tree that know what they were: what is served is what lies there, what it was is what HEAD has
gone through."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import InvalidParams, OctavoError, SourceUnavailable
from octavo.core.parameters import refuse_unknown
from octavo.core.ref import Ref
from octavo.core.sizes import MIB
from octavo.core.values import Content, Entry, Page
from octavo.sources._shared.fs.credentials import CREDENTIALS
from octavo.sources._shared.fs.faults import not_found
from octavo.sources._shared.fs.names import Rules
from octavo.sources._shared.git.files import GitFiles, History
from octavo.sources._shared.git.history import MAX_SECONDS
from octavo.sources._shared.git.objects import Id, ObjectCache
from octavo.sources._shared.git.refs import Names
from octavo.sources._shared.git.repository import Repository
from octavo.sources._shared.git.worktree import work_tree
from octavo.sources._shared.text import preferring
from octavo.sources.file.addresses import FileRoot
from octavo.sources.file.source import FileSource

T = TypeVar("T")

MAX_COMPARED: Final = MIB  # bytes of a file whose content is compared with that of its last commit
_KEPT_IDS: Final = 100_000
_PARAMETERS: Final = ("commit", "range")


class _Past(NamedTuple):
    """Of the folder to which the path of the root led."""

    real: str
    repository: Repository
    files: GitFiles
    rules: Rules


class CommittedFileSource(FileSource):
    """One root, in a work tree; `history` is explained at `GitSource`. Names that are not served have no past either,
    nor has a file that is not in the commit of HEAD, or that is reached through a link. Where a file is as HEAD has it,
    it is as old as its last commit. A store for catalogs: `?commit=` reads any commit of the repository, so its
    addresses are not for callers."""

    def __init__(
        self,
        roots: Sequence[FileRoot],
        *,
        history: History,
        secret: bytes,
        extensions: Iterable[str] = (),
        only: Iterable[str] | None = None,
        hidden: Iterable[str] = CREDENTIALS,
        exclude_dirs: Sequence[Path] = (),
        exclude_files: Sequence[Path] = (),
        encodings: Sequence[str] = (),
        clock: Clock | None = None,
        **options: Any,
    ) -> None:
        if len(roots) != 1:
            raise InvalidParams("A file source with a history has one root")
        extensions, hidden, only = tuple(extensions), tuple(hidden), None if only is None else tuple(only)
        clock = clock or SystemClock()
        super().__init__(
            roots, secret=secret, extensions=extensions, only=only, hidden=hidden, exclude_dirs=exclude_dirs,
            exclude_files=exclude_files, encodings=encodings, clock=clock, **options,
        )  # fmt: skip
        self._monotonic, self._then_clock = clock.monotonic, clock
        self._kept_out = (*exclude_dirs, *exclude_files)
        self._make_rules = partial(Rules, extensions, hidden, only=only, within=roots[0].within)
        self._make_files = partial(
            GitFiles, scheme=self.scheme, secret=secret, encodings=preferring(encodings), history=history,
            monotonic=clock.monotonic,
        )  # fmt: skip
        self._past: _Past | None = None
        self._finding = threading.Lock()
        self._ids: ObjectCache[str, Id] = ObjectCache(_KEPT_IDS)  # by version: what git would call the content

    async def __aenter__(self) -> FileSource:
        """Raises SourceUnavailable where the root is in no work tree, or its repository is one that is not read."""
        await super().__aenter__()
        try:
            await self._in_thread(self._found, Ref(self.scheme))
        except BaseException as error:
            await self.__aexit__(None, None, None)
            if isinstance(error, SourceUnavailable):
                raise SourceUnavailable(f"The history of {self.scheme}:// cannot be had: {error.message}") from None
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        self._past = None  # the repository is closed when no thread works with it any more

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        page = await super().list(scope, cursor=cursor, limit=limit)
        return replace(page, items=await self._dated(page.items, scope))

    async def stat(self, ref: Ref) -> Entry:
        if ref.param("commit") is not None:
            return await self._in_thread(lambda: self._then(ref).stat(ref), ref)
        return (await self._dated([await super().stat(ref)], ref))[0]

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        """Also `?commit=`: the file as it was then, or a range of it."""
        if ref.param("commit") is not None:
            return await self._in_thread(lambda: self._then(ref).read(ref, max_bytes), ref)
        content = await super().read(ref, max_bytes=max_bytes)
        return replace(content, entry=(await self._dated([content.entry], ref))[0])

    async def past(self, ref: Ref, *, limit: int) -> Sequence[Entry]:
        found = await self._looking_back(ref, lambda files, plain, stop: files.past(plain, limit, stop))
        return found or []

    async def pinned(self, ref: Ref, name: str) -> Entry | None:
        """At a tag of what HEAD has gone through; with `history="all"` also at a commit or a day of it."""
        return await self._looking_back(ref, lambda files, plain, stop: files.pinned(plain, name, stop))

    async def _looking_back(self, ref: Ref, work: Callable[[GitFiles, Ref, Callable[[], bool]], T]) -> T | None:
        """None for what has no past."""
        where = self._served(ref)
        present = await super().stat(ref)
        if present.target is not None:
            return None
        cancelled, until = threading.Event(), self._monotonic() + MAX_SECONDS

        def look() -> T | None:
            past = self._found()
            tip = past.files.find_tip()
            if tip is None or past.files.held(tip, where.names) is None:
                return None
            stop = lambda: cancelled.is_set() or self._monotonic() > until  # noqa: E731
            return work(past.files, Ref(self.scheme, where.names), stop)

        try:
            return await self._in_thread(look, ref)
        finally:
            cancelled.set()

    def _then(self, ref: Ref) -> GitFiles:
        """Refuses an old state by its name alone."""
        if ref.scheme != self.scheme or ref.absolute or not ref.segments:
            raise not_found(ref)
        refuse_unknown(ref, _PARAMETERS)
        past = self._found()
        if past.rules.verdict(ref.segments) != "served":
            raise not_found(ref)
        return past.files

    async def _dated(self, entries: Sequence[Entry], ref: Ref) -> tuple[Entry, ...]:
        stop = threading.Event()
        try:
            return await self._in_thread(lambda: tuple(self._with_times(entries, stop.is_set)), ref)
        finally:
            stop.set()

    def _with_times(self, entries: Sequence[Entry], stop: Callable[[], bool]) -> Iterator[Entry]:
        try:
            past = self._found()
            tip = past.files.find_tip()
            times = {} if tip is None else past.files.times(tip)
        except SourceUnavailable:  # what lies there is served all the same
            tip, times = None, {}
        for entry in entries:
            names = self._addresses.where(entry.ref).names
            time = times.get(names)
            if tip is None or time is None or entry.target is not None or stop():
                yield entry
            else:
                yield replace(entry, modified=time) if self._is_committed(past, tip, names, entry, time) else entry

    def _is_committed(self, past: _Past, tip: Id, names: Names, entry: Entry, time: float) -> bool:
        """Of a large file its time must do."""
        if entry.size is None or entry.size > MAX_COMPARED:
            return entry.modified is not None and entry.modified <= time
        id = self._ids.get(entry.version)
        try:
            held = past.files.held(tip, names)
            if id is None:
                if held is None or past.repository.objects.size(held) != entry.size:
                    return False
                where = self._addresses.where(entry.ref)
                now, raw = self._forest.raw(entry.ref, where, MAX_COMPARED, wait=True)
                if now.version != entry.version:
                    return False
                id = hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).digest()
                self._ids.put(entry.version, id)
        except OctavoError:
            return False
        return id == held

    def _found(self) -> _Past:
        """Anew where the path of the root leads to another folder now. Raises SourceUnavailable."""
        with self._finding:
            real = self._forest.trees[0].real
            if self._past is None or self._past.real != real:
                tree = work_tree(Path(real))
                repository = Repository(tree.top, None, owner="self", clock=self._then_clock)
                rules = self._make_rules(without=_below(real, self._kept_out))
                self._past = _Past(real, repository, self._make_files(repository, rules, below=tree.below), rules)
            return self._past


def _below(real: str, places: Iterable[Path]) -> Iterator[Names]:
    for place in places:
        for path in {os.path.abspath(place), os.path.realpath(place)}:
            if Path(path).is_relative_to(real) and path != real:
                yield Path(path).relative_to(real).parts
