"""Acts: all that they concern must be allowed, what goes along with it too, and a human may have to be asked before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from octavo.core.errors import InvalidParams, OctavoError
from octavo.core.model import NOTHING, VERB_OF, Call, Entry, Op, Page, Past, Verb
from octavo.core.ports import Next, Reply, settled
from octavo.core.ref import Ref
from octavo.pipeline.hidden import Decides, look_beside
from octavo.pipeline.refusals import Refused, refusal, told
from octavo.pipeline.rulebook import OPEN, Decision, Depends, stricter

_TAKING: frozenset[Op] = frozenset(("delete", "move", "copy"))  # something that has to be there


class Judge(Decides, Protocol):
    """The policy, as far as it is needed here."""

    async def judged(
        self, call: Call, verb: Verb, ref: Ref, call_next: Next, entry: Entry | None = None
    ) -> Decision: ...
    async def settle(self, verdict: Depends, call: Call, ref: Ref, call_next: Next) -> Decision: ...
    def refusal(self, call: Call, verb: Verb, decision: Decision) -> OctavoError: ...
    def canonical(self, ref: Ref) -> Ref: ...
    async def consent(self, call: Call, decision: Decision, call_next: Next) -> bool: ...


async def act(judge: Judge, call: Call, call_next: Next, verdict: Depends) -> Reply:
    """Calling, writing, editing or making what rules with conditions speak of."""
    decision = await _agreed(judge, call, call_next, verdict)
    if await judge.consent(call, decision, call_next):  # that may have taken minutes
        await _agreed(judge, call, call_next, verdict)
    return await settled(call_next(call))


async def act_with_consent(judge: Judge, call: Call, call_next: Next, decision: Decision) -> Reply:
    """The same where no facts can change the decision."""
    await judge.consent(call, decision, call_next)
    return await settled(call_next(call))


async def _agreed(judge: Judge, call: Call, call_next: Next, verdict: Depends) -> Decision:
    decision = await judge.settle(verdict, call, call.ref, call_next)
    call.trail.rule = decision.rule
    if not decision.allowed:
        if decision.hidden and call.op == "edit":
            await look_beside(judge, call, call_next)
        raise Refused(judge.refusal(call, VERB_OF[call.op], decision))
    return decision


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
    asks = await _taken_back(judge, call, past, call_next)
    if await judge.consent(call, asks, call_next):  # that may have taken minutes
        await _taken_back(judge, call, past, call_next)
    # Nothing but what was looked at: the same principal may be changing more at this moment.
    only = [one.id for one in past]
    return await settled(call_next(call._replace(arguments={**call.arguments, "only": only})))


async def _taken_back(judge: Judge, call: Call, past: Sequence[Past], call_next: Next) -> Decision:
    asks = OPEN
    for ref in (ref for one in past for ref in (one.ref, one.source) if ref is not None):
        asks = stricter(asks, await _demand(judge, call, "write", ref, call_next))
    return asks


async def _demand(
    judge: Judge, call: Call, verb: Verb, ref: Ref, call_next: Next, entry: Entry | None = None
) -> Decision:
    """Raises the refusal unless it is allowed. It names what was asked for, not what lies below it."""
    decision = await judge.judged(call, verb, ref, call_next, entry)
    call.trail.rule = decision.rule
    if not decision.allowed:
        if decision.hidden and ref == call.ref and call.op in _TAKING:
            await look_beside(judge, call, call_next, "list", "stat")
        raise Refused(refusal(call, verb, decision))
    return decision if verb != "read" else OPEN
