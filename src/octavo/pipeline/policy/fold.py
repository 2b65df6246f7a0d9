"""Fold 4: who may do what.

Deny wins, and once a policy exists no match means no. Without any rule the configured sources are the
only ceiling. A reload makes a new Policy, so no decision outlives its rules. Where a rule has a condition, what an
answer tells of itself is held against the rules once more before it is given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import CoroutineType, MappingProxyType
from typing import TypeAlias

from octavo.core.arguments import PLAIN, FoldersArguments, SearchArguments
from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError
from octavo.core.operations import BY_ID, OPERATIONS, VERB_OF, Decided, act_of
from octavo.core.ports.chain import Next, Reply, expected, settled
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.core.rehearsal import Rehearsed
from octavo.core.sizes import MIB
from octavo.core.values import (
    EVERYTHING,
    FEED,
    Call,
    Change,
    Content,
    Edited,
    Entry,
    Page,
    Principal,
    Trail,
    Verb,
    moments,
)
from octavo.pipeline.policy.approval.consent import Consent
from octavo.pipeline.policy.collections import BY_ENTRY, Composing
from octavo.pipeline.policy.decisions import Addresses
from octavo.pipeline.policy.hiding.absent import as_if_absent, ask_beside, beside, look_beside
from octavo.pipeline.policy.hiding.delays import NO, Ticks
from octavo.pipeline.policy.hiding.older import is_older, is_version, no_version, version, without_others
from octavo.pipeline.policy.naming import ask_by_name, may_name_an_id
from octavo.pipeline.policy.on_complete import Completing
from octavo.pipeline.policy.on_list import FilteredLists
from octavo.pipeline.policy.on_search import find, folders, search
from octavo.pipeline.policy.on_watch import changes, watch
from octavo.pipeline.policy.on_write import act, act_with_consent, arrange, done
from octavo.pipeline.policy.refusals import Refused, absent, forbidden, told
from octavo.pipeline.policy.rehearsal import refuse_impossible
from octavo.pipeline.policy.rights import CallerRights
from octavo.pipeline.policy.rules import CLOSED, UNKNOWN, Decision, Depends, Rule
from octavo.pipeline.policy.visibility import KNOWN_BY, LIST_VERB, Seeing

__all__ = ["Decision", "Policy", "Rule"]

_NO_FILE = (NotFound, Forbidden)  # what a source says of an address at which there is nothing to read
_Way: TypeAlias = Callable[[Call, Next], Reply]


class Policy(Seeing):
    def __init__(
        self,
        rules: Sequence[Rule],
        addresses: Addresses,
        *,
        page: int = 100,
        max_bytes: int = MIB,
        general: Iterable[Ref] = (),
        aliases: Mapping[Ref, Ref] = MappingProxyType({}),
        clock: Clock | None = None,
        approval: Consent | None = None,
        meant: Callable[[Call], Call] | None = None,
    ) -> None:
        """`page` is the most entries that one page of a listing may hold, `max_bytes` the most that is shown of what is
        made of several resources. `general` tools may be called by whoever is not denied them: what they do is asked in
        calls of its own. `aliases` are further names of tools. Without `approval` no human is asked.
        `meant` gives a call of a tool the arguments that its client meant: rules, people and the tool see these."""
        clock = clock or SystemClock()
        super().__init__(rules, addresses, clock, general=general, aliases=aliases)
        self._approval = approval
        self._meant = meant
        self._page, self._max_bytes, self._now = page, max_bytes, clock.monotonic
        self._asking = any(rule.people for rule in rules)
        self._untrusted = None if approval is None else approval.untrusted
        self._served = frozenset((*addresses.exposed, *LIST_VERB, FEED, EVERYTHING.scheme))
        self._completing = Completing(self, addresses.templates, addresses.canonical, ruled=bool(rules))
        self._composing = Composing(self, max_bytes=max_bytes)
        self._listing = FilteredLists(addresses.exposed, page=page, clock=clock)
        self._ticks = Ticks(rules) if any(rule.hide for rule in rules) else None
        self._denied_by_id = frozenset(
            glob.scheme for rule in self.rules if not rule.allow for glob in rule.what if may_name_an_id(glob)
        )
        self._era = object()  # what a search remembers of these rules holds for no others
        ways: Mapping[Decided, _Way] = {
            "list": self._list,
            "complete": self._complete,
            "templates": self._completing.templates,
            "watch": partial(watch, self),
            "changes": self._changes,
            "search": self._search,
            "folders": self._folders,
            "parts": self._collect,
            "arrange": self._arrange,
            "act": self._act,
            "task": self._steer,
        }
        # What is decided in a way of its own, by the table; for the rest one look at the address is enough.
        self._ways = {name: ways[row.decided] for name, row in OPERATIONS.items() if row.decided != "address"}

    def under(self, rules: Sequence[Rule]) -> Policy:
        """The same with other rules."""
        return Policy(
            rules,
            self.addresses,
            page=self._page,
            max_bytes=self._max_bytes,
            general=self._general,
            aliases=self._aliases,
            meant=self._meant,
        )

    def retire(self, after: Policy) -> None:
        """Other rules hold from now on: nothing that waits for a human is done by these."""
        if self._approval is not None:
            self._approval.retire()
        if self._untrusted is not None and after._untrusted is not None:
            after._untrusted.takes_over(self._untrusted)

    @property
    def undoing(self) -> Sequence[Ref]:
        return self.addresses.undoing

    def asks(self, principal: Principal, ref: Ref) -> bool:
        """Whether a rule says that a human is asked before that tool is called, or may say so by its arguments."""
        if self._untrusted is not None and (self._untrusted.concerns(principal.id) or self._untrusted.may_act(ref)):
            return True
        if not self._asking:
            return False
        verdict = self.verdict(principal, "invoke", ref)
        return bool(verdict.people) if type(verdict) is Decision else verdict.asks

    def rights(self, principal: Principal) -> CallerRights:
        """What somebody may do now, for whoever asks about all that stands below a folder."""
        return CallerRights(self, principal, self._wall())

    def hides(self, principal: Principal, verb: Verb, ref: Ref) -> bool:
        """Whether a rule makes it look absent, or may do so by facts."""
        if self._ticks is None:
            return False
        verdict = self.verdict(principal, verb, ref)
        if type(verdict) is Decision:
            return verdict.hidden
        return verdict.otherwise.hidden or any(one.decision.hidden for one in verdict.denies)

    async def consent(self, call: Call, decision: Decision, call_next: Next) -> bool:
        """Returns where nobody has to be asked, or a human has allowed it: whether that was so."""
        rehearsal = call.trail.rehearsal
        if self._untrusted is not None:
            await self._untrusted.learn(call)
        demand = None if self._approval is None else self._approval.demand(call, decision)
        if self._approval is None or (demand is None and not rehearsal):
            return False
        if call.op != "invoke":
            await refuse_impossible(self, call, call_next)
        if rehearsal or demand is None:
            raise Rehearsed
        nobody = call._replace(trail=Trail(), parent=None)

        def look(one: Call) -> Reply:
            # As the caller may see it: a new question must not tell of changes elsewhere. He hears of it in no other
            # way, so that nothing waits for what is not there. What would change something is only tried.
            return self(one._replace(parent=nobody, trail=Trail(rehearsal=True)), call_next)

        try:
            await self._approval.obtain(call, demand, look, self._answers(call))
        except Forbidden as refused:
            raise Refused(refused) from None  # in the words for a human's refusal, not for a rule's
        return True

    async def quoted(self, call: Call, call_next: Next) -> None:
        """An edit that fails has looked, and says what it saw."""
        if self._untrusted is not None:
            with suppress(OctavoError):
                entry = expected(await settled(call_next(call._replace(op="stat", arguments=PLAIN))), Entry)
                if (noted := self._untrusted.note(call, Edited(entry, ""))) is not None:
                    await noted

    def _answers(self, call: Call) -> bool:
        """Whether the person at its client may answer: no rule denies that, of the act and of what it is a part of."""
        parts = [call]
        while (above := parts[-1].parent) is not None:
            parts.append(above)
        return all(self.allows(call.principal, "approve", part.ref) for part in parts)

    def __call__(self, call: Call, call_next: Next, by_name: bool = False) -> Reply:
        """`by_name` where it is settled what the address means."""
        if call.fault is not None:
            raise _faulty(call, call.fault)
        op, ref = call.op, call.ref
        if ref.absolute:
            call = self._in_its_root(call)
            ref = call.ref
        elif by_name:
            self.called_anew(ref.scheme)
        elif ref.scheme in self._naming and self._is_open(call):
            return self._evenly(call, ask_by_name(self, call, call_next))
        if ref.scheme not in self._served:
            raise _unknown(call)
        try:
            way = self._ways.get(op)
            if way is not None:
                return way(call, call_next)
            verb = VERB_OF[op]
            decision = self._memo.get((call.principal, verb, ref)) or self.verdict(call.principal, verb, ref)
            if type(decision) is not Decision:
                return self._later(call, call_next, self._by_condition(call, call_next, verb, decision))
            call.trail.rule = decision.rule
            if not decision.allowed:
                return self._refused(call, call_next, verb, decision)
            try:
                # What `_asked` comes to for most reads, and `_given` for what they give.
                reply = call_next(call) if op == "read" and not ref.params else self._asked(call, call_next)
            except OctavoError as raised:
                return self._failed(call, call_next, raised)
            if type(reply) is Content and self._untrusted is None and reply.entry.target is None and not reply.composed:
                return reply
            return self._given(call, call_next, reply)
        except NO as no:
            return self._in_time(call, no)

    def _in_time(self, call: Call, no: OctavoError) -> Reply:
        """A refusal takes as long as an answer, where how long it takes could tell of what is hidden."""
        if self._ticks is None or not self._ticks.due(call):
            raise no
        return self._ticks.refuse(call, no)

    def _in_its_root(self, call: Call) -> Call:
        """With the address in its root for an absolute one."""
        may_ask = self.reaches(call.principal, call.ref.scheme)
        try:
            ref = self._canonical.get(call.ref) or self.canonical(call.ref)
        except OctavoError as outside:
            if not may_ask and isinstance(outside, Forbidden):
                raise self._closed(call) from None
            # A pattern that begins above the roots too: its events would tell where they are.
            raise told(call, outside) from None
        call = call.at(ref, call.cursor, call.limit)
        call.trail.ref = ref  # the record names a thing by one address, however it was asked for
        if not may_ask:  # told the same in a root as outside of all: where one lies is nothing to know
            raise self._closed(call)
        return call

    def _given(self, call: Call, call_next: Next, reply: Reply) -> Reply:
        """What is told of a reply, which may still be to come."""
        if type(reply) is CoroutineType:
            return self._later(call, call_next, reply)
        led = self._led(call, call_next, reply)
        given = type(led) is not CoroutineType and (type(led) is not Page or led.items)
        return led if given else self._evenly(call, led)

    def _failed(self, call: Call, call_next: Next, raised: OctavoError) -> Reply:
        if call.op == "read" and (isinstance(raised, _NO_FILE) or self._may_speak_of_a_target(call, raised)):
            return self._later(call, call_next, _raising(raised))
        raise told(call, raised) from None

    def _closed(self, call: Call) -> OctavoError:
        call.trail.rule = CLOSED.rule
        return self.refusal(call, VERB_OF[call.op], CLOSED)

    def _is_open(self, call: Call) -> bool:
        """Whether it has to be asked what the address means, which may be a name or an id. Where no rule allows it as
        it stands that is asked whether or not it is a name: how long an answer takes must not tell."""
        if call.op not in BY_ID or not call.ref.segments:
            return False
        scheme, verb = call.ref.scheme, VERB_OF[call.op]
        # A file may have got an id since the last look, and that id may be denied.
        by_id = scheme in self._denied_by_id or "*" in self._denied_by_id
        known = self.addresses.named(call.ref, (call.moment or next(moments)) if by_id else None)
        self.called_anew(scheme)
        verdict = self._memo.get((call.principal, verb, call.ref)) or self.verdict(call.principal, verb, call.ref)
        if type(verdict) is Decision and not verdict.allowed:
            return verdict is CLOSED or (by_id and not known)  # a rule that denies it for sure is not asked twice
        return not known

    def _refused(self, call: Call, call_next: Next, verb: Verb, decision: Decision) -> Reply:
        refused = self.refusal(call, verb, decision)
        if call.op == "read" and decision is CLOSED and self._composing.may_collect(call):
            return self._later(call, call_next, self._composing.read(call, call_next, refused))
        if decision.hidden and call.op in ("read", "stat"):
            return self._later(call, call_next, self._as_if_absent(call, call_next, refused))
        raise refused

    async def _as_if_absent(self, call: Call, call_next: Next, refused: OctavoError) -> Reply:
        await self._look_beside(call, call_next, refused)
        raise Refused(refused)

    async def _look_beside(self, call: Call, call_next: Next, refused: OctavoError) -> None:
        """All that is asked of what is not there."""
        await look_beside(self, call, call_next)
        if call.op == "read" and call.ref.segments:
            await self._or_folder(call._replace(ref=beside(self, call)), call_next, refused)

    async def _or_folder(self, call: Call, call_next: Next, absent: OctavoError) -> OctavoError:
        """What to say where no file was found to read: whether a folder is there, to whoever may list it."""
        look = call._replace(op="folders", ref=call.ref.place, arguments=FoldersArguments(), trail=Trail())
        try:
            found = await folders(self, look, call_next)
        except OctavoError:
            return absent
        if not found:
            return absent
        return InvalidParams(f"{call.uri} is a folder: list it, or name a file in it", uri=call.uri, reason="is_folder")

    async def _by_condition(self, call: Call, call_next: Next, verb: Verb, verdict: Depends) -> Reply:
        try:
            return await self._as_it_depends(call, call_next, verb, verdict)
        except InvalidParams as raised:
            facts = self.timed(UNKNOWN)
            if is_version(call.ref) and verdict.decide(facts) != verdict.at_best(facts):
                raise without_others(raised) from None
            raise

    async def _as_it_depends(self, call: Call, call_next: Next, verb: Verb, verdict: Depends) -> Reply:
        decision = await self.settle(verdict, call, call.ref, call_next)
        call.trail.rule = decision.rule
        if not decision.allowed and await is_older(self, verdict, call, call_next):
            return await no_version(call, call_next)
        if not decision.allowed:
            refused = self.refusal(call, verb, decision)
            if call.op == "read" and decision is CLOSED and self._composing.may_collect(call):
                return await self._composing.read(call, call_next, refused)
            if decision.hidden and call.op in ("read", "stat"):
                await self._look_beside(call, call_next, refused)
            raise Refused(refused)
        reply = await settled(self._asked(call, call_next))
        # It may have changed since it was looked at, and an older version of it says other things of itself.
        entry = reply.entry if isinstance(reply, Content) else reply if isinstance(reply, Entry) else None
        if call.op in ("read", "stat") and entry is not None and (entry.metadata or not call.ref.params):
            decision = await self.settle(verdict, call, call.ref, call_next, entry)
            if not decision.allowed:
                call.trail.rule = decision.rule
                if await is_older(self, verdict, call, call_next):
                    return await no_version(call, call_next)
                raise Refused(self.refusal(call, verb, decision))
        return reply

    def _list(self, call: Call, call_next: Next) -> Reply:
        try:
            reply = self._listing.page(call, call_next, self)
        except OctavoError as raised:
            raise told(call, raised) from None
        if type(reply) is Page and reply.items and self._untrusted is None:  # what `_given` comes to for most
            return reply
        return self._given(call, call_next, reply)

    async def _changes(self, call: Call, call_next: Next) -> Reply:
        news = await changes(self, call, call_next, page=self._page)
        return await settled(self._led(call, call_next, news))

    def noted(self, principal: Principal, told: Sequence[Change]) -> Awaitable[None] | None:
        """To be asked about changes that somebody is told without a call. What it gives is waited for before they
        leave."""
        return None if self._untrusted is None else self._untrusted.note_changes(principal.id, told)

    def _complete(self, call: Call, call_next: Next) -> Reply:
        try:
            reply = self._completing.complete(call, call_next)
        except OctavoError as raised:
            raise told(call, raised) from None
        return self._given(call, call_next, reply)

    def _steer(self, call: Call, call_next: Next) -> Reply:
        """A task goes by what its tool was called with, and that was decided then."""
        decision = self.at_best(call.principal, verb := VERB_OF[call.op], call.ref)
        call.trail.rule = decision.rule
        if not decision.allowed:
            return self._refused(call, call_next, verb, decision)
        try:
            reply = self._asked(call, call_next)
        except OctavoError as raised:
            raise told(call, raised) from None
        return self._given(call, call_next, reply)

    def _search(self, call: Call, call_next: Next) -> Reply:
        if isinstance(call.given(SearchArguments).query, TextQuery):
            return self._later(call, call_next, find(self, call, call_next, self._era))
        return self._later(call, call_next, search(self, call, call_next, page=self._page, now=self._now))

    def _folders(self, call: Call, call_next: Next) -> Reply:
        if call.ref == EVERYTHING:
            return [scope for scope in map(Ref, self.addresses.exposed) if self.sight(call.principal, scope) != "none"]
        return self._later(call, call_next, folders(self, call, call_next))

    def _collect(self, call: Call, call_next: Next) -> Reply:
        call.trail.rule = BY_ENTRY.rule  # made of child calls, and each of them comes by here
        return self._later(call, call_next, settled(call_next(call)))

    def _arrange(self, call: Call, call_next: Next) -> Reply:
        page = self._page if self.rules or self.addresses.labelling else 0
        return self._later(call, call_next, arrange(self, call, call_next, page=page))

    def _act(self, call: Call, call_next: Next) -> Reply:
        decisions: list[Decision] = []
        verbs = act_of(call.op, call.arguments).needs
        for verb in verbs:
            verdict = self.verdict(call.principal, verb, call.ref)
            if type(verdict) is not Decision:
                continue
            if not verdict.allowed:  # by the address alone, before anybody looks at what stands there
                call.trail.rule = verdict.rule
                if verdict.hidden:
                    self._refuse_change(call)
                refused = self.refusal(call, verb, verdict)
                if verdict.hidden and call.op == "edit":
                    return self._later(call, call_next, as_if_absent(self, call, call_next, refused))
                raise refused
            decisions.append(verdict)
        self._refuse_change(call)
        if verbs[0] == "write" and (above := self.hidden_above(call.principal, call.ref)) is not None:
            call.trail.rule = above.rule
            raise self.refusal(call, "write", above)
        if call.op == "invoke" and self._meant is not None:
            call = self._meant(call)
        if len(decisions) < len(verbs):
            return self._later(call, call_next, act(self, call, call_next))
        decision = decisions[0]
        call.trail.rule = decision.rule
        asks = self._approval is not None and self._approval.demand(call, decision) is not None
        if asks or self._untrusted is not None:  # which may have to learn of other processes
            return self._later(call, call_next, act_with_consent(self, call, call_next, decision))
        if call.op != "invoke":
            return self._later(call, call_next, done(self, call, call_next))
        try:
            reply = call_next(call)
        except OctavoError as raised:
            raise told(call, raised) from None
        if type(reply) is CoroutineType:
            return self._later(call, call_next, reply)
        return self._led(call, call_next, reply)

    def _refuse_change(self, call: Call) -> None:
        """What cannot be changed is refused alike whatever stands there, and before anybody looks at that."""
        if call.op != "invoke" and (fixed := self.unchangeable(call.ref)) is not None:
            raise told(call, fixed)

    def _later(self, call: Call, call_next: Next, reply: Awaitable[Reply]) -> Reply:
        return self._evenly(call, self._finished(call, call_next, reply))

    def _evenly(self, call: Call, reply: Reply) -> Reply:
        return reply if self._ticks is None else self._ticks.evenly(call, reply)

    async def _finished(self, call: Call, call_next: Next, reply: Awaitable[Reply]) -> Reply:
        try:
            given = await reply
        except Refused as refused:
            raise refused.refusal from None
        except OctavoError as raised:
            fault: OctavoError = raised
            if self._may_speak_of_a_target(call, raised):
                try:
                    return await self._fault(call, call_next, raised)
                except Refused as refused:
                    raise refused.refusal from None
                except OctavoError as other:
                    fault = other
            if call.op == "read" and isinstance(fault, _NO_FILE):
                fault = await self._or_folder(call, call_next, fault)
            raise told(call, fault) from None
        return await settled(self._led(call, call_next, given))

    def _may_speak_of_a_target(self, call: Call, raised: OctavoError) -> bool:
        """What a source says of a resource that it cannot show as asked is said of what a link leads to."""
        return call.op == "read" and bool(self.rules) and not isinstance(raised, NotFound)

    async def _fault(self, call: Call, call_next: Next, raised: OctavoError) -> Reply:
        """Raises it, unless it is about something that the caller may not read: then what the same call says of
        something that is not there, or the refusal where it says that it is not."""
        plain = call._replace(ref=call.ref.place)
        try:
            await self.follow_link(plain, call_next)
        except Refused:
            await ask_beside(self, call, call_next)
            raise
        except OctavoError:  # a look that fails tells no more than what failed before
            pass
        raise raised

    def hidden_above(self, principal: Principal, ref: Ref) -> Decision | None:
        """Nothing is made below what is hidden: whether that is a folder would tell that it is there."""
        if self._ticks is None:
            return None
        above = (ref.place._replace(segments=ref.segments[:depth]) for depth in range(1, len(ref.segments)))
        decisions = (self.at_best(principal, "write", one) for one in above)
        return next((one for one in decisions if one.hidden), None)

    async def follow_link(self, call: Call, call_next: Next) -> None:
        """What is looked at before it is changed is looked at where a link leads: that must be allowed as well."""
        if not self.rules:
            return
        entry = expected(await settled(call_next(call._replace(op="stat", arguments=PLAIN))), Entry)
        if entry.target is None or entry.target == self.addresses.whole(call.ref.bare):
            return
        for verb in act_of(call.op, call.arguments).needs:
            decision = self.decide(call.principal, verb, entry.target, self.told_by(entry))
            if not decision.allowed:
                call.trail.rule = decision.rule
                raise Refused(self._refusal_there(call, verb, decision, entry.target))

    def _refusal_there(self, call: Call, verb: Verb, decision: Decision, target: Ref) -> OctavoError:
        """For what a link leads to. A link to nothing is not found, so whoever may not know of the other thing in other
        ways is told that of every link to it: a refusal would say that it is there, and where."""
        target = self.canonical(target)
        same = target.segments == call.ref.segments  # no link: the same name, in another root
        known = same or any(self.allows(call.principal, one, target) for one in KNOWN_BY)
        return self.refusal(call, verb, decision) if known or decision.hidden else absent(call)

    def _led(self, call: Call, call_next: Next, reply: Reply) -> Reply:
        """A link is served only if the address it leads to may be read as well, and of what an answer tells beside
        itself only what the caller may list."""
        noted = None if self._untrusted is None else self._untrusted.note(call, reply)
        return self._shown(call, call_next, reply) if noted is None else self._noted(noted, call, call_next, reply)

    async def _noted(self, noted: Awaitable[None], call: Call, call_next: Next, reply: Reply) -> Reply:
        await noted
        return await settled(self._shown(call, call_next, reply))

    def _shown(self, call: Call, call_next: Next, reply: Reply) -> Reply:
        if isinstance(reply, Entry):
            reply = self.unquoted(call.principal, reply)
        entry = reply.entry if isinstance(reply, Content) else reply if isinstance(reply, Entry) else None
        target = None if entry is None else entry.target
        # What a part belongs to was decided with it: rules and metadata of both have been asked.
        if target is not None and target != self.addresses.whole(call.ref.bare):
            verb = VERB_OF[call.op]
            decision = self.decide(call.principal, verb, target, self.told_by(entry))
            if not decision.allowed:
                call.trail.rule = decision.rule
                raise self._refusal_there(call, verb, decision, target)
        return self._composing.shown(call, call_next, reply) if isinstance(reply, Content) and reply.composed else reply

    def _asked(self, call: Call, call_next: Next) -> Reply:
        if call.op == "stat" and self.rules and self.addresses.collects(call.ref):
            return self._composing.stat(call, call_next)
        return version(self, call, call_next) if is_version(call.ref) else call_next(call)


async def _raising(fault: OctavoError) -> Reply:
    raise fault


def _faulty(call: Call, fault: OctavoError) -> OctavoError:
    return forbidden(call, fault) if isinstance(fault, Forbidden) else fault


def _unknown(call: Call) -> OctavoError:
    return InvalidParams(
        f"No source serves {call.ref.scheme}:// here; the list of resources tells which addresses there are",
        uri=call.uri,
        reason="unknown_scheme",
    )
