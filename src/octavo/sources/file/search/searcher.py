"""From a query to a page. Blocking; a page ends when it is full, when the time is over, or with the last file."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple

from octavo.core.clock import Clock
from octavo.core.errors import SourceUnavailable
from octavo.core.query import ContentQuery, NameQuery, Query
from octavo.core.sizes import KIB
from octavo.core.values import Entry, Page
from octavo.sources._shared.places import Place, Where, opened, sealed
from octavo.sources.file.entries import FileFacts
from octavo.sources.file.roots import Forest
from octavo.sources.file.search.ignores import Ignored, Ignores
from octavo.sources.file.search.index import FileIndex
from octavo.sources.file.search.needle import Needle, text_of
from octavo.sources.file.search.paths import key_of, names_of
from octavo.sources.file.search.scan import FoundPlaces, Keyed, SearchScan
from octavo.sources.file.search.signatures import Contents, Known
from octavo.sources.file.snapshot import FileSnapshot
from octavo.text.patterns import Pattern, name_pattern, path_pattern

# Files that are in memory are read fastest by one thread, since Python runs one at once and changing between
# them costs more than a read. Where the disk is waited for, several wait together.
_READERS: Final = 4
_PARTS_AHEAD: Final = 2 * _READERS
_FILES_A_PART: Final = 256
_LEARNT_BYTES: Final = 256 * KIB  # larger files are always opened
_LEARNING_SECONDS: Final = 0.004  # at a time: Python runs one thread at once


class _Step(NamedTuple):
    """What was found among some files, and the last of these."""

    found: Iterable[Place]
    last: Place


class Searcher:
    """`limit` bounds the bytes of what is remembered of contents."""

    def __init__(self, forest: Forest, clock: Clock, limit: int) -> None:
        self._forest = forest
        self._clock = clock
        self._limit = limit
        self._ignores = Ignores(forest)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="octavo-search")
        self._making = threading.Lock()
        self._index: FileIndex | None = None
        self._scans: set[threading.Event] = set()  # those that read now; each has its share of what is read ahead
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        """Waits for every reader."""
        self.stop()
        self._readers.shutdown(cancel_futures=True)

    def index(self, snapshot: FileSnapshot) -> FileIndex:
        """Made for the first search: whoever only reads does not pay for it."""
        with self._making:
            if self._index is None:
                index = FileIndex(len(self._forest.trees), self._limit)
                snapshot.feed(index)
                self._index = index
            return self._index

    def page(
        self,
        snapshot: FileSnapshot,
        where: Where,
        query: Query,
        *,
        cursor: str | None,
        limit: int,
        seconds: float,
        stop: Callable[[], bool],
    ) -> Page[Entry]:
        end = self._clock.monotonic() + seconds
        last = None if cursor is None else opened(cursor, where)
        index = self.index(snapshot)
        items: list[Entry] = []

        def is_stopped() -> bool:
            return stop() or self._stopped.is_set()

        steps = (
            self._names(index, where, query, last)
            if isinstance(query, NameQuery)
            else self._contents(index, where, query, last, is_stopped)
        )
        with closing(steps):
            for step in steps:
                if is_stopped():
                    raise SourceUnavailable("The search was stopped")
                for place in step.found:
                    facts = self._forest.facts(place)
                    if facts is None:
                        continue
                    items.append(self._forest.listed(place, facts, shadowed=self._forest.is_shadowed(place)))
                    if len(items) == limit:
                        is_last = isinstance(query, NameQuery) and next(steps, None) is None
                        return Page(tuple(items), None if is_last else sealed(place))
                if self._clock.monotonic() >= end:
                    return Page(tuple(items), sealed(step.last))
        return Page(tuple(items))

    def learn(self, snapshot: FileSnapshot) -> Iterator[float]:
        """Remembers what is in files of which nothing is known, a moment at a time; gives the seconds it took."""
        index = self.index(snapshot)
        begun = self._clock.monotonic()
        for place, paths, number in index.unknown():
            if self._stopped.is_set():
                return
            sample = self._forest.sample(place, _LEARNT_BYTES)
            if sample is not None:
                raw, facts = sample
                index.sign(
                    place.root,
                    paths,
                    number,
                    _contents(place, raw, facts, self._forest.encodings),
                    partial(_knows, snapshot, place, facts),
                )
            spent = self._clock.monotonic() - begun
            if spent > _LEARNING_SECONDS:
                yield spent
                begun = self._clock.monotonic()

    def _names(
        self, index: FileIndex, where: Where, query: NameQuery, last: Place | None
    ) -> Generator[_Step, None, None]:
        pattern = name_pattern(query.text)
        ignored = Ignored(self._ignores) if query.gitignore else None
        scope, begin = key_of(where.names), b"" if last is None else key_of(last.names)
        streams = [_rooted(index.catalog(root).keys(scope, begin, pattern), root) for root in where.roots]
        for key, root in _after(last, streams):
            place = Place(names_of(key), root)
            yield _Step(() if ignored is not None and ignored.file(place) else (place,), place)

    def _contents(
        self, index: FileIndex, where: Where, query: ContentQuery, last: Place | None, stop: Callable[[], bool]
    ) -> Generator[_Step, None, None]:
        needle = Needle(query, self._forest.encodings)
        include = path_pattern(query.include) if query.include else None
        exclude = path_pattern(query.exclude) if query.exclude else None
        scope, begin = key_of(where.names), b"" if last is None else key_of(last.names)
        streams: list[Iterator[Keyed]] = []
        for root in where.roots:
            catalog, numbers = index.candidates(root, needle.pieces)
            streams.append(_rooted(_without(exclude, catalog.keys(scope, begin, include, numbers)), root))
        ended = threading.Event()
        ignored = Ignored(self._ignores) if query.gitignore else None
        scan = SearchScan(self._forest, needle, query.max_file_bytes, ignored, lambda: ended.is_set() or stop())
        files = _after(last, streams)
        waiting: deque[tuple[Keyed, Future[FoundPlaces]]] = deque()
        ahead = 1
        self._scans.add(ended)
        try:
            while True:
                while len(waiting) < ahead and (part := list(islice(files, _FILES_A_PART))):
                    waiting.append((part[-1], self._readers.submit(scan.found, part)))
                if not waiting:
                    return
                (key, root), part_found = waiting.popleft()
                found, from_disk = part_found.result()
                ahead = max(1, _PARTS_AHEAD // len(self._scans)) if from_disk else 1
                yield _Step(found, Place(names_of(key), root))
        finally:
            self._scans.discard(ended)
            ended.set()
            for _, part_found in waiting:
                part_found.cancel()


def _contents(place: Place, raw: bytes | None, facts: FileFacts, encodings: Sequence[str]) -> Contents:
    """What a search would find there. A link has no contents of its own."""
    if facts.own != place.names:
        return Known.IS_NO_TEXT
    if raw is None:
        return Known.IS_TEXT
    text = text_of(raw, place.names[-1].encode(), encodings)
    return Known.IS_NO_TEXT if text is None else text


def _knows(snapshot: FileSnapshot, place: Place, facts: FileFacts) -> bool:
    return snapshot.known(place) == facts


def _rooted(keys: Iterator[bytes], root: int) -> Iterator[Keyed]:
    return ((key, root) for key in keys)


def _without(pattern: Pattern | None, keys: Iterator[bytes]) -> Iterator[bytes]:
    return keys if pattern is None else (key for key in keys if not pattern.search(key))


def _after(last: Place | None, streams: list[Iterator[Keyed]]) -> Iterator[Keyed]:
    files = streams[0] if len(streams) == 1 else merge(*streams)
    if last is None:
        return files
    mark = (key_of(last.names), last.root)
    return (file for file in files if file > mark)
