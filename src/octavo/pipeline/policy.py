"""Fold 4: who may do what.

Deny wins, and once a policy exists no match means no. Without any rule the configured sources are the
only ceiling. A decision is made on the canonical address, never on the spelling that a client chose,
and it is kept: asking again costs a dictionary look-up. A reload makes a new Policy, so no decision
outlives its rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import CoroutineType, MappingProxyType
from typing import Protocol

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
    Suggestion,
    Template,
    Verb,
)
from octavo.core.ports import Next, Reply, settled
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.pipeline.beyond import FINDING, Refused, arrange, find, folders, search
from octavo.pipeline.composed import Sees, is_empty, visible
from octavo.pipeline.listing import Listing, Sight
from octavo.pipeline.offers import below, choices, expand, variables
from octavo.pipeline.refusals import absent, forbidden, refusal, told
from octavo.pipeline.rulebook import CLOSED, OPEN, Decision, Rule, Rulebook

__all__ = ["Decision", "Policy", "Rule"]

# What is decided in a way of its own; for the rest one look at the address is enough.
_SPECIAL: frozenset[Op] = frozenset(
    ("templates", "watch", "changes", "search", "folders", "directory", "skills", "delete", "move", "copy", "undo")
)
MEMO_SIZE = 50_000  # decisions kept; all are dropped when it is full
MEMO_CHARACTERS = 256  # of an address worth keeping: clients choose how long theirs are
SIGHTS = 1000
SHOWN = 8  # callers for whom it is kept with a composed content what they may see of it

# A tool is seen by whoever may call it, a prompt by whoever may render it.
_LIST_VERB: dict[str, Verb] = {"tool": "invoke", "prompt": "render"}
_GENERAL = Decision(True, "general", "what it asks for is decided call by call")
_BY_ENTRY = Decision(True, "by entry", "each entry of the collection is decided for itself")
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
    ) -> None:
        """`page` is the most entries that one page of a listing may hold, `max_bytes` the most that is shown of what is
        made of several resources. `general` tools may be called by whoever is not denied them: what they do is asked in
        calls of its own. `aliases` are further names of tools."""
        self._addresses = addresses
        self._general = frozenset(general)
        self._aliases = aliases
        self._page, self._max_bytes = page, max_bytes
        self._now = (clock or SystemClock()).monotonic
        self._rules = tuple(replace(rule, what=tuple(map(self._usual, rule.what))) for rule in rules)
        self._served = frozenset((*addresses.exposed, *_LIST_VERB, FEED))
        self._listing = Listing(addresses.exposed, page=page, clock=clock or SystemClock())
        self._compiled: dict[tuple[Principal, Verb], Rulebook] = {}
        self._memo: dict[tuple[Principal, Verb, Ref], Decision] = {}
        self._sights: dict[tuple[Principal, Ref], Sight] = {}
        self.epoch = _epoch(self._rules)
        self._era = object()  # what a search remembers of these rules holds for no others

    def decide(self, principal: Principal, verb: Verb, ref: Ref) -> Decision:
        """The verdict on a canonical address, with the rule that gave it."""
        if not self._rules:
            return OPEN
        key = (principal, verb, ref)
        decision = self._memo.get(key)
        if decision is None:
            spellings = self._spellings(ref)
            decision = self._rulebook(principal, verb).decide(spellings)
            if decision is CLOSED and self._is_general(verb, ref):
                decision = _GENERAL
            # In which root a file stands can change, and its absolute spelling with it. A yes that has grown
            # old is caught at the entry's target; a no would stay, so it is not kept.
            if (decision.allowed or len(spellings) == 1) and _length(ref) <= MEMO_CHARACTERS:
                if len(self._memo) >= MEMO_SIZE:
                    self._memo.clear()
                self._memo[key] = decision
        return decision

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
        return self.allows(principal, verb, ref) and (target is None or self.allows(principal, verb, target))

    def may_reach(self, principal: Principal, verb: Verb, glob: Glob) -> bool:
        """Whether anything that the pattern covers could be allowed. Exact for an exact pattern."""
        if not self._rules:
            return True
        if glob.exact:
            try:
                return self.allows(principal, verb, self._addresses.canonical(glob.literal))
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
            decision = self.decide(call.principal, verb, ref)
            call.trail.rule = decision.rule
            if not decision.allowed:
                refused = self._refusal(call, verb, decision)
                if op == "read" and decision is CLOSED and self._may_collect(call):
                    return self._later(call, self._collected(call, call_next, refused))
                raise refused
        try:
            if op == "list":
                reply = self._listing.page(call, call_next, self)
            elif op == "complete":
                reply = self._complete(call, call_next)
            elif op == "stat" and self._rules and self._addresses.collects(ref):
                reply = self._collection(call, call_next)
            elif ref.params and ref.param("version") is not None:
                reply = self._version(call, call_next)
            else:
                reply = call_next(call)
        except OctavoError as raised:
            raise told(call, raised) from None
        if type(reply) is CoroutineType:
            return self._later(call, reply)
        return reply if type(reply) is Page else self._led(call, reply)

    def _special(self, call: Call, call_next: Next) -> Reply:
        if call.op == "templates":
            return self._templates(call, call_next)
        if call.op == "watch":
            return self._watch(call, call_next)
        if call.op == "changes":
            return self._changes(call, call_next)
        if call.op == "search" and isinstance(call.arguments.get("query"), TextQuery):
            return self._later(call, self._find(call, call_next))
        if call.op == "search":
            return self._later(call, search(self, call, call_next, page=self._page, now=self._now))
        if call.op == "folders" and call.ref == EVERYTHING:
            return [scope for scope in map(Ref, self._addresses.exposed) if self.sight(call.principal, scope) != "none"]
        if call.op == "folders":
            return self._later(call, folders(self, call, call_next))
        if call.op in ("directory", "skills"):
            call.trail.rule = _BY_ENTRY.rule  # made of child calls, and each of them comes by here
            return self._later(call, settled(call_next(call)))
        return self._later(call, arrange(self, call, call_next, page=self._page if self._rules else 0))

    async def _later(self, call: Call, reply: Awaitable[Reply]) -> Reply:
        try:
            given = await reply
        except Refused as refused:
            raise refused.refusal from None
        except OctavoError as raised:
            raise told(call, raised) from None
        return self._led(call, given)

    def _led(self, call: Call, reply: Reply) -> Reply:
        """A link is served only if the address it leads to may be read as well, and of what an answer tells beside
        itself only what the caller may list."""
        entry = reply.entry if isinstance(reply, Content) else reply
        if isinstance(entry, Entry) and entry.target is not None:
            verb = VERB_OF[call.op]
            decision = self.decide(call.principal, verb, entry.target)
            if not decision.allowed:
                call.trail.rule = decision.rule
                raise self._refusal(call, verb, decision)
        return self._composed(call, reply) if isinstance(reply, Content) and reply.composed else reply

    async def _version(self, call: Call, call_next: Next) -> Reply:
        """Who may not read a version where it stood then hears what he would hear of one that there never was."""
        reply = await settled(call_next(call))
        entry = reply.entry if isinstance(reply, Content) else reply
        target = entry.target if isinstance(entry, Entry) else None
        if target is None or self.allows(call.principal, VERB_OF[call.op], target):
            return reply
        none = call._replace(ref=call.ref.bare._replace(params=(("version", ""),)))
        try:
            return await settled(call_next(none))
        except OctavoError as raised:
            raise told(none, raised) from None

    def _is_general(self, verb: Verb, ref: Ref) -> bool:
        return ref in self._general if verb == "invoke" else verb == "read" and ref.scheme == FEED

    def _composed(self, call: Call, content: Content) -> Content:
        """Cut and measured as the caller sees it: what is hidden takes no room in it."""
        shown = self._shown(call, content)
        size, limit = shown.size, min(call.max_bytes, self._max_bytes)
        if size > limit:
            message = f"{call.uri} has {size} bytes, the limit is {limit}: list it page by page"
            raise TooLarge(message, uri=call.uri, size=size, limit=limit)
        call.trail.size = size
        return shown

    def _shown(self, call: Call, content: Content) -> Content:
        who, key = call.principal, (self._era, call.principal)
        shown: Content | None = content.memo.get(key)
        if shown is None:
            shown = visible(content, Sees(partial(self._lists, who), partial(self._tells, who)))
            if len(content.memo) < SHOWN:
                content.memo[key] = shown
        if self._rules and call.ref.segments and self._addresses.collects(call.ref) and is_empty(shown):
            raise absent(call)  # a collection of which the caller may see nothing is not there
        return shown

    async def _collection(self, call: Call, call_next: Next) -> Entry:
        entry: Entry = await settled(call_next(call))
        self._shown(call, await settled(call_next(call._replace(op="read"))))
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

    def finder(self, principal: Principal) -> Callable[[Ref], bool]:
        """Whether somebody may find a document: for whoever asks about very many of them, at most once each. It keeps
        no decision, and may be called in another thread."""
        if not self._rules:
            return _everything
        books = [self._rulebook(principal, verb) for verb in FINDING]

        def finds(ref: Ref) -> bool:
            whole = self._addresses.whole(ref.bare)
            both = [self._spellings(one) for one in ((ref,) if whole is None else (ref, whole))]
            return all(book.decide(spellings).allowed for book in books for spellings in both)

        return finds

    async def _find(self, call: Call, call_next: Next) -> Findings:
        who = call.principal
        findings = await find(self, call, call_next, self.finder(who), (who, self._era))
        # How much there is at all is nothing that who sees only a part of it should learn.
        return replace(findings, limited=False) if self._rules and findings.limited else findings

    async def _templates(self, call: Call, call_next: Next) -> list[Template]:
        return [offered for offered in await settled(call_next(call)) if self._offers(call.principal, offered)]

    def _refusal(self, call: Call, verb: Verb, decision: Decision) -> OctavoError:
        if decision.hidden and (by_name := self._addresses.refuses(call.ref)) is not None:
            return told(call, by_name)  # as for every other name of that kind
        return refusal(call, verb, decision)

    def shows(self, principal: Principal, entry: Entry) -> bool:
        """Whether a listing may contain the entry."""
        verb = _LIST_VERB.get(entry.ref.scheme, "list")
        ref = self.canonical(entry.ref)
        if not self.decide(principal, verb, ref).allowed:
            return False
        return entry.target is None or self.decide(principal, verb, entry.target).allowed

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
            decision = self.decide(call.principal, "watch", call.ref)
            decision = decision if glob.exact or not decision.allowed else CLOSED
        else:
            decision = _BY_EVENT
        call.trail.rule = decision.rule
        # What does not exist can be watched, and so can what is hidden: no event of it is ever delivered.
        if not decision.allowed and not decision.hidden:
            raise refusal(call, "watch", decision)

    async def _complete(self, call: Call, call_next: Next) -> list[str]:
        """Completions that name something the caller may list; a name alone is a leak already."""
        who, scheme, asked = call.principal, call.ref.scheme, call.arguments
        if scheme == "prompt":
            decision = self.decide(who, "render", call.ref)
            call.trail.rule = decision.rule
            if decision.hidden:
                raise absent(call)
            return list(await settled(call_next(call))) if decision.allowed else []
        said = self._choices(call)
        if said:
            return [value for value in said if value.startswith(asked["prefix"])]
        found: list[str | Suggestion] = [*await settled(call_next(call))]
        values = [one for one in found if isinstance(one, str)]
        if not values:
            entries = (one for one in found if isinstance(one, Suggestion))
            return sorted({one.value for one in entries if self.shows(who, one.entry)})
        if not self._rules:
            return values
        # A source completes a variable for all its templates at once, so a value has to be visible in each
        # of them; and only in them, or a caller could have hidden names judged by a template of its own.
        general = f"{scheme}://{{+path}}"
        known = {general, *(offered.uri_template for offered in self._addresses.templates())}
        mine = [t for t in known if t.startswith(f"{scheme}://") and asked["argument"] in variables(t)]
        if (asked.get("template") or general) not in mine:
            return []
        given: Mapping[str, str] = asked["given"]
        return [
            value
            for value in values
            if all(self._could_list(who, expand(t, {**given, asked["argument"]: value})) for t in mine)
        ]

    def _choices(self, call: Call) -> Sequence[str]:
        """Of a template that the caller may see."""
        template, argument = call.arguments.get("template"), call.arguments["argument"]
        offered = next((one for one in self._addresses.templates() if one.uri_template == template), None)
        return choices(offered, argument) if offered and self._offers(call.principal, offered) else ()

    def _offers(self, principal: Principal, template: Template) -> bool:
        """A template is seen by whoever may list something that it could stand for."""
        try:
            return self.may_reach(principal, "list", below(template.uri_template))
        except OctavoError:
            return False

    def _could_list(self, principal: Principal, uri: str) -> bool:
        try:
            if uri.endswith("/") or "{" in uri:
                return self.may_reach(principal, "list", below(uri))
            return self.allows(principal, "list", self._addresses.canonical(Ref.parse(uri)))
        except OctavoError:
            return False

    def _rulebook(self, principal: Principal, verb: Verb) -> Rulebook:
        book = self._compiled.get((principal, verb))
        if book is None:
            if len(self._compiled) >= MEMO_SIZE:
                self._compiled.clear()
            mine = [rule for rule in self._rules if rule.concerns(principal, verb)]
            book = self._compiled[principal, verb] = Rulebook(mine)
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


def _epoch(rules: Sequence[Rule]) -> str:
    """The same for the same rules, in every process."""
    told = [
        (rule.who, rule.may and sorted(rule.may), [glob.text for glob in rule.what], rule.allow, rule.hide)
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
