"""The composition root: the one module that knows every room.

A configuration becomes `Works`: sources opened, eight steps folded, registries filled. `Octavo` is the
running house: it holds the works of the current configuration and what outlives a reload (the feed, the
ledger, the state directory). A reload composes new works and swaps them in; a configuration that does not
hold together leaves the old ones in place.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from octavo.config.load import Loaded, load, prompt_directories, state_directory
from octavo.config.model import Config, FileOptions, MemoryOptions, ResourceWords
from octavo.config.model import Rule as RuleOptions
from octavo.config.problems import ConfigError
from octavo.config.units import Bind
from octavo.config.words import RESERVED_SCHEMES
from octavo.core.clock import SystemClock
from octavo.core.errors import InvalidParams, OctavoError, SourceUnavailable
from octavo.core.glob import Glob
from octavo.core.house import Limits
from octavo.core.model import VERBS, Entry, Template, Verb
from octavo.core.ports import Ledger, Next, Source
from octavo.core.ref import Ref, is_scheme
from octavo.feed import ChangeFeed
from octavo.pipeline.audit import Audit
from octavo.pipeline.cache import Cache
from octavo.pipeline.chain import fold
from octavo.pipeline.desk import Desk
from octavo.pipeline.identity import Agent, Identity
from octavo.pipeline.mask import Mask
from octavo.pipeline.policy import Policy, Rule
from octavo.pipeline.quota import Quota
from octavo.pipeline.redact import Redact
from octavo.pipeline.throttle import Throttle
from octavo.prompts.registry import PromptRegistry
from octavo.sources.file.addresses import FileRoot
from octavo.sources.file.names import CREDENTIALS
from octavo.sources.file.source import FileSource
from octavo.sources.memory import MemoryEntry, MemorySource, TemplateBody
from octavo.stores.ledger import FileLedger, MemoryLedger
from octavo.stores.state import StateDirectory
from octavo.tools.plugins import Plugin, load_plugin
from octavo.tools.registry import ToolRegistry
from octavo.tools.schema import compile_schema

logger = logging.getLogger(__name__)

GRACE = 30.0  # seconds that calls on old works have after a reload


@dataclass(frozen=True)
class Works:
    """One configuration, composed and open."""

    config: Config
    ask: Next
    policy: Policy
    identity: Identity
    tools: ToolRegistry
    prompts: PromptRegistry
    limits: Limits
    desk: Desk
    cache: Cache
    audit: Audit
    sources: Sequence[Source]  # those with addresses of their own

    def templates(self) -> Sequence[Template]:
        return self.desk.templates()

    def canonical(self, ref: Ref) -> Ref:
        return self.desk.canonical(ref)

    def spelled(self, ref: Ref) -> Ref:
        return self.desk.spelled(ref)


class Octavo:
    """The running house. An async context manager: entered once, left once."""

    def __init__(self, loaded: Loaded, *, state: StateDirectory | None = None) -> None:
        self._loaded = loaded
        self._state = state or StateDirectory.open(state_directory(loaded))
        audit = loaded.config.audit
        self.feed = ChangeFeed()
        self.ledger: Ledger = (
            MemoryLedger()
            if self._state.audit is None
            else FileLedger(
                self._state.audit,
                self._state.key("audit"),
                sync=audit.sync,
                max_bytes=audit.rotate,
                keep=audit.keep,
                fail_closed=audit.fail_closed,
            )
        )
        self._works: Works | None = None
        self._open: AsyncExitStack | None = None
        self._unfollow: Callable[[], Awaitable[None]] | None = None
        self._swapping = asyncio.Lock()
        self._on_swap: list[Callable[[], None]] = []
        self._retiring: set[asyncio.Task[None]] = set()

    @property
    def works(self) -> Works:
        if self._works is None:
            raise RuntimeError("The house is not open")
        return self._works

    def key(self, purpose: Any) -> bytes:
        return self._state.key(purpose)

    def note(self, who: str, what: str, outcome: str, **fields: Any) -> None:
        self.works.audit.note(who, what, outcome, **fields)

    def on_swap(self, listener: Callable[[], None]) -> None:
        self._on_swap.append(listener)

    async def __aenter__(self) -> Octavo:
        try:
            await self._swap(self._loaded)
        except BaseException:
            self._close_ledger()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.feed.close()
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        if self._open is not None:
            await self._open.aclose()
        self._close_ledger()

    async def reload(self, loaded: Loaded) -> None:
        """Swap to another configuration. Raises, and changes nothing, when it cannot be composed."""
        async with self._swapping:  # of two at once the later one stays
            await self._swap(loaded)
            for listener in self._on_swap:
                listener()

    def _close_ledger(self) -> None:
        cast("FileLedger | MemoryLedger", self.ledger).close()

    async def _swap(self, loaded: Loaded) -> None:
        stack = AsyncExitStack()
        try:
            works = await self._compose(loaded, stack)
        except BaseException:
            await stack.aclose()
            raise
        old, self._open = self._open, stack
        self._works, self._loaded = works, loaded
        stack.callback(self.feed.subscribe(works.cache.forget))
        unfollow, self._unfollow = self._unfollow, self.feed.follow(works.sources)
        if old is not None:
            task = asyncio.get_running_loop().create_task(_retire(old))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)
        if unfollow is not None:
            await unfollow()  # at once: a change that two watches see would be told twice

    async def _compose(self, loaded: Loaded, stack: AsyncExitStack) -> Works:
        config, clock = loaded.config, SystemClock()
        tools, prompts = ToolRegistry(), PromptRegistry(compile_schema)
        plugins = [load_plugin(one.path or one.module or "", protocol=one.protocol) for one in config.plugins]
        sources = _with_plugins(self._sources(loaded), plugins)
        exposed = [scheme for scheme, (_, shown) in sources.items() if shown]
        for source, _ in sources.values():
            if hasattr(source, "__aenter__"):
                await stack.enter_async_context(cast("Any", source))
        for plugin in plugins:
            for tool in plugin.tools:
                tools.register(tool)
            for info, rendering in plugin.prompts:
                prompts.register(info, rendering)
        for problem in prompts.load(prompt_directories(loaded)):
            logger.warning("prompt left out: %s", problem)
        served: dict[str, Source] = {scheme: source for scheme, (source, _) in sources.items()}
        desk = Desk(
            {**served, "tool": tools, "prompt": prompts},
            tools=tools,
            prompts=prompts,
            exposed=exposed,
            described=_described(config.resources),
            templates=_templates(config),
        )
        policy = Policy(_rules(loaded), desk, page=config.limits.page, clock=clock)
        identity = Identity(Agent(name, frozenset(a.roles), a.digest) for name, a in config.agents.items())
        redact = Redact(
            key=self._state.key("mark"),
            rules=config.redact.rules,
            extra=[{"name": rule.name, "pattern": rule.pattern} for rule in config.redact.extra],
            allow=config.redact.allow,
        )
        limits = config.limits
        audit = Audit(self.ledger, scrub=redact.text)
        ttl = {served_as: _ttl(config, served_as) for served_as in served}
        cache = Cache(
            desk,
            max_bytes=limits.cache,
            ttl=ttl,
            redaction=redact.version,
            clock=clock,
            flight_time=limits.time,
        )
        rate = limits.per_principal.per_second if limits.per_principal is not None else None
        ask = fold(
            [
                audit,
                identity,
                Quota(rate=rate, in_flight=limits.in_flight),
                policy,
                Mask(max_bytes=limits.read, timeout=limits.time, page=limits.page),
                cache,
                redact,
                Throttle(),
            ],
            desk,
        )
        tools.bind(ask)
        prompts.bind(ask)
        return Works(
            config=config,
            ask=ask,
            policy=policy,
            identity=identity,
            tools=tools,
            prompts=prompts,
            limits=Limits(
                max_bytes=limits.read,
                timeout=limits.time,
                page=limits.page,
                in_flight=limits.in_flight,
                subscriptions=limits.subscriptions,
                line=limits.line,
            ),
            desk=desk,
            cache=cache,
            audit=audit,
            # A store without addresses is not watched: its changes would go by the addresses of another.
            sources=tuple(served[scheme] for scheme in exposed),
        )

    def _sources(self, loaded: Loaded) -> dict[str, tuple[Source, bool]]:
        """The configured sources by scheme, each with whether it has addresses of its own."""
        made: dict[str, tuple[Source, bool]] = {}
        for name, options in loaded.config.sources.items():
            if isinstance(options, FileOptions):
                source: Source = self._file(options, loaded)
            else:
                source = self._memory(options)
            made[options.scheme if options.expose else f"{options.scheme}+{name}"] = (source, options.expose)
        return made

    def _file(self, options: FileOptions, loaded: Loaded) -> Source:
        described = [words for words in loaded.config.resources if words.is_template]
        mine = [words for words in described if words.uri.partition("://")[0].lower() == options.scheme]
        never = [*prompt_directories(loaded), *([self._state.path] if self._state.path else [])]
        return FileSource(
            [FileRoot(root.path, root.public) for root in options.roots],
            secret=self._state.key("etag"),
            extensions=options.extensions,
            hidden=(*CREDENTIALS, *options.hide),
            symlinks=options.symlinks,
            hard_links=options.hard_links,
            exclude_dirs=never,
            list_under=options.listing.under,
            list_recursive=options.listing.recursive,
            uris=options.uris,
            templates=[
                *(
                    Template(
                        uri_template=offered.uri,
                        name=offered.name,
                        description=offered.description,
                        mime_type=offered.mime_type,
                        parameters={"type": "object", "properties": dict(offered.parameters)}
                        if offered.parameters
                        else {},
                    )
                    for offered in options.templates
                ),
                *(_template(words) for words in mine),
            ],
            scheme=options.scheme,
        )

    def _memory(self, options: MemoryOptions) -> Source:
        entries = {
            path: MemoryEntry(
                body=resource.body,
                name=resource.name,
                description=resource.description,
                mime_type=resource.mime_type,
                metadata=resource.metadata,
            )
            for path, resource in options.resources.items()
        }
        templates = {
            path: TemplateBody(
                text=offered.text,
                name=offered.name,
                description=offered.description,
                mime_type=offered.mime_type or "text/plain",
                values=offered.values,
            )
            for path, offered in options.templates.items()
        }
        return MemorySource(options.scheme, entries, templates=templates, secret=self._state.key("etag"))


async def _retire(old: AsyncExitStack) -> None:
    """Old sources stay open for the calls that still run on them."""
    try:
        await asyncio.sleep(GRACE)
    finally:
        await old.aclose()


def _rules(loaded: Loaded) -> list[Rule]:
    return [
        Rule(
            who=rule.who,
            may=_verbs(rule),
            what=tuple(Glob(pattern) for pattern in rule.what),
            allow=rule.effect == "allow",
            why=rule.why,
            hide=rule.hide,
            name=f"policy[{index}]",
        )
        for index, rule in enumerate(loaded.config.policy)
    ]


def _verbs(rule: RuleOptions) -> frozenset[Verb] | None:
    if "*" not in rule.may:
        return frozenset(verb for verb in VERBS if verb in rule.may)
    # A star refuses everything, but it does not hand out secrets: that right is only ever named.
    return None if rule.effect == "deny" else frozenset(VERBS) - {"read_unredacted"}


def _ttl(config: Config, scheme: str) -> float:
    return next((o.cache.ttl for o in config.sources.values() if o.expose and o.scheme == scheme), 0.0)


def _with_plugins(
    configured: dict[str, tuple[Source, bool]], plugins: Sequence[Plugin]
) -> dict[str, tuple[Source, bool]]:
    sources = dict(configured)
    for plugin in plugins:
        for source in plugin.sources:
            scheme = source.scheme
            if not is_scheme(scheme) or scheme != scheme.lower() or scheme in (*sources, *RESERVED_SCHEMES):
                raise InvalidParams(f"The plugin {plugin.name} may not serve {scheme}://: it is taken, or no scheme")
            sources[scheme] = (source, True)
    return sources


def _templates(config: Config) -> list[Template]:
    """The operator's templates, but for those of file sources, which complete their variables themselves."""
    by_files = {source.scheme for source in config.sources.values() if isinstance(source, FileOptions)}
    return [
        _template(words)
        for words in config.resources
        if words.is_template and words.uri.partition("://")[0].lower() not in by_files
    ]


