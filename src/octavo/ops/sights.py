"""What agents would see: of every entry that is there, asked of the policy itself. Nothing is recorded by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from octavo.core.ports.chain import page_of
from octavo.core.ref import Ref
from octavo.core.values import Principal

if TYPE_CHECKING:
    from octavo.app.composition import Composed

EXAMPLES: Final = 3
_PAGE: Final = 500
_NOBODY: Final = Principal("")


class AgentSight(Struct):
    """Of one agent: how many entries by scheme it may list, and how many of these it may also read and find."""

    seen: dict[str, int] = field(default_factory=dict[str, int])
    readable: int = 0
    findable: int = 0
    examples: list[str] = field(default_factory=list[str])


async def sights(composition: Composed, agents: Sequence[str]) -> Mapping[str, AgentSight]:
    """Examples are of as many schemes as there are. Raises what a source raises."""
    found = {agent: AgentSight() for agent in agents}
    who = {agent: composition.identity.launched(agent) for agent in agents}
    finds = {agent: composition.policy.finder(who[agent]) for agent in agents}
    shown: dict[tuple[str, str], list[str]] = {}
    for scheme in composition.dispatch.exposed:
        cursor: str | None = None
        while True:
            call = composition.calls.at("list", _NOBODY, Ref(scheme), cursor=cursor, limit=_PAGE)
            page = page_of(await composition.behind(call))
            for entry in page.items:
                for agent, sight in found.items():
                    if not composition.policy.shows(who[agent], entry):
                        continue
                    sight.seen[scheme] = sight.seen.get(scheme, 0) + 1
                    sight.readable += composition.policy.reads(who[agent], composition.canonical(entry.ref))
                    sight.findable += bool(finds[agent](composition.canonical(entry.ref)))
                    examples = shown.setdefault((agent, scheme), [])
                    if len(examples) < EXAMPLES:
                        examples.append(str(entry.ref))
            cursor = page.cursor
            if cursor is None:
                break
    for agent, sight in found.items():
        columns = [examples for (of, _), examples in shown.items() if of == agent]
        rows = (column[n] for n in range(EXAMPLES) for column in columns if n < len(column))
        sight.examples.extend(one for _, one in zip(range(EXAMPLES), rows, strict=False))
    return found
