"""Opens the sources that the configuration names, and lays the operator's descriptions over them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from octavo.app.catalogs import Catalogs, catalogs
from octavo.app.host import SourceHost, template_of
from octavo.app.narrowing import Narrowing
from octavo.app.open_sources import OpenSources
from octavo.config.load import Loaded
from octavo.config.model import Config, ResourceWords
from octavo.config.sections.source import Options
from octavo.config.words import RESERVED_SCHEMES
from octavo.core.errors import InvalidParams
from octavo.core.foreign import described, passed_on
from octavo.core.ports.source import Source
from octavo.core.ref import Ref, is_scheme
from octavo.core.values import Entry, Template
from octavo.pipeline.guard import Faults, Guarded, guarded
from octavo.pipeline.guard.life import OPENING, Unopened
from octavo.stores.state import StateDirectory
from octavo.tools.plugins import Plugin
from octavo.tools.registry import Tool

logger = logging.getLogger(__name__)


async def configured(
    loaded: Loaded,
    state: StateDirectory,
    narrowing: Narrowing,
    opened: OpenSources,
    faults: Faults,
    stack: AsyncExitStack,
) -> tuple[dict[str, tuple[Source, bool]], Catalogs | None]:
    """The configured sources by scheme, each with whether it has addresses of its own; and the catalogs among them.

    They are open until `stack` is closed, at the least.
    """
    config = loaded.config
    made: dict[str, Source] = {}
    for name, options in config.sources.items():
        if options.over is not None:
            continue
        host = SourceHost(name, loaded, state, narrowing)
        if loaded.kinds.is_foreign(options.kind):
            made[name] = await _foreign(name, host, options, faults, config.limits.time)
        else:
            made[name] = await opened.take(options, host, stack)
    for source in made.values():
        if isinstance(source, Guarded):
            await stack.enter_async_context(source)

    def hosted(name: str, stores: Mapping[str, Source], together: dict[Callable[[], Any], Any]) -> SourceHost:
        return SourceHost(name, loaded, state, narrowing, stores, together)

    over_stores = await catalogs(config, made, hosted, opened.catalogs)
    if over_stores is not None:
        made |= over_stores.sources
    sources: dict[str, tuple[Source, bool]] = {}
    for name, options in config.sources.items():
        sources[options.scheme if options.expose else f"{options.scheme}+{name}"] = (made[name], options.expose)
    return sources, over_stores


async def _foreign(name: str, host: SourceHost, options: Options, faults: Faults, time: float) -> Guarded:
    """Of a kind that a plugin brings, behind a door. One that cannot be opened does not answer, and is said."""
    record, scheme = options.record, options.scheme
    try:
        async with asyncio.timeout(OPENING):
            source = await record.open(options, host)
        if (given := getattr(source, "scheme", None)) != scheme:
            raise InvalidParams(f"The kind {record.name} opened a source of another scheme: {given!r:.80}")
    except BaseException as error:
        if passed_on(error):
            raise
        logger.error("%s: its source cannot be opened: %s", name, words := described(error))
        closed = guarded(Unopened(scheme), faults, time)
        closed.life.unopened = words
        faults.note(scheme, "open", words, lasts=True)
        return closed
    door = guarded(source, faults, time, able=options.can, parameters=record.parameters)
    door.life.begin()
    return door


def with_plugins(
    configured: dict[str, tuple[Source, bool]], plugins: Sequence[Plugin], faults: Faults, time: float
) -> dict[str, tuple[Source, bool]]:
    """Those of plugins behind a door: what they do wrong is noted in `faults`."""
    sources = dict(configured)
    for plugin in plugins:
        for source in plugin.sources:
            scheme: object = getattr(source, "scheme", None)
            if not all(callable(getattr(source, name, None)) for name in ("list", "stat", "read")):
                raise InvalidParams(f"The plugin {plugin.name} gives a source without list, stat and read")
            if not isinstance(scheme, str) or not is_scheme(scheme) or scheme != scheme.lower():
                raise InvalidParams(f"The plugin {plugin.name} gives a source whose scheme is none: {scheme!r:.80}")
            if scheme in (*sources, *RESERVED_SCHEMES):
                raise InvalidParams(f"The plugin {plugin.name} may not serve {scheme}://: it is taken")
            sources[scheme] = (guarded(source, faults, time), True)
    return sources


def tools_of_kinds(config: Config) -> list[Tool]:
    """That the kinds of what is configured bring, each once."""
    functions = dict.fromkeys(made for one in config.sources.values() for made in one.record.tools)
    if not functions:
        return []
    from octavo.tools.functions import tool_of  # here: few kinds bring any

    return [tool_of(function, max_answer=config.limits.answer) for function in functions]


def ttl_of(config: Config, scheme: str) -> float:
    return next((one.ttl for one in config.sources.values() if one.expose and one.scheme == scheme), 0.0)


def templates_of(config: Config) -> list[Template]:
    """The operator's templates, but for those that a source was given: it completes their variables itself."""
    given = {one.scheme for one in config.sources.values() if one.record.templates}
    return [
        template_of(words)
        for words in config.resources
        if words.is_template and words.uri.partition("://")[0].lower() not in given
    ]


def described_in(resources: Sequence[ResourceWords]) -> dict[Ref, Entry]:
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


def chosen_schemes(config: Config, plugins: Sequence[Plugin]) -> set[str]:
    """Where a caller may have chosen what is told: it wrote it, or it gave it to a tool, a prompt or a template."""
    kinds = ((one, one.record.chosen) for one in config.sources.values())
    filled = {one.scheme for one, chosen in kinds if chosen is not None and chosen(one)}
    return {"tool", "prompt"} | filled | writable_schemes(config, plugins)


def writable_schemes(config: Config, plugins: Sequence[Plugin]) -> set[str]:
    """What the configuration opens; a plugin decides for the sources that it registers itself."""
    written = {one.scheme for one in config.sources.values() if one.expose and "write" in one.can}
    return written | {source.scheme for plugin in plugins for source in plugin.sources}
