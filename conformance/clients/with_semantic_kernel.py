from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from semantic_kernel import Kernel
from semantic_kernel.connectors.mcp import MCPStdioPlugin, MCPStreamableHttpPlugin
from steps import LIMIT, Target, run


class SemanticKernel:
    def __init__(self, plugin: Any) -> None:
        self._plugin, self._kernel = plugin, Kernel()
        self._kernel.add_plugin(plugin)

    def tools(self) -> list[str]:
        """Its functions: prompts are among them."""
        return list(self._kernel.get_plugin("octavo").functions)

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        result: Any = await self._kernel.invoke(plugin_name="octavo", function_name=name, **arguments)
        return "\n".join(str(one) for one in result.value)

    prompt = call


@contextlib.asynccontextmanager
async def opened(target: Target) -> AsyncIterator[SemanticKernel]:
    if target.url:
        plugin: Any = MCPStreamableHttpPlugin(
            "octavo", target.url, headers=target.headers, request_timeout=int(LIMIT), load_prompts=True
        )
    else:
        program, *arguments = target.command
        plugin = MCPStdioPlugin(
            "octavo", program, args=arguments, env=target.env, request_timeout=int(LIMIT), load_prompts=True
        )
    async with plugin:
        yield SemanticKernel(plugin)


if __name__ == "__main__":
    run(opened, "semantic-kernel", "mcp")
