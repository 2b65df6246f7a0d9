from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams, StreamableHTTPConnectionParams
from google.genai.types import Content, Part
from mcp import StdioServerParameters
from steps import LIMIT, Target, contents_of, run


class Repeats(BaseLlm):
    """Asks for one tool and says what it answered."""

    tool: str
    arguments: dict[str, Any]

    async def generate_content_async(self, request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        answered = [part.function_response.response for part in request.contents[-1].parts if part.function_response]
        if answered:
            part = Part.from_text(text=json.dumps(answered, ensure_ascii=False))
        else:
            part = Part.from_function_call(name=self.tool, args=self.arguments)
        yield LlmResponse(content=Content(role="model", parts=[part]))


class GoogleAdk:
    def __init__(self, toolset: McpToolset) -> None:
        self._toolset = toolset

    async def resources(self) -> list[str]:
        """Names: it knows resources by them, and has no address to give."""
        return await self._toolset.list_resources()

    async def read(self, name: str) -> str | bytes:
        return contents_of(await self._toolset.read_resource(name))

    async def tools(self) -> list[str]:
        return [one.name for one in await self._toolset.get_tools()]

    async def agent(self, name: str, arguments: dict[str, Any]) -> str:
        model = Repeats(model="none", tool=name, arguments=arguments)
        agent = LlmAgent(name="reader", model=model, tools=[self._toolset])
        events = await InMemoryRunner(agent).run_debug("Read it.", quiet=True)
        return "".join(part.text or "" for part in events[-1].content.parts)

    call = agent  # its tools run inside of a loop alone


@contextlib.asynccontextmanager
async def opened(target: Target) -> AsyncIterator[GoogleAdk]:
    if target.url:
        where: Any = StreamableHTTPConnectionParams(url=target.url, headers=target.headers, timeout=LIMIT)
    else:
        program, *arguments = target.command
        server = StdioServerParameters(command=program, args=arguments, env=target.env)
        where = StdioConnectionParams(server_params=server, timeout=LIMIT)
    toolset = McpToolset(connection_params=where)
    try:
        yield GoogleAdk(toolset)
    finally:
        await toolset.close()


if __name__ == "__main__":
    run(opened, "google-adk", "mcp")
