from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
from steps import LIMIT, Target, contents_of, run, text_of


class LlamaIndex:
    def __init__(self, client: BasicMCPClient) -> None:
        self._client = client

    async def resources(self) -> list[Any]:
        return [one.uri for one in (await self._client.list_resources()).resources]

    async def read(self, uri: Any) -> str | bytes:
        return contents_of((await self._client.read_resource(uri)).contents)

    async def tools(self) -> list[str]:
        return [one.metadata.name or "" for one in await McpToolSpec(self._client).to_tool_list_async()]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """By the tool that an agent is given, whose schema it makes anew."""
        for tool in await McpToolSpec(self._client, allowed_tools=[name]).to_tool_list_async():
            return text_of((await tool.acall(**arguments)).raw_output.content)
        raise LookupError(name)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return "\n".join(str(one.content) for one in await self._client.get_prompt(name, arguments))

    async def agent(self, name: str, arguments: dict[str, Any]) -> str:
        def repeats(messages: Any, **rest: Any) -> ChatMessage:
            answered = [one for one in messages if one.role == "tool"]
            call = ToolCallBlock(tool_call_id="1", tool_name=name, tool_kwargs=arguments)
            return ChatMessage(role="assistant", blocks=answered[-1].blocks if answered else [call])

        llm = MockFunctionCallingLLM(response_generator=repeats)
        tools = await McpToolSpec(self._client).to_tool_list_async()
        return str(await FunctionAgent(tools=tools, llm=llm, streaming=False).run(ChatMessage("Read it.")))


@contextlib.asynccontextmanager
async def opened(target: Target) -> AsyncIterator[LlamaIndex]:
    if target.url:
        client = BasicMCPClient(target.url, headers=target.headers, timeout=int(LIMIT))
    else:
        program, *arguments = target.command
        client = BasicMCPClient(program, arguments, env=target.env, timeout=int(LIMIT))
    yield LlamaIndex(client)


if __name__ == "__main__":
    run(opened, "llama-index-tools-mcp", "mcp")
