"""What a caller may do with everything below a folder, for programs that open files themselves."""

from __future__ import annotations

from collections.abc import Collection

from octavo.core.errors import Forbidden
from octavo.core.ref import Ref
from octavo.core.values import Principal, Verb
from octavo.pipeline.policy.rules import CLOSED, Decision, Depends, Facts
from octavo.pipeline.policy.visibility import Seeing

_ACTS: frozenset[Verb] = frozenset(("write", "delete"))


class CallerRights:
    """The `Rights` of one principal at one moment. It keeps no decision, and may be asked in another thread."""

    def __init__(self, seeing: Seeing, who: Principal, at: float) -> None:
        verbs: tuple[Verb, ...] = ("list", "read", "write", "delete")
        self._who = who
        self._books = {verb: seeing.rulebook(who, verb) for verb in verbs} if seeing.rules else {}
        self._facts = Facts(at=at)
        self.rules: dict[str, str] = {}

    @property
    def unlimited(self) -> bool:
        return not self._books

    def all_below(self, verb: Verb, spellings: Collection[Ref]) -> bool:
        if not self._books:
            return True
        kept = self._books[verb].kept_back(spellings, self._facts, asking=verb in _ACTS)
        if kept is None:
            return True
        self._note(kept)
        return False

    def allows(self, verb: Verb, spellings: Collection[Ref]) -> bool:
        if not self._books:
            return True
        verdict = self._books[verb].decide(spellings)
        decision = verdict.decide(self._facts) if isinstance(verdict, Depends) else verdict
        if not decision.allowed:
            if isinstance(verdict, Depends) and verdict.at_best(self._facts).allowed:
                raise self._unsettled(verdict)
            self._note(decision)
        return decision.allowed

    def _unsettled(self, verdict: Depends) -> Forbidden:
        clauses = (*verdict.denies, *verdict.allows)
        decision = next(one.decision for one in clauses if one.condition.holds(self._facts) is None)
        self._note(decision)
        by = f", by {self.rules[decision.rule]}" if decision.rule in self.rules else ""
        return Forbidden(
            f"What a program may read here depends on what each document says of itself{by}; a program works only in "
            "a folder that no such rule is about",
            agent=self._who.id,
            rules=[*self.rules],
        )

    def _note(self, decision: Decision) -> None:
        """What is concealed is not spoken of, nor is a pattern: it may hold names that nobody is shown."""
        if decision is not CLOSED and not decision.hidden:
            self.rules[decision.rule] = f"{decision.rule} ({decision.why})" if decision.why else decision.rule
