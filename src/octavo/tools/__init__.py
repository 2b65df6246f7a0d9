"""The registry of tools, and what one may do. Authors need two names: `from octavo.tools import ToolContext, tool`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octavo.tools.context import ToolContext
    from octavo.tools.decorator import tool

__all__ = ["ToolContext", "tool"]

_PLACES = {"ToolContext": "octavo.tools.context", "tool": "octavo.tools.decorator"}


def __getattr__(name: str) -> Any:
    """When they are asked for: a server starts without what authors need."""
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
