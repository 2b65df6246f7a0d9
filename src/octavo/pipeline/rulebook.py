"""Rules, and what they say of an address: the pure half of the policy.

Addresses come here with all their spellings, because a rule may use any of them. Deny wins; of several
denies one that hides wins, so that what is concealed stays so; else the first in the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from msgspec import Struct

from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.model import Principal, Verb
from octavo.core.ref import Ref


class Rule(Struct, frozen=True):
    """One entry of `policy:`. `who` holds agent ids, `role:NAME` or `*`."""

    who: tuple[str, ...]
    may: frozenset[Verb] | None  # None: everything
    what: tuple[Glob, ...]
    allow: bool = True
    why: str = ""
    hide: bool = False
    name: str = ""  # how `explain` and the audit call it: `policy[2]`

    def concerns(self, principal: Principal, verb: Verb) -> bool:
        if self.may is not None and verb not in self.may:
            return False
        return any(
            who in ("*", principal.id) or (who.startswith("role:") and who[5:] in principal.roles) for who in self.who
        )


class Decision(NamedTuple):
    allowed: bool
    rule: str
    why: str = ""
    hidden: bool = False
    pattern: str = ""  # what the rule speaks of; the seeds show it to the refused agent


OPEN = Decision(True, "no policy", "no policy is configured")
CLOSED = Decision(False, "default", "no rule allows it")


class _Pattern(NamedTuple):
    rank: tuple[bool, int]  # the least one speaks for all that match
    glob: Glob
    decision: Decision

    def covers(self, spellings: Collection[Ref]) -> bool:
        return any(self.glob.matches(ref) for ref in spellings)


class Rulebook:
    """The rules of one principal for one verb, found by scheme and first segment.

    A thousand rules on as many folders cost what the two or three on one folder cost.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._denies: list[_Pattern] = []
        self._allows: list[_Pattern] = []
        self._by_head: dict[tuple[str, str], tuple[list[_Pattern], list[_Pattern]]] = {}
        for number, rule in enumerate(rules):
            for glob in rule.what:
                decision = Decision(rule.allow, rule.name, rule.why, rule.hide, glob.text)
                pattern = _Pattern((not rule.hide, number), glob, decision)
                (self._allows if rule.allow else self._denies).append(pattern)
                literal = glob.literal
                head = (literal.scheme, literal.segments[0] if literal.segments else "")
                self._by_head.setdefault(head, ([], []))[rule.allow].append(pattern)

    def decide(self, spellings: Collection[Ref]) -> Decision:
        heads = {
            (scheme, first)
            for ref in spellings
            for first in (*ref.segments[:1], "")
            for scheme in (ref.scheme, "*")
        }  # fmt: skip
        found = [patterns for head in heads if (patterns := self._by_head.get(head)) is not None]
        for kind in (0, 1):  # denies first
            matching = [pattern for patterns in found for pattern in patterns[kind] if pattern.covers(spellings)]
            if matching:
                return min(matching, key=lambda pattern: pattern.rank).decision
        return CLOSED

    def allows_all(self, scheme: str) -> bool:
        """Whether nothing of a scheme is kept back. May be False although it is so."""
        if any(pattern.glob.scheme in ("*", scheme) for pattern in self._denies):
            return False
        everything = Ref(scheme)
        return any(pattern.glob.subtree and pattern.glob.matches(everything) for pattern in self._allows)

    def allows_every(self, glob: Glob, canonical: Callable[[Ref], Ref]) -> bool:
        """Whether nothing that `glob` covers is kept back. May be False although it is so."""
        above = _known(glob.literal, canonical)
        if any(_may_overlap(deny.glob, glob, above, canonical) for deny in self._denies):
            return False
        return any(allow.glob == glob or (allow.glob.subtree and allow.covers(above)) for allow in self._allows)

    def may_reach(self, glob: Glob, canonical: Callable[[Ref], Ref]) -> bool:
        """False only if no address that `glob` covers, in any of its spellings, is allowed.

        An absolute address lies in one root, so it has one relative spelling; a relative one may stand in
        any root, so nothing is concluded from absolute rules that happen to deny it in one of them.
        """
        above = _known(glob.literal, canonical)
        if any(deny.glob.subtree and deny.covers(above) for deny in self._denies):
            return False
        return any(_may_overlap(allow.glob, glob, above, canonical) for allow in self._allows)


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
