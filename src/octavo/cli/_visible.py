"""What somebody may see by the rules alone, said before they wonder at an empty list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from octavo.cli._shared import LOCAL
from octavo.cli._words import said

if TYPE_CHECKING:
    from octavo.config.load import Loaded
    from octavo.config.model import Rule

_SEEING = frozenset(("*", "list", "read", "search", "watch"))


def sees_nothing(found: Loaded, who: str) -> bool:
    """Whether there is a policy, and no rule of it shows `who` any resource."""
    return bool(found.config.policy) and not any(_SEEING.intersection(rule.may) for rule in _allows(found, who))


def nothing_for(found: Loaded, who: str) -> str:
    """Who asked, and what they may."""
    config = found.config
    if not config.policy:
        return said("list.everything", who=who)
    rights = [
        said("list.may", verbs=", ".join(rule.may), patterns=", ".join(rule.what)) for rule in _allows(found, who)
    ]
    told = said("list.nothing", who=who, may="; ".join(rights) or said("list.may_nothing"))
    return f"{told}; {said('list.agents', agents=', '.join(config.agents))}" if who == LOCAL and config.agents else told


def _allows(found: Loaded, who: str) -> Sequence[Rule]:
    agent = found.config.agents.get(who)
    names = {"*", who, *(f"role:{role}" for role in (agent.roles if agent is not None else ()))}
    return [rule for rule in found.config.policy if rule.effect == "allow" and names.intersection(rule.who)]
