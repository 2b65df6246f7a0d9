"""Looks up the metadata that conditional rules ask about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from octavo.core.arguments import PLAIN
from octavo.core.errors import NotFound, OctavoError
from octavo.core.operations import FOREIGN
from octavo.core.ports.chain import Next, settled
from octavo.core.ref import Ref
from octavo.core.values import NOTHING, Call, Entry
from octavo.pipeline.policy.rules import Decision, Depends, Facts, strictest

Known: TypeAlias = Mapping[str, Any] | None


async def settle(
    verdict: Depends, call: Call, ref: Ref, whole: Ref | None, call_next: Next, at: float, entry: Entry | None = None
) -> Decision:
    """What a verdict comes to for a call at a time. Sources are asked only where what they say could change it, and
    not where somebody has the `entry` already."""
    facts = Facts(None, call.values if call.op in FOREIGN else None, at)
    decision = verdict.decide(facts)
    if decision == verdict.at_best(facts):
        return decision
    if entry is not None and whole is None:
        return verdict.decide(facts._replace(metadata=entry.metadata))
    known = await metadata_at(call, ref, whole, call_next)
    return strictest([verdict.decide(facts._replace(metadata=one)) for one in known])


async def metadata_at(call: Call, ref: Ref, whole: Ref | None, call_next: Next) -> Sequence[Known]:
    """The metadata of the thing itself, of what it is a version or a view of, and of the whole that it is a part of:
    each of them must be allowed. What does not exist has none, of what cannot be asked they are not known."""
    own = await _metadata(call, ref, call_next)
    others = [other for other in (ref.bare, whole) if other is not None and other != ref]
    found = [known for other in others if (known := await _metadata(call, other, call_next)) != NOTHING]
    return found if found and own == NOTHING else [own, *found]


async def _metadata(call: Call, ref: Ref, call_next: Next) -> Known:
    try:
        entry = await settled(call_next(call._replace(op="stat", ref=ref, arguments=PLAIN, cursor=None)))
    except NotFound:
        return NOTHING
    except OctavoError:
        return None
    return entry.metadata if isinstance(entry, Entry) else None
