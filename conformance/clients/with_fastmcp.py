from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from steps import Target, contents_of, run, subscribed, text_of


class Fastmcp:
    def __init__(self, client: Client[Any]) -> None:
        self._client = client

    def version(self) -> str:
        return self._client.session.protocol_version

    async def resources(self) -> list[Any]:
        return [one.uri for one in await self._client.list_resources()]

    async def read(self, uri: str) -> str | bytes:
        return contents_of(await self._client.read_resource(uri))

    async def tools(self) -> list[str]:
        return [one.name for one in await self._client.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return text_of((await self._client.call_tool(name, arguments)).content)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return text_of((await self._client.get_prompt(name, arguments)).messages)

    async def subscribe(self, uri: str, heard: Callable[[object], None]) -> None:
        await subscribed(self._client.session, uri, heard)


@contextlib.asynccontextmanager
async def opened(target: Target) -> AsyncIterator[Fastmcp]:
    if target.url:
        transport: Any = StreamableHttpTransport(target.url, headers=target.headers)
    else:
        program, *arguments = target.command
        transport = StdioTransport(program, arguments, env=target.env, keep_alive=False)
    async with Client(transport) as client:
        yield Fastmcp(client)


if __name__ == "__main__":
    run(opened, "fastmcp", "mcp")
