"""What tools use outside of the process: one runner for listed programs, one client for listed hosts.

Nothing is loaded or opened before somebody needs it: most servers start no programs and ask nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from octavo.app.builtin_tools import toolsets
from octavo.app.essentials import foundation_of
from octavo.config.load import Loaded
from octavo.core.clock import Clock

if TYPE_CHECKING:
    from octavo.core.external import Fetcher, Finished, HttpReply
    from octavo.core.ports.source import Source
    from octavo.net.client import GuardedClient
    from octavo.tools.builtin.process.places import ServedFolders
    from octavo.tools.builtin.process.runner import ProgramRunner
    from octavo.tools.context import ToolContext
    from octavo.tools.declarations import Outside, ProgramOrder
    from octavo.tools.registry import Tool


class Reaching:
    def __init__(
        self, loaded: Loaded, clock: Clock, stack: AsyncExitStack, sources: Mapping[str, Source] = MappingProxyType({})
    ) -> None:
        """What is started or connected ends with `stack`. `sources` are those in whose folders programs may work."""
        self._loaded, self._config, self._clock, self._stack = loaded, loaded.config, clock, stack
        self._sources = sources

    def tools(self) -> list[Tool]:
        """The toolsets `process` and `web`, as far as they are asked for."""
        tools: list[Tool] = []
        wanted = toolsets(self._config)
        if "process" in wanted:
            from octavo.app.programs import program_tools

            tools += program_tools(self._config, self._runner, self._places, self._stack)
        if "web" in wanted:
            from octavo.app.web import web_tools

            tools += web_tools(self._config, self._client, self._stack)
        return tools

    def outside(self) -> Outside:
        """For tools that the operator declares."""
        from octavo.tools.declarations import Outside

        fetch = self._fetch if self._config.web.hosts else None
        return Outside(run=self._run, programs=frozenset(self._config.commands.programs), fetch=fetch)

    @cached_property
    def _runner(self) -> ProgramRunner:
        from octavo.app.programs import runner_of

        return runner_of(self._config.commands, self._clock)

    @cached_property
    def _places(self) -> ServedFolders:
        from octavo.app.programs import places_of

        return places_of(self._config, self._sources, foundation_of(self._loaded))

    @cached_property
    def _client(self) -> GuardedClient:
        from octavo.app.web import client_of

        return client_of(self._config.web, self._stack)

    async def _run(self, ctx: ToolContext, order: ProgramOrder) -> Finished:
        """Of what is served a program sees what the tool points it at, as far as its caller may: a folder in which it
        works, or the files that a call names."""
        from octavo.app.programs import limits_of, ordered, program_of

        commands = self._config.commands
        listed = commands.programs[order.program]
        program = program_of(listed)
        work = await ordered(self._places, ctx, program, order, write=listed.write)
        words, stdin = order.filled(work.words)
        finished = await self._runner.run(
            program, (*listed.run[1:], *words), stdin=stdin, limits=limits_of(commands), place=work.place
        )
        for folder in work.folders:
            await self._places.refuse_changed(ctx, folder)
        return finished

    async def _fetch(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> HttpReply:
        from octavo.core.external import HttpRequest

        client: Fetcher = self._client
        return await client.fetch(HttpRequest(url=url, method=method, headers=headers, body=body))
