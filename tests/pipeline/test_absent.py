"""What is hidden walks the way of what is not there, so that time tells nothing of it (requirements O13, B2)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.pipeline.test_conditions import HIDDEN as BY_METADATA
from tests.pipeline.test_conditions import SOPS as WITH_METADATA
from tests.pipeline.test_policy import ALL, BRAND, House, call_of, rule, sops

from octavo.core.edit import Revision
from octavo.core.errors import NotFound, OctavoError, SourceUnavailable
from octavo.core.operations import CHANGING
from octavo.core.query import NameQuery, TextQuery
from octavo.core.ref import Ref
from octavo.core.values import Call, Content, Entry, Op, Page
from octavo.sources.memory import MemorySource

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O13", "B2")]

HIDES = rule("*", "*", "sop://hr/*", deny=True, hide=True, name="policy[1]")
TO = Ref.parse("sop://brand/new")
WAYS: list[tuple[Op, dict[str, Any]]] = [
    ("read", {}),
    ("stat", {}),
    ("list", {}),
    ("list", {"depth": 1}),
    ("folders", {"depth": 0, "most": 10}),
    ("search", {"query": NameQuery("pay")}),
    ("search", {"query": TextQuery("pay")}),
    ("edit", {"revision": Revision()}),
    ("delete", {}),
    ("move", {"to": TO}),
    ("copy", {"to": TO}),
]
NAMED = [f"{op} {'ranked' if isinstance(given.get('query'), TextQuery) else len(given)}" for op, given in WAYS]


async def reached(house: House, op: Op, uri: str, given: dict[str, Any]) -> tuple[Call, list[Call]]:
    """The call, and what a source is asked for it."""
    call = call_of(BRAND, op, uri, **given)
    house.reached.clear()
    try:
        reply = house.policy(call, house._next)
        await reply
    except OctavoError:
        pass
    return call, [*house.reached]


def steps(calls: list[Call]) -> list[tuple[Op, str]]:
    """A change is looked at."""
    return [("stat" if call.op in CHANGING else call.op, call.ref.scheme) for call in calls]


@pytest.mark.parametrize(("op", "given"), WAYS, ids=NAMED)
async def test_sources_are_asked_as_often_and_in_the_same_order(op: Op, given: dict[str, Any]) -> None:
    house = sops(ALL, HIDES)
    _, absent = await reached(house, op, "sop://rh/pay", given)
    _, hidden = await reached(house, op, "sop://hr/pay", given)
    assert steps(hidden) == steps(absent) != []


@pytest.mark.parametrize(("op", "given"), WAYS, ids=NAMED)
async def test_what_is_asked_instead_is_a_look_at_something_else_that_nobody_hears_of(
    op: Op, given: dict[str, Any]
) -> None:
    house = sops(ALL, HIDES)
    call, hidden = await reached(house, op, "sop://hr/pay", given)
    for one in hidden:
        assert one.op not in CHANGING
        assert one.ref.segments[:1] != ("hr",)
        assert all(ref.segments[:1] != ("hr",) for ref in getattr(getattr(one.arguments, "query", None), "within", ()))
        assert one.trail is not call.trail, "the record is of what was asked for"
    if op != "list":
        assert call.trail.rule == "policy[1]"


async def test_it_is_of_the_same_length_and_kind_and_always_the_same_for_one_name() -> None:
    house = sops(ALL, rule("*", "*", "sop://hr/pay.md", "sop://hr/day.md", deny=True, hide=True))
    asked = [
        (await reached(house, "read", f"sop://hr/{name}", {}))[1][0].ref for name in ("pay.md", "pay.md", "day.md")
    ]
    assert asked[0] == asked[1] != asked[2]
    for ref in asked:
        assert ref.segments[0] == "hr", "the folder may be seen"
        assert len(ref.segments[1]) == len("pay.md") and ref.segments[1].endswith(".md")


@pytest.mark.parametrize("name", ["x" * 500, "정책", "a.b.c", ".env", "\udcff"])
async def test_every_name_has_a_neighbour(name: str) -> None:
    house = sops(ALL, HIDES)
    call = call_of(BRAND, "read", "sop://hr/pay")._replace(ref=Ref("sop", ("hr", name)))
    with pytest.raises(NotFound):
        await house.policy(call, house._next)
    other, folder = house.reached
    assert (other.op, folder.op) == ("read", "folders")
    assert other.ref.segments[0] != "hr" and other.ref.segments[1] == name


async def test_all_that_there_is_has_no_neighbour() -> None:
    house = sops(ALL, rule("*", "*", "sop://*", deny=True, hide=True))
    for op, given in WAYS:
        _, hidden = await reached(house, op, "sop://", given)
        assert hidden == [], op


@pytest.mark.parametrize("op", ["read", "stat", "edit"])
async def test_where_metadata_hide_it_something_is_asked_for_behind_the_look_at_them(op: Op) -> None:
    house = House([ALL, BY_METADATA], MemorySource("sop", WITH_METADATA))
    given = {"revision": Revision()} if op == "edit" else {}
    _, absent = await reached(house, op, "sop://brand/plaN", given)
    _, hidden = await reached(house, op, "sop://brand/plan", given)
    assert steps(hidden) == steps(absent)
    looks = [call for call in hidden if call.op != "folders"]
    assert {call.ref.path for call in looks[:-1]} == {"brand/plan"}, "once for each verb that it needs"
    assert hidden[-1].ref.segments[0] == "brand" and hidden[-1].ref.path != "brand/plan"


async def test_what_is_denied_and_not_hidden_reaches_no_source() -> None:
    house = sops(ALL, rule("*", "*", "sop://hr/*", deny=True))
    for op, given in WAYS:
        if op != "folders":
            _, denied = await reached(house, op, "sop://hr/pay", given)
            assert denied == [], op


class Down(MemorySource):
    """Answers nothing, and says for which address."""

    def fails(self, ref: Ref) -> OctavoError:
        uri = str(ref)
        return SourceUnavailable(f"The file system did not answer for {uri}", retry_after=1.0, uri=uri)

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        raise self.fails(ref)

    async def stat(self, ref: Ref) -> Entry:
        raise self.fails(ref)

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        raise self.fails(scope)


@pytest.mark.parametrize("op", ["read", "stat", "list"])
async def test_a_source_that_is_down_is_down_for_what_is_hidden_too(op: Op) -> None:
    house = House([ALL, HIDES], Down("sop", {"hr/pay": "pay"}))
    told = [await house.refused(BRAND, op, f"sop://{name}/pay") for name in ("hr", "rh")]
    hidden, absent = ((type(one), one.message, {**one.data}) for one in told)
    assert hidden[0] is SourceUnavailable
    assert str(hidden).replace("//hr/", "//rh/") == str(absent)


CHANGES: list[tuple[Op, dict[str, Any]]] = [
    ("write", {"body": "x"}),
    ("edit", {"revision": Revision()}),
    ("edit", {"revision": Revision(), "dry_run": True}),
    ("make", {}),
    ("delete", {}),
    ("move", {"to": TO}),
    ("copy", {"to": TO}),
    ("move", {"to": Ref.parse("doc://new")}),
    ("copy", {"to": Ref.parse("doc://new")}),
    ("undo", {}),
]


@pytest.mark.parametrize("hides", ["address", "metadata"])
@pytest.mark.parametrize(("op", "given"), CHANGES)
async def test_what_cannot_be_changed_is_refused_alike_and_before_anybody_looks(
    op: Op, given: dict[str, Any], hides: str
) -> None:
    hidden = BY_METADATA if hides == "metadata" else rule("*", "*", "sop://brand/plan", deny=True, hide=True)
    house = House([ALL, hidden], MemorySource("sop", WITH_METADATA), writable=())
    told = set()
    for uri in ("sop://brand/plan", "sop://brand/plaN", "sop://brand", "sop://bland", "sop://"):
        fault = await house.refused(BRAND, op, uri, **given)
        told.add((type(fault), fault.message.replace(uri, "it"), fault.data.get("why")))
    assert len(told) == 1
    assert house.reached == []
