"""Decisions of the policy on more than the address that was asked for: on what is found, and on what goes along."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from octavo.core.errors import InvalidParams, OctavoError
from octavo.core.findings import Findings
from octavo.core.glob import Glob
from octavo.core.model import EVERYTHING, NOTHING, VERB_OF, Call, Entry, Page, Past, Principal, Verb
from octavo.core.ports import Allowed, Next, Reply, settled
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.pipeline.refusals import refusal, told
from octavo.pipeline.rulebook import CLOSED, OPEN, Decision, stricter

FINDING: tuple[Verb, ...] = ("search", "read")


class Refused(Exception):
    """Carries a refusal of the policy past the place where a source's errors are put into the caller's words."""

    def __init__(self, refusal: OctavoError) -> None:
        self.refusal = refusal


class Judge(Protocol):
    """The policy, as far as it is needed here."""

    def decide(self, principal: Principal, verb: Verb, ref: Ref) -> Decision: ...
    async def judged(
        self, call: Call, verb: Verb, ref: Ref, call_next: Next, entry: Entry | None = None
    ) -> Decision: ...
    def allows(self, principal: Principal, verb: Verb, ref: Ref) -> bool: ...
    def may_reach(self, principal: Principal, verb: Verb, glob: Glob) -> bool: ...
    def canonical(self, ref: Ref) -> Ref: ...
    async def consent(self, call: Call, decision: Decision, call_next: Next) -> bool: ...


async def search(judge: Judge, call: Call, call_next: Next, *, page: int, now: Callable[[], float]) -> Page[Entry]:
    """Candidates that the caller may both search and read; pages are filled up from them."""
    who, scope = call.principal, call.ref
    under = Glob(f"{scope.bare}/*" if scope.segments else f"{scope.scheme}://*")
    if not judge.may_reach(who, "search", under):
        raise _unreachable(judge, call)
    limit, until = min(call.limit, page), now() + call.timeout / 2
    kept: list[Entry] = []
    cursor = call.cursor
    while True:
        found: Page[Entry] = await settled(call_next(call.at(scope, cursor, limit - len(kept))))
        kept += [entry for entry in found.items if await _finds(judge, call, call_next, entry)]
        cursor = found.cursor
        if cursor is None or len(kept) >= limit or now() > until:
            return Page(tuple(kept), cursor, found.unavailable)


async def find(judge: Judge, call: Call, call_next: Next, allowed: Allowed, viewer: Hashable) -> Findings:
    """A ranked search at and below the scope, whose parameters are filters. What is `allowed` is decided inside of it,
    so that nothing that is counted there counts what the caller may not see."""
    query: TextQuery = call.arguments["query"]
    scope = call.ref
    everything = scope.scheme == EVERYTHING.scheme
    under = Glob("**") if everything else Glob(f"{scope.bare}/*" if scope.segments else f"{scope.scheme}://*")
    if not judge.may_reach(call.principal, "search", under):
        raise _unreachable(judge, call)
    if scope.params:  # the source knows which there are, and says what is wrong with others
        await settled(call_next(call.at(scope, None, 1)._replace(op="list", arguments=NOTHING)))
    where = (*query.where, *((key, tuple(value.split(","))) for key, value in scope.params))
    asked = TextQuery(query.text, query.within if everything else (scope.bare,), where)
    arguments = {"query": asked, "allowed": allowed, "viewer": viewer}
    findings: Findings = await settled(call_next(call._replace(ref=EVERYTHING, arguments=arguments)))
    return findings


def _unreachable(judge: Judge, call: Call) -> Refused:
    """By the rule on the place itself, which may want it to look absent."""
    decision = CLOSED if call.ref is EVERYTHING else judge.decide(call.principal, "search", judge.canonical(call.ref))
    return Refused(refusal(call, "search", CLOSED if decision.allowed else decision))


async def folders(judge: Judge, call: Call, call_next: Next) -> tuple[Ref, ...]:
    """Those whose own address the caller may list, also where it may see nothing in them."""
    who = call.principal
    call.trail.rule = judge.decide(who, "list", call.ref).rule
    found: Sequence[Ref] = await settled(call_next(call))
    return tuple(ref for ref in found if judge.allows(who, "list", judge.canonical(ref)))


async def _finds(judge: Judge, call: Call, call_next: Next, entry: Entry) -> bool:
    for ref in (entry.ref,) if entry.target is None else (entry.ref, entry.target):
        for verb in FINDING:
            if not (await judge.judged(call, verb, judge.canonical(ref), call_next, entry)).allowed:
                return False
    return True


async def arrange(judge: Judge, call: Call, call_next: Next, *, page: int) -> Reply:
    """Deleting, moving, copying and undoing: what lies below goes along, so all of it must be allowed. `page` is how
    much of it is looked at in one go; 0 where there are no rules to hold it against."""
    if call.op == "undo":
        return await _undo(judge, call, call_next)
    asked = call.arguments.get("to")
    target = None
    if asked is not None:
        await _demand(judge, call, VERB_OF[call.op], call.ref, call_next)  # of what he may not touch he learns no more
        target = _other_end(judge, call, asked)
        call = call._replace(arguments={**call.arguments, "to": target.ref})
    asks = await _both_ends(judge, call, target, call_next, page)
    if await judge.consent(call, asks, call_next):  # that may have taken minutes
        await _both_ends(judge, call, target, call_next, page)
    try:
        return await settled(call_next(call))
    except OctavoError as fault:
        if target is not None and fault.data.get("uri") == str(target.ref) != str(call.ref):
            raise Refused(told(target, fault)) from None
        raise


async def _both_ends(judge: Judge, call: Call, target: Call | None, call_next: Next, page: int) -> Decision:
    """The strictest of what is decided on everything that goes along, where all of it is allowed."""
    verb = VERB_OF[call.op]
    asks = await _demand(judge, call, verb, call.ref, call_next)
    if target is not None:
        asks = stricter(asks, await _demand(judge, target, "write", target.ref, call_next))
    cursor: str | None = None
    while page:
        below = call.at(call.ref, cursor, page)._replace(op="list", arguments=NOTHING)
        found: Page[Entry] = await settled(call_next(below))
        for entry in found.items:
            ref = judge.canonical(entry.ref)
            asks = stricter(asks, await _demand(judge, call, verb, ref, call_next, entry))
            if target is not None:
                names = ref.segments[len(call.ref.segments) :]
                there = target.ref._replace(segments=target.ref.segments + names)
                asks = stricter(asks, await _demand(judge, target, "write", there, call_next))
        cursor = found.cursor
        if cursor is None:
            break
    return asks


def _other_end(judge: Judge, call: Call, asked: Ref) -> Call:
    """Where a move or a copy goes, as the write that it is: a refusal of it names this address, not the first one."""
    target = call._replace(op="write", ref=asked, uri=str(asked))
    if asked.scheme != call.ref.scheme:
        raise InvalidParams("Both ends of a move or a copy are in one source", uri=call.uri)
    try:
        return target._replace(ref=judge.canonical(asked))
    except OctavoError as outside:
        raise Refused(told(target, outside)) from None


async def _undo(judge: Judge, call: Call, call_next: Next) -> Reply:
    look = call._replace(arguments={**call.arguments, "look": True})
    past: Sequence[Past] = await settled(call_next(look))
    asks = OPEN
    for one in past:
        for ref in (one.ref, one.source):
            if ref is not None:
                asks = stricter(asks, await _demand(judge, call, "write", ref, call_next))
    await judge.consent(call, asks, call_next)
    # Nothing but what was looked at: the same principal may be changing more at this moment.
    only = [one.id for one in past]
    return await settled(call_next(call._replace(arguments={**call.arguments, "only": only})))


async def _demand(
    judge: Judge, call: Call, verb: Verb, ref: Ref, call_next: Next, entry: Entry | None = None
) -> Decision:
    """Raises the refusal unless it is allowed. It names what was asked for, not what lies below it."""
    decision = await judge.judged(call, verb, ref, call_next, entry)
    call.trail.rule = decision.rule
    if not decision.allowed:
        raise Refused(refusal(call, verb, decision))
    return decision if verb != "read" else OPEN
