"""The skills extension: `skills/list`, `skills/get` and `resources/directory/read`, in both eras.

It is announced while there is a catalog of skills. Directories can be read without one as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict

from octavo.core.errors import Forbidden, NotFound
from octavo.core.ports.chain import expected, page_of
from octavo.core.values import Call, Page, Principal
from octavo.transport.mcp import eras, shapes, wire_names
from octavo.transport.mcp.calls import Calls

Context = ServerRequestContext[Any, Any]
Who = Callable[[Context], Principal]

LIST_MS = 60_000  # as other lists: who holds an old digest notices it at the content, and asks again


class SkillParams(types.RequestParams):
    model_config = ConfigDict(defer_build=True)  # most clients never ask

    uri: str


class DirectoryParams(types.PaginatedRequestParams):
    model_config = ConfigDict(defer_build=True)

    uri: str


class SkillsExtension:
    def __init__(self, calls: Calls, who: Who) -> None:
        self._calls, self._who = calls, who

    @property
    def announced(self) -> dict[str, dict[str, Any]]:
        return {wire_names.SKILLS_EXTENSION: {"directoryRead": True}} if self._calls.works.skill_schemes else {}

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        self._refuse_without_skills(ctx)
        call = self._calls.list_skills(self._who(ctx), params.cursor if params else None)
        return _complete(ctx, self._calls.skills(call, expected(await self._calls.ask(call), Page)), LIST_MS)

    async def get(self, ctx: Context, params: SkillParams) -> dict[str, Any]:
        self._refuse_without_skills(ctx)
        page = await self._found(self._calls.build.at("skills", self._who(ctx), params.uri))
        return _complete(ctx, {"skill": shapes.skill(page.items[0])}, 0)

    async def read_directory(self, ctx: Context, params: DirectoryParams) -> dict[str, Any]:
        call = self._calls.read_directory(self._who(ctx), params.uri, params.cursor)
        result = self._calls.directory(call, await self._found(call))
        return _complete(ctx, eras.untitled(result, "resources", ctx.protocol_version), None)

    async def _found(self, call: Call) -> Page[Any]:
        """An address at which the caller sees no skill, or no directory, is told in one way, also in the older era:
        the extension says which."""
        try:
            return page_of(await self._calls.ask(call))
        except (NotFound, Forbidden):
            absent = NotFound(f"Resource not found: {call.uri}", uri=call.uri)
            wire = self._calls.codes.encode(absent, modern=True)
            raise MCPError(wire.code, wire.message, wire.data) from None

    def _refuse_without_skills(self, ctx: Context) -> None:
        if not self.announced:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", ctx.method)


def _complete(ctx: Context, result: dict[str, Any], ttl: int | None) -> dict[str, Any]:
    """With the members that the modern era wants. What anybody sees depends on who asks, so it is never shared."""
    if ctx.protocol_version != wire_names.MODERN:
        return result
    caching = {} if ttl is None else {"ttlMs": ttl, "cacheScope": "private"}
    return {**result, "resultType": "complete", **caching}