def _template(words: ResourceWords) -> Template:
    return Template(
        uri_template=words.uri, name=words.name or words.uri, description=words.description, mime_type=words.mime_type
    )


def _described(resources: Sequence[ResourceWords]) -> dict[Ref, Entry]:
    """The operator's words about single resources, laid over what a source tells."""
    return {
        Ref.parse(words.uri): Entry(
            ref=Ref.parse(words.uri),
            name=words.name or "",
            description=words.description,
            mime_type=words.mime_type or "",
            annotations=words.annotations,
        )
        for words in resources
        if not words.is_template
    }


def serve_stdio(loaded: Loaded, *, as_who: str | None) -> None:
    """Serves one client on stdin and stdout until it leaves."""

    async def serve(house: Octavo) -> None:
        from octavo.transport.mcp import serve as mcp

        who = house.works.identity.launched(as_who)
        options = loaded.config.serve
        await mcp.serve_stdio(house, who, lane=options.lane, strict_codes=options.error_codes == "strict")

    _run(loaded, serve)


def serve_http(loaded: Loaded, *, bind: Bind, as_who: str | None, no_auth: bool) -> None:
    """Serves MCP at /mcp until SIGTERM or SIGINT. Port 0 takes a free one; the address is told on stderr."""
    try:
        family = socket.AF_INET6 if ":" in bind.host else socket.AF_INET
        listening = socket.create_server((bind.host, bind.port), family=family, backlog=1024)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error  # without Python's own words about the attempt
        raise SourceUnavailable(f"Cannot listen on {bind}: {reason}") from None

    async def serve(house: Octavo) -> None:
        from octavo.transport.mcp import serve as mcp
        from octavo.transport.mcp.http import Access

        options = loaded.config.serve
        access = Access(everybody=as_who or "") if no_auth else Access()
        if no_auth:
            house.works.identity.launched(as_who)
        names = {"127.0.0.1", "localhost", "[::1]", f"[{bind.host}]" if ":" in bind.host else bind.host}
        app, hub = mcp.http_app(
            house,
            access=access,
            hosts=[*(f"{name}:*" for name in sorted(names)), *options.http.allowed_hosts],
            origins=[*(f"http://{name}:*" for name in sorted(names)), *options.http.allowed_origins],
            lane=options.lane,
            strict_codes=options.error_codes == "strict",
        )
        await mcp.serve_http(app, hub, listening, _announce)

    _run(loaded, serve)


