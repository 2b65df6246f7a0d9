"""From the options of catalogs to sources over their stores, and what the running house tells them of agents."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from octavo.config.model import CatalogOptions, Config, DocOptions, OverStore
from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.model import VERBS, Principal, Verb
from octavo.core.ports import Source
from octavo.core.ref import Ref
from octavo.pipeline.identity import Identity
from octavo.pipeline.policy import Policy
from octavo.pipeline.rulebook import Rule
from octavo.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from octavo.sources.catalog import CatalogSource, Declaration, Handbook
    from octavo.sources.catalog.handbook import Pages


logger = logging.getLogger(__name__)


class Catalogs(Struct, frozen=True):
    """By the name of their source, and the handbook that all of them are."""

    by_name: Mapping[str, CatalogSource]
    handbook: Handbook
    made_of: object  # what says whether others would be the same

    async def pages(self) -> Pages:
        """All of them as they are now. Raises what the first of them raises."""
        return await self.handbook.look(next(iter(self.by_name.values())))

    def bind(self, live: LiveAgents) -> None:
        self.handbook.live = live

    @property
    def of_skills(self) -> list[str]:
        """Schemes whose entries are skills of the protocol's extension."""
        return [one.scheme for one in self.by_name.values() if one.declaration.manifest]


async def catalogs(config: Config, stores: Mapping[str, Source], before: Catalogs | None) -> Catalogs | None:
    """Those `before`, where a configuration changes neither them nor what they stand on."""
    options = {name: one for name, one in config.sources.items() if isinstance(one, OverStore)}
    if not options:
        return None
    asked = _asked_about(config)
    made_of = (options, asked, [stores[one.store] for one in options.values()])
    if before is not None and before.made_of == made_of:
        return before
    from octavo.sources.catalog import CatalogSource, Handbook  # here: a server of files alone starts sooner

    handbook = Handbook()
    made: dict[str, CatalogSource] = {}
    for name, one in options.items():
        alone = sum(other.store == one.store for other in options.values()) == 1
        declaration = await _declared(one, stores[one.store], alone=alone)
        made[name] = CatalogSource(replace(declaration, further=asked), stores[one.store], handbook=handbook)
        with suppress(OctavoError):  # a store that is down says so itself
            if why := await made[name].serves_nothing():
                logger.error("%s: %s", name, why)
    return Catalogs(made, handbook, made_of)


def _asked_about(config: Config) -> tuple[str, ...]:
    """Metadata that rules name: a deny on a key that nobody tells would deny nothing."""
    demands = (part for rule in config.policy for part in (rule.when, rule.unless) if part is not None)
    return tuple(dict.fromkeys(key for part in demands for key in part.metadata))


async def _declared(options: Any, store: Source, *, alone: bool) -> Declaration:
    from octavo.sources.catalog import DECLARATIONS, chosen, doc_with, own, with_options

    if isinstance(options, CatalogOptions):
        return own(options.scheme, options.path, options.files, options.model, options.address)
    listed = isinstance(options, DocOptions) and options.categories != "any"
    usual = doc_with(options.categories) if listed else DECLARATIONS[options.kind]
    said = with_options(replace(usual, scheme=options.scheme), **options.layout)
    return await chosen(said, store, path=options.path, alone=alone, files=bool(options.files))


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
