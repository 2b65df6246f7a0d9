"""One trivial tool on the plain `mcp` SDK, written the way its documentation shows."""

from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

NUMBER = {"type": "integer"}
TAKES: dict[str, Any] = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]}
GIVES: dict[str, Any] = {"type": "object", "properties": {"result": NUMBER}, "required": ["result"]}


async def list_tools(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    tool = types.Tool(name="add", description="Adds two numbers.", input_schema=TAKES, output_schema=GIVES)
    return types.ListToolsResult(tools=[tool])


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    given = params.arguments or {}
    total = given["a"] + given["b"]
    text = types.TextContent(text=str(total))
    return types.CallToolResult(content=[text], structured_content={"result": total})


server = Server("bench-mcp", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
