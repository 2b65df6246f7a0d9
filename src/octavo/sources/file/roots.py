"""All roots together: the blocking half of the source. Runs on the loop with `wait=False`, else in a thread.

The first root that has a name wins. What it hides in a later root keeps an address of its own: its absolute one, or
where a scheme has none, `?root=2`.
"""

from __future__ import annotations

import errno
import heapq
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from octavo.core.errors import OctavoError, SourceUnavailable, TooLarge
from octavo.core.preconditions import Shown
from octavo.core.ref import Ref
from octavo.core.values import Content, EncoderMemo, Entry
from octavo.sources._shared.fs.faults import ABSENT, DENIED, fault, not_found
from octavo.sources._shared.fs.mime import mime_type
from octavo.sources._shared.fs.reading import contents
from octavo.sources._shared.fs.stats import identity, is_settled
from octavo.sources._shared.places import Place, Where
from octavo.sources._shared.text import HEAD, ORDER, cut_at_characters, decode, decode_as, decoded
from octavo.sources.file.addresses import FileAddresses
from octavo.sources.file.entries import Digests, FileFacts
from octavo.sources.file.root import Names, SeenFile, Tree
from octavo.sources.file.walk import FileWalk

_AROUND: Final = 8192  # bytes beside a range, more than any secret is long
_ATTEMPTS: Final = 2  # readings of a file that changes while it is read


