"""What files say of agents and tools, beside what the running house knows of them.

A file grants nothing. Where it says more or less than the policy, whoever reads it is misled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.ref import Ref
from octavo.core.values import VERBS
from octavo.sources.catalog.crossrefs import Live
from octavo.sources.catalog.declaration import Declaration
from octavo.sources.catalog.problems import FileProblem
from octavo.sources.catalog.record import Card, follows, said_at
from octavo.text.frontmatter import KeyPath, shown

DENY: Final = "deny"  # beside the verbs: what an agent may not read
_Claim: TypeAlias = tuple[KeyPath, Glob]


def misleading(of: Declaration, card: Card, live: Live, everything: Sequence[Ref]) -> Iterator[FileProblem]:
    """A warning each. `everything` is what the handbook holds."""
    if of.tools and follows(of, card) and card.get("status") in (None, "active"):  # a draft may wait for its tools
        for path, name in card.said(of.tools):
            if not live.has_tool(name):
                yield _problem(card, path, "there is no such tool on this server")
    declared = card.get("permissions")
    if card.kind == "agent" and isinstance(declared, Mapping):
        yield from _at_odds(card, declared, live, everything)


def _at_odds(card: Card, declared: Mapping[str, Any], live: Live, everything: Sequence[Ref]) -> Iterator[FileProblem]:
    claims: dict[str, list[_Claim]] = {}
    yield from _claimed(card, declared, claims)
    if not live.rules(card.id):
        return  # nobody could say what it may
    readable = [ref for ref in everything if live.may_read(card.id, ref)]
    yield from _beyond(card, claims, live, everything, frozenset(readable))
    unsaid = [ref for ref in readable if not any(glob.matches(ref) for _, glob in claims.get("read", ()))]
    if "read" in claims and unsaid:
        yield _problem(card, ("permissions", "read"), f"the policy also allows {card.id} to read {_some(unsaid)}")


def _claimed(card: Card, declared: Mapping[str, Any], claims: dict[str, list[_Claim]]) -> Iterator[FileProblem]:
    """Fills `claims` with what the definition says by verb; gives what of it says nothing."""
    for verb, patterns in declared.items():
        path = ("permissions", verb)
        if verb not in (*VERBS, DENY):
            yield _problem(card, path, f"there is no such verb; there are {', '.join(VERBS)}, and {DENY}")
            continue
        claims[verb] = []
        for place, text in said_at(path, patterns):
            try:
                claims[verb].append((place, Glob(text)))
            except OctavoError:
                yield _problem(card, place, "is no pattern, such as sop://brand/*")


def _beyond(
    card: Card,
    claims: Mapping[str, Sequence[_Claim]],
    live: Live,
    everything: Sequence[Ref],
    readable: frozenset[Ref],
) -> Iterator[FileProblem]:
    """Where the definition claims more, or denies more, than the policy does."""
    agent = card.id
    denied = [glob for _, glob in claims.get(DENY, ())]
    for verb, globs in claims.items():
        for place, glob in globs:
            covered = [ref for ref in everything if glob.matches(ref)] if verb in ("read", DENY) else []
            if verb == DENY:
                wrong = [ref for ref in covered if ref in readable]
                message = f"the policy allows {agent} to read {_some(wrong)}"
            else:
                wrong = [ref for ref in covered if ref not in readable and not any(one.matches(ref) for one in denied)]
                message = f"the policy does not allow {agent} to {verb} {_some(wrong) if wrong else glob.text}"
            if wrong or (verb != DENY and not covered and not live.reaches(agent, verb, glob)):
                yield _problem(card, place, message)


def _some(refs: Sequence[Ref]) -> str:
    more = f" and {len(refs) - 1} more" if len(refs) > 1 else ""
    return f"{refs[0]}{more}" if refs else ""


def _problem(card: Card, path: KeyPath, message: str) -> FileProblem:
    return FileProblem(card.file, card.line(path), f"{shown(path)}: {message}", card.ref, serious=False)
