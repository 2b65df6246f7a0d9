"""A branch of a git repository as a source: the asynchronous half."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, TypeVar

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import InvalidParams, OctavoError, SourceUnavailable
from octavo.core.fair import FairThreads
from octavo.core.memo import Bounded
from octavo.core.parameters import refuse_unknown, unknown
from octavo.core.ref import Ref
from octavo.core.values import Change, Content, Entry, Page
from octavo.sources._shared.fs.credentials import CREDENTIALS
from octavo.sources._shared.fs.faults import not_found
from octavo.sources._shared.fs.names import Rules
from octavo.sources._shared.fs.notify import hints
from octavo.sources._shared.git.files import GitFiles, History
from octavo.sources._shared.git.history import MAX_SECONDS
from octavo.sources._shared.git.objects import Id
from octavo.sources._shared.git.repository import Foreign, Owner, Repository
from octavo.sources._shared.text import preferring
from octavo.sources.git.parameters import PARAMETERS
from octavo.sources.git.watch import GitWatcher

T = TypeVar("T")

_THREADS: Final = 4
_MOVES: Final = 64  # of the branch that are remembered


class GitSource:
    """Serves the regular files of a branch as they are committed; the work tree is not looked at.

    `path` is a clone or a bare repository, `branch` None is the one that HEAD names. Nothing of the repository's own
    configuration counts, nothing of it runs, links and submodules in its trees are not followed. `extensions`, `only`
    and `hidden` are explained at `file.names.Rules`. `history` says which older states can be asked for: none, what a
    file was and tags, or also commits and days. `secret` keys versions and etags. `name` stands in errors.

    A store for catalogs: `?commit=` reads any commit of the repository, so its addresses are not for callers.
    """

    def __init__(
        self,
        path: Path,
        *,
        secret: bytes,
        branch: str | None = None,
        extensions: Iterable[str] = (),
        only: Iterable[str] | None = None,
        hidden: Iterable[str] = CREDENTIALS,
        encodings: Sequence[str] = (),
        history: History = "refs",
        owner: Owner = "self",
        scheme: str = "git",
        name: str = "git",
        clock: Clock | None = None,
    ) -> None:
        self.scheme = scheme
        self._path, self._branch, self._owner, self._name = path, branch, owner, name
        self._secret, self._history = secret, history
        self._rules = Rules(extensions, hidden, only=only)
        self._encodings = preferring(encodings)
        self._clock = clock or SystemClock()
        self._repository: Repository | None = None
        self._files: GitFiles | None = None
        self._pool: FairThreads | None = None
        self._watcher: GitWatcher | None = None
        self._stamp: tuple[int, Id | None] = (0, None)
        self._moves: Bounded[Id, tuple[Id, Sequence[Ref]]] = Bounded(_MOVES)

    def __repr__(self) -> str:
        return f"GitSource({self.scheme}://, {self._name})"

    async def __aenter__(self) -> GitSource:
        """Raises SourceUnavailable for what is no repository, or has no such branch."""
        try:
            self._repository = Repository(self._path, self._branch, owner=self._owner, clock=self._clock)
            self._pool = FairThreads(_THREADS, self.scheme, spare=1)
            self._files = GitFiles(
                self._repository,
                self._rules,
                self.scheme,
                secret=self._secret,
                encodings=self._encodings,
                history=self._history,
                monotonic=self._clock.monotonic,
            )
            await self.tip()
        except SourceUnavailable as error:
            await self.__aexit__(None, None, None)
            trust = "; owner: any trusts them" if isinstance(error, Foreign) else ""
            raise SourceUnavailable(f"The git repository of {self._name}: {error.message}{trust}") from None
        self._watcher = GitWatcher(self, self._repository, hints([self._path]))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        repository, pool, watcher = self._repository, self._pool, self._watcher
        self._repository = self._files = self._pool = self._watcher = None
        if watcher is not None:
            watcher.close()
        if pool is not None:
            await asyncio.to_thread(pool.shutdown)
        if repository is not None:
            repository.close()

    @property
    def trouble(self) -> str:
        return "" if self._repository is None or self._repository.is_there else "its repository is not there"

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        if limit < 1:
            raise InvalidParams("A page holds at least one entry")
        if scope.params:
            raise unknown(scope, scope.params[0][0], PARAMETERS)
        if scope.scheme != self.scheme or scope.absolute:
            return Page(())
        stop = threading.Event()
        try:
            return await self._in_thread(lambda files: files.page(scope, cursor, limit, stop.is_set))
        finally:
            stop.set()  # a thread whose caller has gone away stops

    async def stat(self, ref: Ref) -> Entry:
        self._refuse(ref)
        return await self._in_thread(lambda files: files.stat(ref))

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        """`?range=0-65535` gives those bytes, `?commit=` the file as it was then."""
        self._refuse(ref)
        return await self._in_thread(lambda files: files.read(ref, max_bytes))

    async def past(self, ref: Ref, *, limit: int) -> Sequence[Entry]:
        self._refuse(ref)
        return await self._looking_back(lambda files, stop: files.past(ref, limit, stop))

    async def pinned(self, ref: Ref, name: str) -> Entry | None:
        """At a tag of the branch; with `history="all"` also at a commit or a day of it."""
        self._refuse(ref)
        return await self._looking_back(lambda files, stop: files.pinned(ref, name, stop))

    async def _looking_back(self, work: Callable[[GitFiles, Callable[[], bool]], T]) -> T:
        cancelled, until = threading.Event(), self._clock.monotonic() + MAX_SECONDS
        try:
            return await self._in_thread(
                lambda files: work(files, lambda: cancelled.is_set() or self._clock.monotonic() > until)
            )
        finally:
            cancelled.set()

    def watch(self, scope: Ref) -> AsyncIterator[Change]:
        if self._watcher is None:
            raise _closed()
        return self._watcher.watch(scope)

    async def armed(self) -> None:
        if self._watcher is not None:
            await self._watcher.armed()

    async def tip(self) -> Id:
        return await self._in_thread(GitFiles.tip)

    async def remember(self, commit: Id) -> None:
        await self._in_thread(lambda files: files.remember(commit))

    async def told(self, old: Id, new: Id) -> Sequence[Change]:
        changes = await self._in_thread(lambda files: files.told(old, new, self._clock.wall()))
        self._moves.keep(old, (new, [ref for one in changes for ref in (one.ref, one.source) if ref is not None]))
        return changes

    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
        """The commit that the branch is at: a few looks at small files tell whether it is still that one."""
        if self._repository is None:
            return None
        if not moment or self._stamp[0] != moment:
            try:
                self._stamp = (moment, self._repository.refs.commit(wait=False))
            except (OSError, OctavoError):
                return None
        return self._stamp[1]

    def changed_since(self, stamp: object) -> Sequence[Ref] | None:
        """As far as the watch has followed the branch from there to the last stamp."""
        refs: list[Ref] = []
        at, now = stamp, self._stamp[1]
        for _ in range(_MOVES):
            if at == now:
                return refs
            move = self._moves.get(at) if isinstance(at, bytes) else None
            if move is None:
                return None
            at = move[0]
            refs += move[1]
        return None

    def _refuse(self, ref: Ref) -> None:
        """By name alone, before anything is looked at."""
        if ref.scheme != self.scheme or ref.absolute or not ref.segments:
            raise not_found(ref)
        refuse_unknown(ref, PARAMETERS)
        if self._rules.verdict(ref.segments) != "served":
            raise not_found(ref)

    async def _in_thread(self, work: Callable[[GitFiles], T]) -> T:
        files, pool = self._files, self._pool
        if files is None or pool is None:
            raise _closed()
        try:
            return await pool.run(work, files)
        except OSError:
            raise SourceUnavailable("The repository did not answer", retry_after=1.0) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._files is None and task is not None and not task.cancelling():
                raise _closed() from None  # nobody cancelled the caller: the work was, when the source closed
            raise


def _closed() -> SourceUnavailable:
    return SourceUnavailable("The source is not open")
