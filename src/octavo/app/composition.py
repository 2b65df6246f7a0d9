"""What one configuration comes to once it is open: the folded pipeline, and all that the server asks of its parts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from octavo.app.catalogs import Catalogs, LiveAgents
from octavo.app.limits import sessions_of, subscriptions_of
from octavo.config.model import Config
from octavo.core.calls import Builder
from octavo.core.ports.chain import Ask, Next
from octavo.core.ports.server import CallLimits
from octavo.core.ports.source import Called, Source
from octavo.core.ref import Ref
from octavo.core.tools import PromptInfo
from octavo.core.values import Change, Principal, Template
from octavo.feed import Changes
from octavo.pipeline.audit import Audit
from octavo.pipeline.cache import Cache
from octavo.pipeline.dispatch import Dispatch
from octavo.pipeline.guard import Faults, Guarded
from octavo.pipeline.identity.fold import Identity
from octavo.pipeline.policy.fold import Policy
from octavo.pipeline.policy.rules import OPEN
from octavo.pipeline.quota import Quota
from octavo.pipeline.redact.fold import Redact
from octavo.pipeline.throttle import Throttle
from octavo.prompts.registry import PromptRegistry
from octavo.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from octavo.tools.tasks import TaskContext


class Composed(Struct, frozen=True):
    """One configuration, composed and open."""

    config: Config
    ask: Ask
    begin: Next  # the same, giving at once what is there at once
    behind: Ask  # what stands behind policy and cache: redacted, and not yet for anybody
    policy: Policy
    identity: Identity
    tools: ToolRegistry
    prompts: PromptRegistry
    calls: Builder
    dispatch: Dispatch
    changes: Changes
    cache: Cache
    redact: Redact
    audit: Audit
    quota: Quota
    throttle: Throttle
    faults: Faults
    sources: Sequence[Source]  # those with addresses of their own
    catalogs: Catalogs | None
    agents: LiveAgents  # as catalogs tell of them
    skill_schemes: Sequence[str]
    lasting: TaskContext | None  # what tasks need of it

    @property
    def limits(self) -> CallLimits:
        return self.calls.limits

    def templates(self) -> Sequence[Template]:
        return self.dispatch.templates()

    def canonical(self, ref: Ref) -> Ref:
        return self.dispatch.canonical(ref)

    def spelled(self, ref: Ref) -> Ref:
        return self.dispatch.spelled(ref)

    def called(self, ref: Ref) -> Called:
        return self.dispatch.called(ref)

    @property
    def metrics(self) -> str:
        return self.config.serve.http.metrics

    @property
    def labels(self) -> frozenset[str]:
        """The words that may stand in a label of a measure: schemes, and tools by their addresses."""
        schemes = (source.scheme for source in self.sources)
        return frozenset(("tool", "prompt", "changes", *schemes, *(f"tool://{name}" for name in self.tools.names)))

    def administers(self, who: Principal, what: Ref) -> bool:
        decision = self.policy.decide(who, "admin", what)
        return decision.allowed and decision is not OPEN

    def subscriptions(self, who: Principal) -> int:
        return subscriptions_of(self.config.limits, who)

    def ahead(self, who: Principal) -> int:
        places = self.quota.places(who)
        return places + min(places, self.config.limits.waiting // 2)

    def sessions(self, who: Principal) -> tuple[str, int]:
        return sessions_of(self.config.limits, who)

    def count(self, who: Principal) -> None:
        self.quota.count(who)

    def redacted(self, change: Change) -> Change:
        return self.redact.change(change)

    @property
    def unopened(self) -> Mapping[str, str]:
        """Sources of plugins that could not be opened, and why."""
        guarded = (source for source in self.sources if isinstance(source, Guarded))
        return {source.scheme: source.life.unopened for source in guarded if source.life.unopened}

    @property
    def ailing(self) -> Mapping[str, str]:
        """What is wrong with which source, in words for an operator."""
        silent = dict.fromkeys(self.throttle.open_sources(), "it does not answer, and is left alone for a while")
        return {scheme: self.redact.text(words) for scheme, words in {**silent, **self.faults.current()}.items()}

    def veiled(self, change: Change, who: Principal) -> Change:
        further = self.redact.further(who)
        return change if further is None else further.change(change)

    def prompt_info(self, name: str, who: Principal) -> PromptInfo | None:
        """A prompt as it is told to somebody."""
        info = self.prompts.prompt(name)
        for redactor in (self.redact.redactor("prompt"), self.redact.further(who)):
            info = info if info is None or redactor is None or redactor.idle else redactor.prompt_info(info)
        return info

    def sees_as(self, who: Principal) -> Hashable:
        """The same for principals from whom the same is hidden."""
        return self.redact.further(who)

    def hears_as(self, who: Principal) -> Hashable:
        return self.policy.alike(who), self.redact.further(who)
