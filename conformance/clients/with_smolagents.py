from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from mcp import StdioServerParameters
from smolagents import ChatMessage, MCPClient, MessageRole, Model, ToolCallingAgent
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction
from steps import LIMIT, Target, run


class Repeats(Model):
    """Asks for one tool and says what it answered."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        super().__init__(model_id="none")
        self._call: tuple[str, Any] = (name, arguments)

    def generate(self, messages: Any, *given: Any, **rest: Any) -> ChatMessage:
        answered = [one for one in messages if one.role == MessageRole.TOOL_RESPONSE]
        name, arguments = ("final_answer", {"answer": str(answered[-1].content)}) if answered else self._call
        call = ChatMessageToolCall(
            id="1", type="function", function=ChatMessageToolCallFunction(name=name, arguments=arguments)
        )
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


class Smolagents:
    def __init__(self, tools: Any) -> None:
        self._tools = tools

    def tools(self) -> list[str]:
        return [one.name for one in self._tools]

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        (tool,) = (one for one in self._tools if one.name == name)
        return str(tool(**arguments))

    def agent(self, name: str, arguments: dict[str, Any]) -> str:
        return str(ToolCallingAgent(self._tools, Repeats(name, arguments), max_steps=3, verbosity_level=0).run("Read."))


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
