"""The optional abilities of a plugin's source (search, write, watch, …), each behind the same checks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, cast

from octavo.core.arguments import Mode
from octavo.core.edit import Revision
from octavo.core.errors import OctavoError
from octavo.core.foreign import passed_on
from octavo.core.ports.source import (
    ABILITIES,
    Aliases,
    Arranges,
    Collects,
    Completes,
    Components,
    Deltas,
    Edits,
    Filters,
    Folders,
    History,
    Levels,
    Offers,
    Pins,
    Ready,
    Rejects,
    Searches,
    Source,
    Stamps,
    Suggests,
    SuggestsMore,
    Syncs,
    TellsTwins,
    Undoes,
    Watches,
    Writes,
)
from octavo.core.query import Query
from octavo.core.ref import Ref
from octavo.core.values import Change, Edited, Entry, Page, Past, Suggestion, Template, Undone
from octavo.pipeline.guard import contract
from octavo.pipeline.guard.contract import Breach
from octavo.pipeline.guard.door import LOOKING, Guarded
from octavo.pipeline.guard.faults import Faults, told

BURST: Final = 64  # changes that are told at once
PAUSE: Final = 0.01  # seconds, before more of them


class _Levels(Guarded):
    async def list_levels(self, scope: Ref, *, depth: int, cursor: str | None, limit: int) -> Page[Entry]:
        ask = partial(self.source.list_levels, scope, depth=depth)
        return await self._page("list_levels", scope, cursor, limit, ask, depth)


class _Searches(Guarded):
    async def search(self, scope: Ref, query: Query, *, cursor: str | None, limit: int) -> Page[Entry]:
        ask = partial(self.source.search, scope, query)
        return await self._page("search", scope, cursor, limit, ask, query)


class _Folders(Guarded):
    async def folders(self, scope: Ref, *, depth: int | None, limit: int) -> Sequence[Ref]:
        def folder(given: object) -> Ref:
            if not contract.address(given, self.scheme).within(scope.bare):
                raise Breach("a folder outside of what was asked for")
            return cast("Ref", given)

        return await self._asked(
            "folders",
            lambda: self.source.folders(scope, depth=depth, limit=limit),
            lambda it: contract.each(it, folder, limit),
        )


class _Completes(Guarded):
    async def complete(self, argument: str, prefix: str, given: Mapping[str, str]) -> Sequence[str]:
        return await self._asked(
            "complete",
            lambda: self.source.complete(argument, prefix, given),
            lambda it: contract.each(it, contract.text),
        )


class _Suggests(Guarded):
    async def suggest(
        self, template: str, argument: str, prefix: str, given: Mapping[str, str]
    ) -> Iterable[Suggestion]:
        return await self._asked(
            "suggest",
            lambda: self.source.suggest(template, argument, prefix, given),
            lambda it: contract.each(it, lambda one: contract.suggestion(one, self.scheme)),
        )


class _SuggestsMore(Guarded):
    async def suggest_more(
        self, after: Suggestion, template: str, argument: str, prefix: str, given: Mapping[str, str]
    ) -> Iterable[Suggestion]:
        return await self._asked(
            "suggest_more",
            lambda: self.source.suggest_more(after, template, argument, prefix, given),
            lambda it: contract.each(it, lambda one: contract.suggestion(one, self.scheme)),
        )


class _Writes(Guarded):
    async def write(
        self,
        ref: Ref,
        body: str | bytes,
        *,
        if_match: str | None,
        mode: Mode = "upsert",
        encoding: str | None = None,
        by: str = "",
    ) -> Entry:
        ask = partial(self.source.write, ref, body, if_match=if_match, mode=mode, encoding=encoding, by=by)

        return await self._changed("write", ask, lambda it: contract.entry(it, self.scheme))

    async def delete(self, ref: Ref, *, if_match: str | None, by: str = "") -> None:
        await self._changed("delete", lambda: self.source.delete(ref, if_match=if_match, by=by), _nothing)


class _Edits(Guarded):
    async def edit(
        self,
        ref: Ref,
        revision: Revision,
        *,
        if_match: str | None,
        dry_run: bool = False,
        by: str = "",
    ) -> Edited:
        ask = partial(self.source.edit, ref, revision, if_match=if_match, dry_run=dry_run, by=by)

        return await self._changed("edit", ask, lambda it: contract.edited(it, self.scheme))


class _Arranges(Guarded):
    async def move(self, ref: Ref, to: Ref, *, if_match: str | None, overwrite: bool = False, by: str = "") -> Entry:
        ask = partial(self.source.move, ref, to, if_match=if_match, overwrite=overwrite, by=by)

        return await self._changed("move", ask, lambda it: contract.entry(it, self.scheme))

    async def copy(self, ref: Ref, to: Ref, *, overwrite: bool = False, by: str = "") -> Entry:
        ask = partial(self.source.copy, ref, to, overwrite=overwrite, by=by)
        return await self._changed("copy", ask, lambda it: contract.entry(it, self.scheme))

    async def make_directory(self, ref: Ref, by: str = "") -> None:
        await self._changed("make_directory", lambda: self.source.make_directory(ref, by=by), _nothing)


class _Undoes(Guarded):
    async def undo(
        self, by: str, *, count: int = 1, only: Sequence[str] | None = None, scope: Ref | None = None
    ) -> Sequence[Undone]:
        def undone(given: object) -> Undone:
            return contract.undone(given, self.scheme)

        ask = partial(self.source.undo, by, count=count, only=only, **_where(scope))
        return await self._changed("undo", ask, lambda it: contract.each(it, undone))

    async def history(
        self, by: str, limit: int = 20, *, standing: bool = False, scope: Ref | None = None
    ) -> Sequence[Past]:
        def past(given: object) -> Past:
            return contract.past(given, self.scheme)

        ask = partial(self.source.history, by, limit, standing=standing, **_where(scope))
        return await self._asked("history", ask, lambda it: contract.each(it, past, limit))


def _where(scope: Ref | None) -> dict[str, Ref]:
    """Given only where somebody asked for one."""
    return {} if scope is None else {"scope": scope}


class _Watches(Guarded):
    async def watch(self, scope: Ref) -> AsyncIterator[Change]:
        """Raises SourceUnavailable when it fails. What is no change of this source is left out; of very many, others
        get their turn in between."""
        self._admit()
        count = 0
        changes = self.at_once("watch", lambda: self.source.watch(scope), aiter)
        try:
            while True:
                try:
                    given = await anext(changes)
                except StopAsyncIteration:
                    return
                except BaseException as error:
                    if passed_on(error):
                        raise
                    self._failed("watch", error)
                try:
                    change = contract.change(given, scope)
                except Exception as wrong:
                    words = str(wrong) if isinstance(wrong, Breach) else told(wrong)
                    self._faults.note(self.scheme, "watch", f"it tells what is no change of it: {words}")
                else:
                    yield change
                count += 1
                if count % BURST == 0:
                    await asyncio.sleep(PAUSE)
        finally:
            close = getattr(changes, "aclose", None)
            if close is not None:
                await _quietly(close)


class _Arms(Guarded):
    async def armed(self) -> None:
        await self._asked("armed", self.source.armed, _nothing, seconds=LOOKING)


class _CatchesUp(Guarded):
    async def caught_up(self) -> object | None:
        return await self._asked("caught_up", self.source.caught_up, _as_it_is, seconds=LOOKING)


class _Remembers(Guarded):
    async def past(self, ref: Ref, *, limit: int) -> Sequence[Entry]:
        return await self._asked(
            "past",
            lambda: self.source.past(ref, limit=limit),
            lambda it: contract.each(it, lambda one: contract.entry(one, self.scheme), limit),
            seconds=LOOKING,
        )


class _Pins(Guarded):
    async def pinned(self, ref: Ref, name: str) -> Entry | None:
        return await self._asked(
            "pinned",
            lambda: self.source.pinned(ref, name),
            lambda it: None if it is None else contract.entry(it, self.scheme),
            seconds=LOOKING,
        )


class _Spells(Guarded):
    def canonical(self, ref: Ref) -> Ref:
        return self.at_once("canonical", lambda: self.source.canonical(ref), self._own)

    def spelled(self, ref: Ref) -> Ref:
        return self.at_once("spelled", lambda: self.source.spelled(ref), self._own)

    def _own(self, given: object) -> Ref:
        return contract.address(given, self.scheme)


class _Refuses(Guarded):
    def refuses(self, ref: Ref) -> OctavoError | None:
        return self.at_once("refuses", lambda: self.source.refuses(ref), _refusal)


class _TellsTwins(Guarded):
    async def is_twin(self, ref: Ref, names: Sequence[str]) -> bool:
        return await self._asked("is_twin", lambda: self.source.is_twin(ref, names), bool, seconds=LOOKING)


class _Collects(Guarded):
    def collects(self, ref: Ref) -> bool:
        return self.at_once("collects", lambda: self.source.collects(ref), bool)


class _Parts(Guarded):
    def whole(self, ref: Ref) -> Ref | None:
        def part(given: object) -> Ref | None:
            return None if given is None else contract.address(given, self.scheme)

        return self.at_once("whole", lambda: self.source.whole(ref), part)


class _Stamps(Guarded):
    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
        return self.or_else("stamp", lambda: self.source.stamp(ref, op, moment), _as_it_is, None)


class _Recalls(Guarded):
    def changed_since(self, stamp: object) -> Sequence[Ref] | None:
        def changed(given: object) -> Sequence[Ref] | None:
            own = partial(contract.address, scheme=self.scheme)
            return None if given is None else contract.each(given, own)

        return self.or_else("changed_since", lambda: self.source.changed_since(stamp), changed, None)


class _Offers(Guarded):
    def templates(self) -> Sequence[Template]:
        return self.or_else(
            "templates",
            self.source.templates,
            lambda it: contract.each(it, lambda one: contract.template(one, self.scheme)),
            (),
        )


class _Filters(Guarded):
    @property
    def filters(self) -> Collection[str]:
        return self.or_else("filters", lambda: self.source.filters, lambda it: contract.each(it, contract.text), ())


DOORS: Final[Mapping[type, type[Guarded]]] = {
    Levels: _Levels, Searches: _Searches, Folders: _Folders, Completes: _Completes, Suggests: _Suggests,
    SuggestsMore: _SuggestsMore,
    Writes: _Writes, Edits: _Edits, Arranges: _Arranges, Undoes: _Undoes, Watches: _Watches, Ready: _Arms,
    Syncs: _CatchesUp,
    History: _Remembers, Pins: _Pins, Aliases: _Spells, Rejects: _Refuses, TellsTwins: _TellsTwins,
    Collects: _Collects, Components: _Parts, Stamps: _Stamps,
    Deltas: _Recalls, Offers: _Offers, Filters: _Filters,
}  # fmt: skip


def guarded(
    source: Source,
    faults: Faults,
    time: float = 10.0,
    *,
    able: Collection[str] | None = None,
    parameters: Collection[str] | None = None,
) -> Guarded:
    """With the same abilities: they are told from the methods that are there, and are no more than `able`, where a
    record says what it can do. `parameters` are those that its addresses take, where one says that."""
    lowered = () if able is None else [ability for name, ability in ABILITIES.items() if name not in able]
    doors = tuple(door for ability, door in DOORS.items() if ability not in lowered and isinstance(source, ability))
    door: type[Guarded] = type("Guarded", doors or (Guarded,), {})
    made = door(source, faults, time)
    made.parameters = parameters
    return made


async def _quietly(close: Callable[[], Awaitable[object]]) -> None:
    try:
        await close()
    except BaseException as error:
        if passed_on(error):
            raise


def _nothing(given: object) -> None:
    """It has no answer that anybody looks at."""


def _as_it_is(given: object) -> object:
    return given


def _refusal(given: object) -> OctavoError | None:
    if given is not None and not isinstance(given, OctavoError):
        raise Breach(f"{contract.kind(given)} instead of a refusal")
    return given
