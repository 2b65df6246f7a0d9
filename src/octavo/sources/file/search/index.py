"""Everything that is served, by path, and what is known of its contents. The watch keeps it right."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from octavo.sources._shared.places import Place
from octavo.sources.file.search.paths import Catalog, Paths, key_of, names_of
from octavo.sources.file.search.signatures import Contents, Signatures


class FileIndex:
    """`limit` bounds the bytes of what is known of contents. Safe for many threads: paths are replaced as a whole."""

    def __init__(self, roots: int, limit: int) -> None:
        self._lock = threading.Lock()
        self._limit = limit // roots
        self._catalogs = [Catalog(Paths()) for _ in range(roots)]
        self._signatures = [Signatures(0, 0) for _ in range(roots)]

    def fill(self, places: Iterable[Place]) -> None:
        """Everything that is served now."""
        keys: list[list[bytes]] = [[] for _ in self._catalogs]
        for names, root in places:
            keys[root].append(key_of(names))
        with self._lock:
            self._catalogs = [Catalog(Paths(own)) for own in keys]
            self._signatures = [Signatures(len(own), self._limit) for own in keys]

    def update(self, changes: Iterable[tuple[Place, bool]]) -> None:
        """Places that have come, changed (both True) or gone (False)."""
        come: list[list[bytes]] = [[] for _ in self._catalogs]
        gone: list[list[bytes]] = [[] for _ in self._catalogs]
        for place, is_there in changes:
            (come if is_there else gone)[place.root].append(key_of(place.names))
        with self._lock:
            for root, catalog in enumerate(self._catalogs):
                if not (come[root] or gone[root]):
                    continue
                for key in (*come[root], *gone[root]):
                    number = catalog.base.find(key)
                    if number is not None:
                        self._signatures[root].forget(number)
                updated = catalog.updated(come[root], gone[root])
                merged = updated.merged()
                if merged is not updated:
                    self._signatures[root].renumber(catalog.base, merged.base)
                self._catalogs[root] = merged

    def catalog(self, root: int) -> Catalog:
        return self._catalogs[root]

    def candidates(self, root: int, pieces: Sequence[bytes]) -> tuple[Catalog, list[int] | None]:
        """The paths of a root with the numbers of those whose text may have all the pieces; None: all may."""
        with self._lock:
            return self._catalogs[root], self._signatures[root].candidates(pieces)

    def unknown(self) -> Iterator[tuple[Place, Paths, int]]:
        """Files of whose contents nothing is known, each once."""
        for root in range(len(self._catalogs)):
            number = -1
            while True:
                with self._lock:
                    paths = self._catalogs[root].base
                    found = self._signatures[root].next_unknown(number + 1)
                    gone = self._catalogs[root].gone
                if found is None:
                    break
                number = found
                if number not in gone:
                    yield Place(names_of(paths[number]), root), paths, number

    def sign(self, root: int, paths: Paths, number: int, text: Contents, is_current: Callable[[], bool]) -> None:
        """Notes what a file contains, unless by now it has changed: then the watch has said so, or will."""
        with self._lock:
            if self._catalogs[root].base is paths and is_current():
                self._signatures[root].sign(number, text)

    @property
    def size(self) -> int:
        """Bytes of what is known of contents."""
        with self._lock:
            return sum(signatures.size for signatures in self._signatures)
