"""The registry of tools and what a tool may do."""
