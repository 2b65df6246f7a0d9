"""Fold 4: who may do what (requirements O13, O14, B2; house.md, section 6; security.md, section 5)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.core.errors import (
    Forbidden,
    InvalidParams,
    NotFound,
    OctavoError,
    RateLimited,
    SourceUnavailable,
    TooLarge,
)
from octavo.core.glob import Glob
from octavo.core.operations import arguments_of
from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.tools import Hints, ToolInfo
from octavo.core.values import EVERYTHING, Call, Content, Entry, Op, Page, Principal, Template, Trail, Verb
from octavo.pipeline.dispatch import Dispatch
from octavo.pipeline.policy import decisions, visibility
from octavo.pipeline.policy.fold import Decision, Policy, Rule
from octavo.prompts.registry import PromptRegistry
from octavo.sources.file.addresses import FileAddresses, FileRoot
from octavo.sources.file.source import FileSource
from octavo.sources.memory import MemorySource, TemplateBody
from octavo.tools.registry import Tool, ToolRegistry
from octavo.tools.schema import compile_schema

pytestmark = pytest.mark.anyio

BRAND = Principal("agent-brand", frozenset({"marketing"}))
OPS = Principal("agent-ops")
LOCAL = Principal("local")

SOPS = {
    "brand/guide": "guide",
    "brand/tone": "tone",
    "hr/pay": "pay",
    "hr/정책": "policy",
    "ops/deploy": "deploy",
}
POLICY_SPELLINGS = (
    "sop://hr/정책",
    unicodedata.normalize("NFD", "sop://hr/정책"),
    "sop://hr/%EC%A0%95%EC%B1%85",
)


def rule(
    who: str | tuple[str, ...],
    may: str,
    *what: str,
    deny: bool = False,
    hide: bool = False,
    why: str = "",
    name: str = "",
) -> Rule:
    verbs: Any = None if may == "*" else frozenset(may.split())
    whos = (who,) if isinstance(who, str) else who
    return Rule(whos, verbs, tuple(map(Glob, what)), not deny, why, hide, name)


HR = rule("agent-brand", "*", "sop://hr/*", deny=True, why="HR records are not for agents", name="policy[1]")
ALL = rule("*", "*", "**", name="policy[0]")


class House:
    """Dispatch over sources, and a policy before it."""

    def __init__(self, rules: Sequence[Rule], *sources: Any, writable: Sequence[str] | None = None) -> None:
        self.tools = ToolRegistry()
        self.prompts = PromptRegistry(compile_schema)
        served = {source.scheme: source for source in sources}
        self.dispatch = Dispatch(
            {**served, "tool": self.tools, "prompt": self.prompts},
            tools=self.tools,
            prompts=self.prompts,
            exposed=list(served),
            writable=served if writable is None else writable,
        )
        self.policy = Policy(rules, self.dispatch)
        self.reached: list[Call] = []

    async def ask(self, who: Principal, op: Op, uri: str, **arguments: Any) -> Reply:
        return await self.policy(call_of(who, op, uri, **arguments), self._next)

    async def _next(self, call: Call) -> Reply:
        self.reached.append(call)
        return await self.dispatch(call)

    async def refused(self, who: Principal, op: Op, uri: str, **arguments: Any) -> OctavoError:
        with pytest.raises(OctavoError) as caught:
            await self.ask(who, op, uri, **arguments)
        return caught.value


def call_of(who: Principal, op: Op, uri: str, **arguments: Any) -> Call:
    glob = arguments.get("glob")
    ref, fault = EVERYTHING, None
    try:
        ref = glob.literal if glob is not None else EVERYTHING if uri == "*" else Ref.parse(uri)
    except OctavoError as bad:
        ref, fault = Ref("invalid"), bad
    return Call(op, ref, who, Trail(), uri, arguments_of(op, arguments), fault=fault)


def sops(*rules: Rule) -> House:
    return House(rules, MemorySource("sop", SOPS), MemorySource("doc", {"guide": "doc"}))


def shape(error: OctavoError) -> tuple[type[OctavoError], str, dict[str, object]]:
    return type(error), error.message, dict(error.data)


# -- who, what, verbs


@pytest.mark.seed("O14")
async def test_the_seeds_example_agent_brand_may_not_read_what_hr_writes() -> None:
    """Seed 003: agent-brand may not read `sop://hr/*`, and everybody else may."""
    house = sops(ALL, HR)
    assert (await house.ask(BRAND, "read", "sop://brand/guide")).body == "guide"
    assert (await house.ask(OPS, "read", "sop://hr/pay")).body == "pay"
    assert shape(await house.refused(BRAND, "read", "sop://hr/pay")) == (
        Forbidden,
        "Access denied to resource: sop://hr/pay",
        {
            "agent": "agent-brand",
            "required_permission": "read",
            "resource": "sop://hr/*",
            "why": "HR records are not for agents",
        },
    )
    assert [call.ref.path for call in house.reached] == ["brand/guide", "hr/pay"], "a refusal reaches no source"


@pytest.mark.seed("O14")
async def test_without_any_rule_everything_is_open() -> None:
    """security.md section 5: without a policy the operator's sources are the only ceiling."""
    house = sops()
    assert (await house.ask(BRAND, "read", "sop://hr/pay")).body == "pay"
    assert house.policy.decide(BRAND, "delete", Ref.parse("sop://x")).allowed


