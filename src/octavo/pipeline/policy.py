"""Fold 4: who may do what.

Deny wins, and once a policy exists no match means no. Without any rule the configured sources are the
only ceiling. A decision is made on the canonical address, never on the spelling that a client chose,
and it is kept: asking again costs a dictionary look-up. A reload makes a new Policy, so no decision
outlives its rules. Where a rule has a condition the verdict is kept and the facts of each request decide: what an
answer tells of itself is held against the rules once more before it is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import CoroutineType, MappingProxyType
from typing import Any, Protocol, TypeAlias

from msgspec.structs import replace

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import Forbidden, InvalidParams, OctavoError, TooLarge
from octavo.core.findings import Findings
from octavo.core.glob import Glob
from octavo.core.model import (
    EVERYTHING,
    FEED,
    VERB_OF,
    VERBS,
    Call,
    Change,
    Content,
    Entry,
    News,
    Op,
    Page,
    Principal,
    Template,
    Trail,
    Verb,
)
from octavo.core.ports import Next, Reply, settled
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.pipeline.beyond import FINDING, Refused, arrange, find, folders, search
from octavo.pipeline.completing import Completing
from octavo.pipeline.composed import Sees, is_empty, visible
from octavo.pipeline.consent import Consent
from octavo.pipeline.listing import Listing, Sight
from octavo.pipeline.refusals import absent, forbidden, refusal, told
from octavo.pipeline.rulebook import (
    CLOSED,
    OPEN,
    UNKNOWN,
    Decision,
    Depends,
    Facts,
    Rule,
    Rulebook,
    Truth,
    Verdict,
    strictest,
)

__all__ = ["Decision", "Policy", "Rule"]

# What is decided in a way of its own; for the rest one look at the address is enough.
_SPECIAL: frozenset[Op] = frozenset(
    (
        "templates", "watch", "changes", "search", "folders", "directory", "skills", "delete", "move", "copy", "undo",
        "invoke", "write", "edit", "make",
    )
)  # fmt: skip
_ACTS: frozenset[Op] = frozenset(("invoke", "write", "edit", "make"))  # about which a human may have to be asked
MEMO_SIZE = 50_000  # decisions kept; all are dropped when it is full
MEMO_CHARACTERS = 256  # of an address worth keeping: clients choose how long theirs are
SIGHTS = 1000
SHOWN = 8  # callers for whom it is kept with a composed content what they may see of it
BOOKS = 1000  # sets of rules that are kept compiled

# A tool is seen by whoever may call it, a prompt by whoever may render it.
_LIST_VERB: dict[str, Verb] = {"tool": "invoke", "prompt": "render"}
_GENERAL = Decision(True, "general", "what it asks for is decided call by call")
_BY_ENTRY = Decision(True, "by entry", "each entry of the collection is decided for itself")
Telling: TypeAlias = Callable[[Mapping[str, Any] | None], bool]
_BY_EVENT = Decision(True, "by event", "each event is decided when it is delivered")


class Addresses(Protocol):
    """What the policy needs to know of the sources."""

    exposed: tuple[str, ...]

    def canonical(self, ref: Ref) -> Ref: ...
    def spelled(self, ref: Ref) -> Ref: ...
    def refuses(self, ref: Ref) -> OctavoError | None: ...
    def collects(self, ref: Ref) -> bool: ...
    def filters(self, scheme: str) -> Collection[str]: ...
    def whole(self, ref: Ref) -> Ref | None: ...
    def templates(self) -> Sequence[Template]: ...
    def labelled(self, entry: Entry) -> Entry: ...


class Policy:
    def __init__(
        self,
        rules: Sequence[Rule],
        addresses: Addresses,
        *,
        page: int = 100,
        max_bytes: int = 1 << 20,
        general: Iterable[Ref] = (),
        aliases: Mapping[Ref, Ref] = MappingProxyType({}),
        clock: Clock | None = None,
        approval: Consent | None = None,
    ) -> None:
        """`page` is the most entries that one page of a listing may hold, `max_bytes` the most that is shown of what is
        made of several resources. `general` tools may be called by whoever is not denied them: what they do is asked in
        calls of its own. `aliases` are further names of tools. Without `approval` no human is asked."""
        self._approval = approval
        self._addresses = addresses
        self._general = frozenset(general)
        self._aliases = aliases
        self._page, self._max_bytes = page, max_bytes
        self._now, self._wall = (clock or SystemClock()).monotonic, (clock or SystemClock()).wall
        self._rules = tuple(replace(rule, what=tuple(map(self._usual, rule.what))) for rule in rules)
        self._asking = any(rule.people for rule in rules)
        self._untrusted = None if approval is None else approval.untrusted
        self._served = frozenset((*addresses.exposed, *_LIST_VERB, FEED))
        self._completing = Completing(self, addresses.templates, addresses.canonical, ruled=bool(rules))
        self._listing = Listing(addresses.exposed, page=page, clock=clock or SystemClock())
        self._compiled: dict[tuple[Principal, Verb], Rulebook] = {}
        self._books: dict[tuple[int, ...], Rulebook] = {}  # by the rules in it
        self._memo: dict[tuple[Principal, Verb, Ref], Verdict] = {}
        self._conditional = any(rule.condition is not None for rule in self._rules)
        self._times = tuple({time: None for rule in rules if rule.condition for time in rule.condition.times})
        self._sights: dict[tuple[Principal, Ref], Sight] = {}
        self.epoch = _epoch(self._rules)
        self._era = object()  # what a search remembers of these rules holds for no others

    def under(self, rules: Sequence[Rule]) -> Policy:
        """The same with other rules."""
        return Policy(
            rules,
            self._addresses,
            page=self._page,
            max_bytes=self._max_bytes,
            general=self._general,
            aliases=self._aliases,
        )

    def verdict(self, principal: Principal, verb: Verb, ref: Ref) -> Verdict:
        """What the rules say of a canonical address: a decision, or what it depends on."""
        if not self._rules:
            return OPEN
        key = (principal, verb, ref)
        verdict = self._memo.get(key)
        if verdict is None:
            spellings = self._spellings(ref)
            verdict = self._rulebook(principal, verb).decide(spellings)
            if self._is_general(verb, ref):
                verdict = _generally(verdict)
            # In which root a file stands can change, and its absolute spelling with it. A yes that has grown
            # old is caught at the entry's target; a no would stay, so it is not kept.
            sure = type(verdict) is Decision and verdict.allowed
            if (sure or len(spellings) == 1) and _length(ref) <= MEMO_CHARACTERS:
                if len(self._memo) >= MEMO_SIZE:
                    self._memo.clear()
                self._memo[key] = verdict
        return verdict

    def decide(self, principal: Principal, verb: Verb, ref: Ref, facts: Facts = UNKNOWN) -> Decision:
        """With the rule that gave it. What the facts leave out is taken for the worst."""
        verdict = self.verdict(principal, verb, ref)
        return verdict if type(verdict) is Decision else verdict.decide(self.timed(facts))

    def at_best(self, principal: Principal, verb: Verb, ref: Ref, facts: Facts = UNKNOWN) -> Decision:
        """The same, with what the facts leave out taken for the best."""
        verdict = self.verdict(principal, verb, ref)
        return verdict if type(verdict) is Decision else verdict.at_best(self.timed(facts))

    async def judged(self, call: Call, verb: Verb, ref: Ref, call_next: Next, entry: Entry | None = None) -> Decision:
        """With all facts that can be known: those of the call, and the metadata of what stands at the address, which
        is `entry` where somebody has it already."""
        verdict = self.verdict(call.principal, verb, ref)
        return verdict if type(verdict) is Decision else await self._settled(verdict, call, ref, call_next, entry)

    async def _settled(
        self, verdict: Depends, call: Call, ref: Ref, call_next: Next, entry: Entry | None = None
    ) -> Decision:
        from octavo.pipeline.facts import metadata_at

        facts = Facts(None, call.arguments if call.op in ("invoke", "render") else None, self._wall())
        decision = verdict.decide(facts)
        if decision == verdict.at_best(facts):
            return decision
        whole = self._addresses.whole(ref.bare)
        if entry is not None and whole is None:
            return verdict.decide(facts._replace(metadata=entry.metadata))
        decisions = [
            verdict.decide(facts._replace(metadata=one)) for one in await metadata_at(call, ref, whole, call_next)
        ]
        return strictest(decisions)

    @property
    def phase(self) -> tuple[Truth, ...]:
        """Which of the times that rules speak of it is: as long as this stays, decisions do."""
        return tuple(time.holds(self._wall()) for time in self._times) if self._times else ()

    def timed(self, facts: Facts) -> Facts:
        """With the time that it is, unless they say another."""
        return facts if facts.at is not None else facts._replace(at=self._wall())

    def allows(self, principal: Principal, verb: Verb, ref: Ref) -> bool:
        return self.decide(principal, verb, ref).allowed

    def told(self, principal: Principal, verb: Verb, change: Change) -> Change | None:
        """What of a change may be told to somebody: both its address and what a link led to must be allowed. Who may
        not read it learns no etag either: it could tell whether the content is one that he knows."""
        told = change.part(lambda ref, entry: self._sees(principal, verb, ref, entry))
        if told is None or all(
            entry is None or not entry.etag or self._sees(principal, "read", self.canonical(entry.ref), entry)
            for entry in (told.old, told.new)
        ):
            return told
        return replace(told, old=_without_etag(told.old), new=_without_etag(told.new))

    def _sees(self, principal: Principal, verb: Verb, ref: Ref, entry: Entry | None) -> bool:
        target = None if entry is None else entry.target
        facts = self._told_by(entry) if self._conditional else UNKNOWN
        return self.decide(principal, verb, ref, facts).allowed and (
            target is None or self.decide(principal, verb, target, facts).allowed
        )

    def _told_by(self, entry: Entry | None) -> Facts:
        """A part is what its whole is, and does not say what that is."""
        if entry is None or self._addresses.whole(self.canonical(entry.ref)) is not None:
            return UNKNOWN
        return Facts(self._addresses.labelled(entry).metadata)

    def may_reach(self, principal: Principal, verb: Verb, glob: Glob) -> bool:
        """Whether anything that the pattern covers could be allowed. Exact for an exact pattern, but for conditions."""
        if not self._rules:
            return True
        if glob.exact:
            try:
                return self.at_best(principal, verb, self._addresses.canonical(glob.literal)).allowed
            except OctavoError:
                return False
        return self._rulebook(principal, verb).may_reach(glob, self._addresses.canonical)

    def __call__(self, call: Call, call_next: Next) -> Reply:
        fault = call.fault
        if fault is not None:
            raise forbidden(call, fault) if isinstance(fault, Forbidden) else fault
        op, ref = call.op, call.ref
        if ref.absolute:
            try:
                ref = self._addresses.canonical(ref)
            except OctavoError as outside:
                # A pattern that begins above the roots too: its events would tell where they are.
                raise told(call, outside) from None
            call = call._replace(ref=ref)
            call.trail.ref = ref  # the record names a thing by one address, however it was asked for
        if ref.scheme not in self._served and ref.scheme != "*":
            raise InvalidParams(f"No source serves {ref.scheme}:// here", uri=call.uri, reason="unknown_scheme")
        if op in _SPECIAL:
            return self._special(call, call_next)
        if op != "list" and op != "complete":
            verb = VERB_OF[op]
            decision = self.verdict(call.principal, verb, ref)
            if type(decision) is not Decision:
                return self._later(call, call_next, self._by_condition(call, call_next, verb, decision))
            call.trail.rule = decision.rule
            if not decision.allowed:
                refused = self._refusal(call, verb, decision)
                if op == "read" and decision is CLOSED and self._may_collect(call):
                    return self._later(call, call_next, self._collected(call, call_next, refused))
                if decision.hidden and op in ("read", "stat"):
                    return self._later(call, call_next, self._as_if_absent(call, call_next, refused))
                raise refused
        try:
            if op == "list":
                reply = self._listing.page(call, call_next, self)
            elif op == "complete":
                reply = self._completing.complete(call, call_next)
            else:
                reply = self._asked(call, call_next)
        except OctavoError as raised:
            raise told(call, raised) from None
        if type(reply) is CoroutineType:
            return self._later(call, call_next, reply)
        return reply if type(reply) is Page else self._led(call, call_next, reply)

    async def _by_condition(self, call: Call, call_next: Next, verb: Verb, verdict: Depends) -> Reply:
        decision = await self._settled(verdict, call, call.ref, call_next)
        call.trail.rule = decision.rule
        if not decision.allowed and await self._is_older(verdict, call, call_next):
            return await self._no_version(call, call_next)
        if not decision.allowed:
            refused = self._refusal(call, verb, decision)
            if call.op == "read" and decision is CLOSED and self._may_collect(call):
                return await self._collected(call, call_next, refused)
            raise Refused(refused)
        reply = await settled(self._asked(call, call_next))
        # It may have changed since it was looked at, and an older version of it says other things of itself.
        entry = reply.entry if isinstance(reply, Content) else reply
        if call.op in ("read", "stat") and isinstance(entry, Entry) and (entry.metadata or not call.ref.params):
            decision = await self._settled(verdict, call, call.ref, call_next, entry)
            if not decision.allowed:
                call.trail.rule = decision.rule
                if await self._is_older(verdict, call, call_next):
                    return await self._no_version(call, call_next)
                raise Refused(self._refusal(call, verb, decision))
        return reply

    async def _as_if_absent(self, call: Call, call_next: Next, refused: OctavoError) -> Reply:
        """What is hidden takes the time of what is not there: something that is not is asked for, where what the
        caller may see ends."""
        ref, verb = call.ref, VERB_OF[call.op]
        above = (ref.bare._replace(segments=ref.segments[: place + 1]) for place in range(len(ref.segments) - 1))
        hidden = [self.decide(call.principal, verb, one).hidden for one in above]
        if ref.segments:
            place = hidden.index(True) if True in hidden else len(ref.segments) - 1
            with suppress(OctavoError):
                await settled(call_next(call._replace(ref=_beside(ref, place), trail=Trail())))
        raise Refused(refused)

    async def _is_older(self, verdict: Depends, call: Call, call_next: Next) -> bool:
        """Whether what is refused is a version of something that the caller may see as it is now."""
        ref = call.ref
        return _is_version(ref) and (await self._settled(verdict, call, ref.bare, call_next)).allowed

    def _special(self, call: Call, call_next: Next) -> Reply:
        if call.op in _ACTS:
            return self._act(call, call_next)
        if call.op == "templates":
            return self._templates(call, call_next)
        if call.op == "watch":
            return self._watch(call, call_next)
        if call.op == "changes":
            return self._changes(call, call_next)
        if call.op == "search" and isinstance(call.arguments.get("query"), TextQuery):
            return self._later(call, call_next, self._find(call, call_next))
        if call.op == "search":
            return self._later(call, call_next, search(self, call, call_next, page=self._page, now=self._now))
        if call.op == "folders" and call.ref == EVERYTHING:
            return [scope for scope in map(Ref, self._addresses.exposed) if self.sight(call.principal, scope) != "none"]
        if call.op == "folders":
            return self._later(call, call_next, folders(self, call, call_next))
        if call.op in ("directory", "skills"):
            call.trail.rule = _BY_ENTRY.rule  # made of child calls, and each of them comes by here
            return self._later(call, call_next, settled(call_next(call)))
        return self._later(call, call_next, arrange(self, call, call_next, page=self._page if self._rules else 0))

    def _act(self, call: Call, call_next: Next) -> Reply:
        verb = VERB_OF[call.op]
        decision = self.verdict(call.principal, verb, call.ref)
        if type(decision) is not Decision:
            return self._later(call, call_next, self._acted(call, call_next, decision))
        call.trail.rule = decision.rule
        if not decision.allowed:
            raise self._refusal(call, verb, decision)
        if self._approval is not None and self._approval.demand(call, decision) is not None:
            return self._later(call, call_next, self._consented(call, decision, call_next))
        try:
            reply = call_next(call)
        except OctavoError as raised:
            raise told(call, raised) from None
        if type(reply) is CoroutineType:
            return self._later(call, call_next, reply)
        return self._led(call, call_next, reply)

    async def _acted(self, call: Call, call_next: Next, verdict: Depends) -> Reply:
        decision = await self._agreed(call, call_next, verdict)
        if await self.consent(call, decision, call_next):  # that may have taken minutes
            await self._agreed(call, call_next, verdict)
        return await settled(call_next(call))

    async def _agreed(self, call: Call, call_next: Next, verdict: Depends) -> Decision:
        decision = await self._settled(verdict, call, call.ref, call_next)
        call.trail.rule = decision.rule
        if not decision.allowed:
            raise Refused(self._refusal(call, VERB_OF[call.op], decision))
        return decision

    async def _consented(self, call: Call, decision: Decision, call_next: Next) -> Reply:
        await self.consent(call, decision, call_next)
        return await settled(call_next(call))

    async def consent(self, call: Call, decision: Decision, call_next: Next) -> bool:
        """Returns where nobody has to be asked, or a human has allowed it: whether that was so."""
        demand = None if self._approval is None else self._approval.demand(call, decision)
        if self._approval is None or demand is None:
            return False
        try:
            # What it looks at is what the caller may see: a new question must not tell of changes elsewhere.
            await self._approval.obtain(call, demand, lambda look: self(look, call_next))
        except Forbidden as refused:
            raise Refused(refused) from None  # in the words for a human's refusal, not for a rule's
        return True

    def retire(self, after: Policy) -> None:
        """Other rules hold from now on: nothing that waits for a human is done by these."""
        if self._approval is not None:
            self._approval.retire()
        if self._untrusted is not None and after._untrusted is not None:
            after._untrusted.takes_over(self._untrusted)

    def asks(self, principal: Principal, ref: Ref) -> bool:
        """Whether a rule says that a human is asked before that tool is called, or may say so by its arguments."""
        if self._untrusted is not None and self._untrusted.concerns(principal.id):
            return True
        if not self._asking:
            return False
        verdict = self.verdict(principal, "invoke", ref)
        return bool(verdict.people) if type(verdict) is Decision else verdict.asks

    async def _later(self, call: Call, call_next: Next, reply: Awaitable[Reply]) -> Reply:
        try:
            given = await reply
        except Refused as refused:
            raise refused.refusal from None
        except OctavoError as raised:
            raise told(call, raised) from None
        return await settled(self._led(call, call_next, given))

    def _led(self, call: Call, call_next: Next, reply: Reply) -> Reply:
        """A link is served only if the address it leads to may be read as well, and of what an answer tells beside
        itself only what the caller may list."""
        if self._untrusted is not None:
            self._untrusted.note(call, reply)
        entry = reply.entry if isinstance(reply, Content) else reply
        if isinstance(entry, Entry) and entry.target is not None:
            verb = VERB_OF[call.op]
            decision = self.decide(call.principal, verb, entry.target, self._told_by(entry))
            if not decision.allowed:
                call.trail.rule = decision.rule
                raise self._refusal(call, verb, decision)
        return self._composed(call, call_next, reply) if isinstance(reply, Content) and reply.composed else reply

    def _asked(self, call: Call, call_next: Next) -> Reply:
        if call.op == "stat" and self._rules and self._addresses.collects(call.ref):
            return self._collection(call, call_next)
        return self._version(call, call_next) if _is_version(call.ref) else call_next(call)

    async def _version(self, call: Call, call_next: Next) -> Reply:
        """Who may not read a version where it stood then hears what he would hear of one that there never was."""
        reply = await settled(call_next(call))
        entry = reply.entry if isinstance(reply, Content) else reply
        target = entry.target if isinstance(entry, Entry) else None
        if target is None:
            return reply
        decision = self.decide(call.principal, VERB_OF[call.op], target, self._told_by(entry))
        return reply if decision.allowed else await self._no_version(call, call_next)

    async def _no_version(self, call: Call, call_next: Next) -> Reply:
        none = call._replace(ref=call.ref.bare._replace(params=(("version", ""),)))
        try:
            return await settled(call_next(none))
        except OctavoError as raised:
            raise told(none, raised) from None

    def _is_general(self, verb: Verb, ref: Ref) -> bool:
        return ref in self._general if verb == "invoke" else verb == "read" and ref.scheme == FEED

    def _composed(self, call: Call, call_next: Next, content: Content) -> Reply:
        if self._conditional:
            return self._looked(call, call_next, content)
        return self._bounded(call, self._shown(call, content))

    def _bounded(self, call: Call, shown: Content) -> Content:
        """Measured as the caller sees it: what is hidden takes no room in it."""
        size, limit = shown.size, min(call.max_bytes, self._max_bytes)
        if size > limit:
            message = f"{call.uri} has {size} bytes, the limit is {limit}: list it page by page"
            raise TooLarge(message, uri=call.uri, size=size, limit=limit)
        call.trail.size = size
        return shown

    async def _looked(self, call: Call, call_next: Next, content: Content) -> Content:
        return self._bounded(call, await self._shown_now(call, call_next, content))

    async def _shown_now(self, call: Call, call_next: Next, content: Content) -> Content:
        """What the answer tells of is looked at first, where metadata decide whether it may: level by level, since
        what stands inside of something is found once that may be seen."""
        known: dict[Ref, bool] = {}
        while True:
            asked: dict[Ref, None] = {}
            shown = visible(content, Sees(partial(_seen, known, asked), partial(self._tells, call.principal)))
            if not asked:
                return self._something(call, shown)
            for ref in asked:
                verb = _LIST_VERB.get(ref.scheme)
                if verb is not None:
                    known[ref] = self.at_best(call.principal, verb, ref.bare).allowed
                else:
                    known[ref] = await self._may_list(call, call_next, ref.bare)

    async def _may_list(self, call: Call, call_next: Next, ref: Ref) -> bool:
        try:
            return (await self.judged(call, "list", self.canonical(ref), call_next)).allowed
        except OctavoError:  # outside of what is served
            return False

    def _shown(self, call: Call, content: Content) -> Content:
        who, key = call.principal, (self._era, call.principal)
        shown: Content | None = content.memo.get(key)
        if shown is None:
            shown = visible(content, Sees(partial(self._lists, who), partial(self._tells, who)))
            if len(content.memo) < SHOWN:
                content.memo[key] = shown
        return self._something(call, shown)

    def _something(self, call: Call, shown: Content) -> Content:
        if self._rules and call.ref.segments and self._addresses.collects(call.ref) and is_empty(shown):
            raise absent(call)  # a collection of which the caller may see nothing is not there
        return shown

    async def _collection(self, call: Call, call_next: Next) -> Entry:
        entry: Entry = await settled(call_next(call))
        content: Content = await settled(call_next(call._replace(op="read")))
        if self._conditional:
            await self._shown_now(call, call_next, content)
        else:
            self._shown(call, content)
        return entry

    def _may_collect(self, call: Call) -> bool:
        """No rule speaks of the collection as such: then whoever may list something in it may read what that is."""
        ref = call.ref.bare
        under = Glob(f"{ref}/*" if ref.segments else f"{ref.scheme}://*")
        return self._addresses.collects(call.ref) and self.may_reach(call.principal, "list", under)

    async def _collected(self, call: Call, call_next: Next, refused: OctavoError) -> Content:
        call.trail.rule = _BY_ENTRY.rule
        content = await settled(call_next(call))
        if not (isinstance(content, Content) and content.composed):
            raise Refused(refused)
        return content

    def _lists(self, principal: Principal, ref: Ref) -> bool:
        verb = _LIST_VERB.get(ref.scheme, "list")
        return self.decide(principal, verb, self.canonical(ref.bare)).allowed

    def _tells(self, principal: Principal, pattern: str) -> bool:
        """Whether somebody may know a pattern of a rule: he sees everything that it covers, or it is one by which he
        himself may do something."""
        if not self._rules:
            return True
        try:
            glob = self._usual(Glob(pattern))
        except OctavoError:
            return False
        if glob.exact and self._lists(principal, glob.literal):
            return True
        verbs = {"list", *_LIST_VERB.values()} if glob.scheme == "*" else {_LIST_VERB.get(glob.scheme, "list")}
        of = self._addresses.canonical
        if all(self._rulebook(principal, verb).allows_every(glob, of) for verb in VERBS if verb in verbs):
            return True
        return any(
            rule.allow
            and glob in rule.what
            and rule.concerns(principal, verb)
            and self.may_reach(principal, verb, glob)
            for rule in self._rules
            for verb in VERBS
        )

    def canonical(self, ref: Ref) -> Ref:
        """The spelling on which decisions are made."""
        return self._addresses.canonical(ref) if ref.absolute else ref

    def finder(self, principal: Principal) -> Callable[[Ref], bool | Telling]:
        """Whether somebody may find a document, or what its metadata must be asked: for whoever asks about very many
        of them, at most once each. It keeps no decision, and may be called in another thread."""
        if not self._rules:
            return _everything
        books = [*dict.fromkeys(self._rulebook(principal, verb) for verb in FINDING)]

        def finds(ref: Ref) -> bool | Telling:
            whole = self._addresses.whole(ref.bare)
            both = [self._spellings(one) for one in ((ref,) if whole is None else (ref, whole))]
            verdicts = [book.decide(spellings) for book in books for spellings in both]
            open_ones = [verdict for verdict in verdicts if type(verdict) is Depends]
            sure = all(verdict.allowed for verdict in verdicts if type(verdict) is Decision)
            return partial(self._finds_by, ref, open_ones) if sure and open_ones else sure

        return finds

    def _finds_by(self, ref: Ref, verdicts: Sequence[Depends], metadata: Mapping[str, Any] | None) -> bool:
        known = metadata if self._addresses.whole(ref) is None else None
        facts = Facts(known, None, self._wall())
        return all(verdict.decide(facts).allowed for verdict in verdicts)

    async def _find(self, call: Call, call_next: Next) -> Findings:
        who = call.principal
        findings = await find(self, call, call_next, self.finder(who), (who, self._era, self.phase))
        if self._conditional:  # the index may be older than what it tells of
            here = [one for one in findings.items if await self._still_found(call, call_next, self.canonical(one.ref))]
            findings = replace(findings, items=tuple(here))
        # How much there is at all is nothing that who sees only a part of it should learn.
        return replace(findings, limited=False) if self._rules and findings.limited else findings

    async def _still_found(self, call: Call, call_next: Next, ref: Ref) -> bool:
        return all([(await self.judged(call, verb, ref, call_next)).allowed for verb in FINDING])

    async def _templates(self, call: Call, call_next: Next) -> list[Template]:
        return [
            offered for offered in await settled(call_next(call)) if self._completing.offers(call.principal, offered)
        ]

    def _refusal(self, call: Call, verb: Verb, decision: Decision) -> OctavoError:
        if decision.hidden and (by_name := self._addresses.refuses(call.ref)) is not None:
            return told(call, by_name)  # as for every other name of that kind
        return refusal(call, verb, decision)

    def shows(self, principal: Principal, entry: Entry) -> bool:
        """Whether a listing may contain the entry."""
        verb = _LIST_VERB.get(entry.ref.scheme)
        if verb is not None:  # by whom it could be called, with some arguments
            return self.at_best(principal, verb, entry.ref, Facts(entry.metadata)).allowed
        return self._sees(principal, "list", self.canonical(entry.ref), entry)

    def filters(self, scheme: str) -> Collection[str]:
        return self._addresses.filters(scheme)

    def sight(self, principal: Principal, scope: Ref) -> Sight:
        """How much of what stands under the scope a listing may show."""
        if not self._rules:
            return "all"
        key = (principal, scope)
        sight = self._sights.get(key)
        if sight is None:
            if len(self._sights) >= SIGHTS:
                self._sights.clear()
            sight = self._sights[key] = self._look(principal, scope.bare)
        return sight

    def _look(self, principal: Principal, scope: Ref) -> Sight:
        verb = _LIST_VERB.get(scope.scheme, "list")
        if self._rulebook(principal, verb).allows_all(scope.scheme):
            return "all"
        if self._general and scope.scheme == "tool":
            return "some"
        whole = self._addresses.whole(scope)
        reached = any(self.may_reach(principal, verb, _under(one)) for one in (scope, whole) if one is not None)
        return "some" if reached else "none"

    async def _watch(self, call: Call, call_next: Next) -> Reply:
        self._may_watch(call, call.arguments["glob"])
        return await settled(call_next(call))

    async def _changes(self, call: Call, call_next: Next) -> News:
        """As many changes as a page may hold, each as its caller may be told of it; the latest without `after`."""
        self._may_watch(call, _under(call.ref))
        news: News = await settled(call_next(call))
        told = [part for change in news.changes if (part := self.told(call.principal, "watch", change)) is not None]
        limit = max(1, min(call.limit, self._page))
        if len(told) <= limit:
            return replace(news, changes=tuple(told))
        if call.arguments.get("after") is None:
            return replace(news, changes=tuple(told[-limit:]))
        return replace(news, changes=tuple(told[:limit]), next=told[limit - 1].seq, more=True)

    def _may_watch(self, call: Call, glob: Glob) -> None:
        if glob.exact or not self.may_reach(call.principal, "watch", glob):
            decision = self.at_best(call.principal, "watch", call.ref)
            decision = decision if glob.exact or not decision.allowed else CLOSED
        else:
            decision = _BY_EVENT
        call.trail.rule = decision.rule
        # What does not exist can be watched, and so can what is hidden: no event of it is ever delivered.
        if not decision.allowed and not decision.hidden:
            raise refusal(call, "watch", decision)

    def _rulebook(self, principal: Principal, verb: Verb) -> Rulebook:
        book = self._compiled.get((principal, verb))
        if book is None:
            if len(self._compiled) >= MEMO_SIZE:
                self._compiled.clear()
            # Principals whom the same rules concern share what is compiled of them.
            mine = tuple(number for number, rule in enumerate(self._rules) if rule.concerns(principal, verb))
            book = self._books.get(mine)
            if book is None:
                if len(self._books) >= BOOKS:
                    self._books.clear()
                book = self._books[mine] = Rulebook(self._rules[number] for number in mine)
            self._compiled[principal, verb] = book
        return book

    def _spellings(self, ref: Ref) -> tuple[Ref, ...]:
        """Without parameters, but found with them: `?root=2` says which absolute spelling is meant. A part of an entry
        has the address of the entry among them: rules speak of both."""
        if ref.scheme not in self._addresses.exposed:
            stands_for = self._aliases.get(ref)
            return (ref.bare,) if stands_for is None else (ref.bare, stands_for)
        try:
            other = self._addresses.spelled(ref).bare
        except OctavoError:  # parameters that the source will refuse
            other = self._addresses.spelled(ref.bare).bare
        whole = self._addresses.whole(ref.bare)
        return tuple(dict.fromkeys((ref.bare, other) if whole is None else (ref.bare, other, whole)))

    def _usual(self, glob: Glob) -> Glob:
        """An absolute pattern in the spelling that addresses have here: a root behind a link is known by two."""
        literal, of = glob.literal, self._addresses
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


def _everything(_: Ref) -> bool:
    return True


def _beside(ref: Ref, place: int) -> Ref:
    """With another name there, as long and of the same kind. If there is such a thing, it is looked at for nothing."""
    name, dot, suffix = (
        ref.segments[place].rpartition(".") if "." in ref.segments[place] else (ref.segments[place], "", "")
    )
    other = ("qzjx" * len(name))[: len(name)] + dot + suffix
    return ref._replace(segments=(*ref.segments[:place], other, *ref.segments[place + 1 :]))


def _is_version(ref: Ref) -> bool:
    return bool(ref.params) and ref.param("version") is not None


def _seen(known: Mapping[Ref, bool], asked: dict[Ref, None], ref: Ref) -> bool:
    """What is not known yet is not seen, and asked for."""
    if ref not in known:
        asked[ref] = None
    return known.get(ref, False)


def _generally(verdict: Verdict) -> Verdict:
    """Where nothing denies it, it is allowed without a rule."""
    if isinstance(verdict, Depends):
        if verdict.otherwise is not CLOSED:
            return verdict
        asking = tuple(one for one in verdict.allows if one.decision.people is not None)
        return Depends(verdict.denies, _GENERAL, asking) if verdict.denies or asking else _GENERAL
    return _GENERAL if verdict is CLOSED else verdict


def _epoch(rules: Sequence[Rule]) -> str:
    """The same for the same rules, in every process."""
    told = [
        (rule.who, rule.may and sorted(rule.may), [glob.text for glob in rule.what], rule.allow, rule.hide)
        + ((repr(rule.condition),) if rule.condition is not None else ())
        + ((rule.people,) if rule.people is not None else ())
        for rule in rules
    ]
    return hashlib.blake2b(repr(told).encode(), digest_size=8).hexdigest()


def _without_etag(entry: Entry | None) -> Entry | None:
    return None if entry is None else replace(entry, etag="")


def _under(scope: Ref) -> Glob:
    """Everything at and below an address; with the scheme `*`, everything."""
    if scope.scheme == "*":
        return Glob("**")
    return Glob(f"{scope.bare}/*" if scope.segments else f"{scope.scheme}://*")


def _length(ref: Ref) -> int:
    return sum(map(len, ref.segments)) + sum(len(key) + len(value) for key, value in ref.params)
