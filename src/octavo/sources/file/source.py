"""Files of one or more directories as a source: the asynchronous half."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, NamedTuple, TypeVar

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import InvalidParams, OctavoError, SourceUnavailable
from octavo.core.model import Change, Content, Entry, Page, Template
from octavo.core.ref import Ref
from octavo.sources.file.addresses import Addresses, FileRoot, Where
from octavo.sources.file.complete import Completer
from octavo.sources.file.confine import Confinement
from octavo.sources.file.entries import Digests
from octavo.sources.file.faults import fault, forbidden, not_found
from octavo.sources.file.forest import Forest
from octavo.sources.file.hints import hints
from octavo.sources.file.names import CREDENTIALS, Rules
from octavo.sources.file.pages import page
from octavo.sources.file.tree import HardLinks, Symlinks, Tree
from octavo.sources.file.watch import Watcher

T = TypeVar("T")

_THREADS: Final = 8
_CLOSE_SECONDS: Final = 5.0
_LOOKS: Final = 20_000  # files whose last look is remembered
_LOOK_SECONDS: Final = 1.0


class _Look(NamedTuple):
    """What a file was when it was last looked at, and how long that may be believed."""

    epoch: object
    until: float
    stamp: object


class FileSource:
    """Serves regular files below `roots`, whatever links, races and special files others put there.

    `extensions` and `hidden` are explained at `names.Rules`. `symlinks="inside"` serves a link whose target
    is in the same root and may itself be served; the entry's `target` says where it led. Hard links are
    served, except (`auto`) in roots that other users can write. `list_under` and `list_recursive` bound
    what the listing of the whole source shows, not what can be read. `exclude_dirs` are never served and
    never watched. `secret` keys versions and etags.
    """

    def __init__(
        self,
        roots: Sequence[FileRoot],
        *,
        secret: bytes,
        extensions: Iterable[str] = (),
        hidden: Iterable[str] = CREDENTIALS,
        symlinks: Symlinks = "inside",
        hard_links: HardLinks = "auto",
        exclude_dirs: Sequence[Path] = (),
        list_under: str = "",
        list_recursive: bool = True,
        uris: Literal["relative", "absolute"] = "relative",
        templates: Sequence[Template] = (),
        scheme: str = "file",
        confinement: Confinement = "auto",
        clock: Clock | None = None,
    ) -> None:
        if not roots:
            raise InvalidParams("A file source needs at least one root")
        if uris == "absolute" and scheme != "file":
            raise InvalidParams("Only the scheme file has absolute addresses")
        self.scheme = scheme
        self._clock = clock or SystemClock()
        self._roots = tuple(roots)
        self._addresses = Addresses(scheme, roots)
        self._digests = Digests(secret)
        self._rules = Rules(extensions, hidden)
        self._tree = partial(
            Tree, rules=self._rules, confinement=confinement, symlinks=symlinks, hard_links=hard_links,
            exclude_dirs=tuple(exclude_dirs),
        )  # fmt: skip
        self._listed = Ref.of(scheme, [part for part in list_under.split("/") if part]).segments
        self._list_recursive = list_recursive
        self._absolute = uris == "absolute"
        general = Template(uri_template=f"{scheme}://{{+path}}", name="path", description="A file by its path")
        self._templates = (*templates, general)
        self._open: Forest | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._watcher: Watcher | None = None
        self._looks: dict[Ref, _Look] = {}

    def __repr__(self) -> str:
        return f"FileSource({self.scheme}://, {len(self._roots)} root(s))"

    async def __aenter__(self) -> FileSource:
        _refuse_overlap(self._roots)
        trees: list[Tree] = []
        try:
            for number, root in enumerate(self._roots, 1):
                try:
                    trees.append(self._tree(root.path))
                except OSError as error:
                    reason = os.strerror(error.errno or 0)
                    raise SourceUnavailable(f"Root {number} of {self.scheme}:// cannot be opened: {reason}") from None
        except BaseException:
            for tree in trees:
                tree.close()
            raise
        self._open = Forest(trees, self._addresses, self._digests, self._clock.wall, absolute=self._absolute)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"octavo-{self.scheme}")
        self._watcher = Watcher(self._open, self._pool, self._clock, hints([root.path for root in self._roots]))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        forest, pool, watcher = self._open, self._pool, self._watcher
        self._open = self._pool = self._watcher = None
        if forest is None or pool is None or watcher is None:
            return
        watcher.stop()
        # A thread that still works holds numbers of descriptors: closing them under it could make it open
        # names below somebody else's directory. One that hangs keeps them, for ever if need be.
        ended = asyncio.ensure_future(asyncio.to_thread(pool.shutdown, cancel_futures=True))
        done, _ = await asyncio.wait({ended}, timeout=_CLOSE_SECONDS)
        if done:
            watcher.close()
            forest.close()

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        where = self._addresses.where(scope)
        recursive = True
        if not where.names:
            where, recursive = Where(self._listed, where.roots), self._list_recursive
        stop = threading.Event()
        work = partial(
            page, self._forest, where, cursor=cursor, limit=max(1, limit), recursive=recursive, stop=stop.is_set
        )
        try:
            return await self._in_thread(work, scope)
        finally:
            stop.set()  # a thread whose caller has gone away stops at the next directory

    async def armed(self) -> None:
        if self._watcher is not None:
            await self._watcher.armed()

    async def stat(self, ref: Ref) -> Entry:
        forest, where = self._forest, self._served(ref)
        try:
            return forest.stat(ref, where, wait=False)
        except BlockingIOError:
            return await self._in_thread(partial(forest.stat, ref, where, wait=True), ref)

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        """Small files that are in memory are read without leaving the loop, or needing a task."""
        forest, where = self._forest, self._served(ref)
        try:
            return forest.read(ref, where, max_bytes, wait=False)
        except BlockingIOError:
            return await self._in_thread(partial(forest.read, ref, where, max_bytes, wait=True), ref)

    def watch(self, scope: Ref) -> AsyncIterator[Change]:
        """Changes of the files that a listing of the scope would show, hidden ones aside."""
        if self._watcher is None:
            raise _closed()
        return self._watcher.watch(self._addresses.where(scope))

    async def complete(self, argument: str, prefix: str, given: Mapping[str, str]) -> Sequence[str]:
        stop = threading.Event()
        templates = [template.uri_template for template in self._templates]
        completer = Completer(self._forest, self._addresses, templates, stop.is_set)
        try:
            return await self._in_thread(partial(completer.values, argument, prefix, given), Ref(self.scheme))
        finally:
            stop.set()

    def canonical(self, ref: Ref) -> Ref:
        return self._addresses.canonical(ref)

    def spelled(self, ref: Ref) -> Ref:
        where = self._addresses.where(ref)
        root = where.roots[0]
        if len(where.roots) > 1 and self._open is not None:
            try:
                root = self._open.root_of(where)
            except OSError:  # nothing there, or not at once: the first root is where it would be made
                pass
        return self._addresses.absolute(where.names, root) or ref

    def refuses(self, ref: Ref) -> OctavoError | None:
        try:
            self._served(ref)
        except OctavoError as refused:
            return refused
        return None

    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
        """For a listing the watch tells; for the rest one look at the file, through the same confinement.

        A look holds as long as the kernel has reported nothing from the whole tree. It reports a change
        before the call that made it returns, so that is as fresh as looking again. Writes through a mapping
        or through a hard link elsewhere are not reported: for those a look is repeated after a moment.
        """
        try:
            epoch = None if self._watcher is None else self._watcher.epoch(moment)
            if op == "list":
                return epoch
            if epoch is None:
                return self._forest.stamp(self._served(ref))
            now = self._clock.monotonic()
            look = self._looks.get(ref)
            if look is not None and look.epoch == epoch and look.until > now:
                return look.stamp
            stamp = self._forest.stamp(self._served(ref))
            if stamp is not None:
                if len(self._looks) >= _LOOKS:
                    self._looks.clear()
                self._looks[ref] = _Look(epoch, now + _LOOK_SECONDS, stamp)
            return stamp
        except Exception:  # a stamp that cannot be had is no stamp
            return None

    def templates(self) -> Sequence[Template]:
        return self._templates

    @property
    def _forest(self) -> Forest:
        if self._open is None:
            raise _closed()
        return self._open

    def _served(self, ref: Ref) -> Where:
        """Refuses by name alone, before the disk is asked."""
        where = self._addresses.where(ref)
        verdict = self._rules.verdict(where.names)
        if verdict == "hidden":
            raise not_found(ref)
        if verdict == "extension":
            raise forbidden(ref)
        return where

    async def _in_thread(self, work: Callable[[], T], ref: Ref) -> T:
        if self._pool is None:
            raise _closed()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        except OSError as error:
            raise fault(error, ref) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._open is None and task is not None and not task.cancelling():
                raise _closed() from None  # nobody cancelled the caller: the work was, when the source closed
            raise


def _closed() -> SourceUnavailable:
    return SourceUnavailable("The source is not open")


def _refuse_overlap(roots: Sequence[FileRoot]) -> None:
    """A file in two roots would have two addresses, and a rule on one would not hold for the other."""
    real = [Path(os.path.realpath(root.path)) for root in roots]
    for k, mine in enumerate(real):
        for j, other in enumerate(real[:k]):
            if mine.is_relative_to(other) or other.is_relative_to(mine):
                raise InvalidParams(f"Roots {j + 1} and {k + 1} of one source overlap")
