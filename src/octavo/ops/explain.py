"""What the policy says, asked from outside: why, as expected, and differently from before. Nothing is done by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from octavo.app.rules import labels_of, rules_of
from octavo.config.load import Loaded
from octavo.config.table import Outcome, PolicyTable
from octavo.config.units import written_time
from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.ports.chain import page_of
from octavo.core.ref import Ref
from octavo.core.values import VERBS, Entry, Principal, Verb
from octavo.pipeline.policy.conditions import Condition
from octavo.pipeline.policy.facts import metadata_at
from octavo.pipeline.policy.rules import CLOSED, Decision, Depends, Facts, Rule, Truth, Verdict, stricter

if TYPE_CHECKING:
    from octavo.app.composition import Composed
    from octavo.pipeline.policy.fold import Policy

ANYBODY: Final = "anybody else"  # of whom no rule speaks by name or role
MOST: Final = 2000  # existing addresses of one scheme that two policies are compared on
_PAGE: Final = 200
_NOBODY: Final = Principal("")
_SURFACES: Mapping[str, tuple[Verb, ...]] = {"tool": ("invoke", "approve"), "prompt": ("render",)}
ACTS: Final[tuple[Verb, ...]] = ("invoke", "write", "delete")
_RESOURCES: Final = tuple(verb for verb in VERBS if verb not in ("invoke", "render", "admin"))


class AccessQuestion(Struct, frozen=True):
    who: str
    may: Verb
    what: str
    metadata: Mapping[str, Any] | None = None  # instead of those that the resource has
    arguments: Mapping[str, Any] | None = None
    at: float | None = None  # instead of now


class ConditionOutcome(NamedTuple):
    """A condition that a rule had, and whether it held; None: it could not be known."""

    rule: str
    allow: bool
    condition: Condition
    held: Truth


class Explained(NamedTuple):
    decision: Decision
    conditions: Sequence[ConditionOutcome]
    people: int | None = None  # who have to allow it each time; 0: nobody; None: no rule says

    @property
    def outcome(self) -> Outcome:
        return "approve" if self.people else _outcome(self.decision)


async def explain(composition: Composed, question: AccessQuestion) -> Explained:
    """Raises what is wrong with the address, and InvalidParams for an agent that there is not."""
    policy, who = composition.policy, _principal(composition, question.who)
    ref = await composition.dispatch.name(Ref.parse(question.what))
    verdict = policy.verdict(who, question.may, ref)
    if isinstance(verdict, Decision):
        return Explained(verdict, (), _people(question.may, verdict))
    known = [question.metadata]
    if question.metadata is None:
        call = composition.calls.at("stat", _NOBODY, question.what)._replace(ref=ref)
        known = [*await metadata_at(call, ref, composition.dispatch.whole(ref.bare), composition.behind)]
    told = Explained(CLOSED, ())
    for metadata in known:
        facts = policy.timed(Facts(metadata, question.arguments, question.at))
        clauses = (*verdict.denies, *verdict.allows)
        asked = [
            ConditionOutcome(one.decision.rule, one.decision.allowed, one.condition, one.condition.holds(facts))
            for one in clauses
        ]
        decision = verdict.decide(facts)
        if not decision.allowed:
            return Explained(decision, asked)
        if not told.decision.allowed or stricter(told.decision, decision) is decision:
            told = Explained(decision, asked, _people(question.may, decision))
    return told


class UnexpectedDecision(NamedTuple):
    """A row of a table that the policy does not decide as expected."""

    line: int
    question: AccessQuestion
    expected: Outcome
    got: Outcome
    rule: str


async def tested(composition: Composed, table: PolicyTable) -> tuple[int, list[UnexpectedDecision]]:
    """How many decisions were looked at, and those that are not as they should be."""
    count, wrong = 0, list[UnexpectedDecision]()
    for number, row in enumerate(table.rows):
        for question in (
            AccessQuestion(who, may, what, row.metadata, row.arguments, row.at)
            for who in row.who
            for may in row.may
            for what in row.what
        ):
            count += 1
            try:
                told = await explain(composition, question)
                got, rule = told.outcome, told.decision.rule
            except OctavoError as fault:
                got, rule = "deny", fault.message
            if got != row.expect:
                wrong.append(UnexpectedDecision(table.line(number), question, row.expect, got, rule))
    return count, wrong


class ChangedDecision(NamedTuple):
    who: str
    may: Verb
    what: str
    old: str
    new: str


class Otherwise(NamedTuple):
    """What the operator says of a resource, by a label, or of approval, by a key of the configuration; "" where nothing
    is said."""

    key: str
    what: str
    old: str
    new: str


async def differences(composition: Composed, old: Loaded, new: Loaded) -> tuple[list[ChangedDecision], list[Otherwise]]:
    """What is decided otherwise: for every agent, role and anybody else, on everything that exists and on what the
    patterns of both speak of. What hangs on conditions is compared by the conditions. Then labels and approval."""
    before, after = rules_of(old), rules_of(new)
    policies = composition.policy.under(before), composition.policy.under(after)
    existing = await _existing(composition)
    refs = [*dict.fromkeys([*existing, *_spoken_of(composition, _patterns((*before, *after)))])]
    found: list[ChangedDecision] = []
    for who, was, now in _everybody(old, new):
        for ref in refs:
            for verb in _SURFACES.get(ref.scheme, _RESOURCES):
                one, other = _said(policies[0], was, verb, ref), _said(policies[1], now, verb, ref)
                if one != other:
                    found.append(ChangedDecision(who, verb, str(existing.get(ref, ref)), one, other))
    return found, [*_labelled_otherwise(composition, old, new, existing), *_asked_otherwise(old, new)]


def _labelled_otherwise(
    composition: Composed, old: Loaded, new: Loaded, existing: Mapping[Ref, Ref]
) -> Iterator[Otherwise]:
    if old.config.labels == new.config.labels:
        return
    from octavo.core.labels import LEVELS, Labels

    labels = [labels_of(loaded) or Labels() for loaded in (old, new)]
    patterns = [Glob(what) for loaded in (old, new) for label in loaded.config.labels for what in label.what]
    for ref in dict.fromkeys([*existing, *_spoken_of(composition, patterns)]):
        spellings, entry = (ref, composition.dispatch.spelled(ref)), Entry(ref=ref, name="")
        was, now = (one.on(entry, spellings).metadata for one in labels)
        for key in LEVELS:
            if was.get(key) != now.get(key):
                yield Otherwise(key, str(existing.get(ref, ref)), str(was.get(key, "")), str(now.get(key, "")))


def _asked_otherwise(old: Loaded, new: Loaded) -> Iterator[Otherwise]:
    was, now = (loaded.config.approval.model_dump(mode="json", exclude_none=True) for loaded in (old, new))
    for key in dict.fromkeys([*was, *now]):
        if was.get(key) != now.get(key):
            yield Otherwise(f"approval.{key}", "", _as_written(was.get(key, "")), _as_written(now.get(key, "")))


def _as_written(value: str | float) -> str:
    return value if isinstance(value, str) else written_time(value)


def _outcome(decision: Decision) -> Outcome:
    return "allow" if decision.allowed else "hidden" if decision.hidden else "deny"


def _principal(composition: Composed, who: str) -> Principal:
    return Principal(who, frozenset((who[5:],))) if who.startswith("role:") else composition.identity.launched(who)


def _said(policy: Policy, who: Principal | None, verb: Verb, ref: Ref) -> str:
    return "unknown agent" if who is None else _in_words(verb, policy.verdict(who, verb, ref))


def _people(verb: Verb, decision: Decision) -> int | None:
    """Nobody is ever asked about what changes nothing."""
    return decision.people if decision.allowed and verb in ACTS else None


def _in_words(verb: Verb, verdict: Verdict) -> str:
    if isinstance(verdict, Depends):
        clauses = [f"{_in_words(verb, one.decision)} {one.condition}" for one in (*verdict.denies, *verdict.allows)]
        return "; ".join([*clauses, f"else {_in_words(verb, verdict.otherwise)}"])
    return _outcome(verdict) + asking(_people(verb, verdict))


def asking(people: int | None) -> str:
    """What is added to `allow`, in words."""
    if people is None:
        return ""
    return " without asking" if people == 0 else " after a human has" if people == 1 else f" after {people} people have"


def _everybody(old: Loaded, new: Loaded) -> Iterator[tuple[str, Principal | None, Principal | None]]:
    """A name, and who that is under both; None where there is no such agent."""
    configs = old.config, new.config
    for agent in dict.fromkeys(name for config in configs for name in config.agents):
        was, now = (
            Principal(agent, frozenset(config.agents[agent].roles)) if agent in config.agents else None
            for config in configs
        )
        yield agent, was, now
    named = dict.fromkeys(who for config in configs for rule in config.policy for who in rule.who)
    known = {agent for config in configs for agent in config.agents}
    for who in (one for one in named if one not in known and one != "*"):
        principal = Principal(who, frozenset((who[5:],)) if who.startswith("role:") else frozenset())
        yield who, principal, principal
    yield ANYBODY, Principal(ANYBODY), Principal(ANYBODY)


def _patterns(rules: Iterable[Rule]) -> Iterator[Glob]:
    return (glob for rule in rules for glob in rule.what)


def _spoken_of(composition: Composed, patterns: Iterable[Glob]) -> Iterator[Ref]:
    """Where a pattern begins, and a name below it that nothing else is about."""
    schemes = (*composition.dispatch.exposed, *_SURFACES)
    for glob in dict.fromkeys(patterns):
        for scheme in schemes if glob.scheme == "*" else (glob.scheme,):
            ref = glob.literal._replace(scheme=scheme)
            yield ref
            if not glob.exact:
                yield ref._replace(segments=(*ref.segments, "*"))


async def _existing(composition: Composed) -> dict[Ref, Ref]:
    """What rules speak of, and how lists spell it."""
    found = dict[Ref, Ref]()
    for scheme in (*composition.dispatch.exposed, *_SURFACES):
        cursor: str | None = None
        for _ in range(MOST // _PAGE):
            call = composition.calls.listing(_NOBODY, Ref(scheme), cursor)._replace(limit=_PAGE)
            try:
                page = page_of(await composition.behind(call))
            except OctavoError:
                break  # what cannot be asked now is compared by the patterns alone
            found |= {composition.canonical(entry.ref): entry.ref for entry in page.items}
            cursor = page.cursor
            if cursor is None:
                break
    return found
