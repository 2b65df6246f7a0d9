"""A change as it is told outside: in notifications, in the feed and on the command line."""

from __future__ import annotations

from typing import Any

from octavo.core.clock import iso
from octavo.core.model import Change


def event(change: Change, uri: str = "") -> dict[str, Any]:
    """`uri` is the address as the listener spells it."""
    told: dict[str, Any] = {"type": f"resource/{change.kind}", "uri": uri or str(change.ref)}
    if change.source is not None:
        told["from"] = str(change.source)
    return {**told, "timestamp": iso(change.at), "changes": change.changes}


def numbered(change: Change) -> dict[str, Any]:
    return {"seq": change.seq, **event(change)}
