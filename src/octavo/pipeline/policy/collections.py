"""What a caller may see of answers that are made of several resources: collections, catalogs, indexes.

Each resource in them is decided for itself. Who may see none of a collection is told that it is not there.
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from octavo.core.errors import InternalError, OctavoError, TooLarge
from octavo.core.glob import Glob
from octavo.core.ports.chain import Next, Reply, expected, settled
from octavo.core.ref import Ref
from octavo.core.skill import usability
from octavo.core.values import QUOTED, Call, Content, Entry, Principal, Verb
from octavo.pipeline.policy.refusals import Refused, absent
from octavo.pipeline.policy.rules import Decision
from octavo.pipeline.policy.visibility import LIST_VERB, Seeing
from octavo.pipeline.redact.marks import hides_in

SHOWN = 8  # callers for whom it is kept with a composed content what they may see of it
_TOLD_BY: tuple[Verb, Verb] = ("list", "read")  # which an object needs, and what stands in the content behind it
BY_ENTRY = Decision(True, "by entry", "each entry of the collection is decided for itself")
_GONE = object()


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


class Sees(NamedTuple):
    """What one caller may be told of."""

    resource: Callable[[Ref], bool]
    pattern: Callable[[str], bool]  # of a rule
    calls: Callable[[str], bool] = lambda _: True  # whether there is a tool of that name that it may call
    reads: Callable[[Ref], bool] = lambda _: True
    quotes: Callable[[Ref], bool] = lambda _: True  # whether what stands in its content may be told, as it is now
    filters: Sequence[str] = ()  # by which the answer was narrowed: who is told that it fits is told the value


def visible(content: Content, sees: Sees) -> Content:
    """What is left of it for one caller: in every list and mapping, an object is left out whose `uri` may not be seen,
    or whose `what` is a pattern that may not be known, or in which that is hidden by which it was picked out. Then
    lists are cut to the answer's `at_most`, if it has one. Of what was matched, that comes first which the caller can
    use, if nobody else was asked about.
    What stands in a content that may not be read is left out as well: an object, or a name, for which the path gives
    one. Size and version are those of what is left.

    Raises InternalError for a body that is no JSON, since nothing could be left out of it.
    """
    try:
        data = json.loads(content.body)
    except (ValueError, RecursionError):
        raise InternalError("The answer could not be checked against the policy") from None
    shown = _shown(_usable_first(data, sees), sees)
    body = content.body if shown is data else json.dumps({} if shown is _GONE else shown, ensure_ascii=False, indent=2)
    raw = body if isinstance(body, bytes) else body.encode("utf-8")
    version = hashlib.blake2b(raw, digest_size=12).hexdigest()
    entry = replace(content.entry, version=version, size=len(raw))
    return Content(entry=entry, body=body, etag=version, composed=True)


def is_empty(content: Content) -> bool:
    """Whether no list in it holds anything."""
    data = json.loads(content.body)
    return isinstance(data, Mapping) and not any(isinstance(value, list) and value for value in data.values())


def _shown(value: Any, sees: Sees, above: str = "", most: int | None = None) -> Any:
    """The very value where nothing is left out. `above` is the key that it stands at."""
    if isinstance(value, Mapping):
        value = _quoted(value, sees) if _may_be_told(value, sees) else _GONE
        if value is _GONE:
            return _GONE
        # What the author of a file wrote there is part of what may be seen, whatever keys it has.
        quoted = "metadata" if "uri" in value else "declared" if above == "permissions" else None
        most = value.get("at_most")
        kept = {key: item if key == quoted else _shown(item, sees, key, most) for key, item in value.items()}
        if all(kept[key] is item for key, item in value.items()):
            return value
        return {key: item for key, item in kept.items() if item is not _GONE}
    if isinstance(value, list):
        found = (one for one in (_shown(item, sees) for item in value) if one is not _GONE)
        items = list(islice(found, most))  # no further: the rest is judged for nothing
        return value if len(items) == len(value) and all(map(operator.is_, items, value)) else items
    return value


def _may_be_told(told: Mapping[str, Any], sees: Sees) -> bool:
    """Of an object that there is such a thing, by its address and by the pattern of a rule in it."""
    if "uri" in told and not (_may(told["uri"], sees) and _fits(told, sees)):
        return False
    pattern = told.get("what")
    return not isinstance(pattern, str) or sees.pattern(pattern)


def _quoted(told: Mapping[str, Any], sees: Sees) -> Any:
    """An object without what was quoted from a content that may not be read: its name, or all of it."""
    if "uri" not in told or QUOTED not in told:
        return told
    what, kept = told[QUOTED], {key: item for key, item in told.items() if key != QUOTED}
    ref = Ref.parse(told["uri"])
    if sees.quotes(ref):
        return kept
    return _GONE if what == "all" else {**kept, "name": ref.name}


def _usable_first(data: Any, sees: Sees) -> Any:
    found = data.get("matches") if isinstance(data, Mapping) else None
    if not isinstance(found, list) or not all(isinstance(one, Mapping) and "usable" not in one for one in found):
        return data
    told = [{**one, **_usability(one, sees)} for one in found]
    return {**data, "matches": sorted(told, key=lambda one: not one["usable"])}


def _usability(one: Mapping[str, Any], sees: Sees) -> dict[str, Any]:
    needs = one.get("required_tools")
    tools = {str(name) for name in needs} if isinstance(needs, list) else set[str]()
    try:
        readable = sees.reads(Ref.parse(str(one.get("uri"))))
    except OctavoError:
        readable = False
    return usability(readable, sorted(name for name in tools if not sees.calls(name)))


def _may(uri: Any, sees: Sees) -> bool:
    try:
        return isinstance(uri, str) and sees.resource(Ref.parse(uri))
    except OctavoError:
        return False


def _fits(told: Mapping[str, Any], sees: Sees) -> bool:
    metadata = told.get("metadata")
    return not hides_in(metadata if isinstance(metadata, Mapping) else {}, told, sees.filters)
