"""From the options of catalogs to sources over their stores, and what the running house tells them of agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from octavo.app.host import SourceHost
from octavo.config.model import Config
from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.ports.source import Source
from octavo.core.ref import Ref
from octavo.core.values import VERBS, Principal, Verb
from octavo.pipeline.identity.fold import Identity
from octavo.pipeline.policy.fold import Policy
from octavo.pipeline.policy.rules import Rule
from octavo.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from octavo.sources.catalog import CatalogSource, Handbook
    from octavo.sources.catalog.crossrefs import Pages


class Catalogs(Struct, frozen=True):
    """All that stands on stores, by the names of the sources; the catalogs among them, and the handbook that they are
    together."""

    sources: Mapping[str, Source]
    by_name: Mapping[str, CatalogSource]
    handbook: Handbook
    made_of: object  # what says whether others would be the same

    async def pages(self) -> Pages:
        """All of them as they are now. Raises what the first of them raises."""
        return await self.handbook.look(next(iter(self.by_name.values())))

    def begin(self, when_missed: Callable[[], None]) -> None:
        """Reads all of them for the first time, beside whatever is asked. `when_missed` is called when one is read of
        which somebody was told that it is not."""
        for one in self.by_name.values():
            one.first.when_missed = when_missed
            if not one.is_read:
                one.first.begin()

    async def served_nothing(self) -> Mapping[str, str]:
        """Why the catalogs that serve nothing do so, by name. A store that cannot be asked is no such thing."""
        found = dict[str, str]()
        for name, one in self.by_name.items():
            with suppress(OctavoError):
                if why := await one.serves_nothing():
                    found[name] = why
        return found

    async def read(self) -> None:
        """Returns when each has been read once, or cannot be."""
        for one in self.by_name.values():
            with suppress(OctavoError):
                await one.look()

    @property
    def are_read(self) -> bool:
        return all(one.is_read for one in self.by_name.values())

    async def close(self) -> None:
        for one in self.by_name.values():
            await one.first.close()

    def bind(self, live: LiveAgents) -> None:
        self.handbook.live = live

    @property
    def of_skills(self) -> list[str]:
        """Schemes whose entries are skills of the protocol's extension."""
        return [one.scheme for one in self.by_name.values() if one.declaration.manifest]


Hosted: TypeAlias = Callable[[str, Mapping[str, Source], dict[Callable[[], Any], Any]], SourceHost]


async def catalogs(
    config: Config, stores: Mapping[str, Source], hosted: Hosted, before: Catalogs | None
) -> Catalogs | None:
    """Those `before`, where a configuration changes neither them nor what they stand on."""
    options = {name: one for name, one in config.sources.items() if one.over is not None}
    if not options:
        return None
    together: dict[Callable[[], Any], Any] = {}
    hosts = {name: hosted(name, stores, together) for name in options}
    made_of = (options, [(host.asked, host.ruled, host.alone, host.seconds, host.store()) for host in hosts.values()])
    if before is not None and before.made_of == made_of:
        return before
    from octavo.sources.catalog import CatalogSource, Handbook  # here: a server of files alone starts sooner

    made = {name: await one.record.open(one, hosts[name]) for name, one in options.items()}
    by_name = {name: one for name, one in made.items() if isinstance(one, CatalogSource)}
    handbook: Handbook = next(iter(hosts.values())).together(Handbook)
    return Catalogs(made, by_name, handbook, made_of)


class LiveAgents(Struct, frozen=True):
    """Agents as the policy and the registry of tools know them now."""

    rulebook: Sequence[Rule]
    policy: Policy
    identity: Identity
    registry: ToolRegistry

    def tools(self, agent: str) -> Sequence[str]:
        who = self._principal(agent)
        return [
            name for name in self.registry.names if self.policy.at_best(who, "invoke", Ref("tool", (name,))).allowed
        ]

    def may_read(self, agent: str, ref: Ref) -> bool:
        return self.policy.allows(self._principal(agent), "read", ref)

    def has_tool(self, name: str) -> bool:
        return self.registry.tool(name) is not None

    def knows(self, agent: str) -> bool:
        try:
            return bool(self.identity.launched(agent))
        except OctavoError:
            return False

    def rules(self, agent: str) -> bool:
        return bool(self.rulebook) and self.knows(agent)

    def reaches(self, agent: str, verb: str, pattern: Glob) -> bool:
        return any(self.policy.may_reach(self._principal(agent), known, pattern) for known in VERBS if known == verb)

    def permissions(self, agent: str) -> Sequence[Mapping[str, Any]]:
        """Pattern by pattern, so that each can be left out for who may not see what it speaks of. A rule that hides
        something is not told: it would tell what is hidden."""
        who = self._principal(agent)
        told: list[Mapping[str, Any]] = []
        for rule in self.rulebook:
            verbs: list[Verb] = [verb for verb in VERBS if rule.concerns(who, verb)]
            if verbs and not rule.hide:
                said = {"may": verbs, "effect": "allow" if rule.allow else "deny"}
                asks = {} if rule.condition is None else {"condition": str(rule.condition)}
                told += [{"what": glob.text, **said, **asks} for glob in rule.what]
        return told

    def _principal(self, agent: str) -> Principal:
        try:
            return self.identity.launched(agent)
        except OctavoError:
            return Principal(agent)  # described in a file, and not configured: it has what everybody has
