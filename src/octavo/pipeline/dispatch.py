"""The innermost end of the pipeline: hands a call to the source of its scheme."""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from octavo.core.arguments import (
    CompleteArguments,
    CopyArguments,
    DeleteArguments,
    EditArguments,
    FoldersArguments,
    ListArguments,
    MoveArguments,
    RankedArguments,
    SearchArguments,
    UndoArguments,
    WriteArguments,
)
from octavo.core.errors import Conflict, Forbidden, InvalidParams, OctavoError
from octavo.core.operations import STEERING
from octavo.core.ports.chain import Reply
from octavo.core.ports.search import Finds
from octavo.core.ports.source import (
    Aliases,
    Arranges,
    Called,
    Collects,
    Completes,
    Components,
    Edits,
    Filters,
    Folders,
    Levels,
    Names,
    Offers,
    Ready,
    Rejects,
    Searches,
    Source,
    Stamps,
    Suggests,
    SuggestsMore,
    TellsTwins,
    Undoes,
    Writes,
)
from octavo.core.query import TextQuery
from octavo.core.ref import Ref, spelled_otherwise
from octavo.core.rehearsal import Rehearsed
from octavo.core.search_results import Findings
from octavo.core.tools import Changes, Prompts, Tools
from octavo.core.values import EVERYTHING, FEED, Call, Content, EncoderMemo, Entry, Op, Page, Template

if TYPE_CHECKING:
    from octavo.core.labels import Labels

UNSTAMPED = "unstamped"  # holds as long as the source's TTL and the change feed say so


