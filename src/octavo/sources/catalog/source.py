"""A catalog as a source: files of a store, under addresses of its own, with what their front matter says of them."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from octavo.core.clock import Clock, SystemClock
from octavo.core.cursor import of_path, path_of
from octavo.core.errors import InvalidParams, NotFound, OctavoError, TooLarge
from octavo.core.ports.source import Called, Source
from octavo.core.ref import Ref
from octavo.core.values import Change, Content, Entry, Page, Suggestion, Template
from octavo.sources.catalog import views
from octavo.sources.catalog.agent_checks import misleading
from octavo.sources.catalog.attachments import Bundles
from octavo.sources.catalog.crossrefs import Handbook, Pages
from octavo.sources.catalog.declaration import Declaration, Segments
from octavo.sources.catalog.filters import filters, unknown, wanted
from octavo.sources.catalog.first_look import FirstLook
from octavo.sources.catalog.index import CatalogIndex
from octavo.sources.catalog.links import MAX_LINKED, dangling
from octavo.sources.catalog.match import RecordMatch, matches
from octavo.sources.catalog.model import compile_model
from octavo.sources.catalog.names import alike
from octavo.sources.catalog.problems import FileProblem
from octavo.sources.catalog.record import MIME, Card, Cards
from octavo.sources.catalog.snapshot import CatalogSnapshot
from octavo.sources.catalog.spellings import holds, meanings, others, says
from octavo.sources.catalog.store import CatalogLook, CatalogStore, not_found
from octavo.sources.catalog.templates import shapes_of, templates
from octavo.sources.catalog.unserved import left_out, unserved, why_nothing
from octavo.sources.catalog.versions import CatalogVersions
from octavo.sources.catalog.watch import Follower
from octavo.text.handwritten import handwritten

MAX_VALUES: Final = 100
_BEHIND: Final = "\U0010ffff"  # every other name


class CatalogSource:
    """Serves the files of `store` that fit `declaration`, whose `path` is a folder of the store.

    A file with a problem is served like every other, and its metadata say what is wrong. Catalogs that refer to each
    other share a `handbook`. The store must be open as long as the catalog is used, and not be exposed by itself: a
    rule on `sop://hr/*` would not hold for the same files under another address.
    """

    def __init__(
        self,
        declaration: Declaration,
        store: Source,
        *,
        path: str | None = None,
        handbook: Handbook | None = None,
        clock: Clock | None = None,
        patience: float | None = None,
    ) -> None:
        """A request waits `patience` seconds for the first look at everything; None: however long that takes.

        Raises InvalidParams for a schema or a path that cannot be used."""
        self._patience = patience
        self.scheme = declaration.scheme
        self.declaration = declaration
        folder = declaration.path if path is None else path
        self._store = CatalogStore(store, folder, self.scheme, declaration.without, home=declaration.home)
        cards = Cards(declaration, compile_model(declaration.schema), self._store.folder)
        clock = clock or SystemClock()
        self._index = CatalogIndex(declaration, self._store, cards, clock)
        self._versions = CatalogVersions(self._index, self._store, cards)
        self._bundles = Bundles(declaration, self._index, self._store)
        self._follower = Follower(self._index, self._store, clock)
        self._handbook = handbook or Handbook()
        self._handbook.join(self)
        self._templates = templates(declaration)
        self._deep = any(shape.file.deep for shape in declaration.shapes)  # whether folders are in folders

    def __repr__(self) -> str:
        return f"CatalogSource({self.scheme}://, {len(self._index.snapshot.order)} entries)"

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        """Parameters are filters, as in `sop://brand?status=active`. `?match=` orders by how well an entry fits.

        Raises InvalidParams for a parameter that is no filter, a limit below one, and a cursor that is not from here.
        """
        if limit < 1:
            raise InvalidParams("A page holds at least one entry")
        if scope.scheme != self.scheme or scope.absolute:
            return Page(())
        pages = await self._handbook.look(self, self._patience, alone=not scope.params)
        request = scope.param("match")
        if request is not None:
            return _ranked(self._matched(scope, request, pages), cursor, limit)
        found = self._listed(scope, pages, _opened(cursor))
        given = [_entry(one) for one in islice(found, limit)]
        return Page(tuple(given), of_path(given[-1].ref.segments) if next(found, None) is not None else None)

    async def list_levels(self, scope: Ref, *, depth: int, cursor: str | None, limit: int) -> Page[Entry]:
        if limit < 1 or scope.scheme != self.scheme or scope.absolute or scope.param("match") is not None:
            return await self.list(scope, cursor=cursor, limit=limit)
        pages = await self._handbook.look(self, self._patience, alone=not scope.params)
        most = len(scope.segments) + max(depth, 1)
        after, given = _opened(cursor), list[Entry]()
        while (one := next(self._listed(scope, pages, after), None)) is not None:
            if len(given) == limit:
                return Page(tuple(given), None if after is None else of_path(after))
            given.append(_entry(one))
            names = one.ref.segments
            after = (*names[:most], _BEHIND) if len(names) > most else names
        return Page(tuple(given))

    @property
    def filters(self) -> Collection[str]:
        return (*filters(self.declaration), *(("match",) if self.declaration.matches else ()))

    async def stat(self, ref: Ref) -> Entry:
        if self.whole(ref) is not None:
            return await self._bundles.stat(ref)
        version = ref.param("version")
        if version is not None and len(ref.params) == 1:
            found = await self._versions.find(ref, version)
            return views.at(found.entry, ref) if isinstance(found, Card) else await self._versions.entry(found, ref)
        if ref.params:
            return views.known_before(await self.read(ref, max_bytes=1 << 62))
        try:
            return (await self._index.card(ref)).entry
        except NotFound:
            return views.known_before(await self._collection(ref))

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        """The whole file with its front matter. `?view=parsed` is the front matter as JSON, `?view=body` the Markdown
        behind it, `?view=relations` what an entry refers to and what refers to it, `?version=1.1.0` an older file,
        `?range=0-65535` a part. A collection is read as a list of its entries, with the filters of `list`. What is
        composed is given whole: how large it is shows when that is left out of it which the caller may not see."""
        if self.whole(ref) is not None:
            return await self._bundles.read(ref, max_bytes)
        if not ref.params:
            try:
                return await self._file(ref, max_bytes)
            except NotFound:
                if ref in (await self._looked()).cards:  # it has come since: no collection of itself
                    return await self._file(ref, max_bytes)
                return await self._collection(ref)
        view, version, part = ref.param("view"), ref.param("version"), ref.param("range")
        if part is not None and len(ref.params) == 1:
            card = await self._index.card(ref.bare)
            content = await self._store.read(card.place, ref, max_bytes, part)
            return replace(content, entry=views.at(self._index.of_part(card, content.entry), ref))
        if version is not None and len(ref.params) == 1:
            found = await self._versions.find(ref, version)
            if not isinstance(found, Card):
                return await self._versions.read(found, ref, max_bytes)
            content = await self._file(found.ref, max_bytes, version if found.ref == ref else "")
            return Content(entry=views.at(content.entry, ref), body=content.body, etag=content.etag)
        if view == views.BODY and len(ref.params) == 1:
            return await self._body(ref, max_bytes)
        if view is not None and len(ref.params) == 1:
            return _within(await self._view(ref, view), ref, max_bytes)
        await self._refuse_filters_of_an_entry(ref)
        return await self._collection(ref)

    def watch(self, scope: Ref) -> AsyncIterator[Change]:
        return self._follower.watch(scope)

    async def armed(self) -> None:
        await self._follower.armed()

    async def complete(self, argument: str, prefix: str, given: Mapping[str, str]) -> Sequence[str]:
        """Values of the variables of the templates, and whole paths for `path`; nothing for other names."""
        templates = [f"{self.scheme}://{{+path}}", *(offered.uri_template for offered in self._templates)]
        found = [one.value for template in templates for one in await self.suggest(template, argument, prefix, given)]
        return sorted(set(found))[:MAX_VALUES]

    async def suggest(
        self, template: str, argument: str, prefix: str, given: Mapping[str, str]
    ) -> Iterable[Suggestion]:
        cards = (await self._looked()).cards.values()
        prefix = unicodedata.normalize("NFC", prefix)
        if template == f"{self.scheme}://{{+path}}" and argument == "path":
            return (Suggestion(card.ref.path, card.entry) for card in cards if card.ref.path.startswith(prefix))
        shapes = shapes_of(self.declaration, template)
        return (
            Suggestion(values[argument], card.entry)
            for card in cards
            for shape in shapes
            for values in (shape.address.match(card.ref.segments) or {},)
            if argument in values
            and values[argument].startswith(prefix)
            and all(
                name not in values or says(self.declaration, shape, card, name, values[name], value)
                for name, value in given.items()
            )
        )

    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
        """Of a listing and of what is made of several entries: everything that it could depend on."""
        if ref.param("view") == "capabilities" and op != "list":
            return None  # rules and tools change without a file
        if ref.param("version") is not None and self._store.pins:
            return None  # a tag can come or move without a file
        if op == "list" or self.collects(ref) or (ref.params and ref.params[0] not in views.OF_ONE_FILE):
            return self._handbook.stamp(moment)
        if self.whole(ref) is not None:
            return self.epoch(moment)  # it depends on its file, on the definition, and on which of the two is there
        card = self._index.snapshot.cards.get(ref.bare)
        place = card.place if card is not None else next((place for _, place in self._index.places(ref.bare)), None)
        return None if place is None else self._store.stamp(place, op, moment)

    async def is_twin(self, ref: Ref, names: Sequence[str]) -> bool:
        try:
            place = (await self._index.card(ref)).place
        except OctavoError:
            return False
        written = _written(place, ref.segments, names)
        return written is not None and await self._store.is_twin(place, written)

    def collects(self, ref: Ref) -> bool:
        """An address that could be an entry's is a collection while there is none."""
        if ref.bare in self._index.snapshot.cards or self.whole(ref) is not None:
            return False
        return self._deep or not any(shape.address.match(ref.segments) is not None for shape in self.declaration.shapes)

    def whole(self, ref: Ref) -> Ref | None:
        return self._bundles.owner(ref)

    def templates(self) -> Sequence[Template]:
        return self._templates

    async def look(self, moment: CatalogLook | None = None) -> CatalogSnapshot:
        return await self._index.look(moment)

    async def _looked(self) -> CatalogSnapshot:
        return await self._index.look(CatalogLook(self._patience))

    @property
    def first(self) -> FirstLook:
        return self._index.first

    @property
    def is_read(self) -> bool:
        return self._index.first.is_over

    def epoch(self, moment: int) -> object | None:
        if not self.is_read:  # what is answered before that does not hold afterwards
            return None
        return self._store.stamp((), "list", moment)

    @property
    def ids(self) -> object:
        return self._index.snapshot.ids

    def named(self, ref: Ref, moment: int | None) -> bool:
        page = self._index.snapshot
        if ref not in page.cards and not holds(page, ref.bare):
            return False
        return moment is None or self._index.is_of(self.epoch(moment))

    async def meanings(self, ref: Ref) -> Sequence[Sequence[Ref]]:
        return meanings(self.declaration, await self._looked(), ref)

    def called(self, ref: Ref) -> Called:
        return others(self.declaration, self._index.snapshot, ref.bare)

    async def serves_nothing(self) -> str:
        """Why there is no entry, and what to do; empty where there is one. As quick as the first file is found."""
        async for entry in self._store.entries():
            place = self._store.within(entry.ref)
            if place is not None and self._index.locate(place) is not None:
                return ""
        return await why_nothing(self._store)

    def serves_little(self) -> str:
        """What the look at the store left out, and what to do; empty where that is little, or was said by somebody."""
        beside, folder = self.declaration.beside, self._store.folder
        return f"{folder}: {left_out(beside, folder)}" if beside else ""

    async def problems(self) -> Sequence[FileProblem]:
        """Everything that is wrong with the files of this catalog, by file and line."""
        pages, live = await self._handbook.look(self), self._handbook.live
        page = pages.of(self.scheme)
        found = [*page.strays, *await unserved(self.declaration, self._store, self._index, page)]
        there = frozenset([file async for file in self._files()])

        def may_be(file: str) -> bool:
            return file in there or self._store.refuses(file)

        for card in page.cards.values():
            found += (*card.problems, *pages.faults(card), *self._bundles.unfit(card, page))
            found += misleading(self.declaration, card, live, pages.everything) if live is not None else ()
            found += await self._links(card, pages, may_be)
        return sorted(found, key=lambda one: (one.file, one.line))

    async def _files(self) -> AsyncIterator[str]:
        """Of the whole store, also of folders that are left out here, as the store names them."""
        async for entry in self._store.everything():
            yield "/".join(entry.ref.segments)

    async def _links(self, card: Card, pages: Pages, may_be: Callable[[str], bool]) -> Sequence[FileProblem]:
        """What is no text has none, and something else is said of it. A link to another entry has that one's."""
        if card.entry.target in pages.of(self.scheme).cards:
            return ()
        try:
            body = (await self._store.read(card.place, card.ref, MAX_LINKED)).body
        except TooLarge as error:
            said = f"has {error.data.get('size')} bytes: it is read in parts only, and its links were not looked at"
            return [FileProblem(card.file, 1, said, card.ref, serious=False)]
        except OctavoError:
            return ()
        return [*dangling(card, body, pages, may_be)] if isinstance(body, str) else ()

    async def _file(self, ref: Ref, max_bytes: int, version: str = "") -> Content:
        for shape, place in self._index.places(ref.bare, version):
            try:
                content = await self._store.read(place, ref, max_bytes)
            except NotFound:
                continue
            card = self._index.of_content(ref, place, shape, content.entry, content.body)
            return Content(entry=card.entry, body=content.body, etag=content.etag)
        raise not_found(ref)

    async def _body(self, ref: Ref, max_bytes: int) -> Content:
        content = await self._file(ref.bare, max_bytes)
        if content.entry.mime_type != MIME["markdown"] or not isinstance(content.body, str):
            raise InvalidParams(f"{ref.bare} has no body beside what it says of itself: read it whole", uri=str(ref))
        return views.text(ref, content.entry, content.body[handwritten(content.body).matter.body :])

    async def _view(self, ref: Ref, view: str) -> Content:
        if view not in self.declaration.views:
            known = ", ".join((*self.declaration.views, views.BODY))
            raise InvalidParams(f"The parameter view is one of: {known}", uri=str(ref))
        card = await self._index.card(ref.bare)
        if view == "parsed":
            matter, target = await self._index.matter(ref.bare)
            if matter.faults and not matter.data:
                line = matter.faults[0].line
                raise InvalidParams(f"{ref.bare} cannot be parsed: line {line} is no YAML", uri=str(ref))
            return views.content(ref, replace(card.entry, target=target), dict(matter.data), composed=False)
        pages = await self._handbook.look(self, self._patience)
        if view == "relations":
            return views.content(ref, card.entry, await views.relations(card, pages), composed=True)
        data = views.capabilities(card, pages, self._handbook.live)
        return views.content(ref, card.entry, data, composed=True)

    async def _collection(self, scope: Ref) -> Content:
        """Raises NotFound for a path under which there is nothing, whatever the filters say."""
        if scope.scheme != self.scheme or scope.absolute:
            raise not_found(scope)
        pages = await self._handbook.look(self, self._patience)
        if next(pages.of(self.scheme).under(scope.bare, None), None) is None and scope.segments:
            raise not_found(scope)
        request = scope.param("match")
        if request is not None:
            live, agent = self._handbook.live, self._agent(scope.param("agent"), pages)
            found = self._matched(scope, request, pages)[: views.MAX_COMPOSED]
            picked_by = [key for name, key in filters(self.declaration).items() if scope.param(name) is not None]
            return views.content(scope, None, views.matched(request, found, live, agent, picked_by), composed=True)
        cards = islice(self._wanted(scope, pages, None), views.MAX_COMPOSED)
        return views.collection(scope, [card.entry for card in cards])

    def _agent(self, text: str | None, pages: Pages) -> str | None:
        """The id of an agent that a caller writes as it likes, as the configuration knows it. The entry of the agent is
        looked at for nothing but its id, and where there is none the usual form of an id is tried."""
        live = self._handbook.live
        if text is None or live is None:
            return text
        found = [pages.card(ref) for ref in pages.resolve(("agent",), text)]
        name = alike(text, ("agent",))
        spellings = [*(card.id or card.ref.name for card in found[:1]), text, f"agent-{name}", name]
        return next((one for one in spellings if live.knows(one)), spellings[0])

    async def _refuse_filters_of_an_entry(self, ref: Ref) -> None:
        if ref.scheme != self.scheme or ref.absolute:
            raise not_found(ref)
        for key, _ in ref.params:
            if key in ("view", "version", "range"):
                raise InvalidParams("The parameters view, version and range stand alone", uri=str(ref))
            if key not in filters(self.declaration) and not (key == "match" and self.declaration.matches):
                raise unknown(self.declaration, ref, key)
        try:
            await self._index.card(ref.bare)
        except NotFound:
            return
        raise InvalidParams(
            f"{ref.bare} is no collection: it has no filters, but view, version and range", uri=str(ref)
        )

    def _listed(self, scope: Ref, pages: Pages, after: Segments | None) -> Iterator[Card | Entry]:
        """With the files that belong to entries, unless somebody looks for entries of a kind."""
        return self._wanted(scope, pages, after) if scope.params else pages.of(self.scheme).listed(scope, after)

    def _wanted(self, scope: Ref, pages: Pages, after: Segments | None) -> Iterator[Card]:
        test = wanted(self.declaration, scope)
        cards = pages.of(self.scheme).under(scope, after)
        return cards if test is None else filter(test, cards)

    def _matched(self, scope: Ref, request: str, pages: Pages) -> Sequence[RecordMatch]:
        return matches(request, [*self._wanted(scope, pages, None)])


