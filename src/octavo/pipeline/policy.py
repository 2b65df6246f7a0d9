"""Fold 4: who may do what.

Deny wins, and once a policy exists no match means no. Without any rule the configured sources are the
only ceiling. A decision is made on the canonical address, never on the spelling that a client chose,
and it is kept: asking again costs a dictionary look-up. A reload makes a new Policy, so no decision
outlives its rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError
from octavo.core.glob import Glob
from octavo.core.model import VERB_OF, Call, Content, Entry, Principal, Template, Verb
from octavo.core.ports import Next, Reply
from octavo.core.ref import Ref
from octavo.pipeline.identity import LOCAL
from octavo.pipeline.listing import Listing

MEMO_SIZE = 50_000  # decisions kept; all are dropped when it is full

# A tool is seen by whoever may call it, a prompt by whoever may render it.
_LIST_VERB: dict[str, Verb] = {"tool": "invoke", "prompt": "render"}


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of `policy:`. `who` holds agent ids, `role:NAME` or `*`."""

    who: tuple[str, ...]
    may: frozenset[Verb] | None  # None: everything
    what: tuple[Glob, ...]
    allow: bool = True
    why: str = ""
    hide: bool = False
    name: str = ""  # how `explain` and the audit call it: `policy[2]`

    def concerns(self, principal: Principal) -> bool:
        return any(
            who in ("*", principal.id) or (who.startswith("role:") and who[5:] in principal.roles) for who in self.who
        )


class Decision(NamedTuple):
    allowed: bool
    rule: str
    why: str = ""
    hidden: bool = False
    pattern: str = ""  # what the rule speaks of; the seeds show it to the refused agent


class Addresses(Protocol):
    """What the policy needs to know of the sources."""

    exposed: tuple[str, ...]

    def canonical(self, ref: Ref) -> Ref: ...
    def spelled(self, ref: Ref) -> Ref: ...


_OPEN = Decision(True, "no policy", "no policy is configured")
_CLOSED = Decision(False, "default", "no rule allows it")


