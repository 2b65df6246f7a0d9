"""The composition root: the one room that knows every other.

A configuration becomes `Works`: sources opened, eight steps folded, registries filled. `Octavo` is the
running house: it holds the works of the current configuration and what outlives a reload (the feed, the
ledger, the state directory). A reload composes new works and swaps them in; a configuration that does not
hold together leaves the old ones in place.
"""

from octavo.app.compose import Composed
from octavo.app.server import Octavo

__all__ = ["Composed", "Octavo"]
