"""What the index is made of: the documents of one configuration, read from behind policy and cache.

Everything is redacted by then, so no secret rests in the index. Who may find what is decided when somebody asks.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from octavo.core.arguments import PLAIN, Arguments, SearchArguments
from octavo.core.errors import OctavoError, RateLimited, SourceUnavailable, Timeout
from octavo.core.ports.chain import Reply, expected, page_of
from octavo.core.ports.source import Searches
from octavo.core.query import NameQuery
from octavo.core.ref import Ref
from octavo.core.search_results import Finding
from octavo.core.sizes import MIB
from octavo.core.values import Content, Entry, Op, Page, Principal
from octavo.search import Borrowed, Document, FullText, Index
from octavo.sources._shared.documents.convert import FORMATS
from octavo.sources.catalog.names import plain, words
from octavo.stores.process_files import ProcessFile
from octavo.text.titles import is_markdown, title_of

if TYPE_CHECKING:
    from octavo.app.composition import Composed

logger = logging.getLogger(__name__)

_NOBODY: Final = Principal("")
_PAGE: Final = 200
_ALL: Final = SearchArguments(NameQuery("*"))
_NO_TEXT: Final = ("image/", "audio/", "video/", "font/")
_FRONT: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n.*?\n---[ \t]*\r?(?:\n|\Z)", re.DOTALL)
_TEXT: Final = ("text/", "application/json", "application/yaml", "application/xml", "application/javascript")
_DOCUMENT: Final = 16 * MIB  # bytes of a PDF or Office file whose text is indexed
_SWITCH: Final = 0.001  # seconds after which the thread that writes the index lets others run


class ProcessIndex(Struct, frozen=True):
    """The index of this process, and its search."""

    index: Index
    text: FullText
    place: ProcessFile | None

    @classmethod
    def open(cls, directory: Path | None) -> ProcessIndex:
        """In memory where there is no directory, or it cannot be used."""
        sys.setswitchinterval(min(_SWITCH, sys.getswitchinterval()))
        place: ProcessFile | None = None
        try:
            place = None if directory is None else ProcessFile.take(directory)
            index = Index(None if place is None else place.path)
        except (OSError, sqlite3.Error) as problem:
            logger.warning("The search index is kept in memory: %s.", problem)
            index = Index(None)
        return cls(index, FullText(index), place)

    @classmethod
    def lent(cls, directory: Path, configuration: str, *, kept: bool) -> ProcessIndex | None:
        """The index of another process that is in step with the configuration; `kept`: or what one has left behind."""
        try:
            own = ProcessFile.take(directory)
        except OSError:
            return None
        if own is None:
            return None
        own.leave()
        for path in own.others() or ([own.path] if kept else []):
            try:
                index = Borrowed(path)
            except sqlite3.Error:
                continue
            try:
                if index.marked() == configuration:
                    return cls(index, FullText(index), None)
            except OctavoError:
                logger.info("The search index %s cannot be borrowed.", path)
            index.close()
        return None

    def close(self) -> None:
        self.index.close()
        if self.place is not None:
            self.place.leave()


class Documents:
    """`schemes` are in the order in which they are looked at: first catalogs, which are made to be searched."""

    def __init__(self, composition: Composed) -> None:
        self._composition = composition
        by_name = {} if composition.catalogs is None else composition.catalogs.by_name
        self._declared = {one.scheme: one.declaration for one in by_name.values()}
        self.schemes = sorted(composition.dispatch.exposed, key=lambda scheme: scheme not in self._declared)
        self._converting = {one.scheme for one in composition.config.sources.values() if "as" in one.record.parameters}
        self._most = composition.config.search.text

    def serve(self, composition: Composed) -> None:
        """A configuration under which the same documents are there."""
        self._composition = composition

    async def entries(self, scheme: str) -> AsyncIterator[Entry]:
        """All of one source. Where it can be searched by name, what .gitignore files name is left out, and links are
        everywhere: what they lead to is found under its own address."""
        cursor: str | None = None
        while True:
            page = await self._page(Ref(scheme), cursor, _PAGE)
            for entry in page.items:
                if await self._is_searched(entry):
                    yield replace(entry, ref=self._named(entry))
            cursor = page.cursor
            if cursor is None:
                return

    async def read(self, ref: Ref, entry: Entry | None) -> Document | None:
        """`entry` is what a listing told; without one it is looked for. None for what is not to be searched."""
        entry = entry or await self._listed(ref)
        if entry is None or not await self._is_searched(entry):
            return None
        converts = ref.scheme in self._converting and entry.mime_type in FORMATS
        most = _DOCUMENT if converts else self._most
        if entry.mime_type.startswith(_NO_TEXT) or (entry.size or 0) > most:
            made = Document.of(replace(entry, ref=ref), "")
            return replace(made, partial=converts or _is_text(entry.mime_type))
        if converts:
            return Document.of(replace(entry, ref=ref), await self._converted(ref))
        content = expected(await self._ask("read", ref), Content)
        if self._is_link(content.entry):
            return None
        text = content.body if isinstance(content.body, str) else ""
        if content.entry.metadata or (ref.scheme in self._declared and content.entry.target is None):
            text = _FRONT.sub("", text, count=1)  # title and metadata say it already
        found = content.entry
        if found.title is None and is_markdown(found.name):
            found = replace(found, title=title_of(text, ref.segments))
        document = Document.of(replace(found, ref=ref, version=entry.version), text)
        unread = isinstance(content.body, bytes) and _is_text(entry.mime_type)
        return replace(document, aliases=self._aliases(document), unread=unread)

    async def _listed(self, ref: Ref) -> Entry | None:
        page = await self._page(ref, None, 1)
        return next((one for one in page.items if self._named(one) == ref), None)

    async def _converted(self, ref: Ref) -> str:
        """The text of a PDF or Office document; none where it cannot be read, as without what the extra installs."""
        try:
            content = expected(await self._ask("read", ref._replace(params=(*ref.params, ("as", "text")))), Content)
        except (SourceUnavailable, RateLimited):
            raise
        except OctavoError as fault:
            logger.info("%s is found by its name alone: %s", ref, fault)
            return ""
        return content.body if isinstance(content.body, str) else ""

    def _aliases(self, document: Document) -> dict[str, list[str]]:
        """The filters of a catalog, and names for ids: `function: func-brand` is found by `function: brand`."""
        declared = self._declared.get(document.ref.scheme)
        if declared is None:
            return {}
        found: dict[str, list[str]] = {}
        for key, field in declared.filters.items():
            kinds = declared.links.get(field) or ((key,) if key in declared.variables else ())
            found[key] = [plain(word, kinds) for word in words(document.metadata.get(field))]
        return found

    async def as_it_is(self, finding: Finding) -> Finding | None:
        """With the address that its source gives it; None if it is not served any more. What cannot be asked at the
        moment stays."""
        try:
            entry = expected(await self._ask("stat", finding.ref), Entry)
        except (SourceUnavailable, Timeout, RateLimited):
            return finding
        except OctavoError:
            return None
        return None if self._is_link(entry) else replace(finding, ref=entry.ref)

    async def _is_searched(self, entry: Entry) -> bool:
        """Links are not, nor is the file that an entry is made of: it is the same text under another address."""
        target = entry.target
        if target is None or self._is_link(entry):
            return target is None
        if self._is_of_a_later_root(entry):
            return True
        declared = self._declared.get(target.scheme)
        if declared is None or entry.ref != target.child(declared.manifest):
            return True
        whole = expected(await self._ask("stat", target), Entry)
        return whole.version != entry.version

    def _named(self, entry: Entry) -> Ref:
        """As the change feed names it: what no root before its own hides, by its plain address."""
        ref = self._composition.canonical(entry.ref)
        return ref.bare if ref.param("root") == "1" or self._is_of_a_later_root(entry) else ref

    def _is_link(self, entry: Entry) -> bool:
        """A file of an entry has it as its target too, and belongs to it."""
        if entry.target is None or self._is_of_a_later_root(entry):
            return False
        return self._composition.dispatch.whole(entry.ref) != entry.target

    def _is_of_a_later_root(self, entry: Entry) -> bool:
        return entry.target is not None and entry.target.bare == self._composition.canonical(entry.ref).bare

    async def _page(self, scope: Ref, cursor: str | None, limit: int) -> Page[Entry]:
        page: Page[Entry]
        if isinstance(self._composition.dispatch.source(scope.scheme), Searches):
            page = page_of(await self._ask("search", scope, cursor, limit, _ALL))
        else:
            page = page_of(await self._ask("list", scope, cursor, limit))
        return page

    async def _ask(
        self, op: Op, ref: Ref, cursor: str | None = None, limit: int = 1, arguments: Arguments = PLAIN
    ) -> Reply:
        call = self._composition.calls.at(op, _NOBODY, ref, arguments, cursor=cursor, limit=limit)
        return await self._composition.behind(call._replace(max_bytes=self._most))


def _is_text(mime_type: str) -> bool:
    return mime_type.startswith(_TEXT)
