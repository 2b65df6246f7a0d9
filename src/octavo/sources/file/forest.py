"""All roots together: the blocking half of the source. Runs on the loop with `wait=False`, else in a thread.

The first root that has a name wins. What it hides in a later root keeps an address of its own, `?root=2`.
"""

from __future__ import annotations

import errno
import heapq
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from octavo.core.errors import OctavoError, SourceUnavailable, TooLarge
from octavo.core.model import Content, Entry
from octavo.core.ref import Ref
from octavo.sources.file.addresses import Addresses, Where
from octavo.sources.file.entries import Digests, Facts, contents
from octavo.sources.file.faults import ABSENT, DENIED, fault, not_found
from octavo.sources.file.mime import mime_type
from octavo.sources.file.stats import identity, is_settled
from octavo.sources.file.text import decoded
from octavo.sources.file.tree import Names, Seen, Tree
from octavo.sources.file.walk import Walk

_ATTEMPTS: Final = 2  # readings of a file that changes while it is read


class Place(NamedTuple):
    names: Names
    root: int


class Forest:
    def __init__(
        self,
        trees: Sequence[Tree],
        addresses: Addresses,
        digests: Digests,
        wall: Callable[[], float],
        *,
        absolute: bool,
    ) -> None:
        self.trees = trees
        self._walks = [Walk(tree, wall) for tree in trees]
        self._wall = wall
        self._addresses = addresses
        self._digests = digests
        self._absolute = absolute

    def close(self) -> None:
        for tree in self.trees:
            tree.close()

    def stat(self, ref: Ref, where: Where, *, wait: bool) -> Entry:
        for k in where.roots:
            try:
                seen = self.trees[k].look(where.names, wait=wait)
            except OSError as error:
                _next_root(error, ref, wait=wait)
            else:
                return self._asked(where, k, self._digests.facts(seen))
        raise not_found(ref)

    def read(self, ref: Ref, where: Where, max_bytes: int, *, wait: bool) -> Content:
        for _ in range(_ATTEMPTS):
            k, fd, seen = self._open(ref, where, wait=wait)
            try:
                size = seen.stat.st_size
                if size > max_bytes:
                    raise _too_large(ref, size, max_bytes)
                raw = contents(fd, size, wait=wait)
                steady = len(raw) == size and identity(os.fstat(fd)) == identity(seen.stat)
            except OSError as error:
                if isinstance(error, BlockingIOError) and not wait:
                    raise
                raise fault(error, ref) from None
            finally:
                os.close(fd)
            if steady:
                entry = self._asked(where, k, self._digests.facts(seen))
                return Content(entry=entry, body=decoded(raw, entry.mime_type), etag=self._digests.etag(raw))
        uri = str(ref)
        raise SourceUnavailable(f"The resource changes faster than it can be read: {uri}", retry_after=0.1, uri=uri)

    def stamp(self, where: Where) -> tuple[int, tuple[int, int, int, int, int]] | None:
        """Raises OSError wherever a full look would be needed."""
        k, seen = self._glance(where)
        return (k, identity(seen.stat)) if is_settled(seen.stat, self._wall()) else None

    def root_of(self, where: Where) -> int:
        """Raises OSError wherever a full look would be needed."""
        return self._glance(where)[0]

    def _glance(self, where: Where) -> tuple[int, Seen]:
        for k in where.roots:
            try:
                return k, self.trees[k].look(where.names, wait=False)
            except FileNotFoundError:
                continue
        raise FileNotFoundError

    def places(
        self, where: Where, *, begin: Names = (), recursive: bool = True, stop: Callable[[], bool]
    ) -> Iterator[tuple[Place, Facts]]:
        """Everything to be served under a scope, ordered by names and root, beginning with the names `begin`."""
        streams = [self._candidates(where.names, k, begin, recursive, stop) for k in where.roots]
        for place in streams[0] if len(streams) == 1 else heapq.merge(*streams):
            facts = self.facts(place)
            if facts is not None:
                yield place, facts
            if stop():
                return

    def facts(self, place: Place) -> Facts | None:
        """What would be told of a place; None when nothing would."""
        try:
            return self._digests.facts(self.trees[place.root].look(place.names))
        except OSError as error:
            if error.errno in _LOCAL:
                return None
            raise

    def address(self, place: Place, *, shadowed: bool) -> Ref:
        """As a listing names it: without a root, unless an earlier root has the same names."""
        return self._addresses.of(place.names, place.root if shadowed else 0)

    def listed(self, place: Place, facts: Facts, *, shadowed: bool) -> Entry:
        return self._entry(self.address(place, shadowed=shadowed), place, facts)

    def is_shadowed(self, place: Place) -> bool:
        return any(self.facts(Place(place.names, k)) is not None for k in range(place.root))

    def _candidates(
        self, start: Names, k: int, begin: Names, recursive: bool, stop: Callable[[], bool]
    ) -> Iterator[Place]:
        tree = self.trees[k]
        if tree.rules.verdict(start) == "served" and start >= begin and self.facts(Place(start, k)) is not None:
            yield Place(start, k)
        elif not any(tree.rules.hides(start[: i + 1]) for i in range(len(start))):
            for names in self._walks[k].files(start, begin=begin, recursive=recursive, stop=stop):
                yield Place(names, k)

    def _open(self, ref: Ref, where: Where, *, wait: bool) -> tuple[int, int, Seen]:
        for k in where.roots:
            try:
                fd, seen = self.trees[k].open(where.names, wait=wait)
            except OSError as error:
                _next_root(error, ref, wait=wait)
            else:
                return k, fd, seen
        raise not_found(ref)

    def _asked(self, where: Where, k: int, facts: Facts) -> Entry:
        root = k if len(where.roots) == 1 else 0
        return self._entry(self._addresses.of(where.names, root), Place(where.names, k), facts)

    def _entry(self, canonical: Ref, place: Place, facts: Facts) -> Entry:
        """`target` where the address is not that of the file itself: a link, or a later root behind a plain name."""
        own = self._addresses.of(facts.own, place.root)
        ref = (self._absolute and self._addresses.absolute(place.names, place.root)) or canonical
        name = place.names[-1]
        return Entry(
            ref=ref,
            name=name,
            mime_type=mime_type(name),
            version=facts.version,
            size=facts.size,
            modified=facts.modified,
            target=None if own == canonical else own,
        )


_LOCAL: Final = ABSENT | DENIED | {errno.EEXIST}  # troubles of one name; a listing goes on without it


def _next_root(error: OSError, ref: Ref, *, wait: bool) -> None:
    """Returns if another root may have what this one has not."""
    if isinstance(error, BlockingIOError) and not wait:
        raise error
    if error.errno not in ABSENT:
        raise fault(error, ref) from None


def _too_large(ref: Ref, size: int, limit: int) -> OctavoError:
    uri = str(ref)
    return TooLarge(
        f"Resource too large: {uri} has {size} bytes, the limit is {limit}; the tool read can give a part",
        uri=uri,
        size=size,
        limit=limit,
    )
