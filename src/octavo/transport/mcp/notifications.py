"""Notes as they leave: each is made once, whoever hears of it, and encoded once where a stream is made of bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types

from octavo.transport.mcp import wire_names
from octavo.transport.mcp.subscriber import Note


def plain(note: Note) -> dict[str, Any] | None:
    """Its params, as JSON knows them."""
    if "plain" not in note.memo:
        made = notification(note).model_dump(by_alias=True, mode="json", exclude_none=True)
        note.memo["plain"] = made.get("params")
    params: dict[str, Any] | None = note.memo["plain"]
    return params


def tagged(note: Note, tag: Mapping[str, Any]) -> dict[str, Any]:
    """The same with what says to which stream it belongs, which comes last."""
    params = dict(plain(note) or {})
    meta = params.pop("_meta", {})
    return {**params, "_meta": {**meta, **tag}}


def end_of(tag: Mapping[str, Any]) -> bytes:
    """What `framed` has at its end on one stream."""
    return _compact(tag)[1:-1] + b"}}}\r\n\r\n"


def framed(note: Note, end: bytes) -> bytes:
    """The same as one event of a stream. What stands before the end is encoded once for all streams."""
    beginning: bytes | None = note.memo.get("frame")
    if beginning is None:
        whole = _compact({"jsonrpc": "2.0", "method": note.method, "params": tagged(note, {"": 0})})
        beginning = note.memo["frame"] = b"event: message\r\ndata: " + whole.removesuffix(_TAG)
    return beginning + end


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


_TAG = b'"":0}}}'


def notification(note: Note) -> types.ServerNotification:
    meta = note.params.get("_meta")
    match note.method:
        case wire_names.UPDATED:
            updated = types.ResourceUpdatedNotificationParams(uri=note.params["uri"], _meta=meta)
            return types.ResourceUpdatedNotification(params=updated)
        case wire_names.TASKS:
            from octavo.transport.mcp.task_events import news

            return news(note.params)
        case "notifications/tools/list_changed":
            return types.ToolListChangedNotification(params=types.NotificationParams(_meta=meta))
        case "notifications/prompts/list_changed":
            return types.PromptListChangedNotification(params=types.NotificationParams(_meta=meta))
        case _:
            return types.ResourceListChangedNotification(params=types.NotificationParams(_meta=meta))
