from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from mcp_use import MCPClient
from steps import Target, contents_of, run, subscribed, text_of, updated


class McpUse:
    def __init__(self, session: Any, hearing: list[Any]) -> None:
        self._session, self._hearing = session, hearing

    async def resources(self) -> list[Any]:
        return [one.uri for one in await self._session.list_resources()]

    async def read(self, uri: str) -> str | bytes:
        return contents_of((await self._session.read_resource(uri)).contents)

    async def tools(self) -> list[str]:
        return [one.name for one in await self._session.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return text_of((await self._session.call_tool(name, arguments)).content)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return text_of((await self._session.get_prompt(name, arguments)).messages)

    async def subscribe(self, uri: str, heard: Callable[[object], None]) -> None:
        self._hearing.append(heard)
        await subscribed(self._session.connector.client_session, uri, heard)


@contextlib.asynccontextmanager
async def opened(target: Target) -> AsyncIterator[McpUse]:
    hearing: list[Any] = []

    async def told(message: Any) -> None:
        address = updated(message)
        for heard in hearing if address else ():
            heard(address)

    if target.url:
        where: dict[str, Any] = {"url": target.url, "headers": target.headers}
    else:
        program, *arguments = target.command
        where = {"command": program, "args": arguments, "env": target.env}
    client = MCPClient({"mcpServers": {"octavo": where}}, message_handler=told)
    session = await client.create_session("octavo")
    try:
        yield McpUse(session, hearing)
    finally:
        await client.close_all_sessions()


if __name__ == "__main__":
    run(opened, "mcp-use", "mcp")
