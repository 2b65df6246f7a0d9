"""The door to the store: its addresses go in here and never come out, nor do its errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from itertools import count
from typing import Final, NamedTuple, TypeVar

from octavo.core.clock import passing
from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound, OctavoError, SourceUnavailable, TooLarge
from octavo.core.ports.source import (
    Deltas,
    History,
    Levels,
    Pins,
    Ready,
    Rejects,
    Source,
    Stamps,
    Syncs,
    TellsTwins,
    Watches,
)
from octavo.core.ref import Ref
from octavo.core.sizes import KIB
from octavo.core.values import Change, Content, Entry, Page
from octavo.sources.catalog.declaration import Segments, form_of

T = TypeVar("T")

HEAD: Final = 64 * KIB  # bytes of a longer file in which its front matter must end
WHOLE: Final = 256 * KIB  # bytes of a file that is looked at from the first to the last line
_PAGE: Final = 1000
# Folders, beside the hidden ones, of what others wrote, of what was built and of what tests read. `build`, `target` and
# `tests` may be those of people.
OF_PROGRAMS: Final = frozenset(
    ("node_modules", "bower_components", "vendor", "third_party", "third-party", "site-packages", "_build", "_site",
     "dist", "__pycache__", "__tests__", "testdata", "fixtures")
)  # fmt: skip
_moments: Final = count(1)


class CatalogLook:
    """A look since then is fresh enough. A store is asked once what has changed by then, for all catalogs in it.
    For the first look at a catalog, or at several, it is waited so many seconds."""

    def __init__(self, seconds: float | None = None) -> None:
        self.number = next(_moments)
        self._until = None if seconds is None else passing() + seconds
        self._stamps: dict[Source, object | None] = {}

    @property
    def left(self) -> float | None:
        return None if self._until is None else max(0.0, self._until - passing())

    async def stamp(self, store: CatalogStore) -> object | None:
        if not isinstance(store.source, Syncs):
            return await store.caught_up()
        if store.source not in self._stamps:
            self._stamps[store.source] = await store.caught_up()
        return self._stamps[store.source]


class FileHead(NamedTuple):
    """The beginning of a file, and what the store told of the file in the same moment."""

    entry: Entry
    text: str | None
    whole: bool
    fault: str = ""


class CatalogStore:
    """One folder of a source, but for the folders in it that are somebody else's. Places are segments below it.

    Beside a `home` in it, folders of programs are left out."""

    def __init__(
        self, source: Source, folder: str, scheme: str, without: Sequence[str] = (), *, home: str = ""
    ) -> None:
        self.source = source
        # Looked up once: telling abilities from methods is too slow for every hit.
        self._stamps = source if isinstance(source, Stamps) else None
        self._scheme = scheme  # of the catalog: what its callers hear when the store is down
        self._root = Ref.of(source.scheme, _segments(folder))
        self._without = tuple(map(_segments, without))
        self._home = _segments(home)

    @property
    def folder(self) -> str:
        return self._root.path

    def within(self, ref: Ref | None) -> Segments | None:
        """The place of an address of the store; None for one outside the folder."""
        if ref is None or ref.params or not ref.within(self._root) or ref == self._root:
            return None
        place = ref.segments[len(self._root.segments) :]
        return place if self.holds(place) else None

    def holds(self, place: Segments) -> bool:
        return not self.leaves_out(place) and not self.of_program(place)

    def refuses(self, file: str) -> bool:
        """Whether the store would never give a file of that name, so that nobody knows whether it is there."""
        try:
            ref = Ref.of(self._root.scheme, file.split("/"))
        except OctavoError:
            return False
        return isinstance(self.source, Rejects) and self.source.refuses(ref) is not None

    def leaves_out(self, place: Segments) -> bool:
        return any(place[: len(folder)] == folder for folder in self._without)

    def of_program(self, place: Segments) -> str:
        """The folder of programs beside the home of documents in which a file stands; empty for every other file."""
        if not self._home or place[: len(self._home)] == self._home:
            return ""
        return next(filter(is_of_programs, place[:-1]), "")

    async def entries(self, folder: Segments = ()) -> AsyncIterator[Entry]:
        levels = self.source if isinstance(self.source, Levels) and self._home and not folder else None
        async for entry in self._listed(self._ref(folder)) if levels is None else self._walked(levels, folder):
            yield entry

    async def _walked(self, levels: Levels, folder: Segments) -> AsyncIterator[Entry]:
        """Folder by folder, so that nobody looks into those of programs: they may hold most of the files."""
        scope, cursor = self._ref(folder), None
        while True:
            asked = levels.list_levels(scope, depth=1, cursor=cursor, limit=_PAGE)
            page = await self._asked(asked, Page, Ref(self._scheme))
            for entry in page.items:
                names = entry.ref.segments[len(self._root.segments) :]
                place = names[: len(folder) + 1]
                if place == names:
                    yield entry
                elif place == self._home:
                    async for one in self._listed(self._ref(place)):
                        yield one
                elif not is_of_programs(place[-1]):
                    async for one in self._walked(levels, place):
                        yield one
            cursor = page.cursor
            if cursor is None:
                return

    async def everything(self) -> AsyncIterator[Entry]:
        """Of the whole source, for a hint to its operator."""
        async for entry in self._listed(Ref(self._root.scheme)):
            yield entry

    async def _listed(self, scope: Ref) -> AsyncIterator[Entry]:
        cursor: str | None = None
        while True:
            page = await self._asked(self.source.list(scope, cursor=cursor, limit=_PAGE), Page, Ref(self._scheme))
            for entry in page.items:
                yield entry
            cursor = page.cursor
            if cursor is None:
                return

    async def stat(self, place: Segments, ref: Ref) -> Entry:
        return await self._stat(self._ref(place), ref)

    async def read(self, place: Segments, ref: Ref, max_bytes: int, part: str = "") -> Content:
        """`part` are bytes, such as 0-65535. Raises InvalidParams where the store gives no parts."""
        return await self.read_at(self._ref(place), ref, max_bytes, part)

    async def read_at(self, at: Ref, ref: Ref, max_bytes: int, part: str = "") -> Content:
        """By an address of the store, such as the entries of `past` have."""
        asked = at._replace(params=(*at.params, ("range", part))) if part else at
        return await self._asked(self.source.read(asked, max_bytes=max_bytes), Content, ref)

    async def is_twin(self, place: Segments, names: Sequence[str]) -> bool:
        """Whether the store has something else at these names, which are another Unicode form of the place."""
        if not isinstance(self.source, TellsTwins):
            return False
        written = (*self._root.segments, *names)
        return await self._asked(self.source.is_twin(self._ref(place), written), bool, Ref(self._scheme))

    async def past(self, place: Segments, ref: Ref, limit: int) -> Sequence[Entry]:
        """What a file was, newest first; nothing where the store does not remember."""
        if not isinstance(self.source, History):
            return ()
        return await self._asked(self.source.past(self._ref(place), limit=limit), list, ref)

    async def pinned(self, place: Segments, ref: Ref, name: str) -> Entry | None:
        """What a file was in a state of the store that has that name; None where the store knows none."""
        if not isinstance(self.source, Pins):
            return None
        entry = await self._asked(self.source.pinned(self._ref(place), name), object, ref)
        if entry is not None and not isinstance(entry, Entry):
            raise self._down()
        return entry

    @property
    def pins(self) -> bool:
        """Whether there are names of states, which no stamp tells of."""
        return isinstance(self.source, Pins)

    async def head(self, place: Segments, ref: Ref, size: int | None) -> FileHead:
        """As much of a file as its front matter needs. A file that cannot be read as text is a fault, no error."""
        return await self.head_at(self._ref(place), ref, size)

    async def head_at(self, at: Ref, ref: Ref, size: int | None) -> FileHead:
        defines = form_of(at.name) in ("yaml", "json")
        if size is None or size <= WHOLE or defines:
            try:
                return _head(await self.read_at(at, ref, WHOLE), whole=True)
            except TooLarge:
                if defines:
                    fault = f"is larger than {WHOLE} bytes, too large for a definition"
                    return FileHead(await self._stat(at, ref), None, False, fault)
        try:
            return _head(await self.read_at(at, ref, HEAD, f"0-{HEAD - 1}"), whole=False)
        except InvalidParams:
            pass  # a store without ranges
        try:
            return _head(await self.read_at(at, ref, 4 * WHOLE), whole=True)
        except TooLarge:
            return FileHead(await self._stat(at, ref), None, False, "is too large for its front matter to be read")

    def stamp(self, place: Segments, op: str, moment: int = 0) -> object | None:
        if self._stamps is None:
            return None
        try:
            return self._stamps.stamp(self._ref(place), op, moment)
        except OctavoError:
            return None

    async def caught_up(self) -> object | None:
        """A stamp of the folder's listing, with all in it that had changed when this was called; None when only a look
        at everything can tell."""
        if not isinstance(self.source, Syncs):
            return self.stamp((), "list")
        try:
            return await self.source.caught_up()
        except OctavoError:
            return None

    def changed_since(self, stamp: object | None) -> list[Segments] | None:
        """Places that have changed since a stamp of a listing; None when only a look at everything can tell."""
        refs = self.source.changed_since(stamp) if isinstance(self.source, Deltas) and stamp is not None else None
        return None if refs is None else [place for ref in refs if (place := self.within(ref)) is not None]

    def watch(self) -> AsyncIterator[Change]:
        if not isinstance(self.source, Watches):
            raise SourceUnavailable(f"Source unavailable: {self._scheme}", source=self._scheme)
        return self.source.watch(self._root)

    async def armed(self) -> None:
        if isinstance(self.source, Ready):
            await self.source.armed()

    def _ref(self, place: Segments) -> Ref:
        return Ref.of(self._root.scheme, (*self._root.segments, *place)) if place else self._root

    async def _stat(self, at: Ref, ref: Ref) -> Entry:
        return await self._asked(self.source.stat(at), Entry, ref)

    async def _asked(self, work: Awaitable[object], kind: type[T], ref: Ref) -> T:
        try:
            reply = await work
        except OctavoError as error:
            raise self._translated(error, ref) from None
        except OSError:
            raise self._down() from None
        if not isinstance(reply, kind):
            raise self._down()
        return reply

    def _translated(self, error: OctavoError, ref: Ref) -> OctavoError:
        """In the catalog's words: the store has no addresses for others."""
        if isinstance(error, NotFound | Forbidden):  # Forbidden: the store does not serve files of that name
            return not_found(ref)
        if isinstance(error, TooLarge):
            size, limit = error.data.get("size"), error.data.get("limit")
            message = f"{ref} has {size} bytes, the limit is {limit}; read a part of it: {ref.bare}?range=0-65535"
            return TooLarge(message, uri=str(ref), size=size, limit=limit)
        if isinstance(error, Conflict):
            return Conflict(f"{ref} cannot be told from another file of that name, or changes right now", uri=str(ref))
        if isinstance(error, InvalidParams):
            return InvalidParams(f"{ref} cannot be read like this", uri=str(ref))
        return self._down()

    def _down(self) -> SourceUnavailable:
        return SourceUnavailable(f"Source unavailable: {self._scheme}", source=self._scheme)


def _segments(folder: str) -> Segments:
    return tuple(part for part in folder.split("/") if part not in ("", "."))


def is_of_programs(folder: str) -> bool:
    return folder.startswith(".") or folder.lower() in OF_PROGRAMS


def not_found(ref: Ref) -> NotFound:
    return NotFound(f"Resource not found: {ref}", uri=str(ref))


def _head(content: Content, *, whole: bool) -> FileHead:
    if isinstance(content.body, str):
        return FileHead(content.entry, content.body, whole)
    return FileHead(content.entry, None, whole, "is no text that can be read; save it as UTF-8")
