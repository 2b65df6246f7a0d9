from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.function import AgentInfo, FunctionModel
from steps import LIMIT, Target, run, subscribed


class PydanticAi:
    def __init__(self, toolset: Any) -> None:
        self._toolset = toolset

    def version(self) -> str:
        return self._toolset.client.session.protocol_version

    async def resources(self) -> list[Any]:
        return [one.uri for one in await self._toolset.list_resources()]

    async def read(self, uri: str) -> str | bytes:
        got = await self._toolset.read_resource(uri)
        return got if isinstance(got, str) else got.data

    async def tools(self) -> list[str]:
        return [one.name for one in await self._toolset.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return str(await self._toolset.direct_call_tool(name, arguments))

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        blocks = [one.content for one in (await self._toolset.get_prompt(name, arguments)).messages]
        return "\n".join(str(getattr(one, "content", one)) for one in blocks)

    async def agent(self, name: str, arguments: dict[str, Any]) -> str:
        def repeats(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            answered = [part for one in messages for part in one.parts if isinstance(part, ToolReturnPart)]
            return ModelResponse([TextPart(str(answered[0].content)) if answered else ToolCallPart(name, arguments)])

        return (await Agent(FunctionModel(repeats), toolsets=[self._toolset]).run("Read it.")).output

    async def subscribe(self, uri: str, heard: Callable[[object], None]) -> None:
        await subscribed(self._toolset.client.session, uri, heard)


@contextlib.asynccontextmanager
async def opened(target: Target) -> AsyncIterator[PydanticAi]:
    if target.url:
        toolset: Any = MCPToolset(target.url, headers=target.headers, init_timeout=LIMIT, read_timeout=LIMIT)
    else:
        program, *arguments = target.command
        toolset = MCPToolset(
            StdioTransport(program, arguments, env=target.env, keep_alive=False),
            init_timeout=LIMIT,
            read_timeout=LIMIT,
        )
    async with toolset:
        yield PydanticAi(toolset)


if __name__ == "__main__":
    run(opened, "pydantic-ai-slim", "mcp")
