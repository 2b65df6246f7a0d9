"""One configuration, composed: its sources opened, its registries filled, the eight folds put together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from octavo.app.builtin_tools import WEB
from octavo.app.catalogs import Catalogs, LiveAgents
from octavo.app.collections import Collections
from octavo.app.composition import Composed
from octavo.app.essentials import changeable
from octavo.app.external import Reaching
from octavo.app.identities import identity_of
from octavo.app.limits import quota_of, throttle_of
from octavo.app.narrowing import WHOLE, Narrowing
from octavo.app.open_sources import OpenSources
from octavo.app.registries import BuiltIn, prompts_of, tools_of
from octavo.app.rules import labels_of, rules_of
from octavo.app.sources import (
    chosen_schemes,
    configured,
    described_in,
    templates_of,
    ttl_of,
    with_plugins,
    writable_schemes,
)
from octavo.app.stores import serving_of
from octavo.config.load import Loaded
from octavo.config.model import Config
from octavo.core.calls import Builder
from octavo.core.clock import Clock, SystemClock
from octavo.core.ports.audit import Ledger
from octavo.core.ports.chain import Ask, Step
from octavo.core.ports.search import Finds
from octavo.core.ports.server import CallLimits
from octavo.core.ports.source import Source, Watches
from octavo.core.ports.stores import Opens
from octavo.core.seal import Seal
from octavo.core.tools import Conversations
from octavo.core.values import Op
from octavo.feed import ChangeFeed, Changes
from octavo.feed.storing import Storing
from octavo.pipeline.audit import Audit
from octavo.pipeline.cache import Cache
from octavo.pipeline.chain import awaitable, fold, inner
from octavo.pipeline.dispatch import Dispatch
from octavo.pipeline.guard import Faults, Guarded
from octavo.pipeline.identity.fold import Identity, Key
from octavo.pipeline.mask import Mask
from octavo.pipeline.policy.approval.consent import Consent
from octavo.pipeline.policy.fold import Policy
from octavo.pipeline.policy.rules import Rule
from octavo.pipeline.quota import Quota
from octavo.pipeline.redact.fold import Redact
from octavo.pipeline.throttle import Throttle
from octavo.stores.state import StateDirectory
from octavo.tools.plugins import Plugin, load_plugin
from octavo.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from octavo.app.tasks import Lasting
    from octavo.core.forms import Asked, Questions
    from octavo.pipeline.policy.approval.ask import Approving
    from octavo.pipeline.policy.approval.untrusted import Untrusted
    from octavo.tools.tasks import LongWork

logger = logging.getLogger(__name__)


class Served(Struct, frozen=True):
    """The sources of one configuration, open; `exposed` are the schemes of those with addresses of their own."""

    sources: Mapping[str, Source]
    exposed: Sequence[str]
    catalogs: Catalogs | None

    @property
    def of_skills(self) -> list[str]:
        known = [] if self.catalogs is None else self.catalogs.of_skills
        return [scheme for scheme in self.exposed if scheme in known]

    @property
    def watched(self) -> list[str]:
        return [scheme for scheme in self.exposed if isinstance(self.sources[scheme], Watches)]


class Folds(Struct, frozen=True):
    """The eight steps, in their order."""

    audit: Audit
    identity: Identity
    quota: Quota
    policy: Policy
    mask: Mask
    cache: Cache
    redact: Redact
    throttle: Throttle

    @property
    def inwards(self) -> Sequence[Step]:
        return [
            self.audit,
            self.identity,
            self.quota,
            self.policy,
            self.mask,
            self.cache,
            self.redact,
            self.throttle,
        ]


async def compose(
    loaded: Loaded,
    state: StateDirectory,
    ledger: Ledger,
    feed: ChangeFeed,
    stack: AsyncExitStack,
    opened: OpenSources,
    opens: Opens,
    keys: Sequence[Key],
    narrowing: Narrowing = WHOLE,
    finds: Finds | None = None,
    tasks: Callable[[], LongWork] | None = None,
    conversations: Conversations | None = None,
    now: Ask | None = None,
    storing: Storing | None = None,
) -> Composed:
    """Opens the sources on `stack`; whoever calls closes it, also when this raises. Those in `opened` that stay as they
    are go on. `opens` gives the store, and `keys` are those that agents have there. `tasks` is what calls of tools that
    last are given to. `now` asks the works that hold whenever it is asked: a tool may still be at work when other rules
    hold than those under which it was called."""
    config, clock, faults = loaded.config, SystemClock(), Faults(SystemClock())
    by_clients = changeable(loaded)
    plugins = [
        load_plugin(
            one.path or one.module or one.entry_point or "",
            protocol=one.protocol,
            entry_point=bool(one.entry_point),
            changeable=by_clients,
        )
        for one in config.plugins
    ]
    served = await _served(loaded, state, narrowing, opened, faults, plugins, stack)
    reaching = Reaching(loaded, clock, stack, served.sources)
    tools, built_in = tools_of(loaded, plugins, narrowing, conversations, served.exposed, reaching, by_clients)
    prompts = prompts_of(loaded, plugins, narrowing, conversations, by_clients)

    collections = Collections(served.exposed, served.of_skills)
    watched = {scheme: served.sources[scheme] for scheme in served.watched}
    changes = Changes(feed, watched, storing, serving_of(loaded, narrowing, state.key("feed")))
    lasting = _lasting(config, tasks, tools)
    redact = redaction(config, state.key("mark"), composed=built_in.composed, chosen=chosen_schemes(config, plugins))
    audit = Audit(ledger, scrub=redact.address)
    dispatch = Dispatch(
        {**served.sources, "tool": tools, "prompt": prompts},
        tools=tools,
        prompts=prompts,
        exposed=served.exposed,
        described=described_in(config.resources),
        templates=templates_of(config),
        writable=writable_schemes(config, plugins),
        changes=changes,
        finds=finds if config.search.enabled else None,
        composed=collections.answers if tasks is None else {**collections.answers, **_about(tasks)},
        begins=None if lasting is None else lasting.begin,
        labels=labels_of(loaded),
        composing=built_in.composed,
        intends=audit.intend,
    )
    rules = rules_of(loaded)
    folds = _folds(config, rules, state, opens, keys, clock, audit, redact, dispatch, tools, built_in, served.sources)
    begin = fold(folds.inwards, dispatch)
    ask = awaitable(begin)

    # What makes child calls stands behind the folds and asks before them: it learns of them last.
    seal, questions = Seal(state.key("cursor")), questions_in(opens, audit)
    policy = folds.policy
    tools.bind(now or ask, dispatch.canonical, seal, policy.allows, questions, policy.rights, redact.seen)
    prompts.bind(ask)
    changes.bind(ask)
    collections.bind(ask, dispatch.canonical)
    if lasting is not None:
        lasting.bind(ask, folds.identity.current)
        stack.push_async_callback(lasting.idle)  # before the sources are closed

    return Composed(
        config=config,
        ask=ask,
        begin=begin,
        behind=awaitable(inner([redact, folds.throttle], dispatch)),
        policy=policy,
        identity=folds.identity,
        tools=tools,
        prompts=prompts,
        calls=Builder(_limits_of_calls(config)),
        dispatch=dispatch,
        changes=changes,
        cache=folds.cache,
        redact=redact,
        audit=audit,
        quota=folds.quota,
        throttle=folds.throttle,
        faults=faults,
        # A store without addresses is not watched: its changes would go by the addresses of another.
        sources=tuple(served.sources[scheme] for scheme in served.exposed),
        catalogs=served.catalogs,
        agents=LiveAgents(rules, policy, folds.identity, tools),
        skill_schemes=collections.skill_schemes,
        lasting=None if lasting is None else lasting.works,
    )


async def _served(
    loaded: Loaded,
    state: StateDirectory,
    narrowing: Narrowing,
    opened: OpenSources,
    faults: Faults,
    plugins: Sequence[Plugin],
    stack: AsyncExitStack,
) -> Served:
    """What is configured, opened; then, behind doors, the sources that plugins register themselves. Those of the kinds
    that plugins bring are among the first: they may be stores for others."""
    made, catalogs = await configured(loaded, state, narrowing, opened, faults, stack)
    sources = with_plugins(made, plugins, faults, loaded.config.limits.time)
    registered = [source for scheme, (source, _) in sources.items() if scheme not in made]
    behind_doors = [source for source in registered if isinstance(source, Guarded)]
    for source in behind_doors:
        source.life.begin()
    for source in behind_doors:
        await stack.enter_async_context(source)
    return Served(
        {scheme: source for scheme, (source, _) in sources.items()},
        [scheme for scheme, (_, shown) in sources.items() if shown],
        catalogs,
    )


def _folds(
    config: Config,
    rules: Sequence[Rule],
    state: StateDirectory,
    opens: Opens,
    keys: Sequence[Key],
    clock: Clock,
    audit: Audit,
    redact: Redact,
    dispatch: Dispatch,
    tools: ToolRegistry,
    built_in: BuiltIn,
    schemes: Iterable[str],
) -> Folds:
    limits = config.limits
    identity = identity_of(config, keys, clock)

    def asking() -> Approving:
        from octavo.app.approvals import approving

        return approving(config.approval, opens, state.key("approval"), audit, tools, dispatch, identity)

    policy = Policy(
        rules,
        dispatch,
        page=limits.page,
        max_bytes=limits.read,
        general=built_in.general,
        aliases=built_in.aliases,
        clock=clock,
        approval=Consent(tools, dispatch, asking, _doubts(config, opens, dispatch, tools, built_in, clock)),
        meant=tools.meant,
    )
    mask = Mask(
        max_bytes=limits.read,
        timeout=limits.time,
        page=limits.page,
        hidden_from=redact.further if config.redact.principals else None,
        filters=dispatch.filters,
    )
    cache = Cache(
        dispatch,
        max_bytes=limits.cache,
        ttl={scheme: ttl_of(config, scheme) for scheme in schemes},
        redaction=redact.version,
        clock=clock,
        flight_time=limits.time,
    )
    quota, throttle = quota_of(limits, built_in.aliases), throttle_of(config)
    return Folds(audit, identity, quota, policy, mask, cache, redact, throttle)


def _doubts(
    config: Config, opens: Opens, dispatch: Dispatch, tools: ToolRegistry, built_in: BuiltIn, clock: Clock
) -> Untrusted | None:
    """Who has read what is not trusted is asked about more, where the configuration wants that."""
    seconds = config.approval.after_untrusted
    if seconds is None:
        return None
    from octavo.pipeline.policy.approval.untrusted import Untrusted
    from octavo.stores.shown import StoredShown

    kept = StoredShown(opens)
    return Untrusted(seconds, dispatch.labelled, tools, built_in.names, clock.monotonic, kept, WEB)


def _lasting(config: Config, tasks: Callable[[], LongWork] | None, tools: ToolRegistry) -> Lasting | None:
    if tasks is None or not tools.long:
        return None
    from octavo.app.tasks import Lasting  # here: most servers have no tool that lasts

    return Lasting(config.tasks, tasks, tools)


def _limits_of_calls(config: Config) -> CallLimits:
    limits = config.limits
    return CallLimits(
        max_bytes=limits.read,
        timeout=limits.time,
        page=limits.page,
        in_flight=limits.in_flight,
        subscriptions=limits.subscriptions,
        line=limits.line,
    )


def _about(tasks: Callable[[], LongWork]) -> dict[Op, Ask]:
    """What can be asked of tasks also where no tool lasts any more: some may have begun under other works."""
    return {
        "poll": lambda call: tasks().poll(call),
        "answer": lambda call: tasks().answer(call),
        "cancel": lambda call: tasks().cancel(call),
    }


def questions_in(opens: Opens, audit: Audit) -> Callable[[], Questions]:
    """Made when the first tool asks somebody: most never do."""

    @cache
    def made() -> Questions:
        from octavo.stores.questions import StoredQuestions

        def told(step: str, asked: Asked) -> None:
            if step == "asked":
                logger.warning("question %s waits for somebody: octavo questions show %s", asked.id, asked.id)
            audit.note(asked.who, "question", step, question=asked.id, tool=asked.tool)

        return StoredQuestions(opens, told)

    return made


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
