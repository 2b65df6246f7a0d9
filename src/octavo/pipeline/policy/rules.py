"""Rules of the policy, and what they decide of an address: pure values and functions.

Addresses come here with all their spellings, because a rule may use any of them. Deny wins; of several
denies one that hides wins, so that what is concealed stays so; of several allows the one that wants most people
asked, then one that says that nobody is; else the first in the configuration.

Where rules have conditions an address alone may not settle it. Then the verdict is what it depends on, found as
fast and kept like a decision, and the facts of each request decide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, final

from msgspec import Struct

from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.ref import Ref
from octavo.core.values import Principal, Verb

if TYPE_CHECKING:
    from octavo.pipeline.policy.conditions import Condition

Truth: TypeAlias = bool | None


class Facts(NamedTuple):
    """What is known when a decision is made; None is what nobody could find out."""

    metadata: Mapping[str, Any] | None = None
    arguments: Mapping[str, Any] | None = None
    at: float | None = None  # seconds since 1970; None: now


UNKNOWN: Final = Facts()


class Rule(Struct, frozen=True):
    """One entry of `policy:`. `who` holds agent ids, `role:NAME` or `*`."""

    who: tuple[str, ...]
    may: frozenset[Verb] | None  # None: everything
    what: tuple[Glob, ...]
    allow: bool = True
    why: str = ""
    hide: bool = False
    name: str = ""  # how `explain` and the audit call it: `policy[2]`
    condition: Condition | None = None
    people: int | None = None  # that have to allow each act; 0: nobody, whatever the act; None: as is usual for it

    def concerns(self, principal: Principal, verb: Verb) -> bool:
        if self.may is not None and verb not in self.may:
            return False
        return any(
            who in ("*", principal.id) or (who.startswith("role:") and who[5:] in principal.roles) for who in self.who
        )


@final
class Decision(NamedTuple):
    allowed: bool
    rule: str
    why: str = ""
    hidden: bool = False
    pattern: str = ""  # what the rule speaks of; the seeds show it to the refused agent
    people: int | None = None  # see `Rule`


OPEN = Decision(True, "no policy", "no policy is configured")
CLOSED = Decision(False, "default", "no rule allows it")


class Clause(NamedTuple):
    """A decision that is made if a condition says so."""

    condition: Condition
    decision: Decision


class Depends(NamedTuple):
    """What an address leaves open: the first deny that may apply, else the first allow that does, else `otherwise`."""

    denies: tuple[Clause, ...]
    otherwise: Decision
    allows: tuple[Clause, ...]  # only those that say something else than `otherwise`

    def decide(self, facts: Facts) -> Decision:
        """What is not known allows nothing, and has people asked where it might have to."""
        for condition, decision in self.denies:
            if condition.holds(facts) is not False:
                return decision
        truths = [(decision, condition.holds(facts)) for condition, decision in self.allows]
        sure = next((decision for decision, held in truths if held), self.otherwise)
        if not sure.allowed:
            return sure
        asked = sure.people or 0
        return next((one for one, held in truths if held is None and (one.people or 0) > asked), sure)

    def at_best(self, facts: Facts) -> Decision:
        """The same if everything that is not known were in favour."""
        for condition, decision in self.denies:
            if condition.holds(facts):
                return decision
        truths = [(decision, condition.holds(facts)) for condition, decision in self.allows]
        sure = next((one for one, held in truths if held or (held is None and not one.people)), self.otherwise)
        return sure if sure.allowed else next((one for one, held in truths if held is None), sure)

    @property
    def asks(self) -> bool:
        """Whether people may have to be asked."""
        return any(one.people for one in (self.otherwise, *(clause.decision for clause in self.allows)))


Verdict: TypeAlias = Decision | Depends


class _Pattern(NamedTuple):
    rank: tuple[bool, int, int]  # the least one speaks for all that match
    glob: Glob
    decision: Decision
    condition: Condition | None

    def covers(self, spellings: Collection[Ref]) -> bool:
        return any(self.glob.matches(ref) for ref in spellings)


class Rulebook:
    """The rules of one principal for one verb, found by the fixed beginnings of their patterns.

    A thousand rules on as many folders cost what the two or three on one folder cost.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._denies: list[_Pattern] = []
        self._allows: list[_Pattern] = []
        self._by_head: dict[tuple[str, tuple[str, ...]], list[_Pattern]] = {}
        lengths: dict[str, set[int]] = {}
        for number, rule in enumerate(rules):
            for glob in rule.what:
                decision = Decision(rule.allow, rule.name, rule.why, rule.hide, glob.text, rule.people)
                unasked = 1 if rule.people is None else -rule.people
                pattern = _Pattern((not rule.hide, unasked, number), glob, decision, rule.condition)
                (self._allows if rule.allow else self._denies).append(pattern)
                head = glob.literal.segments
                self._by_head.setdefault((glob.scheme, head), []).append(pattern)
                lengths.setdefault(glob.scheme, set()).add(len(head))
        self._lengths = {scheme: sorted(found) for scheme, found in lengths.items()}

    def decide(self, spellings: Collection[Ref], taken: Collection[Ref] = ()) -> Verdict:
        """`taken` are spellings that mean something else as well: what denies that, denies this."""
        denies: list[_Pattern] = []
        allows: list[_Pattern] = []
        for ref in spellings:
            for pattern in self._speaking_of(ref):
                (allows if pattern.decision.allowed else denies).append(pattern)
        for ref in taken:
            denies += [pattern for pattern in self._speaking_of(ref) if not pattern.decision.allowed]
        decisive = denies or allows
        if all(pattern.condition is None for pattern in decisive):
            return min(decisive, key=_rank).decision if decisive else CLOSED
        return _depends(sorted(denies, key=_rank), sorted(allows, key=_rank))

    def _speaking_of(self, ref: Ref) -> Iterator[_Pattern]:
        names = ref.segments
        for scheme in (ref.scheme, "*"):
            for length in self._lengths.get(scheme, ()):
                if length > len(names):
                    break
                for pattern in self._by_head.get((scheme, names[:length]), ()):
                    if pattern.glob.matches(ref):
                        yield pattern

    def allows_all(self, scheme: str) -> bool:
        """Whether nothing of a scheme is kept back. May be False although it is so."""
        if any(pattern.glob.scheme in ("*", scheme) for pattern in self._denies):
            return False
        everything = Ref(scheme)
        return any(
            pattern.condition is None and pattern.glob.subtree and pattern.glob.matches(everything)
            for pattern in self._allows
        )

    def allows_every(self, glob: Glob, canonical: Callable[[Ref], Ref]) -> bool:
        """Whether nothing that `glob` covers is kept back. May be False although it is so."""
        above = _known(glob.literal, canonical)
        if any(_may_overlap(deny.glob, glob, above, canonical) for deny in self._denies):
            return False
        return any(
            allow.condition is None and (allow.glob == glob or (allow.glob.subtree and allow.covers(above)))
            for allow in self._allows
        )

    def kept_back(self, spellings: Collection[Ref], facts: Facts, *, asking: bool) -> Decision | None:
        """Why not everything at and below an address is allowed, whether or not it is there yet; None where it is.
        `asking`: what people have to be asked about first is not allowed."""
        for pattern in (*self._denies, *(one for one in self._allows if asking and one.decision.people)):
            sure_not = pattern.condition is not None and pattern.condition.holds(facts) is False
            if not sure_not and any(map(pattern.glob.reaches, spellings)):
                return pattern.decision
        for allow in self._allows:
            sure = allow.condition is None or allow.condition.holds(facts)
            if sure and allow.glob.subtree and allow.covers(spellings):
                return None
        return CLOSED

    def may_reach(self, glob: Glob, canonical: Callable[[Ref], Ref]) -> bool:
        """False only if no address that `glob` covers, in any of its spellings, is allowed.

        An absolute address lies in one root, so it has one relative spelling; a relative one may stand in
        any root, so nothing is concluded from absolute rules that happen to deny it in one of them.
        """
        above = _known(glob.literal, canonical)
        if any(deny.condition is None and deny.glob.subtree and deny.covers(above) for deny in self._denies):
            return False
        return any(_may_overlap(allow.glob, glob, above, canonical) for allow in self._allows)


