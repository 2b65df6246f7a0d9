"""Files of one or more directories as a source: the asynchronous half."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import InvalidParams, OctavoError, SourceUnavailable
from octavo.core.fair import FairQueue, FairThreads
from octavo.core.foundation import Foundation
from octavo.core.memo import Bounded
from octavo.core.query import ContentQuery, NameQuery
from octavo.core.ref import Ref
from octavo.core.sizes import MIB
from octavo.core.values import Change, Content, Entry, Page, Suggestion, Template
from octavo.sources._shared.fs.confine import Confinement
from octavo.sources._shared.fs.credentials import CREDENTIALS
from octavo.sources._shared.fs.faults import fault, not_found, outside, unserved
from octavo.sources._shared.fs.names import Rules, extension_of
from octavo.sources._shared.fs.notify import hints
from octavo.sources._shared.parts import DOCUMENT_BYTES, parse_range
from octavo.sources._shared.places import Where
from octavo.sources._shared.text import preferring
from octavo.sources.file.addresses import FileAddresses, FileRoot
from octavo.sources.file.complete import Completer
from octavo.sources.file.conversions import Forms, Raw, refuse_unknown_form
from octavo.sources.file.entries import Digests
from octavo.sources.file.pages import Titles, beginning, page
from octavo.sources.file.root import HardLinks, Symlinks, Tree
from octavo.sources.file.roots import Forest
from octavo.sources.file.snapshot import FileSnapshot
from octavo.sources.file.walk import folders
from octavo.sources.file.watch import FileWatcher

if TYPE_CHECKING:
    from octavo.core.external import Extent, Opening, Rights
    from octavo.sources.file.search.searcher import Searcher

T = TypeVar("T")
log = logging.getLogger(__name__)

_THREADS: Final = 8
_SURVEYS: Final = 2  # at once, one of a caller: each is a walk that keeps a processor busy
_SPARE: Final = 2  # which whoever has some of them leaves to others: a search may last as long as a request may
_CLOSE_SECONDS: Final = 5.0
_LOOKS: Final = 20_000  # files whose last look is remembered
_LOOK_SECONDS: Final = 1.0
_INDEX_BYTES: Final = 64 * MIB
_LEISURE: Final = 3  # times as long as it works, learning what files contain leaves the machine to others


class _Look(NamedTuple):
    """What a file was when it was last looked at, and how long that may be believed."""

    epoch: object
    until: float
    stamp: object


class FileSource:
    """Serves regular files below `roots`, whatever links, races and special files others put there.

    `extensions` and `hidden` are explained at `names.Rules`. `symlinks="inside"` serves a link whose target
    is in the same root and may itself be served; the entry's `target` says where it led. `only` narrows to
    further extensions, and a root's `within` to folders below it. Hard links are
    served, except (`auto`) in roots that other users can write. `list_under` and `list_recursive` bound
    what the listing of the whole source shows, not what can be read. `exclude_dirs` and `exclude_files` are
    never served and never watched, and nothing of `foundation` is ever changed. `secret` keys versions and
    etags. `index_bytes` bounds what is remembered of contents, so
    that most files need not be opened to search for a word. `form_seconds` bound the conversion of a document or
    a picture, and are less than a caller waits. `encodings` are tried before the usual ones where a text is not in
    UTF-8. `titles`: lists say what Markdown files call themselves.
    """

    def __init__(
        self,
        roots: Sequence[FileRoot],
        *,
        secret: bytes,
        extensions: Iterable[str] = (),
        only: Iterable[str] | None = None,
        hidden: Iterable[str] = CREDENTIALS,
        symlinks: Symlinks = "inside",
        hard_links: HardLinks = "auto",
        exclude_dirs: Sequence[Path] = (),
        exclude_files: Sequence[Path] = (),
        foundation: Foundation | None = None,
        list_under: str = "",
        list_recursive: bool = True,
        uris: Literal["relative", "absolute"] = "relative",
        templates: Sequence[Template] = (),
        scheme: str = "file",
        confinement: Confinement = "auto",
        clock: Clock | None = None,
        index_bytes: int = _INDEX_BYTES,
        form_seconds: float = 8.0,
        encodings: Sequence[str] = (),
        titles: bool = True,
    ) -> None:
        if not roots:
            raise InvalidParams("A file source needs at least one root")
        self.scheme = scheme
        self._clock = clock or SystemClock()
        self._roots = tuple(roots)
        self._addresses = FileAddresses(scheme, roots)
        self._digests = Digests(secret)
        extensions, hidden, only = tuple(extensions), tuple(hidden), None if only is None else tuple(only)
        self._rules = Rules(extensions, hidden, only=only)
        self._rules_of = [
            self._rules if root.within is None else Rules(extensions, hidden, only=only, within=root.within)
            for root in roots
        ]
        self._narrowed = any(rules.narrowed for rules in self._rules_of)
        self._tree = partial(
            Tree, confinement=confinement, symlinks=symlinks, hard_links=hard_links,
            exclude_dirs=tuple(exclude_dirs), exclude_files=tuple(exclude_files), foundation=foundation,
        )  # fmt: skip
        self._listed = Ref.of(scheme, [part for part in list_under.split("/") if part]).segments
        self._list_recursive = list_recursive
        self._absolute = uris == "absolute"  # no other scheme has such addresses
        general = Template(uri_template=f"{scheme}://{{+path}}", name="path", description="A file by its path")
        self._templates = (*templates, general)
        self._open: Forest | None = None
        self._pool: FairThreads | None = None
        self._surveys = FairQueue(_SURVEYS, "looks at folders", spare=_SURVEYS - 1)
        self._watcher: FileWatcher | None = None
        self._index_bytes = index_bytes
        self._searcher: Searcher | None = None
        self._learning: asyncio.Task[None] | None = None
        self._looks: Bounded[Ref, _Look] = Bounded(_LOOKS)
        self._forms = Forms(form_seconds)
        self._encodings = preferring(encodings)
        self._titled = titles
        self._titles: Titles | None = None

    def __repr__(self) -> str:
        return f"FileSource({self.scheme}://, {len(self._roots)} root(s))"

    async def __aenter__(self) -> FileSource:
        _refuse_overlap(self._roots)
        trees: list[Tree] = []
        try:
            for number, (root, rules) in enumerate(zip(self._roots, self._rules_of, strict=True), 1):
                try:
                    trees.append(self._tree(root.path, rules))
                except OSError as error:
                    reason = os.strerror(error.errno or 0)
                    raise SourceUnavailable(f"Root {number} of {self.scheme}:// cannot be opened: {reason}") from None
        except BaseException:
            for tree in trees:
                tree.close()
            raise
        self._open = Forest(
            trees, self._addresses, self._digests, self._clock.wall, absolute=self._absolute, encodings=self._encodings
        )
        self._titles = Titles(trees, self._digests, self._clock.wall, self._encodings) if self._titled else None
        self._pool = FairThreads(_THREADS, self.scheme, spare=_SPARE, further=1)
        self._watcher = FileWatcher(
            self._open, self._pool.executor, self._clock, hints([root.path for root in self._roots])
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        forest, pool, watcher, searcher = self._open, self._pool, self._watcher, self._searcher
        self._open = self._pool = self._watcher = self._searcher = None
        if forest is None or pool is None or watcher is None:
            return
        watcher.stop()
        if searcher is not None:
            searcher.stop()
        await self._forms.close()
        if self._learning is not None:
            self._learning.cancel()
        # A thread that still works holds numbers of descriptors: closing them under it could make it open
        # names below somebody else's directory. One that hangs keeps them, for ever if need be.
        ended = asyncio.ensure_future(asyncio.to_thread(_shut_down, pool, searcher))
        done, _ = await asyncio.wait({ended}, timeout=_CLOSE_SECONDS)
        if done:
            watcher.close()
            forest.close()

    @property
    def trouble(self) -> str:
        """What is wrong with its folders now, in words for an operator; empty where nothing is."""
        trees = () if self._open is None else self._open.trees
        return "" if all(tree.is_there for tree in trees) else "its folder is not there, or may not be read"

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        return await self._page(scope, cursor, limit)

    async def list_levels(self, scope: Ref, *, depth: int, cursor: str | None, limit: int) -> Page[Entry]:
        return await self._page(scope, cursor, limit, depth)

    async def _page(self, scope: Ref, cursor: str | None, limit: int, depth: int | None = None) -> Page[Entry]:
        where = self._addresses.where(scope)
        most_names = None if depth is None else len(where.names) + max(depth, 1)
        recursive = True
        if not where.names:
            where, recursive = Where(self._listed, where.roots), self._list_recursive
        stop = threading.Event()
        work = partial(
            page, self._forest, where, cursor=cursor, limit=max(1, limit), recursive=recursive, stop=stop.is_set,
            most_names=most_names, titles=self._titles,
        )  # fmt: skip
        try:
            return await self._in_thread(work, scope)
        finally:
            stop.set()  # a thread whose caller has gone away stops at the next directory

    async def folders(self, scope: Ref, *, depth: int | None, limit: int) -> Sequence[Ref]:
        where, forest, stop = self._addresses.where(scope), self._forest, threading.Event()
        if not where.names:  # as far as a listing of the whole source goes
            where = Where(self._listed, where.roots)
            deeper = None if depth is None else depth - len(self._listed)
            if deeper is not None and deeper < 0:
                return ()
            depth = deeper if self._list_recursive else 0
        work = partial(folders, forest.trees, where, depth=depth, limit=max(1, limit), stop=stop.is_set)
        try:
            return [forest.folder(place) for place in await self._in_thread(work, scope)]
        finally:
            stop.set()

    async def survey(self, root: int, names: Sequence[str], rights: Rights) -> Extent:
        from octavo.sources.file.extent import Survey  # here: most servers start no programs

        stop = threading.Event()
        survey = Survey(self._forest, root, self._addresses, rights, stop.is_set)
        try:
            async with self._surveys.turn():
                return await self._in_thread(partial(survey.of, names), self._addresses.of(tuple(names), root))
        finally:
            stop.set()

    async def opening(self, root: int, names: Sequence[str]) -> tuple[Ref, Opening]:
        from octavo.sources.file.extent import opening  # here: most servers start no programs

        start = tuple(names)
        work = partial(opening, self._forest.trees[root], start)
        own, found = await self._in_thread(work, self._addresses.of(start, root))
        return self._addresses.of(own, root), found

    async def search(
        self,
        scope: Ref,
        query: NameQuery | ContentQuery,
        *,
        cursor: str | None,
        limit: int,
        deadline: float = 5.0,
    ) -> Page[Entry]:
        """Files under the scope whose name, or text as it is on disk, matches; ordered as a listing.

        After `deadline` seconds the page holds what was found so far, and a cursor to go on. Links are found by
        name only: what they lead to is searched under its own address. What was changed before the call is seen,
        except where a directory cannot be followed, or for a text that is remembered and was changed through a
        memory mapping: then when the watch has looked again.
        """
        if self._watcher is None:
            raise _closed()
        searcher, where = self._searching(), self._addresses.where(scope)
        begun = self._clock.monotonic()
        snapshot = await self._watcher.settled(deadline)
        if snapshot is None:
            return Page((), cursor or beginning(where))
        stop = threading.Event()
        left = deadline - (self._clock.monotonic() - begun)
        work = partial(
            searcher.page, snapshot, where, query, cursor=cursor, limit=max(1, limit), seconds=left, stop=stop.is_set
        )
        try:
            return await self._in_thread(work, scope)
        finally:
            stop.set()
            if isinstance(query, ContentQuery) and (self._learning is None or self._learning.done()):
                self._learning = asyncio.get_running_loop().create_task(self._learn(searcher, snapshot))

    async def learned(self) -> None:
        """Returns when as much is remembered of contents as can be; searches begin that by themselves, at leisure."""
        if self._watcher is None:
            raise _closed()
        searcher, watcher = self._searching(), self._watcher
        await watcher.armed()
        snapshot = await watcher.settled(_CLOSE_SECONDS)
        if snapshot is not None:
            await self._learn(searcher, snapshot, leisure=0)

    def _searching(self) -> Searcher:
        if self._searcher is None:
            from octavo.sources.file.search.searcher import (
                Searcher,  # here: most servers answer their first call sooner
            )

            self._searcher = Searcher(self._forest, self._clock, self._index_bytes)
        return self._searcher

    async def _learn(self, searcher: Searcher, snapshot: FileSnapshot, leisure: float = _LEISURE) -> None:
        steps = searcher.learn(snapshot)
        try:
            while (spent := await self._in_thread(partial(next, steps, None), Ref(self.scheme))) is not None:
                await asyncio.sleep(leisure * spent)
        except OctavoError as error:
            log.info("Contents are not remembered further for now: %s", error)

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
        """Small files that are in memory are read without leaving the loop, or needing a task.

        `?range=0-65535` gives those bytes of a file of any size, `?as=text` the text of a document, `?as=image` a
        picture with fewer pixels.
        """
        forest, where = self._forest, self._served(ref)
        if ref.params and (found := await self._read_otherwise(ref, where, max_bytes)) is not None:
            return found
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

    async def suggest(
        self, template: str, argument: str, prefix: str, given: Mapping[str, str]
    ) -> Iterable[Suggestion]:
        return await self._suggest(None, template, argument, prefix, given)

    async def suggest_more(
        self, after: Suggestion, template: str, argument: str, prefix: str, given: Mapping[str, str]
    ) -> Iterable[Suggestion]:
        return await self._suggest(after.entry.ref, template, argument, prefix, given)

    async def _suggest(
        self, after: Ref | None, template: str, argument: str, prefix: str, given: Mapping[str, str]
    ) -> Iterable[Suggestion]:
        stop = threading.Event()
        completer = Completer(self._forest, self._addresses, [template], stop.is_set, after)
        try:
            return await self._in_thread(partial(completer.suggestions, argument, prefix, given), Ref(self.scheme))
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

    async def is_twin(self, ref: Ref, names: Sequence[str]) -> bool:
        where, trees, written = self._addresses.where(ref), self._forest.trees, tuple(names)
        return await self._in_thread(lambda: any(trees[k].is_twin(where.names, written) for k in where.roots), ref)

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
                self._looks.keep(ref, _Look(epoch, now + _LOOK_SECONDS, stamp))
            return stamp
        except Exception:  # a stamp that cannot be had is no stamp
            return None

    async def caught_up(self) -> object | None:
        return None if self._watcher is None else await self._watcher.caught_up()

    def changed_since(self, stamp: object) -> Sequence[Ref] | None:
        return None if self._watcher is None else self._watcher.changed_since(stamp)

    def templates(self) -> Sequence[Template]:
        return self._templates

    async def _read_otherwise(self, ref: Ref, where: Where, max_bytes: int) -> Content | None:
        forest, part, form = self._forest, ref.param("range"), ref.param("as")
        if part is not None:
            if ref.param("encoding") is not None:
                raise InvalidParams("An encoding can be chosen for a whole file only, not for a range", uri=str(ref))
            begin, length = parse_range(ref, part, max_bytes)
            return await self._in_thread(partial(forest.part, ref, where, begin, length), ref)
        if form is None:
            return None
        refuse_unknown_form(ref, form)

        def raw(*, wait: bool) -> Raw:
            entry, body = forest.raw(ref, where, DOCUMENT_BYTES, wait=wait)
            return entry, bytes(body), forest.etag(body)  # a digest of all of it: of a large one nothing for the loop

        async def read() -> Raw:
            try:
                return raw(wait=False)
            except BlockingIOError:
                return await self._in_thread(partial(raw, wait=True), ref)

        return await self._forms.content(ref, read, max_bytes)

    @property
    def _forest(self) -> Forest:
        if self._open is None:
            raise _closed()
        return self._open

    def _served(self, ref: Ref) -> Where:
        """Refuses by name alone, before the disk is asked."""
        where = self._addresses.where(ref)
        if self._narrowed and not any(self._rules_of[k].covers(where.names) for k in where.roots):
            raise outside(ref)
        verdict = self._rules.verdict(where.names)
        if verdict == "hidden":
            raise not_found(ref)
        if verdict == "extension":
            raise unserved(ref, extension_of(where.names), self._rules.served)
        return where

    async def _in_thread(self, work: Callable[[], T], ref: Ref) -> T:
        if self._pool is None:
            raise _closed()
        try:
            return await self._pool.run(work)
        except OSError as error:
            raise fault(error, ref) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._open is None and task is not None and not task.cancelling():
                raise _closed() from None  # nobody cancelled the caller: the work was, when the source closed
            raise


def _shut_down(pool: FairThreads, searcher: Searcher | None) -> None:
    pool.shutdown()
    if searcher is not None:
        searcher.close()


def _closed() -> SourceUnavailable:
    return SourceUnavailable("The source is not open")


def _refuse_overlap(roots: Sequence[FileRoot]) -> None:
    """A file in two roots would have two addresses, and a rule on one would not hold for the other."""
    real = [Path(os.path.realpath(root.path)) for root in roots]
    for k, mine in enumerate(real):
        for j, other in enumerate(real[:k]):
            if mine.is_relative_to(other) or other.is_relative_to(mine):
                raise InvalidParams(f"Roots {j + 1} and {k + 1} of one source overlap")
