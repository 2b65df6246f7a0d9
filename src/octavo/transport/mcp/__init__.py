"""MCP on stdio and HTTP, in both protocol eras. The only room that imports the SDK."""
