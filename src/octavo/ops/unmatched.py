"""What of a policy meets nothing: denies that match nothing that is there, and tools that an agent can never use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.ports.chain import page_of
from octavo.core.ref import Ref
from octavo.core.values import VERBS, Principal, Verb
from octavo.tools.aliases import FILESYSTEM, SEED

if TYPE_CHECKING:
    from octavo.app.composition import Composed

# What a built-in tool asks of the resources that it works on; of the others nobody knows.
_ASKS: Final[Mapping[str, tuple[Verb, ...]]] = {
    "list": ("list",), "read": ("read",), "info": ("list",), "search": ("search", "read"), "changes": ("watch",),
    "write": ("write",), "create_directory": ("write",), "undo": ("write",), "edit": ("read", "write"),
    "copy": ("read", "write"), "move": ("read", "write", "delete"), "delete": ("delete",),
    "validate": ("read",), "convert": ("read",), "profile": ("read",), "query": ("read",),
}  # fmt: skip


class Idle(NamedTuple):
    agent: str
    tools: Sequence[str]
    verbs: Sequence[Verb]  # of which it would need one more


def idle_tools(composition: Composed) -> Iterator[Idle]:
    """One for each agent that has such tools. Without a policy everybody may use everything."""
    for agent in composition.config.agents if composition.config.policy else ():
        who = composition.identity.launched(agent)
        reach = {verb for verb in VERBS if _reaches(composition, who, verb)}
        missing: dict[str, list[Verb]] = {}
        for name in composition.tools.names:
            asked = _ASKS.get({**FILESYSTEM, **SEED}.get(name, name), ())
            lacks = [verb for verb in asked if verb not in reach]
            if lacks and composition.policy.calls(who, name):
                missing[name] = lacks
        if missing:
            verbs = dict.fromkeys(verb for lacks in missing.values() for verb in lacks)
            yield Idle(agent, [*missing], [*verbs])


def _reaches(composition: Composed, who: Principal, verb: Verb) -> bool:
    """Whether anything that is served, and could be changed, could be allowed."""
    schemes: Sequence[str] = composition.dispatch.exposed
    if verb in ("write", "delete"):
        schemes = [one.scheme for one in composition.config.sources.values() if one.expose and "write" in one.can]
    return any(composition.policy.may_reach(who, verb, Glob(f"{scheme}://*")) for scheme in schemes)


MOST: Final = 20_000  # entries of one source that are looked at; of a larger one nothing is said
_PAGE: Final = 500
_NOBODY: Final = Principal("")


class Unmatched(NamedTuple):
    rule: int
    pattern: str
    nearest: str  # an address that is there; empty where none is near


async def unmatched(composition: Composed) -> AsyncIterator[Unmatched]:
    found: dict[str, list[Ref] | None] = {"tool": [Ref("tool", (name,)) for name in composition.tools.names]}
    known = {*composition.dispatch.exposed, "tool", "prompt"}
    for number, rule in enumerate(composition.config.policy):
        for pattern in rule.what if rule.effect == "deny" else ():
            glob = Glob(pattern)
            scheme = glob.scheme
            if glob.literal.absolute or not glob.literal.segments or scheme not in known:
                continue
            if scheme not in found:
                found[scheme] = await _entries(composition, scheme)
            refs = found[scheme]
            if refs is not None and not any(glob.matches(one) for ref in refs for one in _called(composition, ref)):
                yield Unmatched(number, pattern, _nearest(glob.literal, refs))


async def _entries(composition: Composed, scheme: str) -> list[Ref] | None:
    """None where there are too many, or it does not answer."""
    refs: list[Ref] = []
    cursor: str | None = None
    while len(refs) <= MOST:
        call = composition.calls.listing(_NOBODY, Ref(scheme), cursor)._replace(limit=_PAGE)
        try:
            page = page_of(await composition.behind(call))
        except OctavoError:
            return None
        refs += [composition.canonical(entry.ref) for entry in page.items]
        cursor = page.cursor
        if cursor is None:
            return refs
    return None


def _called(composition: Composed, ref: Ref) -> Iterable[Ref]:
    """A rule may be about a folder, and may name an entry by its id."""
    return (*_with_those_above(ref), *chain(*composition.called(ref)))


def _with_those_above(ref: Ref) -> Iterable[Ref]:
    """A rule may be about a folder."""
    return (ref._replace(segments=ref.segments[:end]) for end in range(1, len(ref.segments) + 1))


def _nearest(literal: Ref, refs: Iterable[Ref]) -> str:
    """By the first name of the pattern that is not there."""
    known = {above.segments for ref in refs for above in _with_those_above(ref)}
    depth = next((end for end in range(1, len(literal.segments) + 1) if literal.segments[:end] not in known), 0)
    if not depth:
        return ""
    beside = [names[-1] for names in known if len(names) == depth and names[:-1] == literal.segments[: depth - 1]]
    near = get_close_matches(literal.segments[depth - 1], beside, n=1)
    return str(Ref(literal.scheme, (*literal.segments[: depth - 1], near[0]))) if near else ""