@pytest.mark.seed("O14")
async def test_once_a_policy_exists_no_match_means_no() -> None:
    """Default deny; the refusal then names the address itself, there being no rule to show."""
    house = sops(rule("agent-brand", "read", "sop://brand/*"))
    refused = await house.refused(BRAND, "read", "doc://guide")
    assert shape(refused) == (
        Forbidden,
        "Access denied to resource: doc://guide",
        {
            "agent": "agent-brand",
            "required_permission": "read",
            "resource": "doc://guide",
            "why": "no rule allows it",
        },
    )


@pytest.mark.seed("O14")
@pytest.mark.parametrize("order", [0, 1])
def test_deny_wins_in_whatever_order_the_rules_stand(order: int) -> None:
    """Cedar's semantics: an allow is no exception to a deny."""
    rules = [rule("*", "*", "sop://hr/pay"), rule("*", "*", "sop://hr/*", deny=True)]
    policy = sops(*(rules if order else reversed(rules))).policy
    assert not policy.allows(BRAND, "read", Ref.parse("sop://hr/pay"))


@pytest.mark.seed("O14")
@pytest.mark.parametrize(
    ("who", "brand", "ops"),
    [
        ("*", True, True),
        ("agent-brand", True, False),
        ("role:marketing", True, False),
        ("marketing", False, False),
        ("role:agent-ops", False, False),
        (("agent-ops", "role:marketing"), True, True),
    ],
)
def test_a_rule_is_for_ids_roles_or_everybody(who: Any, brand: bool, ops: bool) -> None:
    """An id is not a role and a role is not an id."""
    policy = sops(rule(who, "read", "sop://*")).policy
    ref = Ref.parse("sop://brand/guide")
    assert (policy.allows(BRAND, "read", ref), policy.allows(OPS, "read", ref)) == (brand, ops)


@pytest.mark.seed("O14")
def test_a_rule_is_about_its_verbs_only() -> None:
    """Listing is not reading, and `*` is every verb."""
    policy = sops(rule("*", "list watch", "sop://*"), rule("agent-ops", "*", "sop://*")).policy
    ref = Ref.parse("sop://brand/guide")
    verbs: tuple[Verb, ...] = ("list", "watch", "read", "write", "search", "delete")
    assert [policy.allows(BRAND, verb, ref) for verb in verbs] == [True, True, False, False, False, False]
    assert all(policy.allows(OPS, verb, ref) for verb in verbs)


def test_of_several_denies_one_that_hides_wins_else_the_first() -> None:
    """What one rule conceals another one may not give away; otherwise the order of the configuration holds."""
    rules = [
        rule("*", "*", "**", deny=True, name="first"),
        rule("*", "*", "sop://hr/*", deny=True, name="second"),
        rule("*", "*", "sop://hr/pay", deny=True, hide=True, name="third"),
    ]
    policy = sops(*rules).policy
    said = {path: policy.decide(BRAND, "read", Ref.parse(f"sop://{path}")).rule for path in ("x", "hr/x", "hr/pay")}
    assert said == {"x": "first", "hr/x": "first", "hr/pay": "third"}


def test_the_epoch_is_the_same_for_the_same_rules_and_no_other() -> None:
    """Cursors carry it: a restart with the same rules must not end them, a changed rule must."""
    one = sops(rule("*", "read list watch search", "sop://*"), HR).policy.epoch
    assert sops(rule("*", "watch search list read", "sop://*"), HR).policy.epoch == one
    assert sops(rule("*", "read list watch", "sop://*"), HR).policy.epoch != one
    assert sops(HR, rule("*", "read list watch search", "sop://*")).policy.epoch != one


# -- addresses


@pytest.mark.seed("O14", "F1", "B2")
@pytest.mark.parametrize("uri", ["sop://hr/%70ay", "SOP://hr/pay", "sop://%68r/pay"])
async def test_percent_encoding_and_case_make_no_other_address(uri: str) -> None:
    """A rule holds for every spelling of an address; the refusal repeats the client's."""
    refused = await sops(ALL, HR).refused(BRAND, "read", uri)
    assert (type(refused), refused.message) == (Forbidden, f"Access denied to resource: {uri}")


@pytest.mark.seed("O14")
@pytest.mark.parametrize("pattern", POLICY_SPELLINGS)
@pytest.mark.parametrize("uri", POLICY_SPELLINGS)
async def test_decomposed_hangul_is_the_same_name(pattern: str, uri: str) -> None:
    """macOS sends NFD; rule and address are compared in NFC."""
    house = sops(ALL, rule("*", "read", pattern, deny=True))
    assert isinstance(await house.refused(BRAND, "read", uri), Forbidden)