def _entry(one: Card | Entry) -> Entry:
    return one if isinstance(one, Entry) else one.entry


def _ranked(found: Sequence[RecordMatch], cursor: str | None, limit: int) -> Page[Entry]:
    """The cursor holds the rank of the last one: the score, and the address among those with the same."""
    last = _opened(cursor)
    try:
        after = None if last is None else (-float(last[0]), last[1:])
    except ValueError:
        raise InvalidParams("The cursor is not one of this listing") from None
    rest = [one for one in found if after is None or (-one.score, one.card.ref.segments) > after]
    given = rest[:limit]
    entries = tuple(views.with_score(one) for one in given)
    more = len(rest) > limit
    return Page(entries, of_path((repr(given[-1].score), *given[-1].card.ref.segments)) if more else None)


def _written(place: Segments, known: Segments, names: Sequence[str]) -> Segments | None:
    """The place with its names in the form of these, where the address says them in order; else None."""
    if len(names) > len(place) or any(not at.startswith(name) for at, name in zip(place, known, strict=False)):
        return None
    ends = (at[len(name) :] for at, name in zip(place, known, strict=False))
    return (*(name + end for name, end in zip(names, ends, strict=True)), *place[len(names) :])


def _within(content: Content, ref: Ref, max_bytes: int) -> Content:
    if content.size > max_bytes and not content.composed:
        message = f"{ref} has {content.size} bytes, the limit is {max_bytes}: read the file in parts"
        raise TooLarge(message, uri=str(ref), size=content.size, limit=max_bytes)
    return content


def _opened(cursor: str | None) -> Segments | None:
    return None if cursor is None else path_of(cursor)