def _announce(address: str) -> None:
    sys.stderr.write(f"octavo: serving MCP at {address}\n")
    sys.stderr.flush()


def _run(loaded: Loaded, serve: Callable[[Octavo], Awaitable[None]]) -> None:
    """One house on one event loop, with the configuration file followed."""

    async def main() -> None:
        async with Octavo(loaded) as house:
            following = asyncio.ensure_future(_follow(house, loaded))
            # What is alive now stays: the collector need not look at it again and again.
            gc.freeze()
            gc.enable()
            try:
                await serve(house)
            finally:
                following.cancel()

    if sys.platform == "win32":
        asyncio.run(main())
    else:
        import uvloop

        uvloop.run(main())


async def _follow(house: Octavo, loaded: Loaded) -> None:
    if loaded.file is None:
        return
    hangup = asyncio.Event()
    if sys.platform != "win32":
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hangup.set)
    await follow_file(house, loaded.file, wake=hangup)


async def follow_file(house: Octavo, file: Path, *, wake: asyncio.Event) -> None:
    """Reloads when the configuration file changes or `wake` is set. A broken file keeps what runs."""
    seen = _fingerprint(file)
    while True:
        try:
            await asyncio.wait_for(wake.wait(), timeout=1.0)
            wake.clear()
        except TimeoutError:
            if _fingerprint(file) == seen:
                continue
        seen = _fingerprint(file)
        # In a task, so that whatever a plugin raises there is a problem to tell and not the end of this loop.
        reloading = asyncio.ensure_future(_reload(house, file))
        await asyncio.wait({reloading})
        problem = reloading.exception()
        if problem is None:
            logger.warning("configuration reloaded from %s", file)
        else:
            foreign = None if isinstance(problem, OctavoError | ConfigError) else problem
            logger.error("the new configuration is not used, the old one stays:\n%s", problem, exc_info=foreign)


async def _reload(house: Octavo, file: Path) -> None:
    await house.reload(load(file))


def _fingerprint(file: Path) -> tuple[int, int, int] | None:
    try:
        facts = file.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size
