"""Tools that are shown to an agent that can never use them: what they would ask for, no rule allows it anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.core.glob import Glob
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


def idle_tools(works: Composed) -> Iterator[Idle]:
    """One for each agent that has such tools. Without a policy everybody may use everything."""
    for agent in works.config.agents if works.config.policy else ():
        who = works.identity.launched(agent)
        reach = {verb for verb in VERBS if _reaches(works, who, verb)}
        missing: dict[str, list[Verb]] = {}
        for name in works.tools.names:
            asked = _ASKS.get({**FILESYSTEM, **SEED}.get(name, name), ())
            lacks = [verb for verb in asked if verb not in reach]
            if lacks and works.policy.calls(who, name):
                missing[name] = lacks
        if missing:
            verbs = dict.fromkeys(verb for lacks in missing.values() for verb in lacks)
            yield Idle(agent, [*missing], [*verbs])


def _reaches(works: Composed, who: Principal, verb: Verb) -> bool:
    """Whether anything that is served, and could be changed, could be allowed."""
    schemes: Sequence[str] = works.dispatch.exposed
    if verb in ("write", "delete"):
        schemes = [one.scheme for one in works.config.sources.values() if one.expose and "write" in one.can]
    return any(works.policy.may_reach(who, verb, Glob(f"{scheme}://*")) for scheme in schemes)