class Dispatch:
    """Knows every source by its scheme, and lays the operator's descriptions over what they tell."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        *,
        tools: Tools,
        prompts: Prompts,
        exposed: Sequence[str],
        described: Mapping[Ref, Entry] | None = None,
        templates: Sequence[Template] = (),
        writable: Iterable[str] = (),
        changes: Changes | None = None,
        finds: Finds | None = None,
        composed: Mapping[Op, Callable[[Call], Awaitable[Reply]]] = MappingProxyType({}),
        begins: Callable[[Call], Awaitable[Reply]] | None = None,
        labels: Labels | None = None,
        composing: Iterable[str] = (),
        intends: Callable[[Call], None] = lambda call: None,
    ) -> None:
        """`writable` are the schemes that may be changed: what a source can do is not what the operator wants.
        `finds` is the search over all of them. `composed` answers operations that are made of child calls.
        `begins` is where calls of tools go that may become tasks. `composing` names the tools that change nothing but
        by child calls. `intends` hears of every change before it begins."""
        self._finds = finds
        self._changes = changes
        self._composed, self._begins = composed, begins
        self._sources = sources
        # Looked up once: telling abilities from methods is too slow for every hit.
        self._stamps = {scheme: source.stamp for scheme, source in sources.items() if isinstance(source, Stamps)}
        self._names = {scheme: source for scheme, source in sources.items() if isinstance(source, Names)}
        self.naming = frozenset(self._names)
        self._spelling = {scheme: source for scheme, source in sources.items() if isinstance(source, Aliases)}
        self._parts = {scheme: source for scheme, source in sources.items() if isinstance(source, Components)}
        self._tools, self._prompts = tools, prompts
        self.exposed = tuple(exposed)  # schemes in the order of the configuration
        self._labels = labels
        self.labelling = labels is not None
        self._described = {self.canonical(ref): entry for ref, entry in (described or {}).items()}
        self._describes = frozenset(ref.scheme for ref in self._described)
        self._has_words = bool(self._described or labels)
        self._templates = tuple(templates)
        self._writable = frozenset(writable)
        self._composing = frozenset(composing)
        self._intends = intends
        self._answers: Mapping[Op, Callable[[Call], Awaitable[Reply]]] = {
            "read": self._read, "list": self._list, "stat": self._stat, "search": self._search,
            "folders": self._folders, "templates": self._offered, "complete": self._complete, "watch": self._watch,
            "changes": self._since, "write": self._write, "edit": self._edit, "delete": self._delete,
            "move": self._move, "copy": self._copy, "make": self._make, "undo": self._undo,
            "invoke": self._invoke, "render": prompts.render,
            **{op: self._steer if op in STEERING else answers for op, answers in composed.items()},
        }  # fmt: skip

    async def __call__(self, call: Call) -> Reply:
        if not call.uri.isascii() or "%" in call.uri:
            await self._refuse_twin(call)
        return await self._answers[call.op](call)

    async def _refuse_twin(self, call: Call) -> None:
        names = spelled_otherwise(call.uri)[-len(call.ref.segments) :] if call.ref.segments else ()
        if not names or tuple(unicodedata.normalize("NFC", name) for name in names) != call.ref.segments:
            return
        source = self._sources.get(call.ref.scheme)
        if isinstance(source, TellsTwins) and await source.is_twin(call.ref, names):
            why = "it differs from the one that is served in its Unicode form alone; rename one of the two"
            raise Conflict(f"Ambiguous name: {call.uri}: {why}", uri=call.uri)

    async def _invoke(self, call: Call) -> Reply:
        if self._begins is not None and call.channel is not None and call.channel.lasts:
            return await self._begins(call)
        if self._acts(call.ref.path):
            self._intends(call)
        return await self._tools.invoke(call)

    async def _steer(self, call: Call) -> Reply:
        self._intends(call)
        return await self._composed[call.op](call)

    async def _watch(self, call: Call) -> Reply:
        await self._armed(call.ref)  # nothing to fetch: the feed follows every source
        return None

    async def _since(self, call: Call) -> Reply:
        if self._changes is None:
            raise _cannot(call)
        await self._armed(call.ref)
        return await self._changes.since(call)

    async def _offered(self, call: Call) -> Reply:
        return self.templates()

    async def _read(self, call: Call) -> Reply:
        ref = call.ref
        if ref.scheme == FEED and self._changes is not None:
            return await self._changes.read(call)
        content = await self.source(ref.scheme).read(ref, max_bytes=call.max_bytes)
        return self._described_content(content) if self._has_words else content

    async def _list(self, call: Call) -> Reply:
        source, depth = self.source(call.ref.scheme), call.given(ListArguments).depth
        if depth and isinstance(source, Levels):
            page = await source.list_levels(call.ref, depth=depth, cursor=call.cursor, limit=call.limit)
        else:
            page = await source.list(call.ref, cursor=call.cursor, limit=call.limit)
        return self._described_page(page) if self._has_words else page

    async def _folders(self, call: Call) -> Reply:
        source, asked = self.source(call.ref.scheme), call.given(FoldersArguments)
        if not isinstance(source, Folders):
            return ()
        return await source.folders(call.ref, depth=asked.depth, limit=asked.most)

    async def _stat(self, call: Call) -> Reply:
        return self._describe(await self.source(call.ref.scheme).stat(call.ref))

    async def _complete(self, call: Call) -> Reply:
        source, asked = self.source(call.ref.scheme), call.given(CompleteArguments)
        if call.ref.scheme == "prompt":
            return await self._prompts.complete_argument(call)
        if isinstance(source, Suggests):
            template = asked.template or f"{call.ref.scheme}://{{+path}}"
            wanted = (template, asked.argument, asked.prefix, asked.given)
            if asked.after is None:
                return await source.suggest(*wanted)
            return await source.suggest_more(asked.after, *wanted) if isinstance(source, SuggestsMore) else ()
        if not isinstance(source, Completes):
            return ()
        return await source.complete(asked.argument, asked.prefix, asked.given)

    async def _search(self, call: Call) -> Reply:
        if call.ref == EVERYTHING:
            return await self._ranked(call)
        source = self.source(call.ref.scheme)
        if not isinstance(source, Searches):
            raise _cannot(call)
        query = call.given(SearchArguments).query
        if isinstance(query, TextQuery):
            raise _cannot(call)
        page = await source.search(call.ref, query, cursor=call.cursor, limit=call.limit)
        return self._described_page(page) if self._has_words else page

    def has_tool(self, name: str) -> bool:
        return self._tools.tool(name) is not None

    def _acts(self, tool: str) -> bool:
        """Whether a tool may change something that no child call of its tells of."""
        info = self._tools.tool(tool)
        return info is not None and not info.hints.read_only and tool not in self._composing

    async def _armed(self, scope: Ref) -> None:
        """From here on nothing below the scope is missed."""
        for scheme in self.exposed if scope.scheme == "*" else (scope.scheme,):
            if isinstance(one := self._sources.get(scheme), Ready):
                await one.armed()

    async def _ranked(self, call: Call) -> Findings:
        if self._finds is None:
            raise InvalidParams("Search over everything is off here: search.enabled in the configuration", uri=call.uri)
        asked = call.given(RankedArguments)
        return await self._finds.find(
            asked.query,
            allowed=asked.allowed,
            viewer=asked.viewer,
            cursor=call.cursor,
            limit=call.limit,
            seconds=call.timeout,
        )

    def _changed(self, call: Call, *, only_looks: bool = False) -> Source:
        """The source of a change that may be made, and is on record before it begins."""
        source = self.source(call.ref.scheme)
        if (refused := self.unchangeable(call.ref)) is not None:
            raise refused
        if not only_looks:
            if call.trail.rehearsal:
                raise Rehearsed
            self._intends(call)
        return source

    async def _write(self, call: Call) -> Reply:
        source = self._changed(call)
        if not isinstance(source, Writes):
            raise _cannot(call)
        asked = call.given(WriteArguments)
        return await source.write(
            call.ref,
            asked.body,
            if_match=asked.if_match,
            mode=asked.mode,
            encoding=asked.encoding,
            by=call.principal.id,
        )

    async def _delete(self, call: Call) -> Reply:
        source = self._changed(call)
        if not isinstance(source, Writes):
            raise _cannot(call)
        await source.delete(call.ref, if_match=call.given(DeleteArguments).if_match, by=call.principal.id)
        return self.restores(call.ref)

    async def _edit(self, call: Call) -> Reply:
        dry_run = isinstance(call.arguments, EditArguments) and call.arguments.dry_run
        source = self._changed(call, only_looks=dry_run)
        if not isinstance(source, Edits):
            raise _cannot(call)
        asked = call.given(EditArguments)
        return await source.edit(
            call.ref, asked.revision, if_match=asked.if_match, dry_run=asked.dry_run, by=call.principal.id
        )

    async def _move(self, call: Call) -> Reply:
        source, by = self._changed(call), call.principal.id
        if not isinstance(source, Arranges):
            raise _cannot(call)
        asked = call.given(MoveArguments)
        return await source.move(call.ref, asked.to, if_match=asked.if_match, overwrite=asked.overwrite, by=by)

    async def _copy(self, call: Call) -> Reply:
        source = self._changed(call)
        if not isinstance(source, Arranges):
            raise _cannot(call)
        asked = call.given(CopyArguments)
        return await source.copy(call.ref, asked.to, overwrite=asked.overwrite, by=call.principal.id)

    async def _make(self, call: Call) -> Reply:
        source = self._changed(call)
        if not isinstance(source, Arranges):
            raise _cannot(call)
        await source.make_directory(call.ref, by=call.principal.id)
        return None

    async def _undo(self, call: Call) -> Reply:
        asked, by, ref = call.given(UndoArguments), call.principal.id, call.ref
        source = self._changed(call, only_looks=asked.look)
        if not isinstance(source, Undoes):
            raise _cannot(call)
        scope = {"scope": ref} if ref.segments or ref.params else {}
        if asked.look:
            return await source.history(by, asked.count, standing=True, **scope)
        return await source.undo(by, count=asked.count, only=asked.only, **scope)

    def source(self, scheme: str) -> Source:
        try:
            return self._sources[scheme]
        except KeyError:
            raise InvalidParams(
                f"No source serves {scheme}:// here; the list of resources tells which addresses there are"
            ) from None

    def canonical(self, ref: Ref) -> Ref:
        """The spelling that policy, cache and feed use."""
        source = self._spelling.get(ref.scheme)
        if source is not None:
            return source.canonical(ref)
        if ref.scheme not in self._sources and ref.scheme != FEED:
            raise InvalidParams(
                f"No source serves {ref.scheme}:// here; the list of resources tells which addresses there are"
            )
        return ref

    def spelled(self, ref: Ref) -> Ref:
        """The other public spelling of a canonical address, or itself."""
        source = self._spelling.get(ref.scheme)
        return ref if source is None else source.spelled(ref)

    def ids(self, scheme: str) -> object:
        return self._names[scheme].ids

    def named(self, ref: Ref, moment: int | None) -> bool:
        return self._names[ref.scheme].named(ref, moment)

    async def name(self, ref: Ref) -> Ref:
        """The name that an address means to whoever sees everything, in the canonical spelling; itself where it means
        nothing, or several things."""
        first = next(iter(await self.meanings(ref)), ())
        return first[0] if len(first) == 1 else self.canonical(ref)

    async def meanings(self, ref: Ref) -> Sequence[Sequence[Ref]]:
        source = self._names.get(ref.scheme)
        return () if source is None else await source.meanings(ref)

    def called(self, ref: Ref) -> Called:
        source = self._names.get(ref.scheme)
        return Called() if source is None else source.called(ref)

    def refuses(self, ref: Ref) -> OctavoError | None:
        """What the source says of the name alone, whether or not there is anything."""
        source = self._sources.get(ref.scheme)
        return source.refuses(ref) if isinstance(source, Rejects) else None

    def unchangeable(self, ref: Ref) -> OctavoError | None:
        """What is said of every change there, whatever stands there."""
        if ref == EVERYTHING or ref.scheme in self._writable:
            return None
        why = "This source is read-only: serve with --write, or set write: true on it"
        return Forbidden(why, uri=str(ref))

    def restores(self, ref: Ref) -> bool:
        """Whether `undo` could take back a change there. An undo of all sources takes part only in those that can."""
        return ref == EVERYTHING or isinstance(self._sources.get(ref.scheme), Undoes)

    @property
    def undoing(self) -> Sequence[Ref]:
        """Where changes can be taken back."""
        return [ref for ref in map(Ref, self.exposed) if ref.scheme in self._writable and self.restores(ref)]

    def collects(self, ref: Ref) -> bool:
        source = self._sources.get(ref.scheme)
        return isinstance(source, Collects) and source.collects(ref)

    def filters(self, scheme: str) -> Collection[str]:
        """What the source itself can narrow a listing by."""
        source = self._sources.get(scheme)
        return source.filters if isinstance(source, Filters) else ()

    def whole(self, ref: Ref) -> Ref | None:
        source = self._parts.get(ref.scheme)
        return None if source is None else source.whole(ref)

    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
        stamp = self._stamps.get(ref.scheme)
        return UNSTAMPED if stamp is None else stamp(ref, op, moment)

    def templates(self) -> list[Template]:
        """The operator's, then those of the exposed sources, each once."""
        offered = {words.uri_template: words for words in self._templates}
        for source in (self._sources[scheme] for scheme in self.exposed):
            for told in source.templates() if isinstance(source, Offers) else ():
                words = offered.get(told.uri_template)
                offered[told.uri_template] = told if words is None else _over(words, told)
        return [*offered.values()]

    def labelled(self, entry: Entry) -> Entry:
        """With the labels that the operator gives it, by any of its names; of a link, also those of its target."""
        if self._labels is None:
            return entry
        refs = [self.canonical(ref) for ref in (entry.ref, entry.target) if ref is not None]
        return self._labels.on(entry, [*refs, *map(self.spelled, refs)])

    def weakens(self, ref: Ref, there: Ref) -> str | None:
        """Which label would be a weaker one if what stands at an address went to another."""
        if self._labels is None:
            return None
        return self._labels.weakened((ref, self.spelled(ref)), (there, self.spelled(there)))

    def _describe(self, entry: Entry) -> Entry:
        entry = self.labelled(entry)
        words = self._words(entry.ref) if entry.ref.scheme in self._describes else None
        if words is None:
            return entry
        return replace(
            entry,
            name=words.name or entry.name,
            description=words.description or entry.description,
            mime_type=words.mime_type or entry.mime_type,
            annotations=words.annotations or entry.annotations,
        )

    def _words(self, ref: Ref) -> Entry | None:
        """What the operator says of it, by whichever of its spellings: an id, or the same file in its root."""
        name = self.canonical(ref)
        if (words := self._described.get(name)) is not None:
            return words
        others = [] if name.params else [*self.called(name).free]
        if [key for key, _ in name.params] in ([], ["root"]):
            with suppress(OctavoError):  # it lies in no root any more
                spelled = self.spelled(name)
                others += [self.canonical(spelled), *([name.bare] if self.spelled(name.bare) == spelled else [])]
        return next((words for one in others if (words := self._described.get(one)) is not None), None)

    def _described_page(self, page: Page[Entry]) -> Page[Entry]:
        # With a memo of its own: that of the source's page may hold the entries as they were encoded before.
        return Page(tuple(self._describe(entry) for entry in page.items), page.cursor, page.unavailable)

    def _described_content(self, content: Content) -> Content:
        entry = self._describe(content.entry)
        return content if entry is content.entry else replace(content, entry=entry, memo=EncoderMemo())


def _cannot(call: Call) -> InvalidParams:
    return InvalidParams(f"{call.ref.scheme}:// cannot {call.op}", uri=call.uri)


def _over(words: Template, told: Template) -> Template:
    return replace(
        told,
        name=words.name if words.name != words.uri_template else told.name,
        description=words.description or told.description,
        mime_type=words.mime_type or told.mime_type,
        parameters=words.parameters or told.parameters,
    )
