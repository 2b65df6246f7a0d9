"""What the SDK refuses over HTTP before it comes to a method, with a reason and a next step. Its statuses stay."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import mcp_types as types
import msgspec
from pydantic import ValidationError

from octavo.transport.http.exchange import Message, Send, respond
from octavo.transport.mcp import frames
from octavo.transport.mcp.codes import WireError
from octavo.transport.mcp.sdk_errors import unserved

_REPLACED = (b"content-length", b"content-type")


class RefusalSent:
    """`send` of one refusal, which is told when it is whole."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message = {}
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        status = self._start["status"]
        request_id, error = _said(self._body, status)
        told = unserved(error, status)
        frame = frames.error_frame(WireError(told.code, told.message, told.data), request_id)
        kept = [(name, value) for name, value in self._start["headers"] if name not in _REPLACED]
        await respond(self._send, status, frame, kept)


def _said(body: bytes, status: int) -> tuple[Any, types.ErrorData]:
    """The id and the error; of an empty body and of plain text, one that says the same."""
    try:
        decoded = msgspec.json.decode(body)
        return decoded.get("id"), types.ErrorData.model_validate(decoded["error"])
    except (msgspec.DecodeError, AttributeError, KeyError, TypeError, ValidationError):
        message = body.decode("utf-8", "replace") or HTTPStatus(status).phrase
        return None, types.ErrorData(code=types.INVALID_REQUEST, message=message)
