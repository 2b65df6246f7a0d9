"""The interface of the change feed: publishing changes and listening to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from octavo.core.arguments import Allowed as Allowed
from octavo.core.arguments import Mode as Mode
from octavo.core.values import Change

if TYPE_CHECKING:
    pass

T = TypeVar("T")


Listener: TypeAlias = Callable[[Change], None]


class Feed(Protocol):
    """The ordered change feed of all sources."""

    def publish(self, change: Change) -> Change: ...

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` for each change, in order, on the event loop. Returns the way out."""
        ...

    def begin(self) -> None:
        """Watches now what was to wait for the first answer, if anything was."""
        ...