@pytest.mark.seed("O1", "O14")
def test_a_rule_is_about_the_path_and_never_the_query() -> None:
    """Patterns match the path (house.md section 6): a parameter is no way round a rule."""
    policy = sops(ALL, HR).policy
    for query in ("", "?version=1.2.0", "?view=parsed&x=y"):
        assert not policy.allows(BRAND, "read", Ref.parse(f"sop://hr/pay{query}"))


@pytest.mark.seed("F8", "O13")
async def test_an_address_that_climbs_is_refused_in_the_seeds_shape() -> None:
    """`..` is Forbidden; the transport hands the fault in so that it is counted and recorded."""
    refused = await sops().refused(BRAND, "read", "sop://hr/../x")
    assert shape(refused) == (
        Forbidden,
        "Access denied to resource: sop://hr/../x",
        {
            "agent": "agent-brand",
            "required_permission": "read",
            "resource": "sop://hr/../x",
            "why": "A path may not contain '..': write the address from the root of its source",
        },
    )
    assert isinstance(await sops().refused(BRAND, "read", "no address"), InvalidParams)


@pytest.mark.seed("F8")
async def test_an_unknown_scheme_is_a_wrong_parameter_for_everybody() -> None:
    """F8: InvalidParams is for an unknown scheme; a policy does not change that."""
    for house in (sops(), sops(HR)):
        for op in ("read", "stat", "list"):
            refused = await house.refused(BRAND, op, "nosuch://x")  # type: ignore[arg-type]
            assert (type(refused), refused.data["reason"]) == (InvalidParams, "unknown_scheme")


@pytest.fixture
def roots(tmp_path: Path) -> Path:
    """Two roots with a shadowed file, and a link in the first."""
    for path, text in {
        "one/brand/guide.md": "guide",
        "one/hr/pay.md": "pay one",
        "one/same.md": "first",
        "two/same.md": "second",
        "two/hr/only.md": "only two",
    }.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / "one/brand/link.md").symlink_to("../hr/pay.md")
    return tmp_path


def files(roots: Path, *, public: str | None = None) -> FileSource:
    return FileSource([FileRoot(roots / "one", public), FileRoot(roots / "two")], secret=b"k")


@pytest.mark.seed("F1", "O14", "B2")
@pytest.mark.parametrize("pattern", ["file://hr/*", "file://{root}/one/hr/*"])
async def test_both_spellings_of_a_file_get_one_decision(roots: Path, pattern: str) -> None:
    """F1: absolute and relative forms are spellings of one resource, for rules in either form."""
    async with files(roots) as source:
        house = House([ALL, rule("*", "*", pattern.format(root=roots), deny=True)], source)
        for uri in ("file://hr/pay.md", f"file://{roots}/one/hr/pay.md", "file://hr/pay.md?root=1"):
            refused = await house.refused(BRAND, "read", uri)
            assert (type(refused), refused.message) == (Forbidden, f"Access denied to resource: {uri}")
        assert (await house.ask(BRAND, "read", "file://brand/guide.md")).body == "guide"
        await house.ask(BRAND, "read", f"file://{roots}/one/brand/guide.md")
        assert str(house.reached[-1].trail.ref.bare) == "file://brand/guide.md", "the name for the audit"


@pytest.mark.seed("F1", "O14")
async def test_a_rule_on_the_second_root_holds_for_the_shadowed_file(roots: Path) -> None:
    """`?root=2` says which absolute spelling is meant: dropping it before the look-up would pass the rule."""
    async with files(roots) as source:
        house = House([ALL, rule("*", "*", f"file://{roots}/two/*", deny=True)], source)
        assert (await house.ask(BRAND, "read", "file://same.md")).body == "first"
        for uri in ("file://same.md?root=2", f"file://{roots}/two/same.md", "file://hr/only.md"):
            assert isinstance(await house.refused(BRAND, "read", uri), Forbidden), uri
        listed = await house.ask(BRAND, "list", "file://")
        assert [str(entry.ref) for entry in listed.items] == [
            "file://brand/guide.md",
            "file://brand/link.md",
            "file://hr/pay.md",
            "file://same.md",
        ]


@pytest.mark.seed("F1", "O14")
async def test_a_listing_of_absolute_addresses_is_judged_like_one_of_relative_ones(roots: Path) -> None:
    """`uris: absolute` changes the spelling that lists show and nothing else."""
    source = FileSource([FileRoot(roots / "one"), FileRoot(roots / "two")], secret=b"k", uris="absolute")
    async with source:
        for pattern in ("file://hr/*", f"file://{roots}/*/hr/*"):
            house = House([ALL, rule("*", "*", pattern, deny=True)], source)
            listed = await house.ask(BRAND, "list", "file://")
            assert [entry.ref.path.removeprefix(f"{roots}/"[1:]) for entry in listed.items] == [
                "one/brand/guide.md",
                "one/same.md",
                "two/same.md",
            ]


