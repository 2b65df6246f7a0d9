"""The registries of one configuration filled: its tools and its prompts, from plugins, folders and Octavo itself."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from octavo.app.builtin_tools import (
    aliases,
    built_in_tools,
    composed_tools,
    general_tools,
    telling,
    unlisted_tools,
)
from octavo.app.external import Reaching
from octavo.app.narrowing import WHOLE, Narrowing
from octavo.app.sources import tools_of_kinds
from octavo.config.load import Loaded
from octavo.config.model import Config
from octavo.core.foundation import Changeable
from octavo.core.ref import Ref
from octavo.core.tools import Conversations
from octavo.prompts.registry import PromptRegistry
from octavo.tools.plugins import Plugin
from octavo.tools.registry import Tool, ToolRegistry
from octavo.tools.schema import compile_schema

logger = logging.getLogger(__name__)


class BuiltIn(Struct, frozen=True):
    """Octavo's own tools, as one configuration has them: `unlisted` are names that are understood, and not listed."""

    tools: Sequence[Tool]
    unlisted: Sequence[str]

    @property
    def names(self) -> list[str]:
        return [*(tool.info.name for tool in self.tools), *self.unlisted]

    @property
    def aliases(self) -> dict[Ref, Ref]:
        return aliases(self.names)

    @property
    def composed(self) -> list[str]:
        return composed_tools(self.tools, self.unlisted)

    @property
    def general(self) -> list[Ref]:
        return general_tools(self.tools, self.unlisted)


def tools_of(
    loaded: Loaded,
    plugins: Iterable[Plugin],
    narrowing: Narrowing,
    conversations: Conversations | None,
    exposed: Sequence[str],
    reaching: Reaching,
    by_clients: Changeable,
) -> tuple[ToolRegistry, BuiltIn]:
    """All tools, and which of them are Octavo's own. A name that is taken is refused, so what a plugin brings goes
    before what Octavo has."""
    config, tools = loaded.config, ToolRegistry()
    for plugin in plugins:
        for tool in plugin.tools:
            tools.register(tool if tool.protocol else replace(tool, max_answer=config.limits.answer))
    for tool in tools_of_kinds(config):
        tools.register(tool)
    built_in = built_in_tools(config, narrowing, conversations, exposed=exposed)
    for tool in (*built_in, *reaching.tools()):
        tools.register(telling(tool, config))
    names, make = unlisted_tools(config)
    unlisted = [name for name in names if tools.tool(name) is None]
    tools.provide(unlisted, make)
    if config.tools.dirs:
        _declared(config, tools, reaching, by_clients)
    if config.tools.only:
        tools.keep_only(config.tools.only)
    return tools, BuiltIn(built_in, unlisted)


def _declared(config: Config, tools: ToolRegistry, reaching: Reaching, by_clients: Changeable) -> None:
    """Those of the operator's folders; what is wrong with one leaves out that one."""
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


def prompts_of(
    loaded: Loaded,
    plugins: Iterable[Plugin],
    narrowing: Narrowing,
    conversations: Conversations | None,
    by_clients: Changeable,
) -> PromptRegistry:
    """Those of plugins and of folders; what is wrong with a file leaves out its prompt."""
    wanted = loaded.config.prompts
    prompts = PromptRegistry(
        compile_schema,
        locales=wanted.locales,
        embed=wanted.embed,
        conversations=conversations,
        changeable=by_clients,
    )
    for plugin in plugins:
        for info, rendering in plugin.prompts:
            prompts.register(info, rendering)
    for problem in prompts.load(prompt_folders(loaded, narrowing)):
        logger.log(logging.INFO if problem.remark else logging.WARNING, "prompt left out: %s", problem)
    return prompts


def prompt_folders(loaded: Loaded, narrowing: Narrowing = WHOLE) -> tuple[Path, ...]:
    """With the one that comes with Octavo, last: what has the name of one of its prompts goes before it."""
    folders = narrowing.prompt_directories(loaded)
    if not loaded.config.prompts.starter or narrowing.prompts is not None:
        return folders
    from octavo.prompts.loader import STARTER

    return (*folders, STARTER)
