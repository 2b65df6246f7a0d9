"""Entries held in memory: the plainest kind."""

from octavo.sources.memory.source import MemoryEntry, MemorySource, TemplateBody

__all__ = ["MemoryEntry", "MemorySource", "TemplateBody"]