@pytest.mark.seed("F1", "O14")
async def test_a_decision_does_not_outlive_the_root_that_a_file_stands_in(roots: Path) -> None:
    """First match wins, and which root matches changes with the disk: decisions are kept, so both ways count."""
    async with files(roots) as source:
        house = House([rule("*", "*", f"file://{roots}/two/*")], source)
        assert isinstance(await house.refused(BRAND, "read", "file://same.md"), Forbidden)
        (roots / "one/same.md").unlink()
        assert (await house.ask(BRAND, "read", "file://same.md")).body == "second"
        (roots / "one/same.md").write_text("first again", encoding="utf-8")
        # The yes was kept and only holds as long as what is read is what it was about.
        house = House([rule("*", "*", f"file://{roots}/one/*")], source)
        assert (await house.ask(BRAND, "read", "file://same.md")).body == "first again"
        (roots / "one/same.md").unlink()
        assert isinstance(await house.refused(BRAND, "read", "file://same.md"), Forbidden)


@pytest.mark.seed("F1", "O14")
async def test_a_public_prefix_stands_for_its_root_in_rules(roots: Path) -> None:
    """`roots: [{path, as: /project}]`: rules are written with the prefix that clients see."""
    async with files(roots, public="/project") as source:
        house = House([ALL, rule("*", "*", "file:///project/hr/*", deny=True)], source)
        for uri in ("file://hr/pay.md", "file:///project/hr/pay.md"):
            assert isinstance(await house.refused(BRAND, "read", uri), Forbidden)
        assert (await house.ask(BRAND, "read", "file:///project/brand/guide.md")).body == "guide"
        outside = await house.refused(BRAND, "read", f"file://{roots}/one/brand/guide.md")
        assert shape(outside) == (
            Forbidden,
            f"Access denied to resource: file://{roots}/one/brand/guide.md",
            {
                "agent": "agent-brand",
                "required_permission": "read",
                "resource": f"file://{roots}/one/brand/guide.md",
                "why": "The path lies outside of what is served: use an address as lists show them",
            },
        )


@pytest.mark.seed("F1", "O14")
async def test_a_rule_may_name_a_root_by_its_real_path_or_by_the_link_to_it(roots: Path) -> None:
    """A root behind a link has two absolute prefixes; a deny that used the other one did nothing."""
    (roots / "linked").symlink_to("one")
    async with FileSource([FileRoot(roots / "linked")], secret=b"k") as source:
        for name in ("linked", "one"):
            denied = rule("*", "*", f"file://{roots}/{name}/hr/*", deny=True)
            house = House([ALL, denied], source)
            for uri in ("file://hr/pay.md", f"file://{roots}/linked/hr/pay.md", f"file://{roots}/one/hr/pay.md"):
                assert isinstance(await house.refused(BRAND, "read", uri), Forbidden), (name, uri)
            exact = House([ALL, rule("*", "*", f"file://{roots}/{name}/hr/p*.md", deny=True)], source)
            assert isinstance(await exact.refused(BRAND, "read", "file://hr/pay.md"), Forbidden)


@pytest.mark.seed("F3", "O14")
@pytest.mark.parametrize("op", ["read", "stat"])
async def test_a_link_is_served_only_if_its_target_may_be_read_too(roots: Path, op: Op) -> None:
    """house.md section 6: a rule holds for every name of a thing."""
    async with files(roots) as source:
        house = House([ALL, rule("agent-brand", "*", "file://hr/*", deny=True, name="hr")], source)
        link = call_of(BRAND, op, "file://brand/link.md")
        with pytest.raises(NotFound):  # as a link to nothing
            await house.policy(link, house.dispatch)
        assert link.trail.rule == "hr"
        assert await house.ask(OPS, op, "file://brand/link.md")
        listed = await house.ask(BRAND, "list", "file://brand")
        assert [entry.name for entry in listed.items] == ["guide.md"]


# -- the words of a refusal


@pytest.mark.seed("O13", "F8")
@pytest.mark.parametrize("uri", ["sop://no/such", "sop://no/%73uch", "SOP://no/such"])
async def test_hidden_is_exactly_like_absent(uri: str) -> None:
    """security.md section 5: same class, text and data, in the caller's own spelling."""
    hidden = sops(ALL, rule("*", "*", "sop://no/*", deny=True, hide=True, why="secret project"))
    open_ = sops()
    for op in ("read", "stat"):
        absent = await open_.refused(LOCAL, op, uri)  # type: ignore[arg-type]
        assert shape(absent) == (NotFound, f"Resource not found: {uri}", {"uri": uri})
        assert shape(await hidden.refused(LOCAL, op, uri)) == shape(absent)  # type: ignore[arg-type]
    assert await hidden.ask(LOCAL, "list", "sop://no") == await open_.ask(LOCAL, "list", "sop://no") == Page(())


