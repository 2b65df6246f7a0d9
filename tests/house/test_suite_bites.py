"""A suite that cannot fail is decoration: each of these sources is broken in one way, and is caught."""

import asyncio
import itertools
import logging
import subprocess
import sys
import threading
import unicodedata
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from octavo.core.errors import Conflict, InvalidParams, NotFound, TooLarge
from octavo.core.kinds import Host, SourceKind
from octavo.core.ref import Ref, decode
from octavo.core.values import Change, Content, Entry, Page, Template
from octavo.sources.memory import MemorySource
from octavo.testing import SourceSuite

SECRET = "correct horse battery staple"


class Suite(SourceSuite):
    __test__ = False
    secrets = (SECRET,)
    patience = 0.2
    make: Callable[[], Any]

    async def fresh(self) -> Any:
        return self.make()

    def record(self) -> Any:
        """With what the class of the source says that it can."""
        claims = getattr(self.make, "claims", frozenset())
        return SourceKind(name="test", options=object, open=self.open, abilities=claims), None

    async def open(self, options: object, host: Host) -> Any:
        return self.make()


class Sound(MemorySource):
    """The base of the mutants: as sound as MemorySource itself."""

    def __init__(self) -> None:
        super().__init__("test", SourceSuite.TREE, secret=SECRET.encode())
        self.token = SECRET


@dataclass(frozen=True)
class Mutant:
    source: type[Sound]
    caught_by: tuple[str, ...]


MUTANTS: list[Mutant] = []


def caught_by(*tests: str) -> Any:
    """Registers a mutant with the tests of the suite that must fail for it."""

    def register(source: type[Sound]) -> type[Sound]:
        MUTANTS.append(Mutant(source, tests))
        return source

    return register


async def give_way() -> None:
    await asyncio.sleep(0)


# Clause 1


