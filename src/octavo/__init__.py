"""Octavo: one MCP server for everything an organisation's agents need to know."""

__version__ = "0.1.0"
