"""What a caller may see of answers that are made of several resources: collections, catalogs, indexes.

Each resource in them is decided for itself. Who may see none of a collection is told that it is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from octavo.core.errors import OctavoError, TooLarge
from octavo.core.glob import Glob
from octavo.core.ports.chain import Next, Reply, expected, settled
from octavo.core.ref import Ref
from octavo.core.values import Call, Content, Entry, Principal, Verb
from octavo.pipeline.policy.refusals import Refused, absent
from octavo.pipeline.policy.rules import Decision
from octavo.pipeline.policy.several import Sees, is_empty, visible
from octavo.pipeline.policy.visibility import LIST_VERB, Seeing

SHOWN = 8  # callers for whom it is kept with a composed content what they may see of it
_TOLD_BY: tuple[Verb, Verb] = ("list", "read")  # which an object needs, and what stands in the content behind it
BY_ENTRY = Decision(True, "by entry", "each entry of the collection is decided for itself")


class Composing:
    """For one policy, as long as it holds. `max_bytes` is the most that is shown."""

    def __init__(self, seeing: Seeing, *, max_bytes: int) -> None:
        self._seeing, self._max_bytes = seeing, max_bytes
        self._era = object()  # what is kept for these rules holds for no others

    def shown(self, call: Call, call_next: Next, content: Content) -> Reply:
        """What is left of the answer for its caller. Raises TooLarge, and NotFound for a collection that is empty."""
        if self._seeing.conditional:
            return self._looked(call, call_next, content)
        return self._bounded(call, self._visible(call, content))

    def may_collect(self, call: Call) -> bool:
        """No rule speaks of the collection as such: then whoever may list something in it may read what that is."""
        ref = call.ref.bare
        under = Glob(f"{ref}/*" if ref.segments else f"{ref.scheme}://*")
        return self._seeing.addresses.collects(call.ref) and self._seeing.may_reach(call.principal, "list", under)

    async def read(self, call: Call, call_next: Next, refused: OctavoError) -> Content:
        """The collection, for whoever may list something in it; `refused` if it turns out to be something else."""
        call.trail.rule = BY_ENTRY.rule
        content = await settled(call_next(call))
        if not (isinstance(content, Content) and content.composed):
            raise Refused(refused)
        return content

    async def stat(self, call: Call, call_next: Next) -> Entry:
        """Of a collection of which the caller may see something."""
        entry = expected(await settled(call_next(call)), Entry)
        if entry.version:  # what is composed has none before it is read: this is an entry of its own
            return entry
        content = expected(await settled(call_next(call._replace(op="read"))), Content)
        if self._seeing.conditional:
            await self._visible_now(call, call_next, content)
        else:
            self._visible(call, content)
        return entry

    async def _looked(self, call: Call, call_next: Next, content: Content) -> Content:
        return self._bounded(call, await self._visible_now(call, call_next, content))

    def _bounded(self, call: Call, shown: Content) -> Content:
        """Measured as the caller sees it: what is hidden takes no room in it."""
        size, limit = shown.size, min(call.max_bytes, self._max_bytes)
        if size > limit:
            message = f"{call.uri} has {size} bytes, the limit is {limit}: list it page by page"
            raise TooLarge(message, uri=call.uri, size=size, limit=limit)
        call.trail.size = size
        return shown

    def _visible(self, call: Call, content: Content) -> Content:
        who, key = call.principal, (self._era, call.principal)
        shown: Content | None = content.memo.get(key)
        if shown is None:
            shown = visible(content, self._sees(call, partial(self._may, who, "list"), partial(self._may, who, "read")))
            if len(content.memo) < SHOWN:
                content.memo[key] = shown
        return self._something(call, shown)

    async def _visible_now(self, call: Call, call_next: Next, content: Content) -> Content:
        """What the answer tells of is looked at first, where metadata decide whether it may: level by level, since
        what stands inside of something is found once that may be seen."""
        seeing, known = self._seeing, dict[tuple[Verb, Ref], bool]()
        while True:
            asked: dict[tuple[Verb, Ref], None] = {}
            lists, reads = (partial(_seen, known, asked, verb) for verb in _TOLD_BY)
            shown = visible(content, self._sees(call, lists, reads))
            if not asked:
                return self._something(call, shown)
            for verb, ref in asked:
                of_its_kind = LIST_VERB.get(ref.scheme)
                if of_its_kind is not None:
                    known[verb, ref] = seeing.at_best(call.principal, of_its_kind, ref.bare).allowed
                else:
                    known[verb, ref] = await self._may_now(call, verb, call_next, ref.bare)

    def _may(self, who: Principal, verb: Verb, ref: Ref) -> bool:
        return self._seeing.lists(who, ref) if verb == "list" else self._seeing.allows(who, verb, ref.bare)

    def _sees(self, call: Call, resource: Callable[[Ref], bool], quotes: Callable[[Ref], bool]) -> Sees:
        known = self._seeing.filters(call.ref.scheme) if call.ref.params else ()
        filters = tuple(key for key, _ in call.ref.params if key in known)
        who, seeing = call.principal, self._seeing
        return Sees(
            resource,
            partial(seeing.tells, who),
            partial(seeing.calls, who),
            partial(seeing.reads, who),
            quotes,
            filters,
        )

    async def _may_now(self, call: Call, verb: Verb, call_next: Next, ref: Ref) -> bool:
        try:
            return (await self._seeing.judged(call, verb, self._seeing.canonical(ref), call_next)).allowed
        except OctavoError:  # outside of what is served
            return False

    def _something(self, call: Call, shown: Content) -> Content:
        seeing = self._seeing
        if seeing.rules and call.ref.segments and seeing.addresses.collects(call.ref) and is_empty(shown):
            raise absent(call)  # a collection of which the caller may see nothing is not there
        return shown


def _seen(known: Mapping[tuple[Verb, Ref], bool], asked: dict[tuple[Verb, Ref], None], verb: Verb, ref: Ref) -> bool:
    """What is not known yet is not seen, and asked for."""
    if (verb, ref) not in known:
        asked[verb, ref] = None
    return known.get((verb, ref), False)