class Forest:
    def __init__(
        self,
        trees: Sequence[Tree],
        addresses: FileAddresses,
        digests: Digests,
        wall: Callable[[], float],
        *,
        absolute: bool,
        encodings: Sequence[str] = ORDER,
    ) -> None:
        self.trees = trees
        self.encodings = encodings
        self._walks = [FileWalk(tree, wall) for tree in trees]
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
        entry, raw = self.raw(ref, where, max_bytes, wait=wait)
        etag, chosen = self._digests.etag(raw), ref.param("encoding")
        found = decode(raw, entry.mime_type, order=self.encodings)
        if chosen is None:
            body, encoding = (bytes(raw), "") if found is None else (found.text, found.encoding)
            return Content(entry=entry, body=body, etag=etag, encoding="" if encoding == "utf-8" else encoding)
        wanted = decode_as(raw, chosen)
        usual = bytes(raw) if found is None else found.text
        otherwise = EncoderMemo() if usual == wanted.text else EncoderMemo(otherwise=usual)
        return Content(entry=entry, body=wanted.text, etag=etag, encoding=wanted.encoding, memo=otherwise)

    def part(self, ref: Ref, where: Where, begin: int, length: int) -> Content:
        """Some bytes of a file of any size, with what stands around them in the memo, for the redaction.

        Text is cut at the borders of characters, so that ranges that follow each other meet.
        """
        k, fd, seen = self._open(ref, where, wait=True)
        start = max(0, begin - _AROUND) // 4 * 4
        try:
            head = os.pread(fd, HEAD, 0)
            raw = os.pread(fd, begin - start + length + _AROUND, start)
        except OSError as error:
            raise fault(error, ref) from None
        finally:
            os.close(fd)
        entry = self._asked(where, k, self._digests.facts(seen))
        before, body, after = cut_at_characters(raw, begin - start, length, entry.mime_type, self.encodings, head=head)
        return Content(entry=entry, body=body, memo=EncoderMemo(around=(before, after)))

    def shown(self, raw: bytes | bytearray, name: str) -> Shown:
        """What reading a file of this name and content gives."""
        mime = mime_type(name)
        return Shown(decoded(raw, mime, self.encodings), mime)

    def etag(self, raw: bytes | bytearray) -> str:
        return self._digests.etag(raw)

    def raw(self, ref: Ref, where: Where, max_bytes: int, *, wait: bool) -> tuple[Entry, bytes | bytearray]:
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
                return self._asked(where, k, self._digests.facts(seen)), raw
        uri = str(ref)
        raise SourceUnavailable(f"The resource changes faster than it can be read: {uri}", retry_after=0.1, uri=uri)

    def stamp(self, where: Where) -> tuple[int, tuple[int, int, int, int, int]] | None:
        """Raises OSError wherever a full look would be needed."""
        k, seen = self._glance(where)
        return (k, identity(seen.stat)) if is_settled(seen.stat, self._wall()) else None

    def root_of(self, where: Where) -> int:
        """Raises OSError wherever a full look would be needed."""
        return self._glance(where)[0]

    def _glance(self, where: Where) -> tuple[int, SeenFile]:
        for k in where.roots:
            try:
                return k, self.trees[k].look(where.names, wait=False)
            except FileNotFoundError:
                continue
        raise FileNotFoundError

    def places(
        self,
        where: Where,
        *,
        begin: Names = (),
        recursive: bool = True,
        stop: Callable[[], bool],
        levels: int | None = None,
    ) -> Iterator[tuple[Place, FileFacts]]:
        """Everything to be served under a scope, ordered by names and root, beginning with the names `begin`. With
        `levels`, of each directory that far below the scope only the first, in each root."""
        streams = [self._candidates(where.names, k, begin, recursive, stop, levels) for k in where.roots]
        for place in streams[0] if len(streams) == 1 else heapq.merge(*streams):
            facts = self.facts(place)
            if facts is not None:
                yield place, facts
            if stop():
                return

    def facts(self, place: Place) -> FileFacts | None:
        """What would be told of a place; None when nothing would."""
        try:
            return self._digests.facts(self.trees[place.root].look(place.names))
        except OSError as error:
            if error.errno in _LOCAL:
                return None
            raise

    def sample(self, place: Place, max_bytes: int) -> tuple[bytes | None, FileFacts] | None:
        """The bytes of a file for an index, with what would be told of it. No bytes of a larger file, or of one
        that has other names: nobody says when it is changed through them. None when it is absent or changing."""
        try:
            fd, seen = self.trees[place.root].open(place.names)
        except OSError as error:
            if error.errno in _LOCAL:
                return None
            raise
        try:
            size = seen.stat.st_size
            raw = bytes(contents(fd, size, wait=True)) if size <= max_bytes and seen.stat.st_nlink == 1 else None
            after = os.fstat(fd)
        finally:
            os.close(fd)
        steady = identity(after) == identity(seen.stat) and is_settled(after, self._wall())
        return (raw, self._digests.facts(seen)) if steady and (raw is None or len(raw) == size) else None

    def etag_of(self, place: Place, facts: FileFacts) -> str:
        """Empty if the file is not, or does not stay, what the facts are about."""
        try:
            fd, seen = self.trees[place.root].open(place.names)
            try:
                if self._digests.facts(seen) != facts:
                    return ""
                raw = contents(fd, facts.size, wait=True)
                steady = identity(os.fstat(fd)) == identity(seen.stat)
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno in _LOCAL:
                return ""
            raise
        return self._digests.etag(raw) if steady and len(raw) == facts.size else ""

    def address(self, place: Place, *, shadowed: bool) -> Ref:
        """As a listing names it: without a root, unless an earlier root has the same names."""
        return self._addresses.of(place.names, place.root) if shadowed else Ref(self._addresses.scheme, place.names)

    def listed(self, place: Place, facts: FileFacts, *, shadowed: bool, title: str | None = None) -> Entry:
        """`title` is what the file calls itself."""
        return self._entry(self.address(place, shadowed=shadowed), place, facts, title)

    def folder(self, place: Place) -> Ref:
        """The address of a directory, which says in which root it is."""
        own = self._addresses.plain(place.names, place.root)
        return (self._absolute and self._addresses.absolute(place.names, place.root)) or own

    def is_shadowed(self, place: Place) -> bool:
        return any(self.facts(Place(place.names, k)) is not None for k in range(place.root))

    def _candidates(
        self, start: Names, k: int, begin: Names, recursive: bool, stop: Callable[[], bool], levels: int | None
    ) -> Iterator[Place]:
        tree = self.trees[k]
        if tree.rules.verdict(start) == "served" and start >= begin and self.facts(Place(start, k)) is not None:
            yield Place(start, k)
        elif not tree.rules.hides_on_the_way(start, folder=True):
            walk = self._walks[k].files(
                start, begin=begin, recursive=recursive, stop=stop, levels=levels,
                stands=lambda names: self.facts(Place(names, k)) is not None,
            )  # fmt: skip
            for names in walk:
                yield Place(names, k)

    def _open(self, ref: Ref, where: Where, *, wait: bool) -> tuple[int, int, SeenFile]:
        for k in where.roots:
            try:
                fd, seen = self.trees[k].open(where.names, wait=wait)
            except OSError as error:
                _next_root(error, ref, wait=wait)
            else:
                return k, fd, seen
        raise not_found(ref)

    def _asked(self, where: Where, k: int, facts: FileFacts) -> Entry:
        return self._entry(self.address(place := Place(where.names, k), shadowed=len(where.roots) == 1), place, facts)

    def _shown(self, place: Place, canonical: Ref) -> Ref:
        if not self._absolute and not canonical.params:
            return canonical
        return self._addresses.absolute(place.names, place.root) or canonical

    def _entry(self, canonical: Ref, place: Place, facts: FileFacts, title: str | None = None) -> Entry:
        """`target` where the address is not that of the file itself: a link, or a later root behind a plain name."""
        says_root = self._addresses.of if canonical.params else self._addresses.plain
        own = says_root(facts.own, place.root)
        ref = self._shown(place, canonical)
        name = place.names[-1]
        return Entry(
            ref=ref,
            name=name,
            mime_type=mime_type(name),
            version=facts.version,
            size=facts.size,
            modified=facts.modified,
            title=title,
            quoted=title is not None,
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
        f"Resource too large: {uri} has {size} bytes, the limit is {limit}; read a part of it: {uri}?range=0-65535",
        uri=uri,
        size=size,
        limit=limit,
    )
