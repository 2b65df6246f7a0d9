"""The interface of the audit ledger: where records are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from octavo.core.arguments import Allowed as Allowed
from octavo.core.arguments import Mode as Mode

if TYPE_CHECKING:
    pass

T = TypeVar("T")


class Ledger(Protocol):
    """Append-only audit records. `append` is cheap and never blocks; nothing that a record describes
    may leave the process before `flush` has returned."""

    def append(self, record: bytes) -> None:
        """One JSON object without its closing line end."""
        ...

    def crowd(self, record: bytes, who: str, op: str, outcome: str) -> None:
        """The same for one of which there may be very many: beyond a number they are only counted, by the rest."""
        ...

    def flush(self) -> None:
        """Raises Unrecorded when the records could not be stored."""
        ...

    def check(self) -> None:
        """Raises Unrecorded where what is recorded next could not be stored, as far as that can be told."""
        ...

    def intend(self, record: bytes) -> None:
        """Stores at once that something is about to be changed, which must not begin before this returns.

        Raises Unrecorded, and forgets the record, where it cannot be stored."""
        ...

    def settle(self, record: bytes, *, now: bool) -> bool:
        """The outcome of what was intended: it goes before other records, into room that is held for it.

        `now`: at once. Whether everything that was settled so far is stored."""
        ...

    def close(self) -> None: ...
