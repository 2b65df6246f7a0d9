from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from mcp import StdioServerParameters
from smolagents import ChatMessage, CodeAgent, MCPClient, MessageRole, Model
from steps import LIMIT, Target, run


class Writes(Model):
    """Writes one line of code: the answer of a tool is the answer."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        super().__init__(model_id="none")
        self._code = f"<code>\nfinal_answer({name}(**{arguments!r}))\n</code>"

    def generate(self, messages: Any, *given: Any, **rest: Any) -> ChatMessage:
        return ChatMessage(role=MessageRole.ASSISTANT, content=self._code)


class Smolagents:
    def __init__(self, tools: Any) -> None:
        self._tools = tools

    def tools(self) -> list[str]:
        return [one.name for one in self._tools]

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        (tool,) = (one for one in self._tools if one.name == name)
        return str(tool(**arguments))

    def agent(self, name: str, arguments: dict[str, Any]) -> str:
        return str(CodeAgent(self._tools, Writes(name, arguments), max_steps=2, verbosity_level=0).run("Read it."))


@contextlib.asynccontextmanager
async def opened(target: Target) -> AsyncIterator[Smolagents]:
    if target.url:
        where: Any = {"url": target.url, "transport": "streamable-http", "headers": target.headers}
    else:
        program, *arguments = target.command
        where = StdioServerParameters(command=program, args=arguments, env=target.env)
    with MCPClient(where, adapter_kwargs={"connect_timeout": int(LIMIT)}, structured_output=False) as tools:
        yield Smolagents(tools)


if __name__ == "__main__":
    run(opened, "smolagents", "mcp")