@pytest.mark.seed("O13", "F2", "F8")
async def test_hidden_is_like_absent_for_names_that_a_source_refuses(roots: Path) -> None:
    """An extension that is not allowed is refused everywhere alike, or the difference would tell of the rule."""
    async with files(roots) as source:
        house = House([ALL, rule("*", "*", "file://hr/*", deny=True, hide=True)], source)
        for name in ("pay.exe", ".env", "pay.md", "gone.md"):
            here, there = f"file://hr/{name}", f"file://nowhere/{name}"
            hidden, absent = await house.refused(BRAND, "read", here), await house.refused(BRAND, "read", there)
            assert type(hidden) is type(absent)
            assert repr(shape(hidden)).replace(here, there) == repr(shape(absent))


@pytest.mark.seed("P10", "T6", "O13")
async def test_a_hidden_tool_or_prompt_is_exactly_like_an_unknown_one() -> None:
    """P10: sensitive prompts can be hidden; so can tools."""
    hide = rule("*", "*", "tool://*", "prompt://*", deny=True, hide=True)
    hidden, open_ = sops(ALL, hide), sops()
    for op, uri in (("invoke", "tool://wipe"), ("render", "prompt://wipe"), ("complete", "prompt://wipe")):
        asked = {"argument": "wipe/x", "prefix": "", "given": {}} if op == "complete" else {}
        unknown = await open_.refused(BRAND, op, uri, **asked)  # type: ignore[arg-type]
        assert shape(await hidden.refused(BRAND, op, uri, **asked)) == shape(unknown)  # type: ignore[arg-type]


@pytest.mark.seed("O10", "O13")
async def test_what_is_hidden_can_be_watched_like_what_does_not_exist() -> None:
    """A subscription to something absent is accepted and silent; a refusal would tell the two apart."""
    house = sops(ALL, rule("*", "*", "sop://no/*", deny=True, hide=True), HR)
    for pattern in ("sop://no/such", "sop://no/*", "sop://absent", "sop://absent/*"):
        glob = Glob.at(Ref.parse(pattern)) if "*" not in pattern else Glob(pattern)
        assert await house.ask(BRAND, "watch", pattern, glob=glob) is None
    for event in ("sop://no/such", "sop://no/other"):
        assert not house.policy.allows(BRAND, "watch", Ref.parse(event))
    refused = await house.refused(BRAND, "watch", "sop://hr/*", glob=Glob("sop://hr/*"))
    assert (type(refused), refused.data["resource"]) == (Forbidden, "sop://hr/*")


@pytest.mark.seed("O13")
async def test_who_selected_no_agent_is_told_how_to() -> None:
    """house.md section 6: with a policy and no `--as` a refusal says so; nobody else is told."""
    house = sops(rule("agent-brand", "read", "sop://brand/*"))
    local = await house.refused(LOCAL, "read", "sop://brand/guide")
    assert local.data["hint"] == "start the server with --as AGENT to act as an agent of the configuration"
    assert "hint" not in (await house.refused(OPS, "read", "sop://brand/guide")).data


class Failing:
    """A source that raises one thing."""

    def __init__(self, scheme: str, fault: Callable[[Ref], Exception]) -> None:
        self.scheme, self._fault = scheme, fault

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        raise self._fault(scope)

    async def stat(self, ref: Ref) -> Entry:
        raise self._fault(ref)

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        raise self._fault(ref)


@pytest.mark.seed("O13")
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (lambda ref: NotFound("gone fishing", uri=str(ref)), "Resource not found: crm://A%41"),
        (lambda ref: Forbidden("the upstream says no"), "Access denied to resource: crm://A%41"),
        (lambda ref: RateLimited(retry_after=1.0), "Rate limit exceeded"),
        (lambda ref: SourceUnavailable("connection refused", retry_after=2.0), "Source unavailable: crm"),
    ],
)
async def test_the_four_messages_of_the_seeds_word_for_word(fault: Any, told: str) -> None:
    """Seed 003 writes them out; whatever words a source finds, these go out."""
    refused = await House([], Failing("crm", fault)).refused(BRAND, "read", "crm://A%41")
    assert refused.message == told


@pytest.mark.seed("O13", "A12")
async def test_the_facts_of_a_failure_are_kept_in_the_callers_spelling() -> None:
    """A12: uri, size and limit; the uri is the one that the client sent (F1)."""

    def large(ref: Ref) -> Exception:
        return TooLarge(f"{ref} has 9 bytes", uri=str(ref), size=9, limit=5)

    refused = await House([], Failing("crm", large)).refused(BRAND, "read", "crm://%41")
    assert shape(refused) == (TooLarge, "crm://%41 has 9 bytes", {"uri": "crm://%41", "size": 9, "limit": 5})

    down = await House([], Failing("crm", lambda ref: SourceUnavailable("no route", retry_after=2.0))).refused(
        BRAND, "read", "crm://a"
    )
    assert isinstance(down, SourceUnavailable)
    assert (down.retry_after, dict(down.data)) == (2.0, {"why": "no route", "source": "crm"})


