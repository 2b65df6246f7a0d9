"""Adds a reason and a next step to errors that the SDK makes by itself.

The texts are ours and pydantic's, about the shape of a request. What the caller sent is not repeated, but for names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

MOST: Final = 20  # problems that are told of one request
_NAME: Final = 80  # characters of a name that are repeated
_REASONS: Final[Mapping[int, str]] = {
    types.METHOD_NOT_FOUND: "method_not_found",
    types.INVALID_PARAMS: "invalid_params",
    types.INVALID_REQUEST: "invalid_request",
    types.PARSE_ERROR: "parse_error",
    types.INTERNAL_ERROR: "internal",
    types.MISSING_REQUIRED_CLIENT_CAPABILITY: "missing_capability",
    types.UNSUPPORTED_PROTOCOL_VERSION: "unsupported_version",
    types.HEADER_MISMATCH: "header_mismatch",
}
_STATUSES: Final[Mapping[int, str]] = {
    404: "session_not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    409: "conflict",
    415: "unsupported_media_type",
}  # of HTTP, where that says more than the code
_QUOTING: Final = "Validation error"
_ONE_MESSAGE: Final = 'send one object with jsonrpc "2.0", a method, and an id that is text or an integer'
# How the SDK's message begins, the reason where neither code nor status tells it, and what to do.
_STEPS: Final = (
    ("Session not found", "", "it has ended; send initialize again"),
    ("Not Found", "", "it has ended; send initialize again"),
    ("Bad Request: Missing session ID", "missing_session", "send initialize, then its Mcp-Session-Id each time"),
    ("Not Acceptable", "", "send Accept: application/json, text/event-stream"),
    ("Method Not Allowed", "", "send POST"),
    ("Invalid Content-Type", "unsupported_media_type", "send Content-Type: application/json"),
    ("Unsupported Media Type", "", "send Content-Type: application/json"),
    ("Conflict", "", "close the other stream first"),
    ("Unsupported protocol version", "", "use one of data.supported"),
    ("params._meta", "", "every request carries them; versions with a handshake begin with initialize"),
    ("connection is serving", "", "send requests with their envelope, or connect again"),
    ("this connection serves", "other_era", "send requests without the envelope, or connect again"),
    ("Body must be", "", _ONE_MESSAGE),
    (_QUOTING, "invalid_request", _ONE_MESSAGE),
)

# For those whose words are about Python.
_PLAINLY: Final[Mapping[str, str]] = dict.fromkeys(
    ("model_type", "model_attributes_type", "dict_type", "dataclass_type"), "Input should be a valid object"
)


class ToldError(MCPError):
    """An error of ours, or of a plugin that speaks the raw protocol: it goes out as it is."""


def wrong_params(method: str, params: Mapping[str, Any] | None, found: ValidationError) -> ToldError:
    problems = [
        {"path": "".join(f"/{part}" for part in one["loc"]), "message": _PLAINLY.get(one["type"], one["msg"])}
        for one in found.errors(include_url=False, include_context=False, include_input=False)[:MOST]
    ]
    first = problems[0]
    message = f"Invalid parameters for {method}: {first['path'] or '/'}: {first['message']}"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    data = {"reason": "invalid_params", "validationErrors": problems, **_tool(method, params)}
    return ToldError(types.INVALID_PARAMS, f"{message}{more}", data)


def explained(refused: MCPError, method: str, params: Mapping[str, Any] | None, known: Sequence[str]) -> MCPError:
    """The same error, with what helps to make the request right. `known` are the methods that are served."""
    error = refused.error
    if isinstance(refused, ToldError):
        return refused
    data: dict[str, Any] = dict(error.data) if isinstance(error.data, dict) else {}
    if {*data} == {"uri"} or "reason" in data:
        return refused
    message, reason = error.message, _REASONS.get(error.code, "protocol")
    if error.code == types.METHOD_NOT_FOUND:
        near = get_close_matches(method[:_NAME], known, 1)
        hint = (
            f"did you mean {near[0]}?"
            if near and method not in known
            else "the capabilities of the server say what it serves to this version of the protocol"
        )
        message = f"Method not found: {method[:_NAME]}; {hint}"
        data["method"] = method[:_NAME]
    elif error.code == types.INVALID_PARAMS and not error.data:
        message = f"Invalid request parameters: {method[:_NAME]} came before the handshake; send initialize first"
        reason = "not_initialized"
    return ToldError(error.code, message, {"reason": reason, **data, **_tool(method, params)})


def unserved(error: types.ErrorData, status: int = 0) -> types.ErrorData:
    """What the SDK refused before it came to a method, with a reason and a next step. `status` is that of HTTP."""
    data: dict[str, Any] = dict(error.data) if isinstance(error.data, dict) else {}
    message, step = error.message, ""
    reason = _REASONS.get(error.code, "protocol")
    if error.code == types.INVALID_REQUEST:
        reason = _STATUSES.get(status, reason)
    for begins, why, then in _STEPS:
        if message.startswith(begins):
            reason, step = why or reason, then
            break
    if message.startswith(_QUOTING):  # what was sent, in the words of a library
        message = _QUOTING
    if not step and error.code == types.HEADER_MISMATCH:
        step = "send headers and body of the same request"
    return types.ErrorData(
        code=error.code, message=f"{message}; {step}" if step else message, data={"reason": reason, **data}
    )


def _tool(method: str, params: Mapping[str, Any] | None) -> dict[str, str]:
    name = params.get("name") if params is not None and method == "tools/call" else None
    return {"toolName": name[:_NAME]} if isinstance(name, str) else {}
