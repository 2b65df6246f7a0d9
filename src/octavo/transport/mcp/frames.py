"""Checks a raw message (size, JSON, shape) before the SDK or the lane looks at it.

The SDK accepts NaN, numbers beyond every range, members that are there twice and any depth; those bounds
are ours. What the lane takes without calling `check` is narrower still: see `lane.Lane.take`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from octavo.transport.mcp.codes import WireError

MAX_DEPTH = 64
MAX_INTEGER = 1 << 64  # integers lie strictly between minus this and this
MAX_NAME = 256  # characters of an id, a progress token or the name of a method: answers and records repeat them

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600


class Malformed(Exception):
    """What is wrong with a message; `id` is that of the message, where it has a good one."""

    def __init__(self, error: WireError, request_id: int | str | None = None) -> None:
        super().__init__(error.message)
        self.error, self.id = error, request_id


def invalid(message: str, reason: str = "invalid_request", request_id: object = None) -> Malformed:
    good = isinstance(request_id, int | str) and not isinstance(request_id, bool)
    return Malformed(WireError(_INVALID_REQUEST, message, {"reason": reason}), request_id if good else None)  # type: ignore[arg-type]


def too_large(limit: int) -> Malformed:
    return invalid(f"A message is longer than {limit} bytes", "too_large")


def check(frame: bytes) -> dict[str, Any]:
    """The message. Raises Malformed unless it is one JSON object within the bounds."""
    message = check_value(frame)
    if not isinstance(message, dict):
        raise invalid("A message is one JSON-RPC object")
    if len(frame) > MAX_NAME:
        _check_names(message)
    return message


def _check_names(message: dict[str, Any]) -> None:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    for what, name in (("id", message.get("id")), ("method", message.get("method")), ("progress token", token)):
        if isinstance(name, str) and len(name) > MAX_NAME:
            known = None if what == "id" else message.get("id")
            raise invalid(f"The {what} has more than {MAX_NAME} characters", "name_too_long", known)


def check_value(raw: bytes, *, around: int = 0) -> Any:
    """Any JSON value that stands `around` levels deep in a message. Raises Malformed."""
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH - around and _depth(raw) > MAX_DEPTH - around:
        raise invalid(f"The message is nested deeper than {MAX_DEPTH}", "too_deep")
    try:
        value = msgspec.json.decode(raw)  # strict: no NaN, no number out of range, no lone surrogate, UTF-8 only
        if type(value) is dict and raw.count(b"{") == 1 and raw.count(b":") == len(value) and not _LONG.search(raw):
            return value  # as most arguments are: flat, no member twice, no integer too large
        return _DECODER.decode(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Malformed(WireError(_PARSE_ERROR, "Parse error", {"reason": "parse_error"})) from None


_LONG = re.compile(rb"[0-9]{18}")


def _members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise invalid("The message has a member twice", "duplicate_member")
    return members


def _integer(digits: str) -> int:
    number = int(digits) if len(digits) <= 20 else MAX_INTEGER
    if abs(number) >= MAX_INTEGER:
        raise invalid("The message has an integer of more than 64 bits", "integer_too_large")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_int=_integer)


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


def error_frame(error: WireError, request_id: int | str | msgspec.Raw | None = None) -> bytes:
    body = {"code": error.code, "message": error.message, "data": error.data}
    if error.data is None:
        del body["data"]
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": body})
