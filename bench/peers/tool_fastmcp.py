"""One trivial tool on fastmcp, written the way its documentation shows."""

from fastmcp import FastMCP

server = FastMCP("bench-fastmcp")


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


server.run(show_banner=False)
