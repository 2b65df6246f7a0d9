"""One configuration, composed: sources opened, eight steps folded, registries filled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from octavo.app.builtin_tools import (
    WEB,
    aliases,
    built_in_tools,
    composed_tools,
    general_tools,
    telling,
    unlisted_tools,
)
from octavo.app.catalogs import Catalogs, LiveAgents
from octavo.app.collections import Collections
from octavo.app.essentials import changeable
from octavo.app.external import Reaching
from octavo.app.identities import identity_of
from octavo.app.limits import quota_of, sessions_of, subscriptions_of, throttle_of
from octavo.app.narrowing import WHOLE, Narrowing
from octavo.app.open_sources import OpenSources
from octavo.app.rules import labels_of, rules_of
from octavo.app.sources import (
    chosen_schemes,
    configured,
    described_in,
    templates_of,
    tools_of_kinds,
    ttl_of,
    with_plugins,
    writable_schemes,
)
from octavo.config.load import Loaded
from octavo.config.model import Config
from octavo.core.calls import Builder
from octavo.core.clock import SystemClock
from octavo.core.ports.audit import Ledger
from octavo.core.ports.chain import Ask, Next
from octavo.core.ports.search import Finds
from octavo.core.ports.server import CallLimits
from octavo.core.ports.source import Called, Source, Watches
from octavo.core.ref import Ref
from octavo.core.seal import Seal
from octavo.core.tools import Conversations, PromptInfo
from octavo.core.values import Change, Op, Principal, Template
from octavo.feed import ChangeFeed, Changes
from octavo.pipeline.audit import Audit
from octavo.pipeline.cache import Cache
from octavo.pipeline.chain import awaitable, fold, inner
from octavo.pipeline.dispatch import Dispatch
from octavo.pipeline.guard import Faults, Guarded
from octavo.pipeline.identity.fold import Identity
from octavo.pipeline.mask import Mask
from octavo.pipeline.policy.approval.consent import Consent
from octavo.pipeline.policy.fold import Policy
from octavo.pipeline.policy.rules import OPEN
from octavo.pipeline.quota import Quota
from octavo.pipeline.redact.fold import Redact
from octavo.pipeline.throttle import Throttle
from octavo.prompts.registry import PromptRegistry
from octavo.stores.state import StateDirectory
from octavo.tools.plugins import load_plugin
from octavo.tools.registry import ToolRegistry
from octavo.tools.schema import compile_schema

if TYPE_CHECKING:
    from octavo.core.forms import Asked, Questions
    from octavo.pipeline.policy.approval.ask import Approving
    from octavo.tools.tasks import LongWork
    from octavo.tools.tasks import TaskContext as Lasts

logger = logging.getLogger(__name__)


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
    lasting: Lasts | None  # what tasks need of it

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


async def compose(
    loaded: Loaded,
    state: StateDirectory,
    ledger: Ledger,
    feed: ChangeFeed,
    stack: AsyncExitStack,
    opened: OpenSources,
    narrowing: Narrowing = WHOLE,
    finds: Finds | None = None,
    tasks: Callable[[], LongWork] | None = None,
    conversations: Conversations | None = None,
    now: Ask | None = None,
) -> Composed:
    """Opens the sources on `stack`; whoever calls closes it, also when this raises. Those in `opened` that stay as they
    are go on. `tasks` is what calls of tools that last are given to. `now` asks the works that hold whenever it is
    asked: a tool may still be at work when other rules hold than those under which it was called."""
    config, clock = loaded.config, SystemClock()
    tools = ToolRegistry()
    prompts = PromptRegistry(
        compile_schema,
        locales=config.prompts.locales,
        embed=config.prompts.embed,
        conversations=conversations,
        changeable=(by_clients := changeable(loaded)),
    )
    plugins = [
        load_plugin(
            one.path or one.module or one.entry_point or "",
            protocol=one.protocol,
            entry_point=bool(one.entry_point),
            changeable=by_clients,
        )
        for one in config.plugins
    ]
    faults = Faults(clock)
    made, catalogs = await configured(loaded, state, narrowing, opened, faults, stack)
    sources = with_plugins(made, plugins, faults, config.limits.time)
    exposed = [scheme for scheme, (_, shown) in sources.items() if shown]
    # Those that plugins register themselves: of kinds of theirs they are open by now, as stores for others.
    behind_doors = [
        source for scheme, (source, _) in sources.items() if scheme not in made and isinstance(source, Guarded)
    ]
    for source in behind_doors:
        source.life.begin()
    for source in behind_doors:
        await stack.enter_async_context(source)
    for plugin in plugins:
        for tool in plugin.tools:
            tools.register(tool if tool.protocol else replace(tool, max_answer=config.limits.answer))
        for info, rendering in plugin.prompts:
            prompts.register(info, rendering)
    for tool in tools_of_kinds(config):
        tools.register(tool)
    built_in = built_in_tools(config, narrowing, conversations, exposed=exposed)
    for tool in built_in:
        tools.register(telling(tool, config))
    reaching = Reaching(loaded, clock, stack, {scheme: source for scheme, (source, _) in sources.items()})
    for tool in reaching.tools():
        tools.register(telling(tool, config))
    names, make = unlisted_tools(config)
    unlisted = [name for name in names if tools.tool(name) is None]
    tools.provide(unlisted, make)
    if config.tools.dirs:
        from octavo.tools.folder import load_tools  # here: most servers have no tools of their own

        broken = load_tools(
            config.tools.dirs,
            tools.register,
            reaching.outside(),
            max_answer=config.limits.answer,
            changeable=by_clients,
        )
        for fault in broken:
            logger.warning("tool left out: %s", fault)
    if config.tools.only:
        tools.keep_only(config.tools.only)
    for problem in prompts.load(prompt_folders(loaded, narrowing)):
        logger.log(logging.INFO if problem.remark else logging.WARNING, "prompt left out: %s", problem)
    served: dict[str, Source] = {scheme: source for scheme, (source, _) in sources.items()}
    of_skills = [] if catalogs is None else catalogs.of_skills
    composed = Collections(exposed, [scheme for scheme in exposed if scheme in of_skills])
    lasting = None
    if tasks is not None and tools.long:
        from octavo.app.tasks import Lasting  # here: most servers have no tool that lasts

        lasting = Lasting(config.tasks, tasks, tools)
    changes = Changes(feed, [scheme for scheme in exposed if isinstance(served[scheme], Watches)])
    dispatch = Dispatch(
        {**served, "tool": tools, "prompt": prompts},
        tools=tools,
        prompts=prompts,
        exposed=exposed,
        described=described_in(config.resources),
        templates=templates_of(config),
        writable=writable_schemes(config, plugins),
        changes=changes,
        finds=finds if config.search.enabled else None,
        composed=composed.answers if tasks is None else {**composed.answers, **_about(tasks)},
        begins=None if lasting is None else lasting.begin,
        labels=labels_of(loaded),
        composing=composed_tools(built_in, unlisted),
    )
    rules = rules_of(loaded)
    names = [*(tool.info.name for tool in built_in), *unlisted]
    named_aliases = aliases(names)
    identity = identity_of(config, state, clock)
    redact = redaction(
        config,
        state.key("mark"),
        composed=composed_tools(built_in, unlisted),
        chosen=chosen_schemes(config, plugins),
    )
    audit = Audit(ledger, scrub=redact.address)
    dispatch.intends = audit.intend

    def asking() -> Approving:
        from octavo.app.approvals import approving

        return approving(config.approval, state, audit, tools, dispatch, identity)

    doubts = None
    if config.approval.after_untrusted is not None:
        from octavo.pipeline.policy.approval.untrusted import Untrusted

        seconds = config.approval.after_untrusted
        doubts = Untrusted(seconds, dispatch.labelled, tools, names, clock.monotonic, WEB)
    policy = Policy(
        rules,
        dispatch,
        page=config.limits.page,
        max_bytes=config.limits.read,
        general=general_tools(built_in, unlisted),
        aliases=named_aliases,
        clock=clock,
        approval=Consent(tools, dispatch, asking, doubts),
        meant=tools.meant,
    )
    limits = config.limits
    ttl = {served_as: ttl_of(config, served_as) for served_as in served}
    cache = Cache(
        dispatch,
        max_bytes=limits.cache,
        ttl=ttl,
        redaction=redact.version,
        clock=clock,
        flight_time=limits.time,
    )
    quota, throttle = quota_of(limits, named_aliases), throttle_of(config)
    begin = fold(
        [
            audit,
            identity,
            quota,
            policy,
            Mask(
                max_bytes=limits.read,
                timeout=limits.time,
                page=limits.page,
                hidden_from=redact.further if config.redact.principals else None,
                filters=dispatch.filters,
            ),
            cache,
            redact,
            throttle,
        ],
        dispatch,
    )
    ask = awaitable(begin)
    seal, questions = Seal(state.key("cursor")), questions_in(state, audit)
    tools.bind(now or ask, dispatch.canonical, seal, policy.allows, questions, policy.rights, redact.seen)
    prompts.bind(ask)
    changes.bind(ask)
    composed.bind(ask, dispatch.canonical)
    if lasting is not None:
        lasting.bind(ask, identity.current)
        stack.push_async_callback(lasting.idle)  # before the sources are closed
    return Composed(
        config=config,
        ask=ask,
        begin=begin,
        behind=awaitable(inner([redact, throttle], dispatch)),
        policy=policy,
        identity=identity,
        tools=tools,
        prompts=prompts,
        calls=Builder(
            CallLimits(
                max_bytes=limits.read,
                timeout=limits.time,
                page=limits.page,
                in_flight=limits.in_flight,
                subscriptions=limits.subscriptions,
                line=limits.line,
            )
        ),
        dispatch=dispatch,
        cache=cache,
        redact=redact,
        audit=audit,
        quota=quota,
        throttle=throttle,
        faults=faults,
        # A store without addresses is not watched: its changes would go by the addresses of another.
        sources=tuple(served[scheme] for scheme in exposed),
        catalogs=catalogs,
        agents=LiveAgents(rules, policy, identity, tools),
        skill_schemes=composed.skill_schemes,
        lasting=None if lasting is None else lasting.works,
    )


def _about(tasks: Callable[[], LongWork]) -> dict[Op, Ask]:
    """What can be asked of tasks also where no tool lasts any more: some may have begun under other works."""
    return {
        "poll": lambda call: tasks().poll(call),
        "answer": lambda call: tasks().answer(call),
        "cancel": lambda call: tasks().cancel(call),
    }


def questions_in(state: StateDirectory, audit: Audit) -> Callable[[], Questions]:
    """Made when the first tool asks somebody: most never do."""

    @cache
    def made() -> Questions:
        from octavo.stores.questions import QuestionFile

        def told(step: str, asked: Asked) -> None:
            if step == "asked":
                logger.warning("question %s waits for somebody: octavo questions show %s", asked.id, asked.id)
            audit.note(asked.who, "question", step, question=asked.id, tool=asked.tool)

        return QuestionFile(state.path, told)

    return made


def prompt_folders(loaded: Loaded, narrowing: Narrowing = WHOLE) -> tuple[Path, ...]:
    """With the one that comes with Octavo, last: what has the name of one of its prompts goes before it."""
    folders = narrowing.prompt_directories(loaded)
    if not loaded.config.prompts.starter or narrowing.prompts is not None:
        return folders
    from octavo.prompts.loader import STARTER

    return (*folders, STARTER)


def redaction(config: Config, key: bytes, *, composed: Iterable[str] = (), chosen: Iterable[str] = ()) -> Redact:
    """The seventh fold as the configuration wants it. Raises InvalidParams for an expression that RE2 refuses."""
    wanted = config.redact
    return Redact(
        key,
        rules=wanted.rules,
        personal=wanted.personal,
        sources={config.sources[name].scheme: groups for name, groups in wanted.sources.items()},
        principals=wanted.principals,
        extra=[{"name": rule.name, "pattern": rule.pattern} for rule in wanted.extra],
        skip=wanted.skip,
        allow=wanted.allow,
        invisible=wanted.invisible,
        composed=composed,
        chosen=chosen,
    )