@caught_by("test_1_listing_gives_each_entry_exactly_once_whatever_the_page_size")
class RepeatsTheLastOfAPage(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        page = await super().list(scope, cursor=cursor, limit=limit)
        if page.cursor and limit > 1:
            before = await super().list(scope, cursor=cursor, limit=limit - 1)
            return Page(page.items, before.cursor)
        return page


@caught_by("test_1_listing_gives_each_entry_exactly_once_whatever_the_page_size")
class LosesTheRestOfAFullPage(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        page = await super().list(scope, cursor=cursor, limit=limit)
        return Page(page.items, page.cursor if limit > 1 else None)


@caught_by("test_1_listing_gives_each_entry_exactly_once_whatever_the_page_size")
class GivesMoreThanAsked(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        return await super().list(scope, cursor=cursor, limit=limit + 1)


@caught_by("test_1_levels_show_the_first_entry_of_each_deeper_folder")
class ShowsEverythingOnEveryLevel(Sound):
    async def list_levels(self, scope: Ref, *, depth: int, cursor: str | None, limit: int) -> Page[Entry]:
        return await super().list(scope, cursor=cursor, limit=limit)


@caught_by("test_1_listing_is_ordered_by_segments_whatever_the_page_size")
class OrdersByText(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        every = (await super().list(scope, cursor=None, limit=1000)).items
        after = sorted(str(entry.ref) for entry in every if cursor is None or str(entry.ref) > cursor)
        found = {str(entry.ref): entry for entry in every}
        page = after[:limit]
        return Page(tuple(found[uri] for uri in page), page[-1] if len(after) > limit else None)


@caught_by("test_1_listing_a_scope_gives_what_is_in_it_and_nothing_else")
class TakesAScopeForAPrefixOfText(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        page = await super().list(Ref("test"), cursor=cursor, limit=limit)
        return Page(tuple(entry for entry in page.items if entry.ref.path.startswith(scope.path)), page.cursor)


@caught_by("test_1_listing_an_unknown_scope_is_empty")
class RefusesAnUnknownScope(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        page = await super().list(scope, cursor=cursor, limit=limit)
        if not page.items:
            raise NotFound(f"Resource not found: {scope}", uri=str(scope))
        return page


@caught_by(
    "test_1_a_cursor_survives_that_the_entry_it_stands_on_is_deleted",
    "test_1_a_cursor_survives_inserts_and_deletes_on_both_sides",
    "test_1_a_cursor_that_is_not_ours_does_no_harm",
)
class CountsEntriesInItsCursor(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        every = (await super().list(scope, cursor=None, limit=1000)).items
        start = int(cursor) if cursor is not None else 0
        more = len(every) > start + limit
        return Page(every[start : start + limit], str(start + limit) if more else None)


@caught_by("test_1_a_cursor_survives_that_the_entry_it_stands_on_is_deleted")
class NeedsTheEntryOfItsCursor(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        every = (await super().list(scope, cursor=None, limit=1000)).items
        uris = [str(entry.ref) for entry in every]
        if cursor is not None and cursor not in uris:
            raise InvalidParams("The cursor is too old")
        start = uris.index(cursor) + 1 if cursor else 0
        page = every[start : start + limit]
        return Page(page, str(page[-1].ref) if len(every) > start + limit else None)


@caught_by(
    "test_1_listing_gives_each_entry_exactly_once_whatever_the_page_size",
    "test_6_the_door_of_the_server_finds_nothing_wrong",
)
class GivesEverythingAtOnce(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        return await super().list(scope, cursor=None, limit=50_000)


@caught_by(
    "test_1_listing_gives_each_entry_exactly_once_whatever_the_page_size",
    "test_6_the_door_of_the_server_finds_nothing_wrong",
)
class GivesItsCursorAgain(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        page = await super().list(scope, cursor=cursor, limit=limit)
        return Page(page.items, cursor or page.cursor)


# Clause 2


@caught_by("test_2_listed_entries_read_back_what_was_stored", "test_5_a_parsed_address_reads_like_the_listed_one")
class StripsWhatItReads(Sound):
    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        content = await super().read(ref, max_bytes=max_bytes)
        return replace(content, body=str(content.body).strip())


@caught_by("test_2_stat_and_read_and_list_agree")
class CountsCharactersInStat(Sound):
    async def stat(self, ref: Ref) -> Entry:
        content = await super().read(ref, max_bytes=1 << 20)
        return replace(content.entry, size=len(content.body))


@caught_by("test_2_stat_and_read_and_list_agree")
class NamesThingsOtherwiseInLists(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        page = await super().list(scope, cursor=cursor, limit=limit)
        return replace(page, items=tuple(replace(entry, name=entry.ref.path.upper()) for entry in page.items))


@caught_by("test_2_what_is_not_listed_is_not_found")
class IgnoresCase(Sound):
    async def stat(self, ref: Ref) -> Entry:
        known = {key.lower(): key for key in SourceSuite.TREE}
        return await super().stat(Ref.of("test", known.get(ref.path.lower(), ref.path).split("/")))


@caught_by("test_2_what_is_not_listed_is_not_found")
class AnswersBelowALeaf(Sound):
    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        try:
            return await super().read(ref, max_bytes=max_bytes)
        except NotFound:
            return await super().read(ref._replace(segments=ref.segments[:-1]), max_bytes=max_bytes)


@caught_by("test_2_not_found_says_the_address_and_nothing_else")
class TellsWhereItLooked(Sound):
    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        try:
            return await super().read(ref, max_bytes=max_bytes)
        except NotFound:
            raise NotFound(f"No such file: /srv/data/{ref.path}", uri=str(ref), path=f"/srv/data/{ref.path}") from None


@caught_by("test_2_unknown_parameters_are_refused")
class IgnoresParameters(Sound):
    async def stat(self, ref: Ref) -> Entry:
        return await super().stat(ref.bare)

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        return await super().read(ref.bare, max_bytes=max_bytes)


# Clause 3


@caught_by("test_3_one_byte_over_the_limit_is_refused_and_never_truncated")
class Truncates(Sound):
    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        content = await super().read(ref, max_bytes=1 << 20)
        return replace(content, body=str(content.body).encode()[:max_bytes].decode(errors="ignore"))


@caught_by("test_3_one_byte_over_the_limit_is_refused_and_never_truncated")
class CountsCharactersInRead(Sound):
    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        content = await super().read(ref, max_bytes=1 << 20)
        if len(content.body) > max_bytes:
            raise TooLarge("too large", uri=str(ref), size=content.size, limit=max_bytes)
        return content


@caught_by("test_3_exactly_the_limit_is_served")
class RefusesExactlyTheLimit(Sound):
    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        return await super().read(ref, max_bytes=max_bytes - 1)


# Clause 4


class Versioned(Sound):
    """Whose versions are made by `version`, everywhere alike."""

    def version(self, entry: Entry) -> str:
        raise NotImplementedError

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        page = await super().list(scope, cursor=cursor, limit=limit)
        return replace(page, items=tuple(replace(entry, version=self.version(entry)) for entry in page.items))

    async def stat(self, ref: Ref) -> Entry:
        entry = await super().stat(ref)
        return replace(entry, version=self.version(entry))


@caught_by("test_4_the_version_changes_with_the_content_even_at_the_same_length")
class TakesTheSizeForAVersion(Versioned):
    def version(self, entry: Entry) -> str:
        return str(entry.size)


@caught_by("test_4_the_version_stays_while_nothing_changes")
class MakesUpAVersionEachTime(Versioned):
    calls = 0

    def version(self, entry: Entry) -> str:
        self.calls += 1
        return str(self.calls)


@caught_by("test_4_the_version_stays_while_nothing_changes")
class HasNoVersions(Versioned):
    def version(self, entry: Entry) -> str:
        return ""


@caught_by("test_4_a_change_of_one_entry_leaves_the_versions_of_others")
class HasOneVersionForAll(Versioned):
    def version(self, entry: Entry) -> str:
        return str(self._serial)


@caught_by("test_4_a_stamp_changes_when_the_answer_would")
class StampsLateForChanges(Sound):
    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
        return "always valid"


@caught_by("test_4_a_stamp_changes_when_the_answer_would")
class ForgetsListsInItsStamps(Sound):
    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
        return "always valid" if op == "list" else super().stamp(ref, op, moment)


@caught_by("test_4_a_stamp_never_raises")
class RaisesFromStamps(Sound):
    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
        return self._held[ref.segments].serial if op == "read" else None


# Clause 5


@caught_by("test_5_listed_addresses_survive_a_round_trip_through_text")
class ListsDecomposedNames(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        page = await super().list(scope, cursor=cursor, limit=limit)
        return replace(page, items=tuple(replace(entry, ref=self._decomposed(entry.ref)) for entry in page.items))

    def _decomposed(self, ref: Ref) -> Ref:
        return ref._replace(segments=tuple(unicodedata.normalize("NFD", name) for name in ref.segments))


@caught_by("test_5_a_parsed_address_reads_like_the_listed_one")
class DecodesTwice(Sound):
    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        return await super().read(ref._replace(segments=tuple(map(decode, ref.segments))), max_bytes=max_bytes)


@caught_by("test_5_both_spellings_of_an_address_are_one")
class SpellsOneThingTwice(Sound):
    def canonical(self, ref: Ref) -> Ref:
        return ref

    def spelled(self, ref: Ref) -> Ref:
        return ref._replace(segments=("root", *ref.segments))


# Clause 6


@caught_by("test_6_hostile_names_meet_nothing_but_our_errors")
class FormatsNames(Sound):
    async def stat(self, ref: Ref) -> Entry:
        ref.name.format()
        return await super().stat(ref)


@caught_by("test_6_strange_numbers_meet_nothing_but_our_errors")
class TrustsNumbers(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        held = [self._held[key] for key in self._order]
        first = held[limit - 1] if limit < len(held) else held[1 << limit]
        return Page((first.entry,))


@caught_by("test_6_a_foreign_scheme_is_not_found")
class ServesEveryScheme(Sound):
    async def stat(self, ref: Ref) -> Entry:
        return await super().stat(ref._replace(scheme="test"))


@caught_by("test_6_strange_bodies_are_kept_or_refused")
class RepairsWhatItIsGiven(Sound):
    async def write(self, ref: Ref, body: str | bytes, *, if_match: str | None) -> Entry:
        text = body if isinstance(body, str) else body.decode(errors="replace")
        return await super().write(ref, text.encode(errors="replace"), if_match=if_match)


@caught_by("test_6_completion_of_anything_tells_only_what_a_list_would")
class CompletesWhatIsHidden(Sound):
    async def complete(self, argument: str, prefix: str, given: Mapping[str, str]) -> Sequence[str]:
        return [*await super().complete(argument, prefix, given), "hidden/salaries.md"]


@caught_by("test_6_templates_are_addresses_of_the_source")
class OffersForeignTemplates(Sound):
    def templates(self) -> Sequence[Template]:
        return [Template(uri_template="file:///etc/{name}", name="etc")]


@caught_by("test_6_the_abilities_of_a_source_are_its_methods")
class WritesAndCannotDelete(Sound):
    delete = property()  # type: ignore[assignment]


DOOR = "test_6_the_door_of_the_server_finds_nothing_wrong"


@caught_by(DOOR)
class GivesNothingForAList(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Any:
        return None


@caught_by(DOOR)
class ListsWhatIsAnothers(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        page = await super().list(scope, cursor=cursor, limit=limit)
        foreign = Entry(ref=Ref("file", ("a",)), name="a")
        return Page((*page.items[:-1], foreign, *page.items[-1:])[:limit], page.cursor)


@caught_by(DOOR)
class ListsWhatItListedBefore(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        page = await super().list(scope, cursor=cursor, limit=limit - 1)
        return Page((*page.items, *page.items[-1:]), page.cursor)


@caught_by(DOOR)
class ListsBackwards(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        page = await super().list(scope, cursor=cursor, limit=limit)
        return Page(page.items[::-1], page.cursor)


@caught_by(DOOR)
class NamesNothing(Sound):
    async def stat(self, ref: Ref) -> Entry:
        return replace(await super().stat(ref), name=None)  # type: ignore[arg-type]


@caught_by(DOOR)
class SaysWhatJsonCannot(Sound):
    async def stat(self, ref: Ref) -> Entry:
        return replace(await super().stat(ref), metadata={"when": {1, 2}})


@caught_by(DOOR)
class GivesMoreThanMayBeRead(Sound):
    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        content = await super().read(ref, max_bytes=max_bytes)
        return replace(content, body="x" * (max_bytes + 1))


@caught_by(DOOR)
class EndsTheProgram(Sound):
    async def stat(self, ref: Ref) -> Entry:
        raise SystemExit


@caught_by(DOOR)
class InterruptsTheProgram(Sound):
    async def stat(self, ref: Ref) -> Entry:
        raise KeyboardInterrupt


@caught_by(DOOR)
class EndsAGenerator(Sound):
    async def stat(self, ref: Ref) -> Entry:
        raise GeneratorExit


@caught_by(DOOR)
class CancelsWhoAsks(Sound):
    async def stat(self, ref: Ref) -> Entry:
        raise asyncio.CancelledError


@caught_by(DOOR)
class CompletesForEver(Sound):
    async def complete(self, argument: str, prefix: str, given: Mapping[str, str]) -> Any:
        return itertools.repeat("a")


LIFE = "test_9_opening_and_closing_end_and_leave_no_thread"


@caught_by(LIFE)
class OpensForEver(Sound):
    async def __aenter__(self) -> None:
        await asyncio.Event().wait()

    async def __aexit__(self, *_: object) -> None:
        pass


@caught_by(LIFE)
class DoesNotOpen(OpensForEver):
    async def __aenter__(self) -> None:
        raise OSError("no such service")


@caught_by(LIFE)
class ClosesForEver(OpensForEver):
    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *_: object) -> None:
        await asyncio.Event().wait()


@caught_by(LIFE)
class LeavesAThread(Sound):
    over = threading.Event()

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        thread = threading.Thread(target=self.over.wait, args=(5.0,))
        thread.start()
        return await super().list(scope, cursor=cursor, limit=limit)


# Clause 7


@caught_by(
    "test_7_a_write_with_a_stale_version_is_a_conflict_and_changes_nothing",
    "test_7_a_write_takes_the_version_or_the_etag",
    "test_7_a_version_of_something_absent_is_a_conflict",
)
class WritesWhateverTheVersion(Sound):
    async def write(self, ref: Ref, body: str | bytes, *, if_match: str | None) -> Entry:
        return await super().write(ref, body, if_match=None)


@caught_by("test_7_a_write_with_a_stale_version_is_a_conflict_and_changes_nothing")
class WritesBeforeItLooks(Sound):
    async def write(self, ref: Ref, body: str | bytes, *, if_match: str | None) -> Entry:
        before = await self.stat(ref)
        entry = await super().write(ref, body, if_match=None)
        if if_match is not None and if_match != before.version:
            raise Conflict("too late", uri=str(ref))
        return entry


@caught_by("test_7_after_a_write_stat_and_read_and_list_see_it")
class KeepsReadingTheOldText(Sound):
    def __init__(self) -> None:
        super().__init__()
        self.cached: dict[Ref, Content] = {}

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        if ref not in self.cached:
            self.cached[ref] = await super().read(ref, max_bytes=max_bytes)
        return self.cached[ref]


@caught_by("test_7_a_deleted_entry_is_gone_and_cannot_be_deleted_again")
class DeletesByEmptying(Sound):
    async def delete(self, ref: Ref, *, if_match: str | None) -> None:
        await super().write(ref, "", if_match=if_match)


@caught_by("test_7_a_write_is_told_by_watch", "test_8_watch_tells_created_updated_deleted")
class TellsNothing(Sound):
    def _tell(self, *_: object) -> None:
        pass


@caught_by("test_7_a_write_is_told_by_watch")
class TellsTheOldVersion(Sound):
    def _tell(self, kind: Any, ref: Ref, old: Entry | None, new: Entry | None) -> None:
        super()._tell(kind, ref, old, old)


# Clause 8


@caught_by("test_8_watch_tells_created_updated_deleted")
class CallsEveryChangeAnUpdate(Sound):
    def _tell(self, kind: Any, ref: Ref, old: Entry | None, new: Entry | None) -> None:
        super()._tell("updated", ref, old, new)


@caught_by("test_8_watch_tells_nothing_outside_its_scope")
class WatchesEverything(Sound):
    def watch(self, scope: Ref) -> AsyncIterator[Change]:
        return super().watch(Ref("test"))


class Movable(Sound):
    """Sound too, and can move."""

    async def move(self, ref: Ref, to: Ref, *, if_match: str | None, overwrite: bool = False, by: str = "") -> Entry:
        entry = await self.write(to, str((await self.read(ref, max_bytes=1 << 20)).body), if_match=None)
        await self.delete(ref, if_match=if_match)
        return entry

    async def copy(self, ref: Ref, to: Ref, *, overwrite: bool = False, by: str = "") -> Entry:
        raise NotImplementedError

    async def make_directory(self, ref: Ref, by: str = "") -> None:
        raise NotImplementedError


@caught_by("test_8_a_move_is_told_at_both_ends")
class TellsHalfOfAMove(Movable):
    def _tell(self, kind: Any, ref: Ref, old: Entry | None, new: Entry | None) -> None:
        if kind != "deleted":
            super()._tell(kind, ref, old, new)


@caught_by("test_8_several_watches_are_told_alike")
class TellsTheNewestWatchOnly(Sound):
    def _tell(self, kind: Any, ref: Ref, old: Entry | None, new: Entry | None) -> None:
        for queue in [*self._watchers][:-1]:
            del self._watchers[queue]
        super()._tell(kind, ref, old, new)

    async def watch(self, scope: Ref) -> AsyncIterator[Change]:
        queue: asyncio.Queue[Change] = asyncio.Queue()
        self._watchers[queue] = scope
        while True:
            yield await queue.get()


@caught_by("test_8_a_watch_that_is_closed_ends_and_leaves_the_source_at_work")
class TripsWhenAWatchIsClosed(Sound):
    async def watch(self, scope: Ref) -> AsyncIterator[Change]:
        try:
            async for change in super().watch(scope):
                yield change
        finally:
            raise RuntimeError("the watch descriptor is gone")


@caught_by("test_8_a_watch_that_is_closed_ends_and_leaves_the_source_at_work")
class WatchesOnce(Sound):
    watched = False

    async def watch(self, scope: Ref) -> AsyncIterator[Change]:
        if self.watched:
            return
        self.watched = True
        async for change in super().watch(scope):
            yield change


# Clause 9


@caught_by("test_9_concurrent_reads_do_not_mix")
class SharesAVariableBetweenReads(Sound):
    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        self.current = ref
        await give_way()
        return await super().read(self.current, max_bytes=max_bytes)


@caught_by("test_9_concurrent_listings_do_not_mix")
class SharesACursorBetweenLists(Sound):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        self.position = cursor
        await give_way()
        return await super().list(scope, cursor=self.position, limit=limit)


@caught_by("test_9_concurrent_reads_do_not_mix")
class LetsOneIn(Sound):
    busy = False

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        if self.busy:
            raise RuntimeError("another operation is in progress")
        self.busy = True
        try:
            await give_way()
            return await super().read(ref, max_bytes=max_bytes)
        finally:
            self.busy = False


@caught_by("test_9_of_concurrent_writes_with_one_version_exactly_one_wins")
class LooksThenWrites(Sound):
    async def write(self, ref: Ref, body: str | bytes, *, if_match: str | None) -> Entry:
        if if_match is not None and (await self.stat(ref)).version != if_match:
            raise Conflict("stale", uri=str(ref))
        await give_way()
        return await super().write(ref, body, if_match=None)


@caught_by("test_9_a_read_during_writes_sees_one_whole_text")
class ReadsInTwoParts(Sound):
    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        first = str((await super().read(ref, max_bytes=max_bytes)).body)
        await give_way()
        content = await super().read(ref, max_bytes=max_bytes)
        return replace(content, body=first[:10] + str(content.body)[10:])


@caught_by("test_9_a_cancelled_call_leaves_the_source_as_it_was")
class KeepsItsLockWhenCancelled(Sound):
    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Lock()

    async def _locked(self, work: Any) -> Any:
        await self.lock.acquire()
        await give_way()
        reply = await work
        self.lock.release()
        return reply

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        content: Content = await self._locked(self._find_later(ref, max_bytes))
        return content

    def _find_later(self, ref: Ref, max_bytes: int) -> asyncio.Future[Content]:
        return asyncio.ensure_future(super().read(ref, max_bytes=max_bytes))


@caught_by("test_9_a_cancelled_write_has_happened_or_not")
class WritesInTwoParts(Sound):
    async def write(self, ref: Ref, body: str | bytes, *, if_match: str | None) -> Entry:
        await super().write(ref, body[: len(body) // 2], if_match=if_match)
        await give_way()
        return await super().write(ref, body, if_match=None)


@caught_by("test_9_a_cancelled_write_has_happened_or_not")
class LeavesATemporaryEntry(Sound):
    async def write(self, ref: Ref, body: str | bytes, *, if_match: str | None) -> Entry:
        temporary = ref._replace(segments=(*ref.segments[:-1], ".tmp"))
        await super().write(temporary, body, if_match=None)
        await give_way()
        await super().delete(temporary, if_match=None)
        return await super().write(ref, body, if_match=if_match)


@caught_by("test_6_a_record_claims_no_more_than_the_methods_that_are_there")
class ClaimsToUndo(Sound):
    claims = frozenset(("undo",))


# Clause 10


@caught_by("test_10_no_secret_shows_in_repr_errors_or_logs")
class ShowsItsTokenInRepr(Sound):
    def __repr__(self) -> str:
        return f"ShowsItsTokenInRepr(token={self.token!r})"


@caught_by("test_10_no_secret_shows_in_repr_errors_or_logs")
class LogsItsToken(Sound):
    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        logging.getLogger("octavo").debug("GET %s with Bearer %s", ref, self.token)
        return await super().read(ref, max_bytes=max_bytes)


@caught_by("test_10_no_secret_shows_in_repr_errors_or_logs")
class TellsItsTokenInACause(Sound):
    async def stat(self, ref: Ref) -> Entry:
        try:
            return await super().stat(ref)
        except NotFound as error:
            raise error from OSError(f"https://user:{self.token}@example.com answered 404")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.source.__name__)
def test_the_suite_catches(mutant: Mutant, failures: Any) -> None:
    for test in mutant.caught_by:
        assert failures(Suite(), mutant.source, test), f"{test} let {mutant.source.__name__} pass"


def test_every_test_of_the_suite_has_caught_a_mutant(tests_of: Any) -> None:
    assert {test for mutant in MUTANTS for test in mutant.caught_by} == set(tests_of(SourceSuite))


def test_every_clause_has_a_test() -> None:
    clauses = {int(name.split("_")[1]) for name in dir(SourceSuite) if name.startswith("test_")}
    assert clauses == set(range(1, 11))


def test_the_base_of_the_mutants_is_sound(failures: Any, tests_of: Any) -> None:
    """Or the mutants would be caught for what they inherit."""
    for base in (Sound, Movable):
        found = {test: failures(Suite(), base, test) for test in tests_of(SourceSuite)}
        assert {test: complaints for test, complaints in found.items() if complaints} == {}


def test_pytest_itself_fails_a_broken_source_and_passes_a_sound_one(tmp_path: Path) -> None:
    """The runner of these tests is not pytest: this one is, from outside, as a plugin's author has it."""
    module = tmp_path / "test_plugin.py"
    module.write_text(
        "import pytest\n"
        "from octavo.sources.memory import MemorySource\n"
        "from octavo.testing import SourceSuite\n"
        "class Broken(MemorySource):\n"
        "    def stamp(self, ref, op, moment=0): raise RuntimeError\n"
        "class TestSound(SourceSuite):\n"
        "    @pytest.fixture\n"
        "    def source(self): return MemorySource('plug', self.TREE)\n"
        "class TestBroken(SourceSuite):\n"
        "    @pytest.fixture\n"
        "    async def source(self):\n"
        "        yield Broken('plug', self.TREE)\n",
        encoding="utf-8",
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
        "--tb=no",
        "-rfs",
        str(module),
    ]
    run = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False
    )
    failed = [line for line in run.stdout.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 2, run.stdout
    assert " error" not in run.stdout
    assert all("TestBroken::test_4_a_stamp" in line for line in failed)
    assert "no secrets" in run.stdout
