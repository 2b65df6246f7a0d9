"""Decides addresses by the rules: compiled for each principal, indexed by prefix, and cached.

A decision is made on the canonical address, never on the spelling that a client chose. Asking again costs a dictionary
look-up. Where a rule has a condition the verdict is kept, and the facts of each request decide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from msgspec.structs import replace

from octavo.core.clock import Clock
from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.memo import Bounded, Memo
from octavo.core.ports.chain import Next
from octavo.core.ports.source import Called
from octavo.core.ref import Ref
from octavo.core.values import FEED, Call, Entry, Principal, Template, Verb
from octavo.pipeline.policy.refusals import refusal, told
from octavo.pipeline.policy.rules import CLOSED, OPEN, UNKNOWN, Decision, Depends, Facts, Rule, Rulebook, Truth, Verdict

MEMO_SIZE = 50_000  # decisions kept
MEMO_CHARACTERS = 256  # of an address worth keeping: clients choose how long theirs are
BOOKS = 1000  # sets of rules that are kept compiled

_GENERAL = Decision(True, "general", "what it asks for is decided call by call")
_ANSWERS = Decision(True, "general", "the person at a client answers for it unless a rule denies that")


class Addresses(Protocol):
    """What the policy needs to know of the sources."""

    exposed: tuple[str, ...]
    naming: frozenset[str]  # schemes in whose addresses ids can stand
    labelling: bool  # whether the operator labels anything

    @property
    def undoing(self) -> Sequence[Ref]: ...
    def canonical(self, ref: Ref) -> Ref: ...
    def spelled(self, ref: Ref) -> Ref: ...
    def refuses(self, ref: Ref) -> OctavoError | None: ...
    def unchangeable(self, ref: Ref) -> OctavoError | None: ...
    def collects(self, ref: Ref) -> bool: ...
    def filters(self, scheme: str) -> Collection[str]: ...
    def whole(self, ref: Ref) -> Ref | None: ...
    def templates(self) -> Sequence[Template]: ...
    def labelled(self, entry: Entry) -> Entry: ...
    def weakens(self, ref: Ref, there: Ref) -> str | None: ...
    def has_tool(self, name: str) -> bool: ...
    def ids(self, scheme: str) -> object: ...
    def named(self, ref: Ref, moment: int | None) -> bool: ...
    async def meanings(self, ref: Ref) -> Sequence[Sequence[Ref]]: ...
    def called(self, ref: Ref) -> Called: ...


class Decisions:
    def __init__(
        self,
        rules: Sequence[Rule],
        addresses: Addresses,
        clock: Clock,
        *,
        general: Iterable[Ref] = (),
        aliases: Mapping[Ref, Ref] = MappingProxyType({}),
    ) -> None:
        """`general` tools may be called by whoever is not denied them: what they do is asked in calls of its own.
        `aliases` are further names of tools."""
        self.addresses = addresses
        self._general = frozenset(general)
        self._aliases = aliases
        self._naming = addresses.naming
        self._called: dict[str, object] = {}  # what was known of ids when the decisions were made that are kept
        self._wall = clock.wall
        self.rules = tuple(replace(rule, what=tuple(map(self.usual, rule.what))) for rule in rules)
        self.conditional = any(rule.condition is not None for rule in rules)
        self._times = tuple({time: None for rule in rules if rule.condition for time in rule.condition.times})
        self._compiled: Bounded[tuple[Principal, Verb], Rulebook] = Bounded(MEMO_SIZE)
        self._books: Bounded[tuple[int, ...], Rulebook] = Bounded(BOOKS)  # by the rules in it
        self._memo: Memo[tuple[Principal, Verb, Ref], Verdict] = Memo(MEMO_SIZE)
        self._canonical: Memo[Ref, Ref] = Memo(MEMO_SIZE)  # of absolute addresses
        self.epoch = _epoch(self.rules)

    def verdict(self, principal: Principal, verb: Verb, ref: Ref) -> Verdict:
        """What the rules say of a canonical address: a decision, or what it depends on."""
        if not self.rules:
            return OPEN
        if ref.scheme in self._naming:
            self.called_anew(ref.scheme)
        key = (principal, verb, ref)
        verdict = self._memo.get(key) or self._memo.again(key)
        if verdict is None:
            spellings, taken = self.spellings(ref)
            verdict = self.rulebook(principal, verb).decide(spellings, taken)
            if (general := self._general_decision(verb, ref)) is not None:
                verdict = _generally(verdict, general)
            # In which root a file stands can change, and its absolute spelling with it. A yes that has grown
            # old is caught at the entry's target; a no would stay, so it is not kept.
            sure = type(verdict) is Decision and verdict.allowed
            stays = len(spellings) == 1 or ref.scheme not in self.addresses.exposed or ref.scheme in self._naming
            if (sure or stays) and _length(ref) <= MEMO_CHARACTERS:
                self._memo.keep(key, verdict)
        return verdict

    def called_anew(self, scheme: str) -> None:
        """Rules speak of something by its id as well: what was decided when it had another one is forgotten."""
        ids = self.addresses.ids(scheme)
        if ids is not self._called.get(scheme):
            self._called[scheme] = ids
            self._memo.clear()

    def decide(self, principal: Principal, verb: Verb, ref: Ref, facts: Facts = UNKNOWN) -> Decision:
        """With the rule that gave it. What the facts leave out is taken for the worst."""
        verdict = self.verdict(principal, verb, ref)
        return verdict if type(verdict) is Decision else verdict.decide(self.timed(facts))

    def at_best(self, principal: Principal, verb: Verb, ref: Ref, facts: Facts = UNKNOWN) -> Decision:
        """The same, with what the facts leave out taken for the best."""
        verdict = self.verdict(principal, verb, ref)
        return verdict if type(verdict) is Decision else verdict.at_best(self.timed(facts))

    def allows(self, principal: Principal, verb: Verb, ref: Ref) -> bool:
        return self.decide(principal, verb, ref).allowed

    async def judged(self, call: Call, verb: Verb, ref: Ref, call_next: Next, entry: Entry | None = None) -> Decision:
        """With all facts that can be known: those of the call, and the metadata of what stands at the address, which
        is `entry` where somebody has it already."""
        verdict = self.verdict(call.principal, verb, ref)
        return verdict if type(verdict) is Decision else await self.settle(verdict, call, ref, call_next, entry)

    async def settle(
        self, verdict: Depends, call: Call, ref: Ref, call_next: Next, entry: Entry | None = None
    ) -> Decision:
        from octavo.pipeline.policy.facts import settle

        return await settle(verdict, call, ref, self.addresses.whole(ref.bare), call_next, self._wall(), entry)

    @property
    def phase(self) -> tuple[Truth, ...]:
        """Which of the times that rules speak of it is: as long as this stays, decisions do."""
        return tuple(time.holds(self._wall()) for time in self._times) if self._times else ()

    def timed(self, facts: Facts) -> Facts:
        """With the time that it is, unless they say another."""
        return facts if facts.at is not None else facts._replace(at=self._wall())

    def may_reach(self, principal: Principal, verb: Verb, glob: Glob) -> bool:
        """Whether anything that the pattern covers could be allowed. Exact for an exact pattern, but for conditions."""
        if not self.rules:
            return True
        if glob.exact:
            try:
                return self.at_best(principal, verb, self.addresses.canonical(glob.literal)).allowed
            except OctavoError:
                return False
        return self.rulebook(principal, verb).may_reach(glob, self.addresses.canonical)

    def refusal(self, call: Call, verb: Verb, decision: Decision) -> OctavoError:
        if decision.hidden and (by_name := self.addresses.refuses(call.ref)) is not None:
            return told(call, by_name)  # as for every other name of that kind
        return refusal(call, verb, decision)

    def canonical(self, ref: Ref) -> Ref:
        """The spelling on which decisions are made."""
        if not ref.absolute:
            return ref
        known = self._canonical.get(ref) or self._canonical.again(ref)
        if known is None:
            known = self.addresses.canonical(ref)
            if _length(ref) <= MEMO_CHARACTERS:
                self._canonical.keep(ref, known)
        return known

    def rulebook(self, principal: Principal, verb: Verb) -> Rulebook:
        book = self._compiled.get((principal, verb))
        if book is None:
            # Principals whom the same rules concern share what is compiled of them.
            mine = tuple(number for number, rule in enumerate(self.rules) if rule.concerns(principal, verb))
            book = self._books.get(mine)
            if book is None:
                book = self._books.keep(mine, Rulebook(self.rules[number] for number in mine))
            self._compiled.keep((principal, verb), book)
        return book

    def spellings(self, ref: Ref) -> tuple[tuple[Ref, ...], Sequence[Ref]]:
        """Without parameters, but found with them: `?root=2` says which absolute spelling is meant, and an absolute one
        that itself. A part of an entry has the address of the entry among them: rules speak of both. Then those by
        which only denies speak of it."""
        if ref.scheme not in self.addresses.exposed:
            stands_for = self._aliases.get(ref)
            return (ref.bare,) if stands_for is None else (ref.bare, stands_for), ()
        if ref.absolute:
            other, ref = ref.bare, self.canonical(ref)
        else:
            try:
                other = self.addresses.spelled(ref).bare
            except OctavoError:  # parameters that the source will refuse
                other = self.addresses.spelled(ref.bare).bare
        whole = self.addresses.whole(ref.bare)
        known = (ref.bare, other) if whole is None else (ref.bare, other, whole)
        free, taken = self.addresses.called(whole or ref.bare) if ref.scheme in self._naming else Called()
        return tuple(dict.fromkeys((*known, *free))), taken

    def _general_decision(self, verb: Verb, ref: Ref) -> Decision | None:
        """What is decided where no rule says anything; None: no."""
        if verb == "approve":
            return _ANSWERS
        if verb == "invoke":
            return _GENERAL if ref in self._general else None
        return _GENERAL if verb == "read" and ref.scheme == FEED else None

    def usual(self, glob: Glob) -> Glob:
        """An absolute pattern in the spelling that addresses have here: a root behind a link is known by two."""
        literal, of = glob.literal, self.addresses
        if not literal.absolute:
            return glob
        try:
            usual = of.spelled(of.canonical(literal)).bare
            if usual == literal or of.canonical(usual) != of.canonical(literal):
                return glob
        except OctavoError:  # above the roots, or outside
            return glob
        rest = glob.text.split("/")[3 + len(literal.segments) :]  # behind `file:///` and the fixed names
        return Glob("/".join([str(usual).replace("*", "%2A"), *rest]))


def _generally(verdict: Verdict, general: Decision) -> Verdict:
    """Where nothing denies it, it is allowed without a rule."""
    if isinstance(verdict, Depends):
        if verdict.otherwise is not CLOSED:
            return verdict
        asking = tuple(one for one in verdict.allows if one.decision.people is not None)
        return Depends(verdict.denies, general, asking) if verdict.denies or asking else general
    return general if verdict is CLOSED else verdict


def _epoch(rules: Sequence[Rule]) -> str:
    """The same for the same rules, in every process."""
    told = [
        (rule.who, rule.may and sorted(rule.may), [glob.text for glob in rule.what], rule.allow, rule.hide)
        + ((repr(rule.condition),) if rule.condition is not None else ())
        + ((rule.people,) if rule.people is not None else ())
        for rule in rules
    ]
    return hashlib.blake2b(repr(told).encode(), digest_size=8).hexdigest()


def _length(ref: Ref) -> int:
    return sum(map(len, ref.segments)) + sum(len(key) + len(value) for key, value in ref.params)