class Policy:
    def __init__(self, rules: Sequence[Rule], addresses: Addresses) -> None:
        self._rules = tuple(rules)
        self._addresses = addresses
        self._served = frozenset((*addresses.exposed, *_LIST_VERB))
        self._listing = Listing(addresses.exposed)
        self._compiled: dict[tuple[Principal, Verb], _Rulebook] = {}
        self._memo: dict[tuple[Principal, Verb, Ref], Decision] = {}
        self.epoch = hashlib.blake2b(repr(self._rules).encode(), digest_size=8).hexdigest()

    def decide(self, principal: Principal, verb: Verb, ref: Ref) -> Decision:
        """The verdict on a canonical address, with the rule that gave it."""
        key = (principal, verb, ref)
        decision = self._memo.get(key)
        if decision is None:
            if len(self._memo) >= MEMO_SIZE:
                self._memo.clear()
            decision = self._memo[key] = self._evaluate(principal, verb, ref)
        return decision

    def allows(self, principal: Principal, verb: Verb, ref: Ref) -> bool:
        return self.decide(principal, verb, ref).allowed

    def may_reach(self, principal: Principal, verb: Verb, glob: Glob) -> bool:
        """Whether anything that the pattern covers could be allowed. Exact for an exact pattern."""
        if not self._rules:
            return True
        book = self._rulebook(principal, verb)
        inside = glob.literal
        if inside.absolute:
            try:
                inside = self._addresses.canonical(inside)
            except OctavoError:
                return False
        forms = self._forms(inside)
        if any(rule.covers(forms) for rule in book.denies if rule.glob.subtree):
            return False
        return any(rule.glob.may_overlap(Glob(f"{form}/*" if form.segments else f"{form.scheme}://*"))
                   for rule in book.allows for form in forms)  # fmt: skip

    async def __call__(self, call: Call, call_next: Next) -> Reply:
        if call.fault is not None:
            raise self._faulted(call, call.fault)
        op, ref = call.op, call.ref
        if ref.absolute:
            try:
                ref = self._addresses.canonical(ref)
            except Forbidden as outside:
                raise self._faulted(call, outside) from None
            call = call._replace(ref=ref)
        if op == "list":
            return await self._listing.page(call, call_next, self)
        if op == "templates":
            return [offered for offered in await call_next(call) if self._offers(call.principal, offered)]
        if ref.scheme not in self._served and ref.scheme != "*":
            raise InvalidParams(f"No source serves {ref.scheme}:// here", uri=call.uri, reason="unknown_scheme")
        if op == "complete":
            return self._visible_values(call, await call_next(call))
        if op == "watch":
            return await self._watch(call, call_next)
        verb = VERB_OF[op]
        decision = self.decide(call.principal, verb, ref)
        call.trail.rule = decision.rule
        if not decision.allowed:
            raise self._refusal(call, verb, decision)
        reply = await call_next(call)
        entry = reply.entry if isinstance(reply, Content) else reply
        if isinstance(entry, Entry) and entry.target is not None:
            # A link is served only if the address it leads to may be read as well.
            decision = self.decide(call.principal, verb, entry.target)
            if not decision.allowed:
                call.trail.rule = decision.rule
                raise self._refusal(call, verb, decision)
        return reply

    def shows(self, principal: Principal, entry: Entry) -> bool:
        """Whether a listing may contain the entry."""
        verb = _LIST_VERB.get(entry.ref.scheme, "list")
        ref = self._addresses.canonical(entry.ref) if entry.ref.absolute else entry.ref
        if not self.decide(principal, verb, ref).allowed:
            return False
        return entry.target is None or self.decide(principal, verb, entry.target).allowed

    async def _watch(self, call: Call, call_next: Next) -> Reply:
        glob: Glob = call.arguments["glob"]
        if glob.exact:
            decision = self.decide(call.principal, "watch", call.ref)
        elif self.may_reach(call.principal, "watch", glob):
            decision = Decision(True, "by event", "each event is decided when it is delivered")
        else:
            decision = _CLOSED
        call.trail.rule = decision.rule
        if not decision.allowed:
            raise self._refusal(call, "watch", decision)
        return await call_next(call)

    def _visible_values(self, call: Call, values: Iterable[str]) -> list[str]:
        """Completions that name something the caller may list; a name alone is a leak already."""
        verb = _LIST_VERB.get(call.ref.scheme, "list")
        if call.ref.scheme == "prompt":
            return list(values) if self.decide(call.principal, verb, call.ref).allowed else []
        template: str = call.arguments.get("template") or f"{call.ref.scheme}://{{+path}}"
        given = dict(call.arguments["given"])
        return [
            value
            for value in values
            if self._could_list(call.principal, _expand(template, {**given, call.arguments["argument"]: value}))
        ]

    def _offers(self, principal: Principal, template: Template) -> bool:
        """A template is seen by whoever may list something that it could stand for."""
        try:
            return self.may_reach(principal, "list", _below(template.uri_template))
        except OctavoError:
            return False

    def _could_list(self, principal: Principal, uri: str) -> bool:
        try:
            if uri.endswith("/") or "{" in uri:
                return self.may_reach(principal, "list", _below(uri))
            return self.decide(principal, "list", self._addresses.canonical(Ref.parse(uri))).allowed
        except OctavoError:
            return False

    def _evaluate(self, principal: Principal, verb: Verb, ref: Ref) -> Decision:
        if not self._rules:
            return _OPEN
        return self._rulebook(principal, verb).decide(self._forms(ref.bare))

    def _rulebook(self, principal: Principal, verb: Verb) -> _Rulebook:
        book = self._compiled.get((principal, verb))
        if book is None:
            if len(self._compiled) >= MEMO_SIZE:
                self._compiled.clear()
            mine = [r for r in self._rules if (r.may is None or verb in r.may) and r.concerns(principal)]
            book = self._compiled[principal, verb] = _Rulebook(mine)
        return book

    def _forms(self, ref: Ref) -> tuple[Ref, ...]:
        other = self._addresses.spelled(ref) if ref.scheme in self._addresses.exposed else ref
        return (ref,) if other == ref else (ref, other.bare)

    def _refusal(self, call: Call, verb: Verb, decision: Decision) -> OctavoError:
        if decision.hidden:
            return NotFound(f"Resource not found: {call.uri}", uri=call.uri)
        data: dict[str, Any] = {
            "agent": call.principal.id,
            "required_permission": verb,
            "resource": decision.pattern or call.uri,
        }
        if decision.why:
            data["why"] = decision.why
        if call.principal.id == LOCAL:
            data["hint"] = "start the server with --as AGENT to act as an agent of the configuration"
        return Forbidden(f"Access denied to resource: {call.uri}", **data)

    def _faulted(self, call: Call, fault: OctavoError) -> OctavoError:
        if isinstance(fault, Forbidden):
            return Forbidden(
                f"Access denied to resource: {call.uri}",
                agent=call.principal.id,
                required_permission=VERB_OF[call.op],
                resource=call.uri,
                why=fault.message,
            )
        return fault


class _Pattern(NamedTuple):
    glob: Glob
    decision: Decision

    def covers(self, forms: Collection[Ref]) -> bool:
        return any(self.glob.matches(form) for form in forms)


class _Rulebook:
    """The rules of one principal for one verb, found by scheme and first segment.

    A thousand rules on as many folders cost what the two or three on one folder cost.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.denies: list[_Pattern] = []
        self.allows: list[_Pattern] = []
        self._by_head: dict[tuple[str, str], tuple[list[_Pattern], list[_Pattern]]] = {}
        for rule in rules:
            for glob in rule.what:
                pattern = _Pattern(glob, Decision(rule.allow, rule.name, rule.why, rule.hide, glob.text))
                (self.allows if rule.allow else self.denies).append(pattern)
                literal = glob.literal
                head = (literal.scheme, literal.segments[0] if literal.segments else "")
                self._by_head.setdefault(head, ([], []))[rule.allow].append(pattern)

    def decide(self, forms: Collection[Ref]) -> Decision:
        candidates = [
            found
            for form in forms
            for first in {form.segments[0] if form.segments else "", ""}
            for head in ((form.scheme, first), ("*", first))
            if (found := self._by_head.get(head)) is not None
        ]
        for kind in (0, 1):  # denies first
            for found in candidates:
                for pattern in found[kind]:
                    if pattern.covers(forms):
                        return pattern.decision
        return _CLOSED


def _below(template: str) -> Glob:
    """Everything under the fixed part of a template or of a half-written address."""
    return Glob(template.partition("{")[0].rpartition("/")[0] + "/*")


def _expand(template: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value).replace(f"{{+{name}}}", value)
    return template
