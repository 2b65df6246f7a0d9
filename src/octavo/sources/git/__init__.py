"""A branch of a local git repository, read through an object database and nothing else of git."""

from octavo.sources.git.source import GitSource

__all__ = ["GitSource"]
