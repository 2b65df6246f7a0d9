"""The last act of the policy: a human is asked, and his answer counts for exactly what he was shown (T5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.stores.stored import given

from octavo.core.approval import Approval, ApprovalQuestion, Step, Verdict
from octavo.core.arguments import OwnArguments
from octavo.core.clock import FrozenClock
from octavo.core.errors import ApprovalRequired, Conflict, Forbidden, InvalidParams, OctavoError, Unauthenticated
from octavo.core.glob import Glob
from octavo.core.ports.chain import Ask
from octavo.core.ports.stores import Opens
from octavo.core.ref import Ref
from octavo.core.tools import Hints, ToolInfo
from octavo.core.values import Call, Principal, Trail
from octavo.pipeline.chain import awaitable
from octavo.pipeline.dispatch import Dispatch
from octavo.pipeline.policy.approval import versions
from octavo.pipeline.policy.approval.ask import Approving
from octavo.pipeline.policy.approval.consent import Consent
from octavo.pipeline.policy.conditions import ArgumentsAre, Condition, Conditions, NumberRange, Times
from octavo.pipeline.policy.fold import Policy, Rule
from octavo.prompts.registry import PromptRegistry
from octavo.sources.memory import MemorySource
from octavo.stores.approvals import StoredApprovals
from octavo.stores.memory import MemoryStore
from octavo.stores.sqlite import SQLiteStore
from octavo.tools.builtin.addresses import address
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool, ToolRegistry
from octavo.tools.schema import compile_schema

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T5")]

KEY = b"k" * 32
ANN, BOB = Principal("agent-ann"), Principal("agent-bob")
HARMLESS = Hints(read_only=False, destructive=False, idempotent=False, open_world=False)
ALL = Rule(("*",), None, (Glob("**"),), name="policy[0]")


def rule(may: str, what: str, people: int, *, who: str = "*", name: str = "policy[1]") -> Rule:
    verbs: Any = None if may == "*" else frozenset(may.split())
    return Rule((who,), verbs, (Glob(what),), name=name, people=people)


class User:
    """The person at a client that asks while the call waits."""

    def __init__(self, *answers: Verdict | None) -> None:
        self._answers = list(answers)
        self.questions: list[ApprovalQuestion] = []
        self.wire = None

    async def progress(self, value: float, total: float | None = None, message: str | None = None) -> None: ...

    async def approve(self, question: ApprovalQuestion) -> Verdict | None:
        self.questions.append(question)
        return self._answers.pop(0)


class House:
    def __init__(self, rules: Sequence[Rule], opens: Opens | None = None, *, asks: str = "", clients: bool = True):
        self.clock, self.steps = FrozenClock(), list[str]()
        self.file = StoredApprovals(opens or given(MemoryStore()), self._told, clock=self.clock)
        self.tools = ToolRegistry()
        self.gone: set[Principal] = set()
        self.done: list[tuple[str, Mapping[str, Any]]] = []
        self.doc = MemorySource("doc", {"a": "first", "b": "other"})
        prompts = PromptRegistry(compile_schema)
        dispatch = Dispatch(
            {"doc": self.doc, "tool": self.tools, "prompt": prompts},
            tools=self.tools,
            prompts=prompts,
            exposed=["doc"],
            writable=["doc"],
        )
        approving = Approving(
            self.file,
            KEY,
            self.tools,
            dispatch.canonical,
            seconds=600,
            clients=clients,
            address=address,
            known=self._known,
            clock=self.clock,
        )
        self.policy = Policy(
            rules, dispatch, approval=Consent(self.tools, dispatch, lambda: approving), clock=self.clock
        )
        self.ask: Ask = awaitable(lambda call: self.policy(call, dispatch))
        self.tools.bind(self.ask)
        schema = {"type": "object"}
        for name in ("wipe", "store"):
            info = ToolInfo(name=name, description=name, input_schema=schema, hints=HARMLESS, asks=asks)
            self.tools.register(Tool(info, getattr(self, f"_{name}")))

    def _told(self, step: Step, approval: Approval, person: str) -> None:
        self.steps.append(step)

    def _known(self, who: Principal) -> None:
        if who in self.gone:
            raise Unauthenticated("unknown")

    async def _wipe(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        self.done.append((ctx.principal.id, arguments))
        return "done"

    async def _store(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        await ctx.write(arguments["uri"], arguments["text"])
        self.done.append((ctx.principal.id, arguments))
        return "stored"

    async def call(self, who: Principal, name: str, user: User | None = None, **arguments: Any) -> None:
        await self.ask(
            Call("invoke", Ref("tool", (name,)), who, Trail(), f"tool://{name}", OwnArguments(arguments), channel=user)
        )

    async def pending(self, who: Principal, name: str, user: User | None = None, **arguments: Any) -> str:
        with pytest.raises(ApprovalRequired) as caught:
            await self.call(who, name, user, **arguments)
        return str(caught.value.data["approval"])

    async def refused(self, who: Principal, name: str, user: User | None = None, **arguments: Any) -> OctavoError:
        with pytest.raises(Forbidden) as caught:
            await self.call(who, name, user, **arguments)
        return caught.value


WIPE = [ALL, rule("invoke", "tool://wipe", 1)]


async def test_without_a_client_that_can_ask_the_call_waits_for_the_queue() -> None:
    house = House(WIPE)
    name = await house.pending(ANN, "wipe", path="a")
    assert await house.pending(ANN, "wipe", path="a") == name
    assert house.done == []
    await house.file.answer(name, "kim", allow=True)
    await house.call(ANN, "wipe", path="a")
    assert house.done == [("agent-ann", {"path": "a"})]
    assert await house.pending(ANN, "wipe", path="a") != name
    assert house.steps == ["asked", "allowed", "used", "asked"]


async def test_an_approval_is_nobody_elses() -> None:
    house = House(WIPE)
    await house.file.answer(await house.pending(ANN, "wipe", path="a"), "kim", allow=True)
    await house.pending(BOB, "wipe", path="a")
    assert house.done == []


@pytest.mark.parametrize("other", [{"path": "b"}, {"path": "a "}, {"path": "a", "more": None}, {"path": ["a"]}, {}])
async def test_other_arguments_are_another_request(other: dict[str, Any]) -> None:
    house = House(WIPE)
    name = await house.pending(ANN, "wipe", path="a")
    await house.file.answer(name, "kim", allow=True)
    assert await house.pending(ANN, "wipe", **other) != name
    assert house.done == []
    await house.call(ANN, "wipe", path="a")
    assert len(house.done) == 1


async def test_other_versions_of_what_is_named_are_another_request() -> None:
    house = House(WIPE)
    name = await house.pending(ANN, "wipe", target={"which": ["doc://a"]})
    await house.file.answer(name, "kim", allow=True)
    await house.doc.write(Ref.parse("doc://a"), "second", if_match=None)
    assert await house.pending(ANN, "wipe", target={"which": ["doc://a"]}) != name
    assert house.done == [] and "outdated" in house.steps


@pytest.mark.parametrize("spelled", ["doc://a?view=x", " doc://a\n", "doc://%61"])
async def test_what_is_named_is_found_in_other_spellings(spelled: str) -> None:
    house = House(WIPE)
    name = await house.pending(ANN, "wipe", path=spelled)
    await house.file.answer(name, "kim", allow=True)
    await house.doc.write(Ref.parse("doc://a"), "second", if_match=None)
    assert await house.pending(ANN, "wipe", path=spelled) != name
    assert house.done == []


async def test_what_changes_while_a_human_looks_at_the_question_is_asked_for_anew() -> None:
    house = House(WIPE)

    class Thinking(User):
        async def approve(self, question: ApprovalQuestion) -> Verdict | None:
            if not self.questions:
                await house.doc.write(Ref.parse("doc://a"), "second", if_match=None)
            return await super().approve(question)

    user = Thinking("allow", "deny")
    await house.refused(ANN, "wipe", user, path="doc://a")
    assert len(user.questions) == 2 and house.done == []


async def test_what_comes_into_a_folder_that_is_named_makes_another_request() -> None:
    house = House([ALL, rule("invoke", "tool://wipe", 1), rule("write", "doc://*", 0)])
    await house.doc.write(Ref.parse("doc://in/a"), "one", if_match=None)
    name = await house.pending(ANN, "wipe", folder="doc://in")
    await house.file.answer(name, "kim", allow=True)
    assert await house.pending(BOB, "wipe", folder="doc://in") != name
    await house.doc.write(Ref.parse("doc://in/b"), "two", if_match=None)
    assert await house.pending(ANN, "wipe", folder="doc://in") != name
    assert house.done == []


@pytest.mark.parametrize("named", ["doc://b", "doc://in"])
async def test_a_question_tells_nothing_of_what_the_caller_may_not_see(named: str) -> None:
    hidden = Rule(("*",), None, (Glob("doc://b"), Glob("doc://in/*")), allow=False, hide=True)
    house = House([*WIPE, hidden])
    name = await house.pending(ANN, "wipe", path=named)
    for uri in ("doc://b", "doc://in/new"):
        await house.doc.write(Ref.parse(uri), "changed", if_match=None)
    assert await house.pending(ANN, "wipe", path=named) == name


async def test_what_is_denied_stays_denied_for_a_while() -> None:
    house = House(WIPE)
    await house.file.answer(await house.pending(ANN, "wipe"), "kim", allow=False)
    for _ in range(2):
        assert "refused this: kim" in (await house.refused(ANN, "wipe")).message
    house.clock.advance(601)
    await house.pending(ANN, "wipe")
    assert house.done == []


async def test_the_person_at_the_client_is_asked_while_the_call_waits() -> None:
    house, user = House(WIPE), User("allow", "deny", "cancel", "allow")
    await house.call(ANN, "wipe", user, path="a")
    shown = user.questions[0].text
    assert (
        '"agent-ann"' in shown and '"invoke tool://wipe"' in shown and '"path": "a"' in shown and "policy[1]" in shown
    )
    await house.refused(ANN, "wipe", user, path="b")
    await house.refused(ANN, "wipe", user, path="b")  # not asked again
    assert len(user.questions) == 2
    assert "put away" in (await house.refused(ANN, "wipe", user, path="c")).message
    await house.call(ANN, "wipe", user, path="c")  # asked again
    assert [done["path"] for _, done in house.done] == ["a", "c"]
    assert house.steps == [
        "asked", "allowed", "used", "asked", "denied", "asked", "cancelled", "asked", "allowed", "used",
    ]  # fmt: skip


async def test_where_the_operator_wants_the_queue_no_client_answers() -> None:
    house, user = House(WIPE, clients=False), User()
    await house.pending(ANN, "wipe", user)
    assert user.questions == []


@pytest.mark.parametrize("what", ["tool://store", "doc://a", "**"])
async def test_the_person_at_a_client_answers_nothing_that_a_rule_denies_him_to(what: str) -> None:
    alone = Rule(("agent-ann",), frozenset(("approve",)), (Glob(what),), allow=False, name="policy[2]")
    house, user = House([ALL, rule("write", "doc://*", 1), alone]), User("allow")
    name = await house.pending(ANN, "store", user, uri="doc://a", text="x")
    assert user.questions == [] and house.steps == ["asked"]
    await house.file.answer(name, "kim", allow=True)
    await house.call(ANN, "store", user, uri="doc://a", text="x")
    await house.call(BOB, "store", user, uri="doc://a", text="x")
    assert len(user.questions) == 1, "others are asked as before"


async def test_answering_needs_no_grant() -> None:
    house, user = House([rule("invoke", "tool://wipe", 1)]), User("allow")
    await house.call(ANN, "wipe", user)
    assert len(user.questions) == 1


async def test_all_that_a_call_names_is_bound_however_much_it_is() -> None:
    house = House(WIPE)
    names = [f"doc://{number}" for number in range(200)] + ["doc://a"]
    name = await house.pending(ANN, "wipe", paths=names)
    (shown,) = (await house.file.named(name)).wanted.arguments
    assert "201 values" in shown
    await house.file.answer(name, "kim", allow=True)
    await house.doc.write(Ref.parse("doc://a"), "second", if_match=None)
    assert await house.pending(ANN, "wipe", paths=names) != name


async def test_what_names_more_than_can_be_looked_at_is_refused() -> None:
    house = House(WIPE)
    with pytest.raises(InvalidParams, match="several calls"):
        await house.call(ANN, "wipe", paths=[f"doc://{number}" for number in range(versions.MAX_RESOURCES + 1)])
    assert house.steps == []


async def test_nobody_waits_for_what_a_question_looks_at() -> None:
    hides = Rule(("*",), None, (Glob("doc://hidden/*"),), allow=False, hide=True)
    house = House([*WIPE, hides])
    call = Call("invoke", Ref("tool", ("wipe",)), ANN, Trail(), "tool://wipe", OwnArguments({"path": "doc://absent"}))
    with pytest.raises(ApprovalRequired):
        await house.ask(call)
    assert not call.trail.missed


async def test_a_client_that_answers_after_somebody_else_changes_nothing() -> None:
    house = House(WIPE)

    class Slow(User):
        async def approve(self, question: ApprovalQuestion) -> Verdict | None:
            (one,) = await house.file.standing()
            await house.file.answer(one.id, "kim", allow=False)
            return "allow"

    assert "refused this: kim" in (await house.refused(ANN, "wipe", Slow())).message
    assert house.done == []


async def test_a_client_that_answers_too_late_changes_nothing() -> None:
    house = House(WIPE)

    class Late(User):
        async def approve(self, question: ApprovalQuestion) -> Verdict | None:
            house.clock.advance(601)
            return "allow"

    await house.pending(ANN, "wipe", Late())
    assert house.done == [] and house.steps == ["asked", "expired", "asked"]


async def test_rules_that_no_longer_hold_let_nothing_be_done_by_a_late_answer() -> None:
    house = House(WIPE)

    class Meanwhile(User):
        async def approve(self, question: ApprovalQuestion) -> Verdict | None:
            house.policy.retire(house.policy)
            return "allow"

    with pytest.raises(Conflict, match="call again"):
        await house.call(ANN, "wipe", Meanwhile())
    assert house.done == [] and (await house.file.standing())[0].state == "allowed"


async def test_who_may_ask_no_more_is_not_served_by_a_late_answer() -> None:
    house = House(WIPE)

    class Meanwhile(User):
        async def approve(self, question: ApprovalQuestion) -> Verdict | None:
            house.gone.add(ANN)
            return "allow"

    with pytest.raises(Unauthenticated):
        await house.call(ANN, "wipe", Meanwhile())
    assert house.done == []


async def test_two_people_are_the_user_of_the_client_and_another() -> None:
    house, user = House([ALL, rule("invoke", "tool://wipe", 2)]), User("allow")
    name = await house.pending(ANN, "wipe", user)
    assert await house.pending(ANN, "wipe", user) == name and len(user.questions) == 1
    assert house.done == []
    await house.file.answer(name, "kim", allow=True)
    await house.call(ANN, "wipe", user)
    assert len(house.done) == 1


async def test_a_part_of_a_tool_is_asked_for_with_the_arguments_of_the_tool() -> None:
    house = House([ALL, rule("write", "doc://a", 1), rule("*", "doc://b", 0)])
    await house.call(ANN, "store", uri="doc://b", text="free")
    name = await house.pending(ANN, "store", uri="doc://a", text="new")
    shown = (await house.file.named(name)).shown()
    assert 'tool: "tool://store"' in shown and 'what: "write doc://a"' in shown and '"text": "new"' in shown
    await house.file.answer(name, "kim", allow=True)
    await house.pending(ANN, "store", uri="doc://a", text="new!")
    await house.call(ANN, "store", uri="doc://a", text="new")
    content = await house.doc.read(Ref.parse("doc://a"), max_bytes=100)
    assert content.body == "new"


async def test_who_has_allowed_a_tool_is_not_asked_about_its_parts() -> None:
    house = House([ALL, rule("invoke", "tool://store", 1), rule("write", "doc://*", 1)])
    await house.file.answer(await house.pending(ANN, "store", uri="doc://a", text="new"), "kim", allow=True)
    await house.call(ANN, "store", uri="doc://a", text="new")
    assert len(house.done) == 1


async def test_one_who_has_allowed_a_tool_is_not_two_for_its_parts() -> None:
    house = House([ALL, rule("invoke", "tool://store", 1), rule("write", "doc://*", 2)])
    await house.file.answer(await house.pending(ANN, "store", uri="doc://a", text="new"), "kim", allow=True)
    assert "approve: {by: 2}" in (await house.refused(ANN, "store", uri="doc://a", text="new")).message
    assert house.done == []


@pytest.mark.parametrize("rules", [[], [ALL]], ids=["without a policy", "with one that does not say"])
async def test_without_a_rule_a_human_is_asked_before_what_cannot_be_taken_back(rules: list[Rule]) -> None:
    house = House(rules)
    name = await house.pending(ANN, "store", uri="doc://a", text="new")
    assert "undo could not take it back" in (await house.file.named(name)).shown()
    await house.call(ANN, "wipe")
    house = House(rules, asks="a destructive tool")
    assert "destructive tool" in (await house.file.named(await house.pending(ANN, "wipe"))).shown()


async def test_only_a_rule_lets_be_done_what_cannot_be_taken_back() -> None:
    house = House([ALL, rule("invoke write", "**", 0, who="agent-ann")], asks="a destructive tool")
    await house.call(ANN, "wipe")
    await house.call(ANN, "store", uri="doc://a", text="new")
    await house.pending(BOB, "wipe")


async def test_of_rules_that_differ_the_one_that_asks_most_counts() -> None:
    rules = [rule("*", "**", 0, name="never"), ALL, rule("invoke", "tool://*", 2, name="two")]
    for order in (rules, rules[::-1]):
        house = House(order)
        assert (await house.file.named(await house.pending(ANN, "wipe"))).wanted.rule == "two"


LARGE = Condition(Conditions(arguments=ArgumentsAre((("amount", NumberRange(least=100)),))))


@pytest.mark.parametrize(("amount", "asked"), [(1, False), (100, True), (None, True), ("100", True)])
async def test_where_a_condition_of_approval_cannot_be_known_a_human_is_asked(amount: Any, asked: bool) -> None:
    house = House([ALL, replace(rule("invoke", "tool://wipe", 1), condition=LARGE)])
    arguments = {} if amount is None else {"amount": amount}
    if asked:
        assert (await house.file.named(await house.pending(ANN, "wipe", **arguments))).wanted.rule == "policy[1]"
    else:
        await house.call(ANN, "wipe", **arguments)
    assert len(house.done) == (not asked)


@pytest.mark.parametrize(("amount", "asked"), [(1, True), (100, False), (None, True)])
async def test_nobody_is_left_unasked_by_what_cannot_be_known(amount: Any, asked: bool) -> None:
    house = House([ALL, replace(rule("invoke", "tool://wipe", 0), condition=LARGE)], asks="dangerous")
    arguments = {} if amount is None else {"amount": amount}
    if asked:
        assert (await house.file.named(await house.pending(ANN, "wipe", **arguments))).wanted.rule == "default"
    else:
        await house.call(ANN, "wipe", **arguments)


async def test_of_conditions_that_hold_the_one_that_asks_most_counts() -> None:
    rules = [
        ALL,
        rule("invoke", "tool://*", 1, name="one"),
        replace(rule("invoke", "**", 2, name="two"), condition=LARGE),
    ]
    for order in (rules, rules[::-1]):
        house = House(order)
        assert (await house.file.named(await house.pending(ANN, "wipe", amount=1))).wanted.rule == "one"
        assert (await house.file.named(await house.pending(ANN, "wipe", amount=500))).wanted.rule == "two"


async def test_a_right_that_ends_while_a_human_thinks_has_ended() -> None:
    until_ten = Condition(Conditions(time=Times(UTC, hours=(9 * 60, 10 * 60))))  # the clock stands at 09:46
    house = House([replace(rule("invoke", "tool://wipe", 1), condition=until_ten)])

    class Thinker(User):
        async def approve(self, question: ApprovalQuestion) -> Verdict | None:
            house.clock.advance(550)
            return "allow"

    house.clock.advance(300)
    assert "no rule allows it" in str((await house.refused(ANN, "wipe", Thinker())).data)
    assert house.done == [] and house.steps == ["asked", "allowed", "used"]


async def test_a_deny_is_never_asked_about() -> None:
    deny = Rule(("*",), None, (Glob("tool://wipe"),), allow=False)
    house = House([*WIPE, deny])
    await house.refused(ANN, "wipe")
    assert house.steps == []


async def test_what_was_allowed_survives_a_restart(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path) as store:
        name = await House(WIPE, given(store)).pending(ANN, "wipe", path="a")
        await House(WIPE, given(store)).file.answer(name, "kim", allow=True)
    async with SQLiteStore(tmp_path) as store:
        house = House(WIPE, given(store))
        await house.call(ANN, "wipe", path="a")
        await House(WIPE, given(store)).pending(ANN, "wipe", path="a")
    assert len(house.done) == 1


async def test_a_state_belongs_to_one_question() -> None:
    house, states = House(WIPE), set[str]()
    for who in (ANN, BOB):
        for path in "ab":
            user = User("cancel")
            await house.refused(who, "wipe", user, path=path)
            states.add(user.questions[0].state)
    assert len(states) == 4
