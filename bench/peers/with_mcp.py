"""A folder as resources on the plain `mcp` SDK, written the way its documentation shows: no cache, no tricks.

python with_mcp.py DIR [PORT]        stdio, or HTTP (JSON answers) when a port is given
"""

import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

ROOT = Path(sys.argv[1]).resolve()
PORT = int(sys.argv[2]) if len(sys.argv) > 2 else None


async def list_resources(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    names = sorted(path.name for path in ROOT.iterdir() if path.is_file())
    return types.ListResourcesResult(
        resources=[types.Resource(uri=f"file://{name}", name=name, mime_type="text/markdown") for name in names]
    )


async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    path = (ROOT / params.uri.removeprefix("file://")).resolve()
    if not path.is_relative_to(ROOT) or not path.is_file():
        raise MCPError(-32002, "no such resource", {"uri": params.uri})
    text = path.read_text(encoding="utf-8")
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=params.uri, mime_type="text/markdown", text=text)]
    )


server = Server("bench-mcp", version="1", on_list_resources=list_resources, on_read_resource=read_resource)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if PORT is None:
    anyio.run(main)
else:
    import uvicorn

    uvicorn.run(server.streamable_http_app(json_response=True), port=PORT, log_level="warning", access_log=False)
