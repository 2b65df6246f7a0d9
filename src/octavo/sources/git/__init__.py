"""A branch of a local git repository, read through an object database and nothing else of git."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octavo.sources.git.source import GitSource

__all__ = ["GitSource"]


def __getattr__(name: str) -> Any:
    """Loaded when somebody asks: whoever only wants to know what can be configured opens no repository."""
    if name != "GitSource":
        raise AttributeError(name)
    from octavo.sources.git.source import GitSource

    return GitSource
