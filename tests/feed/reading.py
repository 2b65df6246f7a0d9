"""Reads a journal as a client would: part by part, and on with the number of the last."""

from __future__ import annotations

from collections.abc import Mapping

from octavo.core.values import Change
from octavo.feed.journal import ChangeJournal


async def since(
    journal: ChangeJournal, number: int, served: Mapping[str, str] | None = None, *, most: int = 7
) -> list[Change] | None:
    """All of it, or None for a gap."""
    found: list[Change] = []
    while True:
        part = await journal.since(number, served or {}, most=most)
        if part is None:
            return None
        found += part.changes
        if not part.more:
            return found
        number = part.last
