"""The contract of a source, clause by clause. It ships in the wheel: a plugin's tests use it too.

    class TestMySource(SourceSuite):
        @pytest.fixture
        async def source(self, tmp_path):
            async with MySource(tmp_path) as source:    # holding exactly SourceSuite.TREE
                yield source

A source that cannot write overrides the hooks `put` and `remove` to touch what stands behind it, or
the tests that need a change are skipped. All hooks are in `octavo.testing.Suite`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import unicodedata
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from octavo.core.errors import Conflict, InvalidParams, NotFound, OctavoError, TooLarge
from octavo.core.kinds import faults
from octavo.core.ports.source import (
    ABILITIES,
    Aliases,
    Arranges,
    Completes,
    Levels,
    Offers,
    Source,
    Stamps,
    Watches,
    Writes,
    abilities,
)
from octavo.core.query import NameQuery
from octavo.core.ref import MAX_SEGMENT_BYTES, Ref
from octavo.core.values import Change, Entry
from octavo.pipeline.guard import Faults, guarded
from octavo.testing.base import ENOUGH, Suite, closable, outcome, showing, text_of, told

LIMITS = (1, 2, 3, 7, 100)
# Names that mean something to a shell, a database, a file system or a template, and nothing here.
HOSTILE = (
    "~", "-rf", "$(id)", "`id`", "a;b", "a' OR '1'='1", "%00", "%2e%2e", "*", "**", "{id}", "{{7*7}}", "con", "nul.md",
    "a\u0301\u0301", "ﬀ", "\U0001f600" * 60, "x" * MAX_SEGMENT_BYTES,
)  # fmt: skip


class SourceSuite(Suite):
    """Subclass it, give the fixture `source`, and every clause is a test."""

    # Clause 1: list gives every entry exactly once, in order; cursors survive changes.

    @pytest.mark.parametrize("limit", LIMITS)
    async def test_1_listing_gives_each_entry_exactly_once_whatever_the_page_size(
        self, source: Source, limit: int
    ) -> None:
        found = [entry.ref for entry in await self.everything(source, limit=limit)]
        assert sorted(found) == sorted(self.ref(source, path) for path in self.TREE)

    @pytest.mark.parametrize("limit", LIMITS)
    async def test_1_listing_is_ordered_by_segments_whatever_the_page_size(self, source: Source, limit: int) -> None:
        found = [entry.ref.segments for entry in await self.everything(source, limit=limit)]
        assert found == sorted(found)

    @pytest.mark.parametrize("limit", LIMITS)
    async def test_1_listing_a_scope_gives_what_is_in_it_and_nothing_else(self, source: Source, limit: int) -> None:
        folders = {path.rpartition("/")[0] for path in self.TREE} - {""}
        for folder in folders:
            found = await self.everything(source, Ref.of(source.scheme, folder.split("/")), limit)
            inside = [self.ref(source, path) for path in self.TREE if path.startswith(f"{folder}/")]
            assert sorted(entry.ref for entry in found) == sorted(inside)

    @pytest.mark.parametrize("limit", [1, 2, 100])
    @pytest.mark.parametrize("depth", [1, 2])
    async def test_1_levels_show_the_first_entry_of_each_deeper_folder(
        self, source: Source, depth: int, limit: int
    ) -> None:
        if not isinstance(source, Levels):
            pytest.skip("cannot list levels")
        expected: dict[tuple[str, ...], Ref] = {}
        for entry in await self.everything(source):
            expected.setdefault(entry.ref.segments[:depth], entry.ref)
        found: list[Ref] = []
        cursor: str | None = None
        for _ in range(len(expected) + 1):
            page = await source.list_levels(Ref(source.scheme), depth=depth, cursor=cursor, limit=limit)
            assert len(page.items) <= limit, "a page is never longer than asked"
            found += [entry.ref for entry in page.items]
            cursor = page.cursor
            if cursor is None:
                break
        assert found == list(expected.values())

    async def test_1_listing_an_unknown_scope_is_empty(self, source: Source) -> None:
        page = await source.list(Ref.of(source.scheme, ["no", "such", "place"]), cursor=None, limit=10)
        assert (page.items, page.cursor) == ((), None)

    async def test_1_a_cursor_survives_that_the_entry_it_stands_on_is_deleted(self, source: Source) -> None:
        order = sorted(self.TREE, key=lambda path: self.ref(source, path).segments)
        first = await source.list(Ref(source.scheme), cursor=None, limit=3)
        await self.change(source, order[2], None)
        rest = await self._after(source, first.cursor)
        assert [entry.ref for entry in rest] == [self.ref(source, path) for path in order[3:]]

    async def test_1_a_cursor_survives_inserts_and_deletes_on_both_sides(self, source: Source) -> None:
        order = sorted(self.TREE, key=lambda path: self.ref(source, path).segments)
        first = await source.list(Ref(source.scheme), cursor=None, limit=3)
        before, after = self.beside(order[0], "!new"), self.beside(order[-1], "\U0001f9ff new")
        assert self.ref(source, before) < self.ref(source, order[2])
        assert self.ref(source, after) > self.ref(source, order[3])
        await self.change(source, before, "inserted\n")
        await self.change(source, self.beside(order[0], "!newer"), "inserted\n")
        await self.change(source, after, "inserted\n")
        await self.change(source, order[0], None)
        await self.change(source, order[3], None)
        rest = await self._after(source, first.cursor)
        expected = sorted([*order[4:], after], key=lambda path: self.ref(source, path).segments)
        assert [entry.ref for entry in rest] == [self.ref(source, path) for path in expected]

    @pytest.mark.parametrize("cursor", ["", "garbage", "한글", "AAAA", "-1", "\x00", "{}", "e30=", "9" * 5000])
    async def test_1_a_cursor_that_is_not_ours_does_no_harm(self, source: Source, cursor: str) -> None:
        page = await outcome(source.list(Ref(source.scheme), cursor=cursor, limit=100))
        if not isinstance(page, OctavoError):
            assert {entry.ref for entry in page.items} <= {self.ref(source, path) for path in self.TREE}

    # Clause 2: what list does not give is not found; stat and read agree.

    async def test_2_listed_entries_read_back_what_was_stored(self, source: Source) -> None:
        for path, text in self.TREE.items():
            assert text_of(await source.read(self.ref(source, path), max_bytes=ENOUGH)) == text

    async def test_2_stat_and_read_and_list_agree(self, source: Source) -> None:
        for listed in await self.everything(source):
            known = await source.stat(listed.ref)
            content = await source.read(listed.ref, max_bytes=ENOUGH)
            assert content.entry == known
            assert (listed.name, listed.mime_type) == (known.name, known.mime_type)
            assert listed.version in ("", known.version), "a list may leave the version out, and never invents one"
            assert known.size in (None, content.size)

    @pytest.mark.parametrize(
        "make", ["nope.md", "{path}.md", "{path}/below.md", "{upper}", "{folder}/nope.md", "\u200d"]
    )
    async def test_2_what_is_not_listed_is_not_found(self, source: Source, make: str) -> None:
        for path in self.TREE:
            name = make.format(path=path, upper=path.swapcase(), folder=path.split("/")[0])
            ref = Ref.of(source.scheme, name.split("/"))
            if name in self.TREE or ref in {self.ref(source, path) for path in self.TREE}:
                continue
            assert isinstance(await outcome(source.stat(ref)), NotFound), f"{ref} is not listed"
            assert isinstance(await outcome(source.read(ref, max_bytes=ENOUGH)), NotFound), f"{ref} is not listed"

    async def test_2_not_found_says_the_address_and_nothing_else(self, source: Source) -> None:
        ref = Ref.of(source.scheme, ["no such", "두 번째?.md"])
        with pytest.raises(NotFound) as caught:
            await source.read(ref, max_bytes=ENOUGH)
        assert (str(caught.value), caught.value.data) == (f"Resource not found: {ref}", {"uri": str(ref)})

    async def test_2_unknown_parameters_are_refused(self, source: Source) -> None:
        if not self.refuses_unknown_parameters:
            pytest.skip("the source takes any parameter")
        ref = self.ref(source, self.text_path)._replace(params=(("surprise", "1"),))
        assert isinstance(await outcome(source.stat(ref)), InvalidParams)
        assert isinstance(await outcome(source.read(ref, max_bytes=ENOUGH)), InvalidParams)

    # Clause 3: read refuses what is too large.

    async def test_3_one_byte_over_the_limit_is_refused_and_never_truncated(self, source: Source) -> None:
        for path, text in self.TREE.items():
            size = len(text.encode())
            if size:
                ref = self.ref(source, path)
                error = await outcome(source.read(ref, max_bytes=size - 1))
                assert isinstance(error, TooLarge)
                assert error.data == {"uri": str(ref), "size": size, "limit": size - 1}

    async def test_3_exactly_the_limit_is_served(self, source: Source) -> None:
        for path, text in self.TREE.items():
            content = await source.read(self.ref(source, path), max_bytes=len(text.encode()))
            assert text_of(content) == text

    # Clause 4: the version changes with the content.

    async def test_4_the_version_stays_while_nothing_changes(self, source: Source) -> None:
        ref = self.ref(source, self.text_path)
        first = await source.stat(ref)
        assert first.version
        await source.read(ref, max_bytes=ENOUGH)
        assert (await source.stat(ref)).version == first.version

    async def test_4_the_version_changes_with_the_content_even_at_the_same_length(self, source: Source) -> None:
        path = self.text_path
        ref = self.ref(source, path)
        seen = [(await source.stat(ref)).version]
        for text in ("one\n", "two\n", "six\n", ""):
            await self.change(source, path, text)
            entry = await source.stat(ref)
            assert text_of(await source.read(ref, max_bytes=ENOUGH)) == text
            assert entry.version not in seen
            seen.append(entry.version)

    async def test_4_a_change_of_one_entry_leaves_the_versions_of_others(self, source: Source) -> None:
        path = self.text_path
        before = {entry.ref: entry.version for entry in await self.everything(source)}
        await self.change(source, path, "changed\n")
        after = {entry.ref: entry.version for entry in await self.everything(source)}
        del before[self.ref(source, path)], after[self.ref(source, path)]
        assert after == before

    async def test_4_a_stamp_changes_when_the_answer_would(self, source: Source) -> None:
        if not isinstance(source, Stamps):
            pytest.skip("has no stamps")
        path, root = self.text_path, Ref(source.scheme)
        ref = self.ref(source, path)
        new = self.ref(source, self.beside(path, "fresh"))
        steps: list[tuple[str, str | None, tuple[tuple[Ref, str], ...]]] = [
            (path, "changed\n", ((ref, "read"), (ref, "stat"))),
            (self.beside(path, "fresh"), "new\n", ((root, "list"), (new, "read"))),
            (path, None, ((root, "list"), (ref, "read"), (ref, "stat"))),
        ]
        for changed, text, asked in steps:
            before = [source.stamp(*question) for question in asked]
            await self.change(source, changed, text)
            for question, old in zip(asked, before, strict=True):
                assert old is None or source.stamp(*question) != old, f"{question} after {changed} became {text!r}"

    async def test_4_a_stamp_never_raises(self, source: Source) -> None:
        if not isinstance(source, Stamps):
            pytest.skip("has no stamps")
        for name in HOSTILE:
            for op in ("list", "stat", "read", "search", "?"):
                source.stamp(Ref.of(source.scheme, ["no", name]), op)
                source.stamp(Ref.of(source.scheme, [name], [("surprise", "1")]), op)

    # Clause 5: addresses survive a round trip through text.

    async def test_5_listed_addresses_survive_a_round_trip_through_text(self, source: Source) -> None:
        for entry in await self.everything(source):
            assert Ref.parse(str(entry.ref)) == entry.ref
            assert all(unicodedata.is_normalized("NFC", segment) for segment in entry.ref.segments)

    async def test_5_a_parsed_address_reads_like_the_listed_one(self, source: Source) -> None:
        for path, text in self.TREE.items():
            ref = Ref.parse(str(self.ref(source, path)))
            assert text_of(await source.read(ref, max_bytes=ENOUGH)) == text

    async def test_5_both_spellings_of_an_address_are_one(self, source: Source) -> None:
        if not isinstance(source, Aliases):
            pytest.skip("addresses have one spelling")
        for entry in await self.everything(source):
            assert source.canonical(entry.ref) == entry.ref
            assert source.canonical(source.spelled(entry.ref)) == entry.ref

    # Clause 6: only OctavoErrors leave. The system behind it is broken in FaultSuite.

    @pytest.mark.parametrize("name", HOSTILE)
    async def test_6_hostile_names_meet_nothing_but_our_errors(self, source: Source, name: str) -> None:
        inside = self.ref(source, self.text_path).segments[:-1]
        for ref in (
            Ref.of(source.scheme, [name]),
            self.ref(source, self.text_path)._replace(segments=(*inside, name)),
            Ref.of(source.scheme, [name] * 8),
            Ref.of(source.scheme, [self.text_path.split("/")[0]], [(name[:40], name)]),
        ):
            assert isinstance(await outcome(source.stat(ref)), OctavoError | Entry)
            await outcome(source.read(ref, max_bytes=ENOUGH))
            await outcome(source.list(ref, cursor=None, limit=3))

    async def test_6_strange_numbers_meet_nothing_but_our_errors(self, source: Source) -> None:
        ref = self.ref(source, self.text_path)
        for number in (-1, 0, 1 << 62):
            await outcome(source.read(ref, max_bytes=number))
            await outcome(source.list(Ref(source.scheme), cursor=None, limit=number))

    async def test_6_a_foreign_scheme_is_not_found(self, source: Source) -> None:
        ref = self.ref(source, self.text_path)._replace(scheme="x-foreign")
        assert isinstance(await outcome(source.read(ref, max_bytes=ENOUGH)), OctavoError)
        assert isinstance(await outcome(source.stat(ref)), OctavoError)

    @pytest.mark.parametrize(
        "body", ["\ud800", b"\xff\xfe\x00", "\x00", b""], ids=["surrogate", "binary", "nul", "empty"]
    )
    async def test_6_strange_bodies_are_kept_or_refused(self, source: Source, body: str | bytes) -> None:
        if not isinstance(source, Writes):
            pytest.skip("cannot write")
        ref = self.ref(source, self.text_path)
        before = await source.read(ref, max_bytes=ENOUGH)
        refused = isinstance(await outcome(source.write(ref, body, if_match=None)), OctavoError)
        after = (await source.read(ref, max_bytes=ENOUGH)).body
        raw = after if isinstance(after, bytes) else after.encode()
        kept = before.body if refused else body
        assert raw == (kept if isinstance(kept, bytes) else kept.encode())

    async def test_6_completion_of_anything_tells_only_what_a_list_would(self, source: Source) -> None:
        if not isinstance(source, Completes):
            pytest.skip("cannot complete")
        listed = [entry.ref for entry in await self.everything(source)]
        known = [form for ref in listed for form in (ref.path, str(ref), str(ref).partition("://")[2])]
        for prefix in ("", self.text_path[:1], "\x00", "../", "한"):
            await outcome(source.complete("no such argument", prefix, {}))
            values = await outcome(source.complete("path", prefix, {"other": "\ud800"}))
            if not isinstance(values, OctavoError):
                assert [v for v in values if not any(form.startswith(v) for form in known)] == []

    async def test_6_templates_are_addresses_of_the_source(self, source: Source) -> None:
        if not isinstance(source, Offers):
            pytest.skip("offers no templates")
        for template in source.templates():
            assert template.uri_template.startswith(f"{source.scheme}://")
            assert template.name

    async def test_6_a_record_claims_no_more_than_the_methods_that_are_there(self, source: Source, kind: Any) -> None:
        if kind is None:
            pytest.skip("no record")
        record, options = kind
        assert not faults(record)
        assert record.can(options) <= abilities(source), "an ability is claimed of which there is no method"

    async def test_6_the_abilities_of_a_source_are_its_methods(self, source: Source) -> None:
        assert abilities(source) <= set(ABILITIES)
        for name in ("write", "delete", "watch", "complete", "canonical", "spelled", "stamp", "templates"):
            assert callable(getattr(source, name, len)), f"{name} is an ability, or absent"
        assert hasattr(source, "write") == hasattr(source, "delete"), "an ability is whole or absent"
        assert hasattr(source, "canonical") == hasattr(source, "spelled"), "an ability is whole or absent"

    async def test_6_the_door_of_the_server_finds_nothing_wrong(self, source: Source) -> None:
        """What a server checks of each answer: shapes, types, sizes, pages, order, addresses."""
        faults = Faults()
        door: Any = guarded(source, faults)
        able = abilities(source)
        entries = await self.everything(door, limit=3)
        assert [entry.ref for entry in entries] == sorted(self.ref(source, path) for path in self.TREE)
        for entry in entries:
            await door.stat(entry.ref)
            await door.read(entry.ref, max_bytes=ENOUGH)
        if "complete" in able:
            await outcome(door.complete("path", "", {}))
        if "folders" in able:
            await outcome(door.folders(Ref(source.scheme), depth=None, limit=100))
        if "search" in able:
            await outcome(door.search(Ref(source.scheme), NameQuery("*"), cursor=None, limit=3))
        if "template" in able:
            door.templates()
        if "write" in able:
            await outcome(door.write(self.ref(source, self.text_path), "changed\n", if_match=None))
        assert faults.current() == {}

    # Clause 7: writes.

    async def test_7_after_a_write_stat_and_read_and_list_see_it(self, source: Source) -> None:
        if not isinstance(source, Writes):
            pytest.skip("cannot write")
        for path in (self.text_path, self.beside(self.text_path, "new & 새 'name' %41 #1")):
            ref = self.ref(source, path)
            for text in ("first 첫째\n", "second\n"):
                entry = await source.write(ref, text, if_match=None)
                assert entry == await source.stat(ref)
                content = await source.read(ref, max_bytes=ENOUGH)
                assert (text_of(content), content.entry) == (text, entry)
                assert ref in [listed.ref for listed in await self.everything(source)]

    async def test_7_a_write_with_a_stale_version_is_a_conflict_and_changes_nothing(self, source: Source) -> None:
        if not isinstance(source, Writes):
            pytest.skip("cannot write")
        ref = self.ref(source, self.text_path)
        stale = (await source.stat(ref)).version
        current = await source.write(ref, "current\n", if_match=stale)
        assert isinstance(await outcome(source.write(ref, "lost update\n", if_match=stale)), Conflict)
        assert isinstance(await outcome(source.delete(ref, if_match=stale)), Conflict)
        content = await source.read(ref, max_bytes=ENOUGH)
        assert (text_of(content), content.entry) == ("current\n", current)

    async def test_7_a_write_takes_the_version_or_the_etag(self, source: Source) -> None:
        if not isinstance(source, Writes):
            pytest.skip("cannot write")
        ref = self.ref(source, self.text_path)
        entry = await source.write(ref, "one\n", if_match=(await source.stat(ref)).version)
        entry = await source.write(ref, "two\n", if_match=entry.version)
        old = (await source.read(ref, max_bytes=ENOUGH)).etag
        if old:
            await source.write(ref, "three\n", if_match=old)
            assert isinstance(await outcome(source.write(ref, "four\n", if_match=old)), Conflict)

    async def test_7_a_version_of_something_absent_is_a_conflict(self, source: Source) -> None:
        if not isinstance(source, Writes):
            pytest.skip("cannot write")
        ref = self.ref(source, self.beside(self.text_path, "absent"))
        version = (await source.stat(self.ref(source, self.text_path))).version
        assert isinstance(await outcome(source.write(ref, "x\n", if_match=version)), Conflict | NotFound)
        assert isinstance(await outcome(source.stat(ref)), NotFound)

    async def test_7_a_deleted_entry_is_gone_and_cannot_be_deleted_again(self, source: Source) -> None:
        if not isinstance(source, Writes):
            pytest.skip("cannot write")
        ref = self.ref(source, self.text_path)
        await source.delete(ref, if_match=(await source.stat(ref)).version)
        assert isinstance(await outcome(source.stat(ref)), NotFound)
        assert isinstance(await outcome(source.read(ref, max_bytes=ENOUGH)), NotFound)
        assert ref not in [listed.ref for listed in await self.everything(source)]
        assert isinstance(await outcome(source.delete(ref, if_match=None)), NotFound)

    async def test_7_a_write_is_told_by_watch(self, source: Source) -> None:
        if not isinstance(source, Writes):
            pytest.skip("cannot write")
        path = self.text_path
        ref = self.ref(source, path)
        async with self.watching(source, Ref(source.scheme), self.beside(path, "probe")) as watched:
            entry = await source.write(ref, "told\n", if_match=None)
            await self.settle(source)
            change = await watched.until(lambda c: c.ref == ref, "the write")
            assert change.kind == "updated"
            assert change.new is None or change.new.version == entry.version

    # Clause 8: watch.

    async def test_8_watch_tells_created_updated_deleted(self, source: Source) -> None:
        path = self.beside(self.text_path, "watched ★")
        ref = self.ref(source, path)
        async with self.watching(source, Ref(source.scheme), self.beside(self.text_path, "probe")) as watched:
            for kind, text in (("created", "one\n"), ("updated", "two\n"), ("deleted", None), ("created", "back\n")):
                seen = len(watched.changes)
                await self.change(source, path, text)
                change = await watched.until(_news(watched.changes, seen, kind, ref), f"{kind} {ref}")
                assert (change.old is None or change.old.ref == ref) and (change.new is None or change.new.ref == ref)
                assert all(other.ref == ref for other in watched.changes), "nothing else has changed"

    async def test_8_watch_tells_nothing_outside_its_scope(self, source: Source) -> None:
        inside = next(path for path in self.TREE if path.startswith(f"{self.folder}/"))
        outside = [path for path in self.TREE if not path.startswith(f"{self.folder}/")]
        if not outside:
            pytest.skip("TREE has one folder")
        scope = Ref.of(source.scheme, [self.folder])
        async with self.watching(source, scope, self.beside(inside, "probe")) as watched:
            for path in outside:
                await self.change(source, path, "not told\n")
            await self.change(source, inside, "told\n")
            await watched.until(lambda change: change.ref == self.ref(source, inside), "the change inside")
            told = [ref for change in watched.changes for ref in (change.ref, change.source) if ref is not None]
            assert [str(ref) for ref in told if not ref.within(scope)] == []

    async def test_8_a_move_is_told_at_both_ends(self, source: Source) -> None:
        """As one change, or as a deletion and a creation."""
        if not isinstance(source, Arranges):
            pytest.skip("cannot move")
        path, to = self.text_path, self.beside(self.text_path, "moved")
        old, new = self.ref(source, path), self.ref(source, to)
        async with self.watching(source, Ref(source.scheme), self.beside(path, "probe")) as watched:
            entry = await source.move(old, new, if_match=None)
            await self.settle(source)
            came = await watched.until(lambda c: c.ref == new and c.new is not None, f"what came to {new}")
            assert came.kind in ("renamed", "created")
            assert came.new is not None and came.new.version == entry.version
            if came.kind == "renamed":
                assert came.source == old and came.old is not None
            else:
                gone = await watched.until(lambda c: c.ref == old, f"what left {old}")
                assert gone.kind == "deleted"

    async def test_8_several_watches_are_told_alike(self, source: Source) -> None:
        path, probe = self.text_path, self.beside(self.text_path, "probe")
        ref, root = self.ref(source, path), Ref(source.scheme)
        async with self.watching(source, root, probe) as one, self.watching(source, root, probe) as two:
            await self.change(source, path, "told twice\n")
            for watched in (one, two):
                await watched.until(lambda change: change.ref == ref, "the change to both")

    async def test_8_a_watch_that_is_closed_ends_and_leaves_the_source_at_work(self, source: Source) -> None:
        if not isinstance(source, Watches):
            pytest.skip("cannot watch")
        path, root = self.text_path, Ref(source.scheme)
        changes = closable(source.watch(root))
        first = asyncio.ensure_future(anext(changes))
        try:
            with anyio.move_on_after(self.patience):
                for turn in range(10_000):
                    await anyio.lowlevel.checkpoint()
                    await self.change(source, path, f"turn {turn}\n")
                    await asyncio.wait([first], timeout=0.05)
                    if first.done():
                        break
            assert first.done(), "watch told nothing"
            assert isinstance(first.result(), Change)
        finally:
            first.cancel()
        await self.patiently(changes.aclose(), "closing a watch")
        with pytest.raises(StopAsyncIteration):
            await self.patiently(anext(changes), "a closed watch")
        await self.change(source, path, "after\n")
        async with self.watching(source, root, self.beside(path, "probe")):
            pass  # a new watch begins, and ends by cancellation

    # Clause 9: concurrent calls and cancellation.

    async def test_9_concurrent_reads_do_not_mix(self, source: Source) -> None:
        paths = [*self.TREE] * 4
        texts: dict[int, str] = {}

        async def read(index: int) -> None:
            ref = self.ref(source, paths[index])
            content = await source.read(ref, max_bytes=ENOUGH)
            assert content.entry.ref == ref
            texts[index] = text_of(content)

        await self._together([partial(read, index) for index in range(len(paths))])
        assert texts == {index: self.TREE[path] for index, path in enumerate(paths)}

    async def test_9_concurrent_listings_do_not_mix(self, source: Source) -> None:
        expected = [entry.ref for entry in await self.everything(source)]
        found: list[list[Ref]] = []

        async def walk(limit: int) -> None:
            found.append([entry.ref for entry in await self.everything(source, limit=limit)])

        await self._together([partial(walk, limit) for limit in (*LIMITS, *LIMITS)])
        assert found == [expected] * (2 * len(LIMITS))

    async def test_9_of_concurrent_writes_with_one_version_exactly_one_wins(self, source: Source) -> None:
        if not isinstance(source, Writes):
            pytest.skip("cannot write")
        ref = self.ref(source, self.text_path)
        version = (await source.stat(ref)).version
        results: dict[str, Entry | OctavoError] = {}

        async def write(text: str) -> None:
            results[text] = await outcome(source.write(ref, text, if_match=version))

        await self._together([partial(write, f"writer {n}\n") for n in range(8)])
        winners = [text for text, result in results.items() if isinstance(result, Entry)]
        losers = [result for result in results.values() if not isinstance(result, Entry)]
        assert len(winners) == 1, f"{len(winners)} writers believe they won"
        assert all(isinstance(error, Conflict) for error in losers)
        assert text_of(await source.read(ref, max_bytes=ENOUGH)) == winners[0]

    async def test_9_a_read_during_writes_sees_one_whole_text(self, source: Source) -> None:
        if not isinstance(source, Writes):
            pytest.skip("cannot write")
        ref = self.ref(source, self.text_path)
        texts = [letter * 20_000 for letter in "abcdefgh"]
        await source.write(ref, texts[0], if_match=None)
        seen: list[str] = []

        async def read() -> None:
            content = await outcome(source.read(ref, max_bytes=ENOUGH))
            # A source may notice that the text changed under its hands; it may not mix two.
            if not isinstance(content, OctavoError):
                seen.append(text_of(content))
                assert content.size == content.entry.size

        async def write(text: str) -> None:
            await source.write(ref, text, if_match=None)

        work: list[Callable[[], Awaitable[None]]] = []
        for text in texts:
            work += [read, partial(write, text), read]
        await self._together(work)
        assert set(seen) <= set(texts)

    @pytest.mark.parametrize("operation", ["list", "stat", "read"])
    async def test_9_a_cancelled_call_leaves_the_source_as_it_was(self, source: Source, operation: str) -> None:
        path = self.text_path
        ref = self.ref(source, path)
        for turns in range(1, 13):
            calls: dict[str, Callable[[], Awaitable[Any]]] = {
                "list": lambda: source.list(Ref(source.scheme), cursor=None, limit=100),
                "stat": lambda: source.stat(ref),
                "read": lambda: source.read(ref, max_bytes=ENOUGH),
            }
            await self._cancel_after(turns, calls[operation])
            content = await self.patiently(source.read(ref, max_bytes=ENOUGH), "read after a cancelled call")
            assert text_of(content) == self.TREE[path]
            entries = await self.patiently(self.everything(source), "list after a cancelled call")
            assert len(entries) == len(self.TREE)

    async def test_9_a_cancelled_write_has_happened_or_not(self, source: Source) -> None:
        if not isinstance(source, Writes):
            pytest.skip("cannot write")
        path = self.text_path
        ref, old = self.ref(source, path), self.TREE[path]
        for turns in range(1, 13):
            new = f"write {turns}\n" * 1000
            await self._cancel_after(turns, partial(source.write, ref, new, if_match=None))
            content = await self.patiently(source.read(ref, max_bytes=ENOUGH), "read after a cancelled write")
            assert text_of(content) in (old, new)
            assert len(await self.everything(source)) == len(self.TREE), "nothing half-written is listed"
            old = f"whole {turns}\n"
            await self.patiently(source.write(ref, old, if_match=None), "write after a cancelled write")
            assert text_of(await source.read(ref, max_bytes=ENOUGH)) == old

    async def test_9_opening_and_closing_end_and_leave_no_thread(self, source: Source) -> None:
        """A server waits ten seconds for the one and five for the other, and for no thread."""
        before = {*threading.enumerate()}
        fresh: Any = await self.fresh()
        if hasattr(type(fresh), "__aenter__"):
            await self.patiently(fresh.__aenter__(), "opening")
        await self.patiently(fresh.list(Ref(source.scheme), cursor=None, limit=1), "the first list")
        if hasattr(type(fresh), "__aexit__"):
            await self.patiently(fresh.__aexit__(None, None, None), "closing")
        left = [one for one in {*threading.enumerate()} - before if not one.daemon and "asyncio" not in one.name]
        with anyio.move_on_after(self.patience):
            while any(thread.is_alive() for thread in left):
                await anyio.lowlevel.checkpoint()
        assert [thread.name for thread in left if thread.is_alive()] == [], "threads are left behind"

    # Clause 10: secrets.

    async def test_10_no_secret_shows_in_repr_errors_or_logs(
        self, source: Source, caplog: pytest.LogCaptureFixture
    ) -> None:
        if not self.secrets:
            pytest.skip("the source has no secrets")
        ref = self.ref(source, self.text_path)
        absent = Ref.of(source.scheme, ["no", "such.md"])
        with caplog.at_level(logging.DEBUG):
            replies: list[object] = [
                await outcome(source.list(Ref(source.scheme), cursor="garbage", limit=1)),
                await outcome(source.list(Ref(source.scheme), cursor=None, limit=1)),
                await outcome(source.stat(absent)),
                await outcome(source.read(absent, max_bytes=ENOUGH)),
                await outcome(source.read(ref, max_bytes=1)),
                await outcome(source.read(ref._replace(params=(("surprise", "1"),)), max_bytes=ENOUGH)),
                await outcome(source.stat(ref)),
            ]
            if isinstance(source, Writes):
                replies.append(await outcome(source.write(ref, "x\n", if_match="no version")))
                replies.append(await outcome(source.delete(absent, if_match=None)))
            if isinstance(source, Offers):
                replies.extend(source.templates())
        shown = [repr(source), str(source), f"{source}", *(told(reply) for reply in replies), caplog.text]
        assert not showing(self.secrets, "\n".join(shown))

    # Below: what the tests are written with.

    async def _after(self, source: Source, cursor: str | None) -> list[Entry]:
        assert cursor is not None, "there is more than one page"
        found: list[Entry] = []
        for _ in range(1000):
            page = await source.list(Ref(source.scheme), cursor=cursor, limit=3)
            found += page.items
            cursor = page.cursor
            if cursor is None:
                return found
        raise AssertionError("paging never ends")

    async def _together(self, work: list[Callable[[], Awaitable[None]]]) -> None:
        """Runs all at once, and proves it: if any call gave way to the event loop, two were inside at once."""
        loop, go = asyncio.get_running_loop(), asyncio.Event()
        waiting = inside = peak = turns = gave_way = 0

        def turn() -> None:
            nonlocal turns
            turns += 1
            ticker[0] = loop.call_soon(turn)

        async def one(job: Callable[[], Awaitable[None]]) -> None:
            nonlocal waiting, inside, peak, gave_way
            waiting += 1
            await go.wait()
            inside += 1
            peak = max(peak, inside)
            began = turns
            await job()
            gave_way += turns > began
            inside -= 1

        tasks = [asyncio.ensure_future(one(job)) for job in work]
        ticker = [loop.call_soon(turn)]
        try:
            while waiting < len(work):
                await anyio.lowlevel.checkpoint()
            go.set()
            done, late = await asyncio.wait(tasks, timeout=self.patience)
        finally:
            ticker[0].cancel()
            for task in tasks:
                task.cancel()
        assert not late, f"{len(late)} of {len(work)} concurrent calls did not end"
        for task in done:
            task.result()
        assert peak > 1 or not gave_way, "calls that give way overlap; the others are atomic"

    async def _cancel_after(self, turns: int, call: Callable[[], Awaitable[Any]]) -> None:
        """Cancels a call after so many turns of the event loop: each place where it waits is hit by one."""
        task = asyncio.ensure_future(outcome(call()))
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        task.cancel()
        await asyncio.wait([task], timeout=self.patience)
        assert task.done(), "a cancelled call ends"
        if not task.cancelled():
            task.result()  # it was faster than the cancellation


def _news(changes: list[Change], seen: int, kind: str, ref: Ref) -> Callable[[Change], bool]:
    """A change of that kind that was told after the first `seen` ones."""
    return lambda change: (change.kind, change.ref) == (kind, ref) and any(c is change for c in changes[seen:])
