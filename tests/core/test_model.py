"""Values: what a change says, what a child call inherits, what takes part in equality."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from octavo.core.arguments import PLAIN, OwnArguments
from octavo.core.clock import FrozenClock, SystemClock, iso
from octavo.core.operations import VERB_OF
from octavo.core.ref import Ref
from octavo.core.values import VERBS, Call, Change, Content, Entry, Op, Page, Principal, Trail, Verb

REF = Ref.parse("sop://brand/guide")
ENTRY = Entry(ref=REF, name="guide", version="1", size=3, metadata={"status": "draft", "owner": "kim"})
FACTS = st.dictionaries(st.sampled_from(["status", "owner", "tags"]), st.integers(0, 2), max_size=3)


class TestChange:
    @pytest.mark.seed("O10")
    def test_it_tells_the_fields_that_differ_as_old_and_new(self) -> None:
        new = replace(ENTRY, version="2", metadata={"status": "active", "agent": "brand"})
        change = Change(kind="updated", ref=REF, at=0, old=ENTRY, new=new)
        assert change.changes == {
            "version": ["1", "2"],
            "status": ["draft", "active"],
            "owner": ["kim", None],
            "agent": [None, "brand"],
        }

    def test_creation_and_deletion_have_one_side(self) -> None:
        created = Change(kind="created", ref=REF, at=0, new=ENTRY).changes
        deleted = Change(kind="deleted", ref=REF, at=0, old=ENTRY).changes
        assert created == {key: [None, pair[0]] for key, pair in deleted.items()}
        assert set(created) == {"version", "size", "name", "status", "owner"}

    @given(FACTS, FACTS)
    def test_it_never_tells_what_is_the_same(self, before: dict[str, int], after: dict[str, int]) -> None:
        change = Change(
            kind="updated", ref=REF, at=0, old=replace(ENTRY, metadata=before), new=replace(ENTRY, metadata=after)
        )
        assert change.changes == {
            key: [before.get(key), after.get(key)] for key in before | after if before.get(key) != after.get(key)
        }

    def test_nothing_known_is_nothing_told(self) -> None:
        assert Change(kind="updated", ref=REF, at=0).changes == {}


class TestCall:
    call = Call("invoke", Ref.parse("tool://search"), Principal("agent-brand", frozenset({"marketing"})), Trail())

    @pytest.mark.seed("F11", "T11")
    def test_a_child_has_the_principal_of_its_parent_and_a_trail_of_its_own(self) -> None:
        child = self.call.child("read", REF)
        assert child.principal is self.call.principal
        assert child.parent is self.call
        assert child.trail is not self.call.trail
        assert (child.op, child.ref, child.uri, child.arguments) == ("read", REF, "sop://brand/guide", PLAIN)

    def test_a_child_can_keep_a_spelling_and_takes_arguments(self) -> None:
        child = self.call.child("invoke", REF, uri="sop://Brand/guide", arguments=OwnArguments({"a": 1}))
        assert (child.uri, child.values) == ("sop://Brand/guide", {"a": 1})

    def test_depth_counts_the_parents(self) -> None:
        assert [self.call.depth, self.call.child("read", REF).child("read", REF).depth] == [0, 2]


class TestValues:
    def test_every_operation_needs_a_verb_that_a_rule_can_grant(self) -> None:
        assert set(VERB_OF) == set(get_args(Op))
        assert get_args(Verb) == VERBS
        assert set(VERB_OF.values()) <= set(VERBS)

    def test_an_entry_cannot_be_changed(self) -> None:
        with pytest.raises(AttributeError):
            ENTRY.name = "other"  # type: ignore[misc]

    def test_a_memo_takes_no_part_in_equality(self) -> None:
        one, two = Content(entry=ENTRY, body="x"), Content(entry=ENTRY, body="x")
        one.memo["json"] = b"{}"
        assert one == two
        assert "json" not in repr(one)
        page: Page[Entry] = Page((ENTRY,))
        page.memo["json"] = b"{}"
        assert page == Page((ENTRY,))

    @given(st.one_of(st.binary(), st.text(st.characters(codec="utf-8"))))
    def test_the_size_of_a_content_is_in_bytes(self, body: str | bytes) -> None:
        content = Content(entry=ENTRY, body=body)
        raw = body if isinstance(body, bytes) else body.encode()
        assert [content.size, content.size] == [len(raw)] * 2


class TestClock:
    def test_a_frozen_clock_moves_only_when_told(self) -> None:
        clock = FrozenClock(wall=100.0)
        before = (clock.monotonic(), clock.wall())
        assert (clock.monotonic(), clock.wall()) == before
        clock.advance(2.5)
        assert (clock.monotonic() - before[0], clock.wall() - before[1]) == (2.5, 2.5)

    def test_the_system_clock_never_runs_backwards(self) -> None:
        clock = SystemClock()
        assert clock.monotonic() <= clock.monotonic()
        assert clock.wall() > 1_700_000_000

    def test_times_are_written_in_utc_with_milliseconds(self) -> None:
        assert iso(0) == "1970-01-01T00:00:00.000Z"
        assert iso(1_763_200_000.5) == "2025-11-15T09:46:40.500Z"
