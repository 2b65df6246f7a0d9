from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from crewai_tools import MCPServerAdapter
from mcp import StdioServerParameters
from steps import LIMIT, Target, run


class Crewai:
    def __init__(self, tools: Any) -> None:
        self._tools = tools

    def tools(self) -> list[str]:
        return [one.name for one in self._tools]

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        return str(self._tools[name].run(**arguments))


@contextlib.asynccontextmanager
async def opened(target: Target) -> AsyncIterator[Crewai]:
    if target.url:
        where: Any = {"url": target.url, "transport": "streamable-http", "headers": target.headers}
    else:
        program, *arguments = target.command
        where = StdioServerParameters(command=program, args=arguments, env=target.env)
    with MCPServerAdapter(where, connect_timeout=int(LIMIT)) as tools:
        yield Crewai(tools)


if __name__ == "__main__":
    run(opened, "crewai-tools", "mcp")
