"""MCP on stdio and HTTP, in both protocol eras. The only room that imports the SDK."""

from octavo.transport.mcp.sdk_lazy import VERSIONS, promised, spare, unbuilt

spare()
with unbuilt(), promised(*VERSIONS):
    import mcp_types.methods as _  # noqa: F401  # first, and whole: everything else in this room builds on it
