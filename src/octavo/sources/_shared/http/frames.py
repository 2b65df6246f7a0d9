"""The frames of a WebSocket (RFC 6455), as bytes. A client masks what it sends, a server must not."""

from __future__ import annotations

import secrets
from typing import Final, NamedTuple

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_MOST_CONTROL: Final = 125


class BadFrame(Exception):
    """What no server may send."""


class Frame(NamedTuple):
    final: bool
    code: int
    payload: bytes


def masked(code: int, payload: bytes) -> bytes:
    size = len(payload)
    head = bytes([0x80 | code])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 1 << 16:
        head += b"\xfe" + size.to_bytes(2)
    else:
        head += b"\xff" + size.to_bytes(8)
    key = secrets.token_bytes(4)
    mask = (key * (size // 4 + 1))[:size]
    body = (int.from_bytes(payload) ^ int.from_bytes(mask)).to_bytes(size) if size else b""
    return head + key + body


def taken(buffer: bytearray, most: int) -> Frame | None:
    """The first frame, removed from the buffer; None while it is not whole. Raises BadFrame, also for a payload of more
    than `most` bytes, as soon as its length is known."""
    if len(buffer) < 2:
        return None
    first, second = buffer[0], buffer[1]
    code, size, begin = first & 0x0F, second & 0x7F, 2
    if first & 0x70 or second & 0x80 or code not in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
        raise BadFrame
    if size >= 126:
        begin = 4 if size == 126 else 10
        if len(buffer) < begin:
            return None
        size = int.from_bytes(buffer[2:begin])
    control = code >= CLOSE
    if size > most or (control and (size > _MOST_CONTROL or not first & 0x80)):
        raise BadFrame
    if len(buffer) < begin + size:
        return None
    payload = bytes(buffer[begin : begin + size])
    del buffer[: begin + size]
    return Frame(bool(first & 0x80), code, payload)
