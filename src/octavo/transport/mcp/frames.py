"""What a message must be before anything looks at it. Stands in front of the SDK and of the lane alike.

The SDK accepts NaN, numbers beyond every range and any depth; those bounds are ours.
"""

from __future__ import annotations

import msgspec

from octavo.transport.mcp.codes import WireError

MAX_DEPTH = 64

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600


def fault(frame: bytes) -> WireError | None:
    """What is wrong with a frame as JSON; None if nothing is."""
    if frame.count(b"{") + frame.count(b"[") > MAX_DEPTH and _depth(frame) > MAX_DEPTH:
        return WireError(_INVALID_REQUEST, f"The message is nested deeper than {MAX_DEPTH}", {"reason": "too_deep"})
    try:
        message = msgspec.json.decode(frame)
    except (ValueError, RecursionError):
        return WireError(_PARSE_ERROR, "Parse error", {"reason": "parse_error"})
    if not isinstance(message, dict):
        return WireError(_INVALID_REQUEST, "A message is one JSON-RPC object", {"reason": "invalid_request"})
    return None


def _depth(frame: bytes) -> int:
    """The deepest nesting. Brackets inside strings are skipped; no recursion."""
    depth = deepest = 0
    in_string = escaped = False
    for byte in frame:
        if in_string:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                in_string = False
        elif byte == 0x22:
            in_string = True
        elif byte in b"{[":
            depth += 1
            deepest = max(deepest, depth)
            if deepest > MAX_DEPTH:
                return deepest
        elif byte in b"}]":
            depth -= 1
    return deepest


def error_frame(error: WireError, request_id: int | str | None = None) -> bytes:
    body = {"code": error.code, "message": error.message, "data": error.data}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": body})
