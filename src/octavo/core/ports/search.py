"""The interfaces of the ranked search and of the endpoint that embeds texts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from octavo.core.arguments import Allowed as Allowed
from octavo.core.arguments import Mode as Mode
from octavo.core.query import TextQuery
from octavo.core.search_results import Findings

if TYPE_CHECKING:
    pass

T = TypeVar("T")


class Finds(Protocol):
    """Ranked search over the texts of all sources."""

    async def find(
        self,
        query: TextQuery,
        *,
        allowed: Allowed,
        viewer: Hashable | None = None,
        cursor: str | None = None,
        limit: int = 10,
        seconds: float = 10.0,
    ) -> Findings:
        """What the documents that `allowed` says yes to have to say, as if there were no others. What it said is
        remembered by `viewer`, which must be another one when the rules are others. Within `seconds` it answers from
        what was looked at by then. Raises InvalidParams for a query without a word and for a cursor of another one,
        SourceUnavailable while the index is made anew."""
        ...


class Embedder(Protocol):
    """Texts as vectors whose angles tell how alike their meanings are. There is none built in: no model that is good
    at Korean comes with a package, so matching by meaning is off until an operator brings one."""

    name: str  # vectors of another name are not compared

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...