async def test_what_a_tool_raises_is_the_tools_business() -> None:
    """A tool's NotFound is about something else than the tool."""

    async def handler(ctx: Any, arguments: Any) -> str:
        raise NotFound("Resource not found: sop://x", uri="sop://x")

    house = sops()
    hints = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
    info = ToolInfo(name="t", description="d", input_schema={"type": "object"}, hints=hints)
    house.tools.register(Tool(info, handler))
    refused = await house.refused(BRAND, "invoke", "tool://t")
    assert shape(refused) == (NotFound, "Resource not found: sop://x", {"uri": "sop://x"})


@pytest.mark.seed("A7")
async def test_the_rule_that_decided_is_noted_for_the_audit() -> None:
    """The trail names the rule, for a yes and for a no."""
    house = sops(ALL, HR)
    yes, no = call_of(BRAND, "read", "sop://brand/guide"), call_of(BRAND, "read", "sop://hr/pay")
    await house.policy(yes, house.dispatch)
    with pytest.raises(Forbidden):
        await house.policy(no, house.dispatch)
    assert (yes.trail.rule, no.trail.rule) == ("policy[0]", "policy[1]")


# -- patterns, templates, completions


@pytest.mark.seed("O10", "O14")
@pytest.mark.parametrize(
    ("pattern", "accepted"),
    [("sop://*", True), ("sop://brand/*", True), ("**", True), ("sop://hr/*", False), ("doc://*", False),
     ("sop://brand/guide", True), ("sop://hr/pay", False), ("sop://hr/deep/*", False), ("sop://b*", True)],
)  # fmt: skip
async def test_a_watch_on_a_pattern_is_accepted_if_something_below_may_be_watched(pattern: str, accepted: bool) -> None:
    """O10: the policy is asked at subscribe and again at every delivery."""
    house = sops(rule("*", "watch", "sop://*"), rule("*", "watch", "sop://hr/*", deny=True))
    glob = Glob(pattern) if "*" in pattern else Glob.at(Ref.parse(pattern))
    if accepted:
        await house.ask(BRAND, "watch", pattern, glob=glob)
    else:
        assert isinstance(await house.refused(BRAND, "watch", pattern, glob=glob), Forbidden)


@pytest.mark.seed("F1", "O10")
async def test_a_watch_in_the_absolute_form_is_judged_by_what_lies_below(roots: Path) -> None:
    """Also in the second root. One that begins above the roots is refused: its events would tell where they are."""
    async with files(roots) as source:
        house = House([rule("*", "watch", "file://hr/*")], source)
        for pattern in (f"file://{roots}/two/hr/*", f"file://{roots}/one/h*"):
            await house.ask(BRAND, "watch", pattern, glob=Glob(pattern))
        for pattern in (f"file://{roots}/two/brand/*", "file:///*", "file:///**", f"file://{roots}/*"):
            assert isinstance(await house.refused(BRAND, "watch", pattern, glob=Glob(pattern)), Forbidden)


def offering(*rules: Rule) -> House:
    templates = {
        "brand/{name}": TemplateBody(text="{name}", values={"name": ["logo", "tone"]}),
        "hr/{person}": TemplateBody(text="{person}", values={"person": ["kim"]}),
    }
    return House(rules, MemorySource("sop", SOPS, templates=templates))


@pytest.mark.seed("A3", "B2")
async def test_templates_are_seen_by_who_may_list_something_they_stand_for() -> None:
    """A3 under B2: one policy over templates too."""
    seen = await offering(rule("*", "list", "sop://brand/*")).ask(BRAND, "templates", "*")
    assert [template.uri_template for template in seen] == ["sop://brand/{name}"]
    assert len(await offering().ask(BRAND, "templates", "*")) == 2
    assert await offering(rule("*", "read", "**")).ask(BRAND, "templates", "*") == []


def completion(argument: str, template: str | None = None, **given: str) -> dict[str, Any]:
    return {"argument": argument, "prefix": "", "given": given, "template": template}


@pytest.mark.seed("A3", "B2")
async def test_completions_name_only_what_the_caller_may_list() -> None:
    """house.md section 6: completion needs `list`."""
    house = offering(rule("*", "list", "sop://brand/*"))
    paths = await house.ask(BRAND, "complete", "sop://", **completion("path"))
    assert paths == ["brand/guide", "brand/tone"]
    assert await house.ask(BRAND, "complete", "sop://", **completion("name", "sop://brand/{name}")) == ["logo", "tone"]
    unseen = await house.refused(BRAND, "complete", "sop://", **completion("person", "sop://hr/{person}"))
    absent = await house.refused(BRAND, "complete", "sop://", **completion("person", "sop://rh/{person}"))
    assert unseen.message.replace("hr", "rh") == absent.message, "a template that is not for him is none"
    everything = await offering().ask(BRAND, "complete", "sop://", **completion("path"))
    assert everything == sorted(SOPS)


