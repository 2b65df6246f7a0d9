"""How a change of a resource is told to clients: in notifications, in the feed and on the command line."""

from __future__ import annotations

from typing import Any

from octavo.core.clock import iso
from octavo.core.values import Change


def event(change: Change, uri: str = "", source: str = "") -> dict[str, Any]:
    """`uri` and `source` are the addresses as the listener spells them; without them, as lists give them."""
    told: dict[str, Any] = {"type": f"resource/{change.kind}", "uri": uri or str(change.shown)}
    if change.shown_source is not None:
        told["from"] = source or str(change.shown_source)
    return {**told, "timestamp": iso(change.at), "changes": change.changes}


def numbered(change: Change, uri: str = "") -> dict[str, Any]:
    return {"seq": change.seq, **event(change, uri)}
