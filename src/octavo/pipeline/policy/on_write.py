"""The policy for writes: all that a change concerns must be allowed, and a human may have to approve it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from heapq import merge
from itertools import groupby, islice
from typing import Protocol

from msgspec.structs import replace

from octavo.core.arguments import PLAIN, CopyArguments, FoldersArguments, UndoArguments
from octavo.core.errors import Conflict, Forbidden, InvalidParams, OctavoError, through_a_link
from octavo.core.operations import act_of
from octavo.core.ports.chain import Next, Reply, page_of, settled, several
from octavo.core.ref import Ref
from octavo.core.values import EVERYTHING, Call, Entry, Op, Past, Principal, Undone, Verb
from octavo.pipeline.policy.hiding.absent import HidingPolicy, look_beside
from octavo.pipeline.policy.refusals import Refused, forbidden, not_whole, told
from octavo.pipeline.policy.rules import OPEN, Decision, Verdict, stricter

_TAKING: frozenset[Op] = frozenset(("delete", "move", "copy"))  # something that has to be there


class WritePolicy(HidingPolicy, Protocol):
    """The policy, as far as it is needed here."""

    @property
    def undoing(self) -> Sequence[Ref]:
        """Where changes can be taken back."""
        ...

    async def judged(
        self, call: Call, verb: Verb, ref: Ref, call_next: Next, entry: Entry | None = None
    ) -> Decision: ...
    def verdict(self, principal: Principal, verb: Verb, ref: Ref) -> Verdict: ...
    def refusal(self, call: Call, verb: Verb, decision: Decision) -> OctavoError: ...
    def unchangeable(self, ref: Ref) -> OctavoError | None: ...
    def goes_whole(self, call: Call) -> bool: ...
    def weakens(self, ref: Ref, there: Ref) -> str | None: ...
    def blindly(self, call: Call) -> Call: ...
    def plainly(self, call: Call, fault: OctavoError) -> OctavoError: ...
    def bare(self, call: Call, entry: Entry) -> Entry: ...
    async def quoted(self, call: Call, call_next: Next) -> None: ...
    def hidden_above(self, principal: Principal, ref: Ref) -> Decision | None: ...
    async def follow_link(self, call: Call, call_next: Next) -> None: ...
    def canonical(self, ref: Ref) -> Ref: ...
    async def consent(self, call: Call, decision: Decision, call_next: Next) -> bool: ...


async def act(judge: WritePolicy, call: Call, call_next: Next) -> Reply:
    """Calling, writing, editing or making what rules with conditions speak of."""
    decision = await _agreed(judge, call, call_next)
    if await judge.consent(call, decision, call_next):  # that may have taken minutes
        await _agreed(judge, call, call_next)
    return await done(judge, call, call_next)


async def act_with_consent(judge: WritePolicy, call: Call, call_next: Next, decision: Decision) -> Reply:
    """The same where no facts can change the decision."""
    await judge.consent(call, decision, call_next)
    return await done(judge, call, call_next)


async def done(judge: WritePolicy, call: Call, call_next: Next) -> Reply:
    """The act itself. Of what stood there it tells as much as its caller may know in other ways."""
    if call.op == "invoke":
        return await settled(call_next(call))
    if call.trail.rehearsal:
        await judge.consent(call, OPEN, call_next)
    if call.op == "edit":
        await judge.follow_link(call, call_next)
    try:
        reply = await settled(call_next(judge.blindly(call)))
    except OctavoError as fault:
        if call.op == "edit":
            await judge.quoted(call, call_next)
        raise judge.plainly(call, fault) from None
    return judge.bare(call, reply) if isinstance(reply, Entry) else reply


async def _agreed(judge: WritePolicy, call: Call, call_next: Next) -> Decision:
    decisions = await _decisions(judge, call, call.ref, call_next)
    verb, decision = _strictest(decisions)
    call.trail.rule = decision.rule
    if not decision.allowed:
        if decision.hidden and call.op == "edit":
            await look_beside(judge, call, call_next)
        raise Refused(judge.refusal(call, verb, decision))
    return decision


async def arrange(judge: WritePolicy, call: Call, call_next: Next, *, page: int) -> Reply:
    """Deleting, moving, copying and undoing: what lies below goes along, so all of it must be allowed. `page` is how
    much of it is looked at in one go; 0 where there is nothing to hold it against."""
    ends = call.arguments if isinstance(call.arguments, CopyArguments) else None
    _refuse_anyway(judge, call, None if ends is None else ends.to)
    if call.op == "undo":
        return await _undo(judge, call, call_next, page)
    target = None
    if ends is not None:
        await _demand_all(judge, call, call.ref, call_next)  # of what he may not touch he learns no more
        target = _other_end(judge, call, ends.to)
        call = call._replace(arguments=replace(ends, to=target.ref, written=ends.to))
    asks, to_nothing = await _both_ends(judge, call, target, call_next, page)
    try:
        if await judge.consent(call, asks, call_next):  # that may have taken minutes
            _, to_nothing = await _both_ends(judge, call, target, call_next, page)
        if to_nothing:
            raise Refused(forbidden(call, through_a_link(call.uri)))
        return await done(judge, call, call_next)
    except OctavoError as fault:
        if target is not None and fault.data.get("uri") == str(target.ref) != str(call.ref):
            raise Refused(told(target, judge.plainly(target, fault))) from None
        raise


def _refuse_anyway(judge: WritePolicy, call: Call, to: Ref | None) -> None:
    """Raises what is said whatever stands there, before anybody looks at that. An open refusal of the address by the
    rules goes before it."""
    if call.op != "undo":
        verdicts = [judge.verdict(call.principal, verb, call.ref) for verb in act_of(call.op, call.arguments).needs]
        if any(type(verdict) is Decision and not verdict.allowed and not verdict.hidden for verdict in verdicts):
            return
    if to is not None and to.scheme != call.ref.scheme:
        raise InvalidParams("Both ends of a move or a copy are in one source", uri=call.uri)
    if (refused := judge.unchangeable(call.ref)) is not None:
        raise refused


async def _both_ends(
    judge: WritePolicy, call: Call, target: Call | None, call_next: Next, page: int
) -> tuple[Decision, bool]:
    """The strictest of what is decided on everything that goes along, where all of it is allowed. And whether it is a
    link that leads to something of which the caller may not know: a link can go only where it leads to something, so
    it stays, as one to nothing does."""
    to_nothing = False
    asks = await _demand_all(judge, call, call.ref, call_next)
    if target is not None:
        asks = await _moved(judge, target, call.ref, target.ref, call_next, asks)
    if page and not judge.goes_whole(call) and await is_folder(call, call_next):
        raise Refused(not_whole(call))
    async for entry in _below(call, call.ref, call_next, page):
        ref = judge.canonical(entry.ref)
        if ref.bare == call.ref.bare and not await knows_target(judge, call, entry, call_next):
            to_nothing = True
            continue
        asks = stricter(asks, await _demand_all(judge, call, ref, call_next, entry))
        if target is not None:
            names = ref.segments[len(call.ref.segments) :]
            there = target.ref._replace(segments=target.ref.segments + names)
            asks = await _moved(judge, target, ref, there, call_next, asks)
    return asks, to_nothing


async def knows_target(judge: WritePolicy, call: Call, entry: Entry, call_next: Next) -> bool:
    """Whether the caller may know, in other ways than by a change, of what a link leads to; of what is no link, yes."""
    if entry.target is None:
        return True
    verbs: tuple[Verb, ...] = ("read", "list")
    target = judge.canonical(entry.target)
    decisions = [await judge.judged(call, verb, target, call_next, entry) for verb in verbs]
    if any(decision.allowed for decision in decisions):
        return True
    call.trail.rule = decisions[-1].rule
    return False


async def _moved(judge: WritePolicy, target: Call, ref: Ref, there: Ref, call_next: Next, asks: Decision) -> Decision:
    """The same for the other end: it is written, and what is kept closer where it was is asked about."""
    asks = stricter(asks, await _demand(judge, target, "write", there, call_next))
    weaker = judge.weakens(ref, there)
    return asks if weaker is None else stricter(asks, Decision(True, "labels", weaker, people=1))


async def _below(call: Call, ref: Ref, call_next: Next, page: int) -> AsyncIterator[Entry]:
    """Whatever the source has at and below an address, whether or not the caller may see it."""
    cursor: str | None = None
    while page:
        found = page_of(await settled(call_next(call.at(ref, cursor, page)._replace(op="list", arguments=PLAIN))))
        for entry in found.items:
            yield entry
        cursor = found.cursor
        if cursor is None:
            return


async def is_folder(call: Call, call_next: Next) -> bool:
    """One that is a folder whatever is in it."""
    return bool(await settled(call_next(call._replace(op="folders", arguments=FoldersArguments()))))


def _other_end(judge: WritePolicy, call: Call, asked: Ref) -> Call:
    """Where a move or a copy goes, as the write that it is: a refusal of it names this address, not the first one."""
    target = call._replace(op="write", ref=asked, uri=str(asked))
    try:
        return target._replace(ref=judge.canonical(asked))
    except OctavoError as outside:
        raise Refused(told(target, outside)) from None


async def _undo(judge: WritePolicy, call: Call, call_next: Next, page: int) -> Reply:
    scopes = judge.undoing if call.ref == EVERYTHING else (call.ref,)
    asked = call.given(UndoArguments)
    found = [several(await _part(call, scope, call_next, replace(asked, look=True)), Past) for scope in scopes]
    # Each source keeps its order, whatever its clock says.
    past: list[Past] = [*islice(merge(*found, key=lambda one: -one.at), asked.count)]
    asks = await _taken_back(judge, call, past, call_next, page)
    if await judge.consent(call, asks, call_next):  # that may have taken minutes
        await _taken_back(judge, call, past, call_next, page)
    undone: list[Undone] = []
    for scheme, part in groupby(past, key=lambda one: one.ref.scheme):
        # Nothing but what was looked at: the same principal may be changing more at this moment.
        only = tuple(one.id for one in part)
        scope = next(scope for scope in scopes if scope.scheme == scheme)
        try:
            back = several(await _part(call, scope, call_next, replace(asked, only=only, count=len(only))), Undone)
        except Refused as refused:
            if undone and isinstance(refused.refusal, Conflict | Forbidden):
                break
            raise
        undone += back
        if len(back) < len(only):
            break
    return undone


async def _part(call: Call, scope: Ref, call_next: Next, asked: UndoArguments) -> Reply:
    """An undo in one source. What it raises names that source."""
    part = call._replace(ref=scope, uri=call.uri if scope == call.ref else str(scope))
    try:
        return await settled(call_next(part._replace(arguments=asked)))
    except OctavoError as fault:
        raise Refused(told(part, fault)) from None


async def _taken_back(judge: WritePolicy, call: Call, past: Sequence[Past], call_next: Next, page: int) -> Decision:
    asks = OPEN
    for one in past:
        for ref in (one.ref, one.source):
            if ref is not None:
                asks = stricter(asks, await _demand(judge, call, "write", ref, call_next))
        if one.source is not None:  # what was moved goes back to where he may read it, perhaps
            await _demand(judge, call, "read", one.ref, call_next)
            async for entry in _below(call, one.ref, call_next, page):
                await _demand(judge, call, "read", judge.canonical(entry.ref), call_next, entry)
    return asks


async def _decisions(
    judge: WritePolicy, call: Call, ref: Ref, call_next: Next, entry: Entry | None = None
) -> dict[Verb, Decision]:
    """What is decided on each verb that is needed. What the address alone refuses is refused before anybody looks at
    what stands there; else all are decided, so that what is hidden costs as many looks as what is not there."""
    verdicts = {verb: judge.verdict(call.principal, verb, ref) for verb in act_of(call.op, call.arguments).needs}
    known = {verb: verdict for verb, verdict in verdicts.items() if type(verdict) is Decision}
    if not all(decision.allowed for decision in known.values()):
        return known
    return {verb: await judge.judged(call, verb, ref, call_next, entry) for verb in verdicts}


def _strictest(decisions: Mapping[Verb, Decision]) -> tuple[Verb, Decision]:
    """The first that refuses, else that on the act itself, about which a human may have to be asked."""
    found = [*decisions.items()]
    return next((one for one in found if not one[1].allowed), found[0])


async def _demand_all(
    judge: WritePolicy, call: Call, ref: Ref, call_next: Next, entry: Entry | None = None
) -> Decision:
    """What is decided on the act itself, where all that it needs is allowed."""
    return await _required(
        judge, call, *_strictest(await _decisions(judge, call, ref, call_next, entry)), ref, call_next
    )


async def _demand(
    judge: WritePolicy, call: Call, verb: Verb, ref: Ref, call_next: Next, entry: Entry | None = None
) -> Decision:
    if verb == "write" and (above := judge.hidden_above(call.principal, ref)) is not None:
        return await _required(judge, call, verb, above, ref, call_next)
    return await _required(judge, call, verb, await judge.judged(call, verb, ref, call_next, entry), ref, call_next)


async def _required(
    judge: WritePolicy, call: Call, verb: Verb, decision: Decision, ref: Ref, call_next: Next
) -> Decision:
    """Raises the refusal unless it is allowed. It names what was asked for, not what lies below it."""
    call.trail.rule = decision.rule
    if not decision.allowed:
        if decision.hidden and ref == call.ref and call.op in _TAKING:
            await look_beside(judge, call, call_next, "list", "stat")
        raise Refused(judge.refusal(call, verb, decision))
    return decision if verb != "read" else OPEN