@pytest.mark.seed("A3", "B2")
@pytest.mark.parametrize(
    ("argument", "template"),
    [("path", "sop://brand/{+path}"), ("path", "sop://brand/{name}"), ("person", "sop://brand/{person}"),
     ("path", "sop://brand/x{path}"), ("path", "doc://{+path}")],
)  # fmt: skip
async def test_a_template_of_the_clients_own_does_not_launder_names(argument: str, template: str) -> None:
    """The source completes without looking at the template: judged by `sop://brand/…`, `hr/pay` would come out."""
    house = offering(rule("*", "list", "sop://brand/*"))
    refused = await house.refused(BRAND, "complete", "sop://", **completion(argument, template))
    assert isinstance(refused, InvalidParams) and "pay" not in refused.message


@pytest.mark.seed("A3", "B2")
async def test_two_templates_with_one_variable_do_not_lend_each_other_names() -> None:
    """Values of one variable come mixed from a source, so each has to be visible in every template with it."""
    templates = {
        "brand/{name}": TemplateBody(text="", values={"name": ["logo"]}),
        "hr/{name}": TemplateBody(text="", values={"name": ["kim"]}),
    }
    house = House([rule("*", "list", "sop://brand/*")], MemorySource("sop", {}, templates=templates))
    assert await house.ask(BRAND, "complete", "sop://", **completion("name", "sop://brand/{name}")) == []


@pytest.mark.seed("A3")
async def test_a_completed_value_is_data_and_not_a_piece_of_an_address() -> None:
    """Names with % ? # { are encoded before they are judged, and completed as they are."""
    names = ["100%", "what?", "a#b", "{curly}", "br%61nd", "sp ace", "두 번째"]
    allow = [rule("*", "list", "sop://x/*"), rule("*", "list", "sop://x/br%2561nd", deny=True)]
    house = House(allow, MemorySource("sop", {f"x/{name}": "" for name in names}))
    paths = await house.ask(BRAND, "complete", "sop://", **completion("path"))
    assert set(paths) == {f"x/{name}" for name in names} - {"x/br%61nd"}


@pytest.mark.seed("P2", "P10")
async def test_a_prompt_that_may_not_be_rendered_completes_nothing() -> None:
    """Whether it exists or not, so that completion tells no names."""
    house = sops(rule("*", "read", "**"))
    for name in ("unknown", "other"):
        asked = {"argument": f"{name}/x", "prefix": "", "given": {}}
        assert await house.ask(BRAND, "complete", f"prompt://{name}", **asked) == []
    assert house.reached == []


# -- the compiled rules against a naive reading of them

NAMES = ("hr", "brand", "h%2A", "한")
SCHEMES = ("sop", "file")


class TwoRoots:
    """`file` over two roots, known as /srv/one and /shared. Which root has a path is seen from its length."""

    exposed = SCHEMES

    def __init__(self) -> None:
        self._files = FileAddresses(
            "file", [FileRoot(Path("/srv/one"), "/srv/one"), FileRoot(Path("/srv/two"), "/shared")]
        )
        self.naming = frozenset[str]()

    def canonical(self, ref: Ref) -> Ref:
        return self._files.canonical(ref) if ref.scheme == "file" else ref

    def spelled(self, ref: Ref) -> Ref:
        if ref.scheme != "file":
            return ref
        where = self._files.where(ref)
        root = where.roots[0] if len(where.roots) == 1 else len(where.names) % 2
        return self._files.absolute(where.names, root) or ref

    def whole(self, ref: Ref) -> Ref | None:
        return None

    def refuses(self, ref: Ref) -> None:
        return None

    def templates(self) -> list[Template]:
        return []

    def labelled(self, entry: Entry) -> Entry:
        return entry

    def spellings(self, ref: Ref) -> set[Ref]:
        return {ref.bare, self.spelled(ref).bare}


ADDRESSES = TwoRoots()
PATHS = [path for depth in range(4) for path in product(("hr", "brand", "h*", "한"), repeat=depth)]
REFS = [
    *(Ref("sop", path) for path in PATHS),
    *(Ref("file", path, params) for path in PATHS if path for params in ((), (("root", "2"),))),
]


def patterns() -> st.SearchStrategy[str]:
    part = st.sampled_from((*NAMES, "*", "**", "h*", "*r", "b*d"))
    start = st.sampled_from(
        ("sop://", "file://", "*://", "file:///", "file:///srv/", "file:///srv/one/", "file:///shared/")
    )
    texts = st.builds(lambda s, parts: s + "/".join(parts), start, st.lists(part, max_size=3))
    return st.one_of(st.just("**"), texts.filter(_is_pattern))


def _is_pattern(text: str) -> bool:
    try:
        Glob(text)
    except OctavoError:
        return False
    return True


