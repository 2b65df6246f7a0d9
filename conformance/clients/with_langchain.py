from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.prompts import load_mcp_prompt
from langchain_mcp_adapters.resources import get_mcp_resource, load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools
from steps import Target, run, subscribed, updated


class Asks(GenericFakeChatModel):
    """Asks for one tool, then says that it has it."""

    def bind_tools(self, tools: Any, **rest: Any) -> Any:
        return self


class Langchain:
    def __init__(self, session: Any, hearing: list[Any]) -> None:
        self._session, self._hearing = session, hearing

    async def resources(self) -> list[Any]:
        return [blob.metadata["uri"] for blob in await load_mcp_resources(self._session)]

    async def read(self, uri: str) -> str | bytes:
        (blob,) = await get_mcp_resource(self._session, uri)
        data: str | bytes = blob.data
        return data

    async def tools(self) -> list[str]:
        return [one.name for one in await load_mcp_tools(self._session)]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        (tool,) = (one for one in await load_mcp_tools(self._session) if one.name == name)
        return str(await tool.ainvoke(arguments))

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return "\n".join(str(one.content) for one in await load_mcp_prompt(self._session, name, arguments=arguments))

    async def agent(self, name: str, arguments: dict[str, Any]) -> str:
        asks = AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "1"}])
        model = Asks(messages=iter([asks, AIMessage("I have it.")]))
        agent = create_agent(model, await load_mcp_tools(self._session))
        said = (await agent.ainvoke({"messages": [("user", "Read it.")]}))["messages"]
        return "\n".join(str(one.content) for one in said if one.type == "tool")

    async def subscribe(self, uri: str, heard: Callable[[object], None]) -> None:
        self._hearing.append(heard)
        await subscribed(self._session, uri, heard)


@contextlib.asynccontextmanager
async def opened(target: Target) -> AsyncIterator[Langchain]:
    hearing: list[Any] = []

    async def told(message: Any) -> None:
        address = updated(message)
        for heard in hearing if address else ():
            heard(address)

    where: dict[str, Any] = {"session_kwargs": {"message_handler": told}}
    if target.url:
        where |= {"transport": "streamable_http", "url": target.url, "headers": target.headers}
    else:
        program, *arguments = target.command
        where |= {"transport": "stdio", "command": program, "args": arguments, "env": target.env}
    async with MultiServerMCPClient({"octavo": where}).session("octavo") as session:  # type: ignore[dict-item]
        yield Langchain(session, hearing)


if __name__ == "__main__":
    run(opened, "langchain-mcp-adapters", "mcp")
