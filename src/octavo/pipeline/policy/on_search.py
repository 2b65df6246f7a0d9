"""The policy for searches: a hit is shown and counted only if the caller may search and read it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from octavo.core.arguments import PLAIN, Allowed, RankedArguments, SearchArguments
from octavo.core.ports.chain import Next, expected, page_of, settled, several
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.core.search_results import Findings
from octavo.core.values import EVERYTHING, Call, Entry, Page, Trail
from octavo.pipeline.policy.hiding.absent import beside, look_beside, unheard
from octavo.pipeline.policy.refusals import Refused, refusal
from octavo.pipeline.policy.rules import CLOSED, Decision
from octavo.pipeline.policy.visibility import FINDING, Seeing, Telling, under


async def search(seeing: Seeing, call: Call, call_next: Next, *, page: int, now: Callable[[], float]) -> Page[Entry]:
    """Candidates that the caller may both search and read; pages are filled up from them."""
    who, scope = call.principal, call.ref
    if not seeing.may_reach(who, "search", under(scope)):
        decision = _unreachable(seeing, call)
        if decision.hidden:
            await look_beside(seeing, call, call_next)
        raise Refused(refusal(call, "search", decision))
    limit, until = min(call.limit, page), now() + call.timeout / 2
    kept: list[Entry] = []
    cursor = call.cursor
    while True:
        found = page_of(await settled(call_next(call.at(scope, cursor, limit - len(kept)))))
        kept += [entry for entry in found.items if await _finds(seeing, call, call_next, entry)]
        cursor = found.cursor
        if cursor is None or len(kept) >= limit or now() > until:
            return Page(tuple(kept), cursor, found.unavailable)


async def find(seeing: Seeing, call: Call, call_next: Next, era: object) -> Findings:
    """A ranked search at and below the scope. What the caller may find is decided inside of it, so that nothing that
    is counted there counts anything else. What the search remembers of the rules of one `era` holds for no other."""
    findings = await _ranked(seeing, call, call_next, era)
    if seeing.conditional:  # the index may be older than what it tells of
        here = [one for one in findings.items if await _still_found(seeing, call, call_next, seeing.canonical(one.ref))]
        findings = replace(findings, items=tuple(here))
    if findings.unlisted:
        query = call.given(SearchArguments).query
        within = query.within if isinstance(query, TextQuery) else ()
        about = {ref.scheme for ref in (call.ref, *within)} - {EVERYTHING.scheme}
        theirs = [one for one in findings.unlisted if not about or one in about]
        seen = [one for one in theirs if seeing.may_reach(call.principal, "search", under(Ref(one)))]
        findings = replace(findings, unlisted=tuple(seen))
    # How much there is at all is nothing that who sees only a part of it should learn.
    return replace(findings, limited=False) if seeing.rules and findings.limited else findings


async def _ranked(seeing: Seeing, call: Call, call_next: Next, era: object) -> Findings:
    if seeing.may_reach(call.principal, "search", under(call.ref)):
        return await _ask(seeing, call, call_next, era)
    decision = _unreachable(seeing, call)
    if decision.hidden and call.ref.segments:
        other = beside(seeing, call)
        with unheard(call, other):
            await _ask(seeing, call._replace(ref=other, trail=Trail()), call_next, era)
    raise Refused(refusal(call, "search", decision))


async def _ask(seeing: Seeing, call: Call, call_next: Next, era: object) -> Findings:
    """The parameters of the scope are filters."""
    query = call.given(SearchArguments).query
    assert isinstance(query, TextQuery)
    scope, who = call.ref, call.principal
    if scope.params:  # the source knows which there are, and says what is wrong with others
        await settled(call_next(call.at(scope, None, 1)._replace(op="list", arguments=PLAIN)))
    where = (*query.where, *((key, tuple(value.split(","))) for key, value in scope.params if key != "root"))
    asked = TextQuery(query.text, query.within if scope.scheme == EVERYTHING.scheme else (scope.place,), where)
    finds = seeing.finder(who)
    if (root := scope.param("root")) is not None:
        finds = partial(_finds_in, root, seeing, finds)
    arguments = RankedArguments(asked, finds, (who, era, seeing.phase))
    return expected(await settled(call_next(call._replace(ref=EVERYTHING, arguments=arguments))), Findings)


def _finds_in(root: str, seeing: Seeing, finds: Allowed, ref: Ref) -> bool | Telling:
    """In one of several roots. The index has a file that nothing hides by its plain address, in whichever it is."""
    placed = ref if ref.params else seeing.addresses.canonical(seeing.addresses.spelled(ref))
    return placed.param("root") == root and finds(ref)


async def _still_found(seeing: Seeing, call: Call, call_next: Next, ref: Ref) -> bool:
    return all([(await seeing.judged(call, verb, ref, call_next)).allowed for verb in FINDING])


def _unreachable(seeing: Seeing, call: Call) -> Decision:
    """By the rule on the place itself, which may want it to look absent."""
    decision = CLOSED if call.ref is EVERYTHING else seeing.decide(call.principal, "search", seeing.canonical(call.ref))
    decision = CLOSED if decision.allowed else decision
    call.trail.rule = decision.rule
    return decision


async def folders(seeing: Seeing, call: Call, call_next: Next) -> tuple[Ref, ...]:
    """Those whose own address the caller may list, also where it may see nothing in them."""
    who = call.principal
    decision = seeing.decide(who, "list", call.ref)
    call.trail.rule = decision.rule
    if decision.hidden and seeing.sight(who, call.ref) == "none":
        await look_beside(seeing, call, call_next)
        return ()
    found = several(await settled(call_next(call)), Ref)
    return tuple(ref for ref in found if seeing.allows(who, "list", seeing.canonical(ref)))


async def _finds(seeing: Seeing, call: Call, call_next: Next, entry: Entry) -> bool:
    for ref in (entry.ref,) if entry.target is None else (entry.ref, entry.target):
        for verb in FINDING:
            if not (await seeing.judged(call, verb, seeing.canonical(ref), call_next, entry)).allowed:
                return False
    return True