def rulebooks() -> st.SearchStrategy[list[Rule]]:
    one = st.builds(
        lambda who, may, what, deny, hide: rule(who, may, *what, deny=deny, hide=deny and hide),
        st.sampled_from(("*", "agent-brand", "agent-ops", "role:marketing")),
        st.sampled_from(("*", "read", "list", "read list")),
        st.lists(patterns(), min_size=1, max_size=3),
        st.booleans(),
        st.booleans(),
    )
    return st.lists(one, min_size=1, max_size=6)


def naive(rules: Iterable[Rule], who: Principal, verb: Verb, spellings: set[Ref]) -> tuple[bool, bool]:
    """Allowed, hidden: read off the rules one by one, as the documentation says it."""
    fits = [
        one
        for one in rules
        if (one.may is None or verb in one.may)
        and any(w in ("*", who.id) or (w.removeprefix("role:") in who.roles and w.startswith("role:")) for w in one.who)
        and any(glob.matches(ref) for glob in one.what for ref in spellings)
    ]
    denies = [one for one in fits if not one.allow]
    return bool(fits) and not denies, any(one.hide for one in denies)


@settings(max_examples=300)
@given(rules=rulebooks(), who=st.sampled_from((BRAND, OPS)), verb=st.sampled_from(("read", "list")))
@pytest.mark.seed("O14", "B2")
def test_the_compiled_rules_say_what_a_naive_reading_says(rules: list[Rule], who: Principal, verb: Verb) -> None:
    """Each example decides more than two hundred addresses, twice: computed, and remembered."""
    policy = Policy(rules, ADDRESSES)
    for ref in REFS:
        expected = naive(rules, who, verb, ADDRESSES.spellings(ref))
        for _ in range(2):
            decision = policy.decide(who, verb, ref)
            assert (decision.allowed, decision.hidden) == expected, ref


@settings(max_examples=500)
@given(rules=rulebooks(), pattern=patterns())
@pytest.mark.seed("O10", "O14")
def test_may_reach_never_denies_what_something_below_allows(rules: list[Rule], pattern: str) -> None:
    """Soundness: a wrong no would lose events, templates and listings; a wrong yes only costs work."""
    policy, glob = Policy(rules, ADDRESSES), Glob(pattern)
    for ref in REFS:
        if glob.exact and ref.params:
            continue  # one address is asked about, and a file that another root hides has an address of its own
        if any(glob.matches(one) for one in ADDRESSES.spellings(ref)) and policy.allows(BRAND, "list", ref):
            assert policy.may_reach(BRAND, "list", glob), ref
            break


@settings(max_examples=200)
@given(rules=rulebooks(), ref=st.sampled_from(REFS))
def test_may_reach_is_exact_for_one_address(rules: list[Rule], ref: Ref) -> None:
    """For a single address there is nothing to guess."""
    policy = Policy(rules, ADDRESSES)
    assert policy.may_reach(BRAND, "list", Glob.at(ref.bare)) is policy.allows(BRAND, "list", ref.bare)


@settings(max_examples=200)
@given(rules=rulebooks(), scheme=st.sampled_from(SCHEMES))
def test_a_listing_that_shows_all_hides_nothing_and_one_that_shows_none_nothing(rules: list[Rule], scheme: str) -> None:
    """`sight` lets a listing skip decisions and sources, so it may only be sure of what is so."""
    policy = Policy(rules, ADDRESSES)
    shown = {policy.allows(BRAND, "list", ref) for ref in REFS if ref.scheme == scheme}
    sight = policy.sight(BRAND, Ref(scheme))
    assert sight == "some" or shown == {sight == "all"}


# -- bounds


def test_decisions_kept_are_bounded_in_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients choose addresses, so they must not choose how much is remembered."""
    monkeypatch.setattr(decisions, "MEMO_SIZE", 100)
    monkeypatch.setattr(visibility, "SIGHTS", 10)
    policy = Policy([ALL], ADDRESSES)
    for number in range(1000):
        policy.decide(BRAND, "read", Ref("sop", (f"x{number}",)))
        policy.sight(BRAND, Ref("sop", (f"x{number}",)))
        assert len(policy._memo) <= 100 and len(policy._sights) <= 10  # pyright: ignore[reportPrivateUsage]
    before = len(policy._memo)  # pyright: ignore[reportPrivateUsage]
    assert policy.decide(BRAND, "read", Ref("sop", ("x" * 255, "y" * 255))).allowed
    assert len(policy._memo) == before  # pyright: ignore[reportPrivateUsage]


def test_a_decision_says_what_the_seeds_want_to_show() -> None:
    """`octavo explain` prints it: the verdict, the rule by its place, the reason, the pattern."""
    decision = sops(ALL, HR).policy.decide(BRAND, "read", Ref.parse("sop://hr/pay"))
    assert decision == Decision(False, "policy[1]", "HR records are not for agents", False, "sop://hr/*")
