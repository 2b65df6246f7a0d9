"""The composition root: the one room that knows every other.

A configuration becomes `Composed`: sources opened, eight steps folded, registries filled. `Octavo` is the running
server: it holds what is composed of the current configuration, and what outlives a reload (the feed, the ledger, the
state directory). A reload composes anew and swaps it in; a configuration that does not hold together leaves the old
one in place.
"""

from octavo.app.composition import Composed
from octavo.app.server import Octavo

__all__ = ["Composed", "Octavo"]
