"""Rules with conditions: on metadata, on the time, on arguments (requirements O14, P10, T6)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.pipeline.test_policy import House, call_of, shape

from octavo.core.clock import FrozenClock
from octavo.core.errors import Forbidden, NotFound, SourceUnavailable
from octavo.core.glob import Glob
from octavo.core.ports.chain import Reply, settled
from octavo.core.ref import Ref
from octavo.core.tools import Hints, ToolInfo
from octavo.core.values import Call, Change, Content, Entry, Page, Principal
from octavo.pipeline.policy.conditions import ArgumentsAre, Condition, Conditions, Metadata, NumberRange, Times
from octavo.pipeline.policy.fold import Policy, Rule
from octavo.pipeline.policy.rules import Facts
from octavo.sources.memory import MemoryEntry, MemorySource
from octavo.tools.registry import Tool

pytestmark = pytest.mark.anyio

BRAND = Principal("agent-brand", frozenset({"marketing"}))
SOPS = {
    "brand/guide": MemoryEntry(body="guide", metadata={"status": "active", "tags": ["press", "Money"]}),
    "brand/plan": MemoryEntry(body="plan", metadata={"status": "draft", "confidentiality": "secret"}),
    "brand/note": MemoryEntry(body="note"),
}
HINTS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
SEOUL = ZoneInfo("Asia/Seoul")


def when(**wanted: Any) -> Conditions:
    return Conditions(
        Metadata(tuple((key, value if isinstance(value, tuple) else (value,)) for key, value in wanted.items()))
    )


def rule(what: str, demands: Conditions | None = None, **given: Any) -> Rule:
    unless: Conditions | None = given.pop("unless", None)
    condition = None if demands is None and unless is None else Condition(demands, unless)
    may = given.pop("may", None)
    return Rule(("*",), may and frozenset(may.split()), (Glob(what),), condition=condition, **given)


ALL = rule("**", name="policy[0]")
ACTIVE = rule("sop://*", when(status="active"), name="policy[0]")
NO_SECRETS = rule("sop://*", when(confidentiality="secret"), allow=False, name="policy[1]", why="secret")
HIDDEN = rule("sop://*", when(confidentiality="secret"), allow=False, hide=True, name="policy[1]")


def sops(*rules: Rule) -> House:
    return House(rules, MemorySource("sop", SOPS))


async def names(house: House, who: Principal = BRAND) -> list[str]:
    page: Page[Entry] = await house.ask(who, "list", "sop://")
    return [entry.ref.path for entry in page.items]


# -- on metadata


@pytest.mark.seed("O14", "B2")
async def test_an_allow_with_a_condition_is_for_what_fulfils_it_alone() -> None:
    house = sops(ACTIVE)
    assert (await house.ask(BRAND, "read", "sop://brand/guide")).body == "guide"
    assert (await house.ask(BRAND, "stat", "sop://brand/guide")).name == "guide"
    for uri in ("sop://brand/plan", "sop://brand/note", "sop://brand/nothing"):
        for op in ("read", "stat"):
            refused = await house.refused(BRAND, op, uri)
            assert isinstance(refused, Forbidden), (op, uri)
            assert refused.data["resource"] == uri
    assert await names(house) == ["brand/guide"]


@pytest.mark.seed("O14", "B2")
async def test_a_deny_with_a_condition_is_for_what_fulfils_it_alone() -> None:
    house = sops(ALL, NO_SECRETS)
    assert (await house.ask(BRAND, "read", "sop://brand/note")).body == "note"
    told = await house.refused(BRAND, "read", "sop://brand/plan")
    assert shape(told) == (
        Forbidden,
        "Access denied to resource: sop://brand/plan",
        {"agent": "agent-brand", "required_permission": "read", "resource": "sop://*", "why": "secret"},
    )
    assert isinstance(await house.refused(BRAND, "read", "sop://brand/nothing"), NotFound)
    assert await names(house) == ["brand/guide", "brand/note"]


@pytest.mark.seed("O14")
async def test_what_a_condition_hides_is_exactly_like_what_is_not_there() -> None:
    house = sops(ALL, HIDDEN)
    for op in ("read", "stat"):
        hidden = await house.refused(BRAND, op, "sop://brand/plan")
        absent = await house.refused(BRAND, op, "sop://brand/plaN")
        assert type(hidden) is type(absent) is NotFound
        assert hidden.message.replace("plan", "plaN") == absent.message
        assert absent.data == {"uri": "sop://brand/plaN"}
        assert hidden.data == {"uri": "sop://brand/plan"}


async def test_a_condition_holds_for_every_spelling_of_an_address() -> None:
    house = sops(ALL, NO_SECRETS)
    for uri in ("sop://brand/plan", "SOP://brand/plan", "sop://brand/pl%61n"):
        assert isinstance(await house.refused(BRAND, "read", uri), Forbidden)


@pytest.mark.parametrize(
    ("demands", "metadata", "holds"),
    [
        (when(status="active"), {"status": "active"}, True),
        (when(status="active"), {"status": " Active "}, True),
        (when(status="active"), {"status": "draft"}, False),
        (when(status="active"), {}, False),
        (when(status="active"), None, None),
        (when(status="active"), {"problems": ["line 2"]}, None),
        (when(status="active"), {"status": "[redacted:pii-name:0123abcd]"}, None),
        (when(status="active"), {"status": {"now": "active"}}, None),
        (when(status=("draft", "active")), {"status": "draft"}, True),
        (when(tags="press"), {"tags": ["money", "press"]}, True),
        (when(tags="press"), {"tags": []}, False),
        (when(version=2), {"version": 2}, True),
        (when(final=True), {"final": True}, True),
        (when(status="active", tags="press"), {"status": "active", "tags": ["money"]}, False),
        (when(status="active", tags="press"), {"tags": ["money"], "problems": ["x"]}, False),
    ],
)
def test_metadata_are_true_false_or_unknown(
    demands: Conditions, metadata: Mapping[str, Any] | None, holds: Any
) -> None:
    facts = Facts(metadata, None, 0.0)
    assert Condition(demands).holds(facts) is holds
    assert Condition(None, demands).holds(facts) is (None if holds is None else not holds)


async def test_what_cannot_be_known_never_widens() -> None:
    """The source is down: nobody can tell what the document says of itself."""

    async def down(call: Call) -> Reply:
        raise SourceUnavailable("Source unavailable: sop")

    for rules in ([ACTIVE], [ALL, NO_SECRETS], [ALL, rule("sop://*", unless=when(status="active"), allow=False)]):
        house = sops(*rules)
        with pytest.raises(Forbidden):
            await house.policy(call_of(BRAND, "read", "sop://brand/guide"), down)


async def test_what_changed_since_it_was_looked_at_is_judged_by_what_is_given() -> None:
    house = sops(ALL, NO_SECRETS)

    async def turns_secret(call: Call) -> Reply:
        reply = await house.dispatch(call)
        if isinstance(reply, Content):
            entry = Entry(ref=call.ref, name="guide", metadata={"confidentiality": "secret"})
            return Content(entry=entry, body="now secret")
        return reply

    with pytest.raises(Forbidden):
        await house.policy(call_of(BRAND, "read", "sop://brand/guide"), turns_secret)


@pytest.mark.seed("O10")
async def test_events_tell_of_what_comes_into_sight_and_of_what_leaves_it() -> None:
    house = sops(ACTIVE)
    draft = Entry(ref=Ref.parse("sop://a"), name="a", metadata={"status": "draft"})
    active = Entry(ref=Ref.parse("sop://a"), name="a", metadata={"status": "active"})

    def told(old: Entry | None, new: Entry | None) -> str | None:
        change = Change(kind="updated", ref=Ref.parse("sop://a"), at=0.0, old=old, new=new)
        seen = house.policy.told(BRAND, "watch", change)
        return None if seen is None else seen.kind

    assert told(draft, active) == "created"
    assert told(active, draft) == "deleted"
    assert told(active, active) == "updated"
    assert told(draft, draft) is None
    assert told(None, None) is None


async def test_a_subscription_to_something_that_a_condition_decides_is_decided_event_by_event() -> None:
    house = sops(ACTIVE, rule("sop://hr/*", allow=False))
    for uri in ("sop://brand/plan", "sop://brand/nothing"):
        await house.ask(BRAND, "watch", uri, glob=Glob(uri))
    assert isinstance(await house.refused(BRAND, "watch", "sop://hr/pay", glob=Glob("sop://hr/pay")), Forbidden)


async def test_completions_name_what_the_metadata_allow() -> None:
    house = sops(ACTIVE)
    asked = {"argument": "path", "prefix": "brand/", "given": {}}
    assert await house.ask(BRAND, "complete", "sop://", **asked) == ["brand/guide"]


async def test_a_deny_of_complete_takes_names_out_of_completions_alone() -> None:
    house = sops(
        ALL, rule("sop://brand/n*", allow=False, may="complete"), rule("prompt://*", allow=False, may="complete")
    )
    asked = {"argument": "path", "prefix": "", "given": {}}
    assert await house.ask(BRAND, "complete", "sop://", **asked) == ["brand/guide", "brand/plan"]
    assert await house.ask(BRAND, "complete", "prompt://x", **asked) == []
    assert len(await names(house)) == 3


async def test_a_ranked_search_asks_the_metadata_of_each_document() -> None:
    house = sops(ACTIVE)
    finds = house.policy.finder(BRAND)
    asks = finds(Ref.parse("sop://brand/guide"))
    assert callable(asks)
    assert asks({"status": "active"})
    assert not asks({"status": "draft"})
    assert not asks(None)
    assert sops(ALL).policy.finder(BRAND)(Ref.parse("sop://brand/guide")) is True


async def test_what_goes_along_with_a_folder_is_judged_one_by_one() -> None:
    house = sops(ALL, NO_SECRETS)
    refused = await house.refused(BRAND, "delete", "sop://brand")
    assert isinstance(refused, Forbidden)
    assert all(call.op != "delete" for call in house.reached)


async def test_rules_without_conditions_cost_no_look() -> None:
    house = sops(ALL, rule("sop://hr/*", when(status="x"), allow=False))
    await house.ask(BRAND, "read", "sop://brand/guide")
    assert [call.op for call in house.reached] == ["read"]
    house = sops(ALL, rule("sop://*", Conditions(time=Times(SEOUL, hours=(0, 1))), allow=False))
    house.policy = Policy(house.policy.rules, house.dispatch, clock=FrozenClock(0.0))
    await house.ask(BRAND, "read", "sop://brand/guide")
    assert [call.op for call in house.reached] == ["read"]


# -- on the time


@pytest.mark.parametrize(
    ("times", "at", "holds"),
    [
        (Times(SEOUL, hours=(9 * 60, 18 * 60)), "2026-11-16T00:00+00:00", True),
        (Times(SEOUL, hours=(9 * 60, 18 * 60)), "2026-11-16T09:00+00:00", False),
        (Times(SEOUL, hours=(22 * 60, 6 * 60)), "2026-11-16T23:59+09:00", True),
        (Times(SEOUL, hours=(22 * 60, 6 * 60)), "2026-11-16T05:59+09:00", True),
        (Times(SEOUL, hours=(22 * 60, 6 * 60)), "2026-11-16T06:00+09:00", False),
        (Times(SEOUL, days=frozenset({0})), "2026-11-15T15:00+00:00", True),
        (Times(SEOUL, days=frozenset({0})), "2026-11-16T15:00+00:00", False),
        (Times(SEOUL, first=date(2026, 11, 16), last=date(2026, 11, 16)), "2026-11-16T23:59+09:00", True),
        (Times(SEOUL, first=date(2026, 11, 17)), "2026-11-16T23:59+09:00", False),
        (Times(SEOUL, last=date(2026, 11, 15)), "2026-11-16T00:00+09:00", False),
    ],
)
def test_times_are_those_of_their_zone(times: Times, at: str, holds: bool) -> None:
    assert times.holds(datetime.fromisoformat(at).timestamp()) is holds


@pytest.mark.parametrize("at", [1e18, float("inf"), float("nan"), None])
def test_a_clock_that_shows_no_time_is_unknown(at: float | None) -> None:
    assert Times(SEOUL, hours=(0, 60)).holds(at) is None


async def test_the_time_decides_at_each_request_also_over_a_kept_list() -> None:
    noon = datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp()
    clock = FrozenClock(noon)
    rules = [rule("sop://*", Conditions(time=Times(UTC, hours=(9 * 60, 18 * 60))), name="policy[0]")]
    house = sops(*rules)
    house.policy = Policy(rules, house.dispatch, clock=clock)
    kept: Page[Entry] = await house.dispatch(call_of(BRAND, "list", "sop://"))

    def from_cache(call: Call) -> Reply:
        return kept

    async def seen() -> int:
        page: Page[Entry] = await settled(house.policy(call_of(BRAND, "list", "sop://"), from_cache))
        return len(page.items)

    assert await seen() == 3
    clock.advance(8 * 3600)
    assert await seen() == 0
    assert isinstance(await house.refused(BRAND, "read", "sop://brand/guide"), Forbidden)
    clock.advance(-8 * 3600)  # a clock that jumps back
    assert await seen() == 3
    assert (await house.ask(BRAND, "read", "sop://brand/guide")).body == "guide"


# -- on arguments


@pytest.mark.parametrize(
    ("wanted", "arguments", "holds"),
    [
        (("docs/*",), {"path": "docs/a"}, True),
        (("docs/*",), {"path": "etc/a"}, False),
        (("docs/*",), {"path": "DOCS/a"}, None),
        (("docs/*",), {}, None),
        (("docs/*",), None, None),
        (("docs/*",), {"path": 3}, None),
        (("docs/*",), {"path": ["docs/a", "docs/b"]}, True),
        (("docs/*",), {"path": ["docs/a", "etc/b"]}, None),
        (("docs/*",), {"path": ["x", "y"]}, False),
        (("docs/*",), {"path": []}, None),
        ((5,), {"path": 5.0}, True),
        ((True,), {"path": True}, True),
        ((True,), {"path": 1}, None),
        (NumberRange(1, 3), {"path": 3}, True),
        (NumberRange(1, 3), {"path": 3.5}, False),
        (NumberRange(1, 3), {"path": "2"}, None),
    ],
)
def test_arguments_are_true_false_or_unknown(wanted: Any, arguments: Any, holds: Any) -> None:
    condition = Condition(Conditions(arguments=ArgumentsAre((("path", wanted),))))
    assert condition.holds(Facts(None, arguments, 0.0)) is holds


@pytest.mark.seed("T6")
async def test_a_tool_may_be_called_with_some_arguments_and_seen_by_who_may() -> None:
    demands = Conditions(arguments=ArgumentsAre((("path", ("docs/*",)),)))
    house = sops(rule("tool://run", demands, may="invoke", name="policy[0]"))

    async def run(context: object, arguments: Mapping[str, Any]) -> str:
        return "ran"

    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    for name in ("run", "other"):
        house.tools.register(Tool(ToolInfo(name=name, description="Runs.", input_schema=schema, hints=HINTS), run))
    await house.ask(BRAND, "invoke", "tool://run", path="docs/a")
    for arguments in ({"path": "etc/a"}, {}, {"path": "DOCS/a"}):
        assert isinstance(await house.refused(BRAND, "invoke", "tool://run", **arguments), Forbidden)
    page: Page[Entry] = await house.ask(BRAND, "list", "tool://")
    assert [entry.ref.path for entry in page.items] == ["run"]


@pytest.mark.seed("P10")
def test_the_epoch_changes_with_a_condition() -> None:
    conditions = [None, when(status="a"), when(status=("a", "b")), when(status="a or b")]
    assert len({sops(rule("sop://*", one)).policy.epoch for one in conditions}) == 4


def test_a_condition_is_told_in_words() -> None:
    demands = Conditions(Metadata((("status", ("active", "ok")),)), Times(SEOUL, frozenset({0, 4}), (540, 1080)))
    condition = Condition(
        demands, Conditions(arguments=ArgumentsAre((("n", NumberRange(None, 3)), ("force", (True,)))))
    )
    assert str(condition) == (
        "when status is active or ok and the time is mon, fri 09:00-18:00 (Asia/Seoul) "
        "unless argument n is at most 3, argument force is true"
    )


def test_of_a_rule_that_surely_applies_and_one_that_may_the_hiding_one_wins() -> None:
    policy = sops(ALL, rule("sop://*", allow=False), HIDDEN).policy
    ref = Ref.parse("sop://x")
    assert policy.decide(BRAND, "read", ref, Facts({"confidentiality": "secret"})).hidden
    assert not policy.decide(BRAND, "read", ref, Facts({})).hidden
    assert policy.decide(BRAND, "read", ref).hidden
    assert not policy.decide(BRAND, "read", ref, Facts({})).allowed
