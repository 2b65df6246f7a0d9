"""What a caller may see in answers: entries, changes, search results, patterns of rules.

All of it is decided by addresses and by what a thing tells of itself: nothing is asked of a source.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, TypeAlias

from msgspec.structs import replace

from octavo.core.arguments import WriteArguments
from octavo.core.errors import Conflict, OctavoError, TooLarge
from octavo.core.glob import Glob
from octavo.core.memo import Bounded
from octavo.core.operations import ACTS, act_of
from octavo.core.ref import Ref
from octavo.core.values import VERBS, Call, Change, Entry, Principal, Verb, shown
from octavo.pipeline.policy.decisions import Decisions
from octavo.pipeline.policy.on_list import Sight
from octavo.pipeline.policy.refusals import in_the_way
from octavo.pipeline.policy.rules import UNKNOWN, Decision, Depends, Facts

SIGHTS = 1000
FINDING = ACTS["search"].needs

# A tool is seen by whoever may call it, a prompt by whoever may render it.
LIST_VERB: dict[str, Verb] = {"tool": "invoke", "prompt": "render"}
Telling: TypeAlias = Callable[[Mapping[str, Any] | None], bool]

KNOWN_BY: tuple[Verb, ...] = ("list", "read")  # verbs by which somebody may know that something is there


class Seeing(Decisions):
    @cached_property
    def _sights(self) -> Bounded[tuple[Principal, Ref], Sight]:
        return Bounded(SIGHTS)

    @cached_property
    def _reached(self) -> Bounded[tuple[Principal, str], bool]:
        return Bounded(SIGHTS)

    def reaches(self, principal: Principal, scheme: str) -> bool:
        """Whether somebody may do anything with anything there."""
        key = (principal, scheme)
        reached = self._reached.get(key)
        if reached is None:
            everything = under(Ref(scheme))
            reached = self._reached.keep(key, any(self.may_reach(principal, verb, everything) for verb in VERBS))
        return reached

    def told(self, principal: Principal, verb: Verb, change: Change) -> Change | None:
        """What of a change may be told to somebody: both its address and what a link led to must be allowed. Who may
        not read it learns no etag either: it could tell whether the content is one that he knows."""
        told = change.part(lambda ref, entry: self._sees(principal, verb, self._where(ref, entry), entry))
        if told is not None:
            old, new = (one and self.unquoted(principal, one) for one in (told.old, told.new))
            told = told if old is told.old and new is told.new else replace(told, old=old, new=new)
        if told is None or all(
            entry is None
            or not entry.etag
            or self._sees(principal, "read", self._where(self.canonical(entry.ref), entry), entry)
            for entry in (told.old, told.new)
        ):
            return told
        return replace(told, old=_without_etag(told.old), new=_without_etag(told.new))

    def _where(self, ref: Ref, entry: Entry | None) -> Ref:
        """The address by which it is decided who hears of a change: with the root in which lists gave it. The source
        knows only where something stands now, and guesses what nobody has looked at yet."""
        listed = shown(ref, entry)
        try:
            return listed if self.canonical(listed).segments == ref.segments else ref
        except OctavoError:  # of a root that is not served any more
            return ref

    def alike(self, principal: Principal) -> Hashable:
        """The same for principals of whom the same rules decide what they are told of a change."""
        return tuple(self.rulebook(principal, verb) for verb in ("list", "read", "watch"))

    def _sees(self, principal: Principal, verb: Verb, ref: Ref, entry: Entry | None) -> bool:
        target = None if entry is None else entry.target
        facts = self.told_by(entry) if self.conditional else UNKNOWN
        return self.decide(principal, verb, ref, facts).allowed and (
            target is None or self.decide(principal, verb, target, facts).allowed
        )

    def told_by(self, entry: Entry | None) -> Facts:
        """A part is what its whole is, and does not say what that is."""
        if entry is None or self.addresses.whole(self.canonical(entry.ref)) is not None:
            return UNKNOWN
        return Facts(self.addresses.labelled(entry).metadata)

    def shows(self, principal: Principal, entry: Entry) -> bool:
        """Whether a listing may contain the entry."""
        verb = LIST_VERB.get(entry.ref.scheme)
        if verb is not None:  # by whom it could be called, with some arguments
            return self.at_best(principal, verb, entry.ref, Facts(entry.metadata)).allowed
        return self._sees(principal, "list", self.canonical(entry.ref), entry)

    def unquoted(self, principal: Principal, entry: Entry) -> Entry:
        """Without a title that stands in a content which somebody may not read; then the path gives the name."""
        if not entry.quoted or not self.rules or self._sees(principal, "read", self.canonical(entry.ref), entry):
            return entry
        name = entry.ref.name if entry.name == entry.title else entry.name
        return replace(entry, name=name, title=None, quoted=False)

    def filters(self, scheme: str) -> Collection[str]:
        return self.addresses.filters(scheme)

    def sight(self, principal: Principal, scope: Ref) -> Sight:
        """How much of what stands under the scope a listing may show."""
        if not self.rules:
            return "all"
        key = (principal, scope)
        sight = self._sights.get(key)
        if sight is None:
            sight = self._sights.keep(key, self._look(principal, scope.bare))
        return sight

    def _look(self, principal: Principal, scope: Ref) -> Sight:
        verb = LIST_VERB.get(scope.scheme, "list")
        if self.rulebook(principal, verb).allows_all(scope.scheme):
            return "all"
        if self._general and scope.scheme == "tool":
            return "some"
        whole = self.addresses.whole(scope)
        reached = any(self.may_reach(principal, verb, under(one)) for one in (scope, whole) if one is not None)
        return "some" if reached else "none"

    def goes_whole(self, call: Call) -> bool:
        """Whether nothing is told by how an act on a whole folder is answered: its caller may list all that can be in
        it, or do the act with all of that."""
        if not self.rules:
            return True
        below, of = under(self.addresses.spelled(call.ref)), self.addresses.canonical
        verbs = act_of(call.op, call.arguments).needs
        return any(
            all(self.rulebook(call.principal, verb).allows_every(below, of) for verb in these)
            for these in (("list",), verbs)
        )

    def weakens(self, ref: Ref, there: Ref) -> str | None:
        return self.addresses.weakens(ref, there)

    def unchangeable(self, ref: Ref) -> OctavoError | None:
        return self.addresses.unchangeable(ref)

    def blindly(self, call: Call) -> Call:
        """A text is written in the encoding of what stands there only for whoever may read that."""
        asked = call.arguments
        if not isinstance(asked, WriteArguments) or asked.encoding is not None:
            return call
        if not isinstance(asked.body, str) or self.allows(call.principal, "read", call.ref):
            return call
        return call._replace(arguments=replace(asked, encoding="utf-8"))

    def plainly(self, call: Call, fault: OctavoError) -> OctavoError:
        """A fault of a change, as far as its caller may know what stands there: a folder, a link, how large it is."""
        return fault if not isinstance(fault, Conflict | TooLarge) or self.knows(call) else in_the_way(call)

    def bare(self, call: Call, entry: Entry) -> Entry:
        """What a change answers: to whoever may not know more, only what the change itself made."""
        if call.op != "write" or self.knows(call):
            return entry
        return Entry(ref=entry.ref, name=entry.name, version=entry.version, size=entry.size)

    def knows(self, call: Call) -> bool:
        """Whether the caller may know what stands there in other ways than by changing it."""
        return any(self.allows(call.principal, verb, call.ref) for verb in KNOWN_BY)

    def lists(self, principal: Principal, ref: Ref) -> bool:
        verb = LIST_VERB.get(ref.scheme, "list")
        return self.decide(principal, verb, self.canonical(ref.bare)).allowed

    def calls(self, principal: Principal, tool: str) -> bool:
        """Whether there is such a tool, and somebody may call it, with some arguments."""
        return self.addresses.has_tool(tool) and self.at_best(principal, "invoke", Ref("tool", (tool,))).allowed

    def reads(self, principal: Principal, ref: Ref) -> bool:
        return self.at_best(principal, "read", ref.bare).allowed

    def tells(self, principal: Principal, pattern: str) -> bool:
        """Whether somebody may know a pattern of a rule: he sees everything that it covers, or it is one by which he
        himself may do something."""
        if not self.rules:
            return True
        try:
            glob = self.usual(Glob(pattern))
        except OctavoError:
            return False
        if glob.exact and self.lists(principal, glob.literal):
            return True
        verbs = {"list", *LIST_VERB.values()} if glob.scheme == "*" else {LIST_VERB.get(glob.scheme, "list")}
        of = self.addresses.canonical
        if all(self.rulebook(principal, verb).allows_every(glob, of) for verb in VERBS if verb in verbs):
            return True
        return any(
            rule.allow
            and glob in rule.what
            and rule.concerns(principal, verb)
            and self.may_reach(principal, verb, glob)
            for rule in self.rules
            for verb in VERBS
        )

    def finder(self, principal: Principal) -> Callable[[Ref], bool | Telling]:
        """Whether somebody may find a document, or what its metadata must be asked: for whoever asks about very many
        of them, at most once each. It keeps no decision, and may be called in another thread."""
        if not self.rules:
            return _everything
        books = [*dict.fromkeys(self.rulebook(principal, verb) for verb in FINDING)]

        def finds(ref: Ref) -> bool | Telling:
            whole = self.addresses.whole(ref.bare)
            both = [self.spellings(one) for one in ((ref,) if whole is None else (ref, whole))]
            verdicts = [book.decide(*spellings) for book in books for spellings in both]
            open_ones = [verdict for verdict in verdicts if type(verdict) is Depends]
            sure = all(verdict.allowed for verdict in verdicts if type(verdict) is Decision)
            return partial(self._finds_by, ref, open_ones) if sure and open_ones else sure

        return finds

    def _finds_by(self, ref: Ref, verdicts: Sequence[Depends], metadata: Mapping[str, Any] | None) -> bool:
        known = metadata if self.addresses.whole(ref) is None else None
        facts = Facts(known, None, self._wall())
        return all(verdict.decide(facts).allowed for verdict in verdicts)


def under(scope: Ref) -> Glob:
    """Everything at and below an address; with the scheme `*`, everything."""
    if scope.scheme == "*":
        return Glob("**")
    return Glob(f"{scope.bare}/*" if scope.segments else f"{scope.scheme}://*")


def _everything(_: Ref) -> bool:
    return True


def _without_etag(entry: Entry | None) -> Entry | None:
    return None if entry is None else replace(entry, etag="")
