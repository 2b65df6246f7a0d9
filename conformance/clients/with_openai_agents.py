from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServer, MCPServerStdio, MCPServerStreamableHttp
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from steps import LIMIT, Target, contents_of, run, subscribed, text_of


class Repeats(Model):
    """Asks for one tool and says what it answered."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        self._call = ResponseFunctionToolCall(
            type="function_call", call_id="1", name=name, arguments=json.dumps(arguments)
        )

    async def get_response(self, system_instructions: Any, input: Any, *more: Any, **rest: Any) -> ModelResponse:
        answered = [one["output"] for one in input if isinstance(one, dict) and "output" in one]
        said: Any = self._call
        if answered:
            text = ResponseOutputText(type="output_text", text=json.dumps(answered, ensure_ascii=False), annotations=[])
            said = ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *given: Any, **rest: Any) -> Any:
        raise NotImplementedError


class OpenaiAgents:
    def __init__(self, server: Any) -> None:
        self._server = server

    def version(self) -> str:
        return self._server.session.protocol_version

    async def resources(self) -> list[Any]:
        page = await self._server.list_resources()
        found = list(page.resources)
        while page.next_cursor:
            page = await self._server.list_resources(page.next_cursor)
            found += page.resources
        return [one.uri for one in found]

    async def read(self, uri: str) -> str | bytes:
        return contents_of((await self._server.read_resource(uri)).contents)

    async def tools(self) -> list[str]:
        return [one.name for one in await self._server.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return text_of((await self._server.call_tool(name, arguments)).content)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return text_of((await self._server.get_prompt(name, arguments)).messages)

    async def agent(self, name: str, arguments: dict[str, Any]) -> str:
        agent = Agent(name="reader", mcp_servers=[self._server], model=Repeats(name, arguments))
        return str((await Runner.run(agent, "Read it.")).final_output)

    async def subscribe(self, uri: str, heard: Callable[[object], None]) -> None:
        await subscribed(self._server.session, uri, heard)


@contextlib.asynccontextmanager
async def opened(target: Target) -> AsyncIterator[OpenaiAgents]:
    set_tracing_disabled(True)
    if target.url:
        server: MCPServer = MCPServerStreamableHttp(
            {"url": target.url, "headers": target.headers}, client_session_timeout_seconds=LIMIT
        )
    else:
        program, *arguments = target.command
        server = MCPServerStdio(
            {"command": program, "args": arguments, "env": target.env}, client_session_timeout_seconds=LIMIT
        )
    async with server:
        yield OpenaiAgents(server)


if __name__ == "__main__":
    run(opened, "openai-agents", "mcp")