def _rank(pattern: _Pattern) -> tuple[bool, int, int]:
    return pattern.rank


def _depends(denies: Sequence[_Pattern], allows: Sequence[_Pattern]) -> Verdict:
    """By rank. What stands behind a rule without a condition is never asked."""
    asked: list[Clause] = []
    for pattern in denies:
        if pattern.condition is None:
            return Depends(tuple(asked), pattern.decision, ()) if asked else pattern.decision
        asked.append(Clause(pattern.condition, pattern.decision))
    plain = next((pattern.decision for pattern in allows if pattern.condition is None), CLOSED)
    clauses: list[Clause] = []
    for pattern in allows:
        if pattern.condition is None:
            break
        if not plain.allowed or pattern.decision.people != plain.people:
            clauses.append(Clause(pattern.condition, pattern.decision))
    return Depends(tuple(asked), plain, tuple(clauses)) if asked or clauses else plain


def stricter(one: Decision, other: Decision) -> Decision:
    """Of two that allow, the one that wants more people asked. Nobody is asked only where none leaves that open."""
    return min(one, other, key=lambda decision: 0 if decision.people is None else -decision.people or 1)


def strictest(decisions: Iterable[Decision]) -> Decision:
    """The first that refuses, else the one that wants most people asked."""
    told: Decision | None = None
    for decision in decisions:
        if not decision.allowed:
            return decision
        told = decision if told is None else stricter(told, decision)
    return told or CLOSED


def _known(literal: Ref, canonical: Callable[[Ref], Ref]) -> tuple[Ref, ...]:
    """The fixed beginning of a pattern, and its relative spelling if it has one for sure."""
    if not literal.absolute:
        return (literal,)
    try:
        return (literal, canonical(literal).bare)
    except OctavoError:  # outside the roots, or above them
        return (literal,)


def _may_overlap(rule: Glob, glob: Glob, above: tuple[Ref, ...], canonical: Callable[[Ref], Ref]) -> bool:
    if "*" not in (rule.scheme, glob.scheme) and rule.scheme != glob.scheme:
        return False
    mine = _known(rule.literal, canonical)
    comparable = [(one, other) for one in mine for other in above if one.absolute is other.absolute]
    return not comparable or any(_nested(one.segments, other.segments) for one, other in comparable)


def _nested(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]
